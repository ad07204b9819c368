//! Entry of a list whose number counts, with the facts inside of it: headers and leaves of a body.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::difference::Area;
use model::shape::is_text;
use serde_json::{Map, Value};

use super::mask::Kind;
use super::rules::{Act, LONG_NAME, NAMES, SHORT_TEXT};
use super::visitor::Visitor;
use super::word::{numbered, quoted};
use super::{FACT_BYTES, Facts, bounded};

/// Fields whose parts are facts of their own.
pub(super) const INNER: [&str; 2] = ["headers", "body"];

/// Actions for the fields of an entry, each with the name of its rule.
type Acts = BTreeMap<&'static str, (&'static str, Act)>;

/// Value of an entry and its inner facts. Entries of one key are sorted, the one with the most facts first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    number: Reverse<usize>,
    inner: Vec<(Area, String, String)>,
    value: String,
}

/// Reads an entry. Its headers and its body are facts of their own.
pub(super) fn read(
    value: String,
    row: &Map<String, Value>,
    acts: &Acts,
    visitor: &mut Visitor,
) -> Entry {
    let mut reader = Reader {
        acts,
        visitor,
        inner: Vec::new(),
        bytes: 0,
    };
    if let Some(headers) = row.get("headers").and_then(Value::as_array) {
        reader.headers(headers);
    }
    if let Some(body) = row.get("body") {
        reader.body(body);
    }
    let inner = reader.inner;
    let number = Reverse(inner.len());
    Entry {
        number,
        inner,
        value,
    }
}

impl Entry {
    /// Size of the inner facts, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let facts = self.inner.iter();
        let sizes = facts.map(|(_, key, value)| key.len() + value.len() + FACT_BYTES);
        sizes.sum()
    }

    pub(super) fn add(self, area: Area, key: &str, number: u64, facts: &mut Facts) {
        let times = if number > 1 {
            format!(" × {number}")
        } else {
            String::new()
        };
        facts.insert(area, key, &format!("{}{times}", self.value));
        for (area, inner, value) in self.inner {
            if facts.is_full {
                return;
            }
            facts.insert(area, &format!("{key} {inner}"), &value);
        }
    }
}

struct Reader<'r> {
    acts: &'r Acts,
    visitor: &'r mut Visitor,
    inner: Vec<(Area, String, String)>,
    /// Size of the inner facts, in bytes.
    bytes: usize,
}

