//! Flattens a report: visits each value, and does what the rules say for its path.

use std::collections::BTreeMap;

use model::difference::Area;
use model::evidence::AttemptKind;
use model::report::document::Document;
use serde_json::{Map, Value};

use super::document::Report;
use super::mask::{Kind, Masks, is_state, is_this_host};
use super::rules::{Act, Field, LISTS, List, RULES};
use super::visitor::Visitor;
use super::word::{joined, numbered, quoted};
use super::{Applied, Facts, RunFacts, bounded, entry, records};
use entry::Entry;

/// Key of an entry whose identifying fields are all null, such as bytes that are no request.
const NAMELESS: &str = "without a name";

/// Actions for paths below one path, each with the name of its rule.
type Acts = BTreeMap<&'static str, (&'static str, Act)>;

/// Visits a whole report.
pub(super) fn flatten(report: &Report) -> RunFacts {
    let mut visitor = Visitor {
        facts: Facts::default(),
        masks: masks(report),
        applied: Applied::default(),
    };
    visitor.visit("", &report.value, &acts(""));
    visitor.facts.finish(visitor.applied)
}

/// Values of the run that masks depend on.
fn masks(report: &Report) -> Masks {
    let Document {
        evidence, client, ..
    } = &report.document;
    let started = evidence.processes.first();
    let started = started.map(|process| &process.program);
    let named = Some(&client.client.program).filter(|path| path.starts_with('/'));
    // A bind(2) among the setup calls has port 0; any other bind(2) is an attempt.
    let attempts = evidence.attempts.iter();
    let to_stub = attempts.filter(|call| {
        let address = call.address.as_deref();
        call.kind == AttemptKind::Setup && is_this_host(address.unwrap_or_default())
    });
    let ports = to_stub.filter_map(|call| call.port);
    let date = report.document.started_at.split('T').next();
    Masks {
        stub: ports.filter(|port| *port != 0).collect(),
        own: named.into_iter().chain(started).cloned().collect(),
        date: date.unwrap_or_default().replace('-', ""),
    }
}

fn acts(below: &str) -> Acts {
    let paths = RULES.iter().flat_map(|rule| {
        let acts = rule.paths.iter();
        acts.flat_map(|(act, paths)| paths.split(' ').map(|path| (path, (rule.name, *act))))
    });
    let acts = paths.filter_map(|(path, act)| Some((path.strip_prefix(below)?, act)));
    acts.collect()
}

