//! Rules of the records that runs printed.
//!
//! Records are of one kind if the same fields name their type. A rule has the fields that all records of its kind have:
//! a name that never differs, what differs as a placeholder or a type. Numbers and texts are expected by their type. The
//! reason of a rule names the fields with different values of which only the type is expected.

use std::collections::BTreeSet;

use model::case::Count;
use model::case::expect::{
    FieldRule, JsonKind, Order, RecordRule, RecordRules, Records, ValueRule, pointer,
};
use model::evidence::Record;
use serde_json::{Map, Value};

use super::pattern;

/// Most kinds of records that get rules.
const MAX_KINDS: usize = 32;
/// Fields that name the type of a record. `type` of a nested object does so too: `/event/type`.
const TYPES: [&str; 6] = ["type", "subtype", "event", "kind", "level", "method"];
/// Longest name, in bytes.
const MAX_NAME: usize = 64;
/// Most fields that a reason names. A reason has at most 300 characters.
const MAX_NAMED: usize = 3;

/// Records of one kind.
struct Kind<'r> {
    conditions: Vec<FieldRule>,
    records: Vec<&'r Map<String, Value>>,
}

/// Derives the form and the rules of standard output; without them, the reason.
pub(crate) fn records(runs: &[&[Record]], reason: &str) -> (Option<Records>, Option<String>) {
    let not_judged = |why: &str| (None, Some(format!("Standard output is not judged: {why}.")));
    if runs.iter().any(|run| run.is_empty()) {
        return not_judged("it was empty");
    }
    let lines = || runs.iter().copied().flatten();
    if lines().any(|record| record.json().is_none()) {
        return not_judged("it is not one JSON object on each line");
    }
    let Some(rules) = rules(runs, reason) else {
        let why =
            format!("Fields of records are not judged: there are more than {MAX_KINDS} kinds.");
        return (Some(Records::default()), Some(why));
    };
    let in_order = |run: &&[Record]| places(&rules, run).is_sorted();
    let order = if runs.iter().all(in_order) {
        Order::Listed
    } else {
        Order::Any
    };
    let rules = Some(RecordRules { order, rules });
    (
        Some(Records {
            stream: None,
            rules,
        }),
        None,
    )
}

/// Kinds of the records, in the order of their first record.
fn kinds<'r>(records: impl Iterator<Item = &'r Record>) -> Vec<Kind<'r>> {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for object in records.filter_map(|record| record.json()?.as_object()) {
        let conditions = conditions(object);
        let mut known = kinds.iter_mut();
        if let Some(kind) = known.find(|kind| kind.conditions == conditions) {
            kind.records.push(object);
            continue;
        }
        kinds.push(Kind {
            conditions,
            records: vec![object],
        });
        if kinds.len() > MAX_KINDS {
            break;
        }
    }
    kinds
}

/// Fields that name the type of a record.
fn conditions(record: &Map<String, Value>) -> Vec<FieldRule> {
    let own = TYPES.into_iter().filter_map(|key| {
        let value = record.get(key)?;
        Some((pointer([key]), value))
    });
    let nested = record.iter().filter_map(|(key, value)| {
        let value = value.get("type").filter(|_| is_key(key))?;
        Some((pointer([key, "type"]), value))
    });
    let names = own.chain(nested).filter_map(|(pointer, value)| {
        let name = value.as_str().filter(|name| is_name(name))?;
        Some(FieldRule {
            pointer,
            value: ValueRule::Text(name.parse().ok()?),
        })
    });
    sorted(names.collect())
}

/// Fields in the order of a case file.
fn sorted(mut fields: Vec<FieldRule>) -> Vec<FieldRule> {
    fields.sort_by(|one, other| one.pointer.cmp(&other.pointer));
    fields
}