impl Reader<'_> {
    /// Adds an inner fact. Without room, the collector of the whole run is marked as full.
    fn add(&mut self, area: Area, key: String, value: String) {
        self.bytes += key.len() + value.len() + FACT_BYTES;
        let facts = &mut self.visitor.facts;
        facts.is_full |= facts.bytes + self.bytes > super::MAX_BYTES;
        self.inner.push((area, key, value));
    }

    fn headers(&mut self, headers: &[Value]) {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for header in headers {
            let part = |index: usize| header.get(index).and_then(Value::as_str);
            let (name, value) = (part(0).unwrap_or_default(), part(1).unwrap_or_default());
            let path = format!("headers.{}", name.to_ascii_lowercase());
            let value = if let Some((rule, Act::Length)) = self.acts.get(path.as_str()) {
                self.visitor.applied.count(rule);
                "{length}".to_owned()
            } else {
                let Visitor { masks, applied, .. } = &mut *self.visitor;
                masks.apply(value, Kind::Header, applied)
            };
            let name = bounded(&quoted(&self.visitor.text(name)));
            let number = numbers.entry(name.clone()).or_default();
            *number += 1;
            let name = numbered(&name, *number);
            self.add(Area::Headers, name, bounded(&value));
        }
    }

    fn body(&mut self, body: &Value) {
        for name in ["bytes", "sha256"] {
            if let Some((rule, _)) = self.acts.get(format!("body.{name}").as_str()) {
                self.visitor.applied.count(rule);
            }
        }
        match (body.get("shape"), body.get("fault")) {
            (Some(shape), _) if !shape.is_null() => self.tree("$", shape),
            (_, Some(Value::String(fault))) => {
                let fault = self.visitor.text(fault);
                let content = self.content(body, SHORT_TEXT);
                self.add(
                    Area::Body,
                    "$".to_owned(),
                    format!("no shape: {fault}, {content}"),
                );
            }
            _ => {}
        }
    }

    /// Adds the facts of a value. The stub limits the depth of a body. `at` is cut to a limit, since each leaf repeats
    /// it.
    fn tree(&mut self, at: &str, shape: &Value) {
        if self.visitor.facts.is_full {
            return;
        }
        let leaf = match shape {
            Value::Object(_) if is_text(shape) => {
                let step = at.rsplit(['.', ']']).next().unwrap_or_default();
                let most = if NAMES.contains(&step) {
                    LONG_NAME
                } else {
                    SHORT_TEXT
                };
                format!("text of {}", self.content(shape, most))
            }
            Value::Object(fields) if fields.is_empty() => "empty object".to_owned(),
            Value::Array(items) if items.is_empty() => "empty array".to_owned(),
            Value::Object(fields) => {
                for (name, inner) in fields {
                    let step = self.step(name);
                    self.tree(&bounded(&format!("{at}{step}")), inner);
                }
                return;
            }
            Value::Array(items) => {
                for (index, inner) in items.iter().enumerate() {
                    self.tree(&bounded(&format!("{at}[{index}]")), inner);
                }
                return;
            }
            Value::String(word) => format!("word {}", self.visitor.text(word)),
            Value::Number(number) => self.number(&number.to_string()),
            Value::Null | Value::Bool(_) => shape.to_string(),
        };
        self.add(Area::Body, at.to_owned(), leaf);
    }

    /// Number of a body. A whole number that is no time and no id of 64 bits is a setting, and stays.
    fn number(&mut self, number: &str) -> String {
        if number.bytes().all(|byte| byte.is_ascii_digit()) && !is_time_or_id(number) {
            return number.to_owned();
        }
        self.visitor.text(number)
    }

    /// Length of a text, and the digest of one of at most `most` bytes.
    fn content(&mut self, text: &Value, most: u64) -> String {
        let bytes = text.get("bytes").and_then(Value::as_u64).unwrap_or(0);
        self.sized(bytes, text["sha256"].as_str().unwrap_or_default(), most)
    }

    fn sized(&mut self, bytes: u64, sha256: &str, most: u64) -> String {
        if bytes <= most {
            return format!("{bytes} bytes, sha256 {sha256}");
        }
        if let Some((rule, Act::Texts)) = self.acts.get("body.shape") {
            self.visitor.applied.count(rule);
        }
        format!("{bytes} bytes")
    }

    /// Step of a path: `.name` or `["na.me"]`. For a key that is no name, the shape has `…`, length and digest
    /// ([`model::shape`]).
    fn step(&mut self, name: &str) -> String {
        let hidden = name.strip_prefix('\u{2026}');
        if let Some((bytes, sha256)) = hidden.and_then(|hidden| hidden.split_once('-')) {
            let bytes = bytes.parse().unwrap_or(u64::MAX);
            return format!("[key of {}]", self.sized(bytes, sha256, SHORT_TEXT));
        }
        let name = self.visitor.text(name);
        // Quotes tell the field `a.b` from the field `b` of `a`.
        if name.contains('.') {
            format!("[\"{name}\"]")
        } else {
            format!(".{name}")
        }
    }
}

/// Tells times since 1970, from 2017 to 2033, and numbers of 15 or more digits from other whole numbers.
fn is_time_or_id(digits: &str) -> bool {
    let is_second = matches!(digits.get(..2), Some("15" | "16" | "17" | "18" | "19"));
    digits.len() >= 15 || matches!(digits.len(), 10 | 13) && is_second
}