impl Visitor {
    /// Visits a value outside of the lists.
    fn visit(&mut self, path: &str, value: &Value, acts: &Acts) {
        if let Some(list) = LISTS.iter().find(|list| list.path == path) {
            return self.list(list, value.as_array().map_or(&[], Vec::as_slice));
        }
        match (acts.get(path), value, path) {
            (Some((rule, act)), ..) => {
                self.applied.count(rule);
                if let Act::Presence(area, key) = act {
                    let is_nothing = value.as_u64() == Some(0);
                    let what = if is_nothing { "nothing" } else { "something" };
                    self.facts.insert(*area, key, what);
                }
            }
            (None, Value::Array(rows), "evidence.records") => records::read(rows, self),
            (None, Value::Object(exit), "client.exit") => {
                let exit = exit.iter().map(|(name, value)| {
                    if value.is_boolean() {
                        name.replace('_', " ")
                    } else {
                        format!("{name} {value}")
                    }
                });
                let exit = exit.collect::<Vec<_>>().join(" ");
                self.facts.insert(Area::Outcome, "exit", &exit);
            }
            (None, Value::Object(fields), _) => {
                for (name, value) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.visit(&format!("{path}{dot}{name}"), value, acts);
                }
            }
            (None, Value::Array(rows), _) => {
                for row in rows {
                    let row = self.text(&row.to_string());
                    self.facts.add_to_set(Area::Outcome, path, row);
                }
            }
            (None, Value::Null, _) => {}
            (None, Value::Bool(_) | Value::Number(_) | Value::String(_), _) => {
                let value = self.plain(value);
                self.facts
                    .insert(Area::Outcome, path, &value.unwrap_or_default());
            }
        }
    }

    /// Adds the facts of a list.
    fn list(&mut self, list: &List, rows: &[Value]) {
        let acts = acts(&format!("{}.", list.path));
        let (key_fields, value_fields) = (Field::all(list.key), Field::all(list.value));
        let mut entries: BTreeMap<String, BTreeMap<Entry, u64>> = BTreeMap::new();
        let mut has_message = false;
        for row in rows.iter().filter_map(Value::as_object) {
            if self.facts.is_full {
                break;
            }
            if self.is_skipped(row, &acts) {
                continue;
            }
            let key = self.key(list, &key_fields, row, &acts);
            let mut value = self.value(list, (&key_fields, &value_fields), row, &acts);
            if list.is_set {
                if !self.facts.add_to_set(list.area, &key, value) {
                    self.applied.count("counts");
                }
                continue;
            }
            let class = row.get("class").and_then(Value::as_str);
            has_message |= class == Some("message");
            if has_message && class == Some("preflight") {
                value.push_str(" after the message");
            }
            let entry = entry::read(value, row, &acts, self);
            let known = entries.entry(key).or_default();
            if let Some(number) = known.get_mut(&entry) {
                *number += 1;
            } else if self.facts.has_room(entry.bytes()) {
                known.insert(entry, 1);
            }
        }
        for (key, alike) in entries {
            for (index, (entry, number)) in alike.into_iter().enumerate() {
                let key = numbered(&key, index + 1);
                entry.add(list.area, &key, number, &mut self.facts);
            }
        }
    }

    fn is_skipped(&mut self, row: &Map<String, Value>, acts: &Acts) -> bool {
        let skipped = acts.iter().find(|(name, (_, act))| {
            let value = row.get(**name).map(plain_text);
            matches!((act, value), (Act::Skip(skip), Some(found)) if skip.split(' ').any(|one| one == found))
        });
        if let Some((_, (rule, _))) = skipped {
            self.applied.count(rule);
        }
        skipped.is_some()
    }

    fn key(
        &mut self,
        list: &List,
        fields: &[Field],
        row: &Map<String, Value>,
        acts: &Acts,
    ) -> String {
        let shown = fields
            .iter()
            .filter_map(|field| self.field(*field, row, acts));
        let parts: Vec<String> = before(list.before).chain(shown).collect();
        match parts.as_slice() {
            [] => NAMELESS.to_owned(),
            parts => bounded(&parts.join(" ")),
        }
    }

    /// Value of an entry: its own fields, and each other field that has no rule.
    fn value(
        &mut self,
        list: &List,
        (key, fields): (&[Field], &[Field]),
        row: &Map<String, Value>,
        acts: &Acts,
    ) -> String {
        let is_known = |name: &str| key.iter().chain(fields).any(|field| field.name == name);
        let shown = fields
            .iter()
            .filter_map(|field| self.field(*field, row, acts));
        let mut parts: Vec<String> = before(list.says).chain(shown).collect();
        for (name, value) in row {
            if is_known(name) || entry::INNER.contains(&name.as_str()) {
                continue;
            }
            if let Some(text) = self.word(name, value, row, acts) {
                parts.push(format!("{name} {text}"));
            }
        }
        parts.join(" ")
    }

    fn field(&mut self, field: Field, row: &Map<String, Value>, acts: &Acts) -> Option<String> {
        let text = self.word(field.name, row.get(field.name)?, row, acts)?;
        match field.word {
            None => Some(text),
            Some(word) => (field.usual != Some(&text)).then(|| format!("{word} {text}")),
        }
    }

    /// Text of one field, after the action of its path; quoted if its end would not be visible.
    fn word(
        &mut self,
        name: &str,
        value: &Value,
        row: &Map<String, Value>,
        acts: &Acts,
    ) -> Option<String> {
        let Some((rule, act)) = acts.get(name) else {
            return self.quoted(value);
        };
        match act {
            Act::Own => return Some(self.program(value)),
            Act::Path => {
                let path = value.as_str()?;
                let path = self.masks.apply(path, kind_of(row), &mut self.applied);
                return Some(quoted(&path));
            }
            Act::Port => {
                let here = row.get("address").and_then(Value::as_str);
                let is_given = here.is_some_and(is_this_host)
                    && value
                        .as_u64()
                        .is_some_and(|port| self.masks.is_given_port(port));
                if !is_given {
                    return self.quoted(value);
                }
                self.applied.count(rule);
                return Some("{port}".to_owned());
            }
            Act::Positions => {
                let place = self.text(value.as_str()?);
                return Some(self.without_positions(&place, rule));
            }
            Act::Content if !value.is_null() => {
                let path = row.get("path").and_then(Value::as_str)?;
                let masked = self
                    .masks
                    .apply(path, kind_of(row), &mut Applied::default());
                let is_expected = row.get("expected").is_some_and(|reason| !reason.is_null());
                if !is_expected && masked == path && !is_state(path) {
                    return Some(plain_text(value));
                }
                self.applied.count(rule);
            }
            Act::Ignore => self.applied.count(rule),
            Act::Content | Act::Skip(_) | Act::Presence(..) | Act::Length | Act::Texts => {}
        }
        None
    }

    /// Program, or the arguments of one.
    fn program(&mut self, value: &Value) -> String {
        if let Some(words) = value.as_array() {
            joined(words.iter().map(|word| self.program(word)))
        } else if let Some(path) = value.as_str() {
            quoted(&self.masks.program(path, &mut self.applied))
        } else if let Some(bytes) = value.get("bytes") {
            format!("(prompt of {bytes} bytes)")
        } else {
            quoted(&value.to_string())
        }
    }

    fn quoted(&mut self, value: &Value) -> Option<String> {
        if let Some(items) = value.as_array() {
            let items = items.iter().filter_map(|item| self.quoted(item));
            return Some(joined(items));
        }
        self.plain(value).map(|text| quoted(&text))
    }

    /// Text of a scalar with placeholders; `None` for null.
    fn plain(&mut self, value: &Value) -> Option<String> {
        (!value.is_null()).then(|| self.text(&plain_text(value)))
    }

    /// Removes positions: `request 2 header x` → `request header x`.
    fn without_positions(&mut self, place: &str, rule: &'static str) -> String {
        let mut words: Vec<&str> = Vec::new();
        for word in place.split(' ') {
            let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            let behind = words.last().copied().unwrap_or_default();
            if is_number && matches!(behind, "request" | "line" | "process") {
                self.applied.count(rule);
            } else {
                words.push(word);
            }
        }
        words.join(" ")
    }
}

/// A text before the fields of an entry, if the list has one.
fn before(text: &str) -> impl Iterator<Item = String> {
    (!text.is_empty()).then(|| text.to_owned()).into_iter()
}

/// Kind of the path of a file.
fn kind_of(file: &Map<String, Value>) -> Kind {
    let root = file.get("root").and_then(Value::as_str);
    if root == Some("tmp") {
        Kind::Tmp
    } else {
        Kind::Path
    }
}

fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
