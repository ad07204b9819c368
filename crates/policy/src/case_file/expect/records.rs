//! File form of the records on standard output, and of the rules of their fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use model::case::expect::{
    AgentStream, FieldRule, Format, JsonKind, Order, RecordRule, RecordRules, Records, ValueRule,
};
use model::case::{Count, Switch};
use model::quote::quoted;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number;
use toml::Spanned;

use super::{CountFile, EXPECTED_TEXT, Tools, times};
use crate::error::Flaw;
use crate::placeholders::pattern;
use crate::schema::Sentence;
use crate::values::{one_of, reject_repeated, sentence};

/// Records on standard output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectRecords")]
pub(super) struct RecordsFile {
    /// Form of standard output.
    #[schemars(with = "Format")]
    format: Spanned<Format>,
    /// In an agent-stream: true if each provider event has a record. The value must agree with the switch
    /// `partial-messages`, which is also the default.
    #[schemars(with = "Option<bool>")]
    partial_messages: Option<Spanned<bool>>,
    /// In an agent-stream: list of tools of the init record.
    #[schemars(with = "Option<Tools>")]
    tools: Option<Spanned<Tools>>,
    /// Order of the records, with rules only.
    #[schemars(with = "Option<Order>")]
    order: Option<Spanned<Order>>,
    /// Rules; the first match counts. Without this key, the fields are not judged; with it, a record that no rule
    /// selects is a finding.
    rule: Option<Vec<RuleFile>>,
}

/// Rule of one kind of records.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RecordRule")]
struct RuleFile {
    /// Fields that select the records of the rule, by JSON pointer; without this key, all records.
    #[serde(rename = "where", default)]
    #[schemars(with = "BTreeMap<String, ValueSchema>")]
    conditions: FieldsFile,
    /// Number of such records; without this key, any.
    count: Option<CountFile>,
    /// Fields that each of them has, by JSON pointer.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ValueSchema>")]
    fields: FieldsFile,
    /// Reason for the records.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// Expected values, by the JSON pointer of their field.
type FieldsFile = BTreeMap<Spanned<String>, Spanned<ValueFile>>;

/// Expected JSON value.
#[derive(Debug)]
enum ValueFile {
    Text(String),
    Number(Number),
    Boolean(bool),
    List(Vec<Spanned<Self>>),
    Kinds(KindsFile),
}

/// Any value of one of these types.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ValueOfType")]
struct KindsFile {
    /// JSON type, or a list of types.
    #[serde(rename = "type")]
    #[schemars(with = "KindsSchema")]
    kinds: Box<Spanned<ValueFile>>,
}

/// Schema of [`ValueFile`].
#[derive(JsonSchema)]
#[schemars(rename = "ExpectedValue", untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum ValueSchema {
    /// String; placeholders as in paths of files.
    Text(String),
    /// Number, compared by its value.
    Number(f64),
    /// Truth value.
    Boolean(bool),
    /// List of as many values.
    List(Vec<Self>),
    /// Any value of a type.
    Kinds(KindsFile),
}

/// Schema of the types.
#[derive(JsonSchema)]
#[schemars(rename = "JsonKinds", untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum KindsSchema {
    /// One type.
    One(JsonKind),
    /// One of several.
    Several(Vec<JsonKind>),
}

impl ValueFile {
    fn list(&self) -> Option<&Vec<Spanned<Self>>> {
        if let Self::List(items) = self {
            Some(items)
        } else {
            None
        }
    }
}