/// Rules of the kinds, if there are not too many. If a rule would also take records of a later kind, rules with more
/// conditions come first: their conditions are then never those of an earlier rule.
pub(crate) fn rules(runs: &[&[Record]], reason: &str) -> Option<Vec<RecordRule>> {
    let mut kinds = kinds(runs.iter().copied().flatten());
    if kinds.len() > MAX_KINDS {
        return None;
    }
    let takes = |earlier: &Kind<'_>, later: &Kind<'_>| {
        let mut conditions = earlier.conditions.iter();
        conditions.all(|condition| later.conditions.contains(condition))
    };
    let mut pairs = kinds.iter().enumerate();
    let is_mixed = pairs.any(|(place, earlier)| {
        let mut later = kinds.iter().skip(place + 1);
        later.any(|later| takes(earlier, later))
    });
    if is_mixed {
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.conditions.len()));
    }
    let rule = |kind: Kind<'_>| {
        let fields = fields(&kind);
        let widened = fields.iter().filter(|(_, is_widened)| *is_widened);
        RecordRule {
            count: Count::ANY,
            reason: reason_with(widened.map(|(field, _)| field), reason),
            fields: sorted(fields.iter().map(|(field, _)| field.clone()).collect()),
            conditions: kind.conditions,
        }
    };
    let mut rules: Vec<RecordRule> = kinds.into_iter().map(rule).collect();
    let places: Vec<Vec<usize>> = runs.iter().map(|run| places(&rules, run)).collect();
    for (number, rule) in rules.iter_mut().enumerate() {
        let counts = places
            .iter()
            .map(|places| places.iter().filter(|place| **place == number).count() as u64);
        rule.count = Count {
            from: counts.clone().min().unwrap_or(0),
            to: counts.max(),
        };
    }
    Some(rules)
}

/// Number of the rule of each record.
fn places(rules: &[RecordRule], run: &[Record]) -> Vec<usize> {
    let records = run.iter().filter_map(Record::json);
    let places = records.filter_map(|json| rules.iter().position(|rule| rule.selects(json)));
    places.collect()
}

/// Reason of a rule that expects only the types of these fields, because their values differ.
pub(crate) fn reason_with<'f>(
    widened: impl Iterator<Item = &'f FieldRule>,
    reason: &str,
) -> String {
    let mut names: Vec<&str> = widened.map(|field| field.pointer.as_str()).collect();
    if names.is_empty() {
        return reason.to_owned();
    }
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(MAX_NAMED);
    let names = names.join(", ");
    format!("any value of its type in {names}{more}, because the values differ; {reason}")
}

/// Fields that all records of the kind have, without those of its conditions. True for a field whose values differ and
/// of which only the type is expected.
fn fields(kind: &Kind<'_>) -> Vec<(FieldRule, bool)> {
    let Some(first) = kind.records.first() else {
        return Vec::new();
    };
    let rule = |key: &String| {
        let pointer = pointer([key.as_str()]);
        let mut conditions = kind.conditions.iter();
        if !is_key(key) || conditions.any(|condition| condition.pointer == pointer) {
            return None;
        }
        let values = kind.records.iter().map(|record| record.get(key));
        let values: Option<Vec<&Value>> = values.collect();
        let values = values?;
        let value = value(&values);
        let differ = values.windows(2).any(|pair| pair.first() != pair.last());
        let is_widened = differ && matches!(value, ValueRule::Kinds(_));
        Some((FieldRule { pointer, value }, is_widened))
    };
    first.keys().filter_map(rule).collect()
}

/// Expects all of these values.
pub(crate) fn value(values: &[&Value]) -> ValueRule {
    let all = |fits: fn(&Value) -> bool| values.iter().all(|value| fits(value));
    let texts = values.iter().filter_map(|value| value.as_str());
    match values {
        [Value::Bool(first), ..] if values.iter().all(|value| **value == *first) => {
            ValueRule::Boolean(*first)
        }
        [..] if all(|value| value.as_array().is_some_and(Vec::is_empty)) => {
            ValueRule::List(Vec::new())
        }
        [..] if all(Value::is_string)
            && let Some(text) = pattern::of_names(texts, is_name)
            && let Ok(pattern) = text.parse() =>
        {
            ValueRule::Text(pattern)
        }
        [..] => {
            let kinds = values.iter().map(|value| JsonKind::of(value));
            let words: BTreeSet<&str> = kinds.map(JsonKind::word).collect();
            let mut kinds = JsonKind::ALL.to_vec();
            kinds.retain(|kind| words.contains(kind.word()));
            ValueRule::Kinds(kinds)
        }
    }
}

/// Checks for a key that does not differ between runs: a name, or no text.
fn is_key(key: &str) -> bool {
    key.is_empty() || is_name(key)
}

/// Checks for a name: short, and no path of the host, date or prose.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.:-/~".contains(c);
    text.len() <= MAX_NAME
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(is_part)
        && !text.contains("//")
}
