//! Expected records on standard output: their form, and rules of their fields.

use std::fmt;

use scenario::closed_set;
use serde_json::{Number, Value};

use super::{JsonKind, Order};
use crate::policy::Count;
use crate::profile::{RecordNames, TextPattern};

/// Records on standard output: one JSON object on each line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// The records are those of a turn: init, status, the provider's events, the answer, the result.
    pub stream: Option<AgentStream>,
    /// Rules of the records. A record that no rule matches is a finding; `None`: not judged.
    pub rules: Option<RecordRules>,
}

/// Records of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentStream {
    /// True if each provider event has a record.
    pub partial_messages: bool,
    /// True if the init record's list of tools must be empty.
    pub no_tools: bool,
    /// Names in the records; the profile completes them.
    pub names: Option<RecordNames>,
}

closed_set! {
    /// Form of standard output.
    pub enum Format {
        /// Not judged.
        None = "none",
        /// One JSON object on each line.
        JsonLines = "json-lines",
        /// The records of a turn: init, status, the provider's events, the answer, the result.
        AgentStream = "agent-stream",
    }
}

/// Rules of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRules {
    /// Order of the records.
    pub order: Order,
    /// Rules; the first match counts.
    pub rules: Vec<RecordRule>,
}

/// Rule of one kind of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRule {
    /// Fields that select the records of the rule; none: all records.
    pub conditions: Vec<FieldRule>,
    /// Number of such records.
    pub count: Count,
    /// Fields that each of them has.
    pub fields: Vec<FieldRule>,
    /// Reason for the records.
    pub reason: String,
}

/// Expected field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRule {
    /// Place of the field, a JSON pointer (RFC 6901): `/usage/output_tokens`.
    pub pointer: String,
    /// Expected value.
    pub value: ValueRule,
}

/// Expected JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueRule {
    /// A string of this pattern.
    Text(TextPattern),
    /// This number.
    Number(Number),
    /// This truth value.
    Boolean(bool),
    /// A list of as many values, each as expected.
    List(Vec<Self>),
    /// Any value of one of these types.
    Kinds(Vec<JsonKind>),
}

/// Returns the JSON pointer of the value behind these keys (RFC 6901, section 3).
pub fn pointer<'k>(keys: impl IntoIterator<Item = &'k str>) -> String {
    let keys = keys.into_iter();
    let keys = keys.map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")));
    keys.collect()
}

impl Records {
    /// Form of the records.
    pub fn format(&self) -> Format {
        match self.stream {
            Some(_) => Format::AgentStream,
            None => Format::JsonLines,
        }
    }
}

impl RecordRule {
    /// Returns true for a record that the rule selects.
    pub fn selects(&self, record: &Value) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.all(|condition| condition.is_met(record))
    }

    /// Conditions for messages: `/type "result", /subtype "success"`.
    pub fn words(&self) -> String {
        let conditions: Vec<String> = self.conditions.iter().map(FieldRule::to_string).collect();
        match conditions.as_slice() {
            [] => "any record".to_owned(),
            conditions => conditions.join(", "),
        }
    }
}

impl FieldRule {
    /// Returns true if the record has the field with the expected value.
    pub fn is_met(&self, record: &Value) -> bool {
        let value = record.pointer(&self.pointer);
        value.is_some_and(|value| self.value.allows(value))
    }
}

impl ValueRule {
    /// Returns true for an expected value.
    pub fn allows(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text(pattern), Value::String(text)) => pattern.matches(text),
            (Self::Number(expected), Value::Number(number)) => is_equal(expected, number),
            (Self::Boolean(expected), Value::Bool(value)) => expected == value,
            (Self::List(expected), Value::Array(items)) => {
                let mut pairs = expected.iter().zip(items);
                expected.len() == items.len() && pairs.all(|(expected, item)| expected.allows(item))
            }
            (Self::Kinds(kinds), value) => kinds.contains(&JsonKind::of(value)),
            (Self::Text(_) | Self::Number(_) | Self::Boolean(_) | Self::List(_), _) => false,
        }
    }
}

/// Compares numbers by value: JSON does not tell `1` from `1.0`.
fn is_equal(one: &Number, other: &Number) -> bool {
    one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
}

impl fmt::Display for FieldRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.pointer, self.value)
    }
}

impl fmt::Display for ValueRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(pattern) => write!(out, "{}", Value::from(pattern.to_string())),
            Self::Number(number) => write!(out, "{number}"),
            Self::Boolean(value) => write!(out, "{value}"),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::to_string).collect();
                write!(out, "[{}]", items.join(", "))
            }
            Self::Kinds(kinds) => {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
                out.write_str(&kinds.join(" or "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn text(pattern: &str) -> ValueRule {
        ValueRule::Text(pattern.parse().unwrap())
    }

    fn number(value: &Value) -> ValueRule {
        ValueRule::Number(value.as_number().unwrap().clone())
    }

    #[test]
    fn values_are_compared_by_type_and_content() {
        for (rule, value, other) in [
            (text("success"), json!("success"), json!("succes")),
            (text("{digits}"), json!("17"), json!(17)),
            (number(&json!(1)), json!(1.0), json!(2)),
            (number(&json!(0.5)), json!(0.5), json!("0.5")),
            (ValueRule::Boolean(false), json!(false), json!(null)),
            (ValueRule::List(Vec::new()), json!([]), json!(["a"])),
            (
                ValueRule::List(vec![text("a"), ValueRule::Boolean(true)]),
                json!(["a", true]),
                json!(["a"]),
            ),
            (
                ValueRule::Kinds(vec![JsonKind::String, JsonKind::Null]),
                json!(null),
                json!({}),
            ),
        ] {
            assert!(rule.allows(&value), "{rule} {value}");
            assert!(!rule.allows(&other), "{rule} {other}");
        }
    }

    #[test]
    fn pointer_escapes_slashes_and_tildes() {
        for (keys, expected) in [
            (&[][..], ""),
            (&[""], "/"),
            (&["a", "", "b"], "/a//b"),
            (&["a/b"], "/a~1b"),
            (&["~"], "/~0"),
            (&["~1", "/~"], "/~01/~1~0"),
        ] {
            assert_eq!(pointer(keys.iter().copied()), expected);
        }
    }

    proptest! {
        #[test]
        fn pointer_finds_the_value_of_its_keys(one in "[a~/01 é]{0,6}", two in "[a~/01]{0,6}") {
            let record = json!({one.clone(): {two.clone(): 7}});
            let found = record.pointer(&pointer([&*one, &*two]));
            prop_assert_eq!(found, Some(&json!(7)));
        }
    }

    #[test]
    fn fields_are_found_by_json_pointers() {
        let record = json!({"a/b": {"~": [0, "x"]}, "type": "t"});
        let field = |pointer: &str, value| FieldRule {
            pointer: pointer.to_owned(),
            value,
        };
        let whole = ValueRule::Kinds(vec![JsonKind::Object]);
        for (pointer, value, is_met) in [
            ("/a~1b/~0/1", text("x"), true),
            ("/a~1b/~0/2", text("x"), false),
            ("/a~1b/~0/01", text("x"), false),
            ("/type", text("t"), true),
            ("", whole, true),
        ] {
            assert_eq!(field(pointer, value).is_met(&record), is_met, "{pointer}");
        }
    }
}