impl<'de> Deserialize<'de> for ValueFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;

        impl<'de> Visitor<'de> for Value {
            type Value = ValueFile;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string, a number, true, false, a list of them, or a type")
            }

            fn visit_str<E>(self, text: &str) -> Result<ValueFile, E> {
                Ok(ValueFile::Text(text.to_owned()))
            }

            fn visit_bool<E>(self, value: bool) -> Result<ValueFile, E> {
                Ok(ValueFile::Boolean(value))
            }

            fn visit_i64<E>(self, number: i64) -> Result<ValueFile, E> {
                Ok(ValueFile::Number(number.into()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<ValueFile, E> {
                Ok(ValueFile::Number(number.into()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<ValueFile, E> {
                let finite = Number::from_f64(number);
                let wrong = || E::invalid_value(Unexpected::Float(number), &"a finite number");
                finite.map(ValueFile::Number).ok_or_else(wrong)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ValueFile, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(ValueFile::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<ValueFile, A::Error> {
                KindsFile::deserialize(MapAccessDeserializer::new(table)).map(ValueFile::Kinds)
            }
        }

        deserializer.deserialize_any(Value)
    }
}

/// Parses the table. `switches` are those of the task.
pub(super) fn parsed(file: RecordsFile, switches: &[Switch]) -> Result<Option<Records>, Flaw> {
    let format = *file.format.get_ref();
    if format != Format::AgentStream {
        let key = file.partial_messages.as_ref().map(Spanned::span);
        let key = key.or_else(|| file.tools.as_ref().map(Spanned::span));
        reject(key, "format = \"agent-stream\"")?;
    }
    let rules = rules(file.rule, file.order, file.format.span())?;
    let stream = match format {
        Format::None if rules.is_some() => {
            let hint = "write format = \"json-lines\", or remove the rules";
            let span = file.format.span();
            return Err(Flaw::new(span, "a format with rules", quoted("none"), hint));
        }
        Format::None => return Ok(None),
        Format::JsonLines => None,
        Format::AgentStream => {
            let partial = file.partial_messages.as_ref();
            let partial = partial.map(|partial| agreed(partial, switches));
            let switched_on = switches.contains(&Switch::PartialMessages);
            Some(AgentStream {
                partial_messages: partial.transpose()?.unwrap_or(switched_on),
                no_tools: file.tools.map(Spanned::into_inner) == Some(Tools::Empty),
                names: None,
            })
        }
    };
    Ok(Some(Records { stream, rules }))
}

/// Parses the rules and their order; `format` is the place of a missing order.
fn rules(
    file: Option<Vec<RuleFile>>,
    order: Option<Spanned<Order>>,
    format: Range<usize>,
) -> Result<Option<RecordRules>, Flaw> {
    match (file, order) {
        (None, None) => Ok(None),
        (None, Some(order)) => {
            reject(Some(order.span()), "rules of the records")?;
            Ok(None)
        }
        (Some(_), None) => {
            let hint = "write order = \"listed\" or order = \"any\" under [expect.records]";
            Err(Flaw::new(format, "`order` beside the rules", "none", hint))
        }
        (Some(file), Some(order)) => {
            let rules: Result<_, Flaw> = file.into_iter().map(rule).collect();
            Ok(Some(RecordRules {
                order: order.into_inner(),
                rules: rules?,
            }))
        }
    }
}

/// Rejects a key that belongs to something else.
fn reject(key: Option<Range<usize>>, owner: &str) -> Result<(), Flaw> {
    let Some(span) = key else {
        return Ok(());
    };
    let hint = format!("this key belongs to {owner}");
    Err(Flaw::new(span, "no further key", "one", hint))
}

/// Rejects a case that has the switch `partial-messages` without expecting the records, or the reverse.
fn agreed(expected: &Spanned<bool>, switches: &[Switch]) -> Result<bool, Flaw> {
    let switched_on = switches.contains(&Switch::PartialMessages);
    if *expected.get_ref() == switched_on {
        return Ok(switched_on);
    }
    let hint = "it must agree with the switch `partial-messages` under [invocation]";
    Err(Flaw::new(
        expected.span(),
        switched_on,
        expected.get_ref(),
        hint,
    ))
}

fn rule(file: RuleFile) -> Result<RecordRule, Flaw> {
    Ok(RecordRule {
        conditions: fields(file.conditions)?,
        count: times(file.count, Count::ANY)?,
        fields: fields(file.fields)?,
        reason: sentence(file.reason)?,
    })
}

fn fields(file: FieldsFile) -> Result<Vec<FieldRule>, Flaw> {
    let field = |(pointer, rule): (Spanned<String>, _)| {
        Ok(FieldRule {
            value: value(rule)?,
            pointer: self::pointer(pointer)?,
        })
    };
    file.into_iter().map(field).collect()
}

/// Checks a JSON pointer (RFC 6901, section 3).
fn pointer(value: Spanned<String>) -> Result<String, Flaw> {
    let text = value.get_ref();
    let is_rooted = text.is_empty() || text.starts_with('/');
    let mut escapes = text.split('~').skip(1);
    if is_rooted && escapes.all(|rest| rest.starts_with(['0', '1'])) {
        return Ok(value.into_inner());
    }
    let hint = "write \"/usage/output_tokens\"; in a name, `~1` is a slash and `~0` a tilde";
    let found = quoted(text);
    Err(Flaw::new(value.span(), "a JSON pointer", found, hint))
}

fn value(file: Spanned<ValueFile>) -> Result<ValueRule, Flaw> {
    let span = file.span();
    Ok(match file.into_inner() {
        ValueFile::Text(text) => {
            let value = Spanned::new(span, text);
            ValueRule::Text(pattern(&value, value.get_ref(), EXPECTED_TEXT)?)
        }
        ValueFile::Number(number) => ValueRule::Number(number),
        ValueFile::Boolean(value) => ValueRule::Boolean(value),
        ValueFile::List(items) => {
            let items: Result<_, Flaw> = items.into_iter().map(value).collect();
            ValueRule::List(items?)
        }
        ValueFile::Kinds(file) => ValueRule::Kinds(kinds(&file.kinds)?),
    })
}

fn kinds(file: &Spanned<ValueFile>) -> Result<Vec<JsonKind>, Flaw> {
    let several = |words: &&Vec<_>| !words.is_empty();
    let words = file.get_ref().list().filter(several);
    let words: Vec<_> = words.map_or_else(|| vec![file], |words| words.iter().collect());
    let mut seen = BTreeSet::new();
    let kind = |word: &Spanned<ValueFile>| {
        let span = word.span();
        let ValueFile::Text(text) = word.get_ref() else {
            let hint = "write { type = \"string\" }, or { type = [\"string\", \"null\"] }";
            return Err(Flaw::new(span, "a JSON type", "another value", hint));
        };
        let word = Spanned::new(span, text.clone());
        reject_repeated(&mut seen, &word, "each type once")?;
        one_of(&word, &JsonKind::ALL, JsonKind::word)
    };
    words.into_iter().map(kind).collect()
}
