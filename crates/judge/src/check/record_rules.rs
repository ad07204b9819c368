//! Check of the records against the rules of the case.

use model::case::expect::{FieldRule, JsonKind, Order, RecordRule, RecordRules, ValueRule};
use model::evidence::{Evidence, Record};
use model::text::count;
use serde_json::Value;

use super::RECORDS;
use super::outcome::{Deviation, JudgedRun, NotPassed, Outcome, list, not_asked};
use super::records::name;

/// Judges each record by the first rule that selects it, and the number of records of each rule. Lines that are no
/// record are those of another check.
pub(super) fn rules(run: &JudgedRun) -> Outcome {
    let Some(RecordRules { order, rules }) = &run.records()?.rules else {
        return not_asked("the records of the case have no rules");
    };
    let mut numbers = vec![0; rules.len()];
    let mut last = 0;
    for (record, json) in objects(run.evidence) {
        let place = rules.iter().position(|rule| rule.selects(json));
        let (Some(place), Some(number)) = (place, place.and_then(|place| numbers.get_mut(place)))
        else {
            return Deviation::new("No rule selects a record.")
                .at(name(record))
                .expected(list(rules.iter().map(RecordRule::words)))
                .found(record.label())
                .failed();
        };
        *number += 1;
        if *order == Order::Listed && place < last {
            return Deviation::new("A record comes after records of a later rule.")
                .at(name(record))
                .expected("the order of the rules")
                .found(record.label())
                .failed();
        }
        last = place;
        judge(record, json, rules.get(place))?;
    }
    for (rule, number) in rules.iter().zip(numbers) {
        if !rule.count.allows(number) {
            return Deviation::new("Records of a rule are not there as often as expected.")
                .at(rule.words())
                .failed_number(rule.count, number, "record", RECORDS);
        }
    }
    Ok(format!(
        "{}: each record is of one, as often as expected, with its fields.",
        count(rules.len(), "rule")
    ))
}

/// Judges the fields of a record.
fn judge(record: &Record, json: &Value, rule: Option<&RecordRule>) -> Result<(), NotPassed> {
    let mut fields = rule.into_iter().flat_map(|rule| &rule.fields);
    let Some(FieldRule { pointer, value }) = fields.find(|field| !field.is_met(json)) else {
        return Ok(());
    };
    let found = json.pointer(pointer);
    let found = found.map_or_else(|| "no such field".to_owned(), |found| shown(found, value));
    Deviation::new("A record does not have a field as its rule says.")
        .at(format!("{}, {pointer}", name(record)))
        .expected(value.to_string())
        .found(found)
        .failed()
}

/// Value for a report: a text only where the rule expects a text, since others may be the prompt.
fn shown(found: &Value, expected: &ValueRule) -> String {
    match (found, expected) {
        (Value::String(text), ValueRule::Text(_)) => Value::from(text.as_str()).to_string(),
        (Value::String(text), _) => format!("a string of {}", count(text.len(), "byte")),
        (Value::Array(_) | Value::Object(_), _) => JsonKind::of(found).word().to_owned(),
        (Value::Null | Value::Bool(_) | Value::Number(_), _) => found.to_string(),
    }
}

/// Records with their JSON objects.
fn objects(evidence: &Evidence) -> impl Iterator<Item = (&Record, &Value)> {
    let records = evidence.records.iter();
    records.filter_map(|record| Some((record, record.json()?)))
}
