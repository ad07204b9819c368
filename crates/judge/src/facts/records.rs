//! Facts of records on standard output: the order of their kinds, and the names of their fields.

use std::collections::BTreeMap;

use model::difference::Area;
use serde_json::Value;

use super::bounded;
use super::visitor::Visitor;
use super::word::numbered;

/// Adds the facts of all records.
pub(super) fn read(records: &[Value], visitor: &mut Visitor) {
    let kinds: Vec<String> = records.iter().map(|record| kind(record, visitor)).collect();
    let mut before: Option<&str> = None;
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for run in kinds.chunk_by(|one, other| one == other) {
        let Some(kind) = run.first() else { continue };
        let times = match run.len() {
            1 => String::new(),
            more => format!("× {more}, "),
        };
        let place = before.map_or("first".to_owned(), |before| format!("after {before}"));
        let number = numbers.entry(kind).or_default();
        *number += 1;
        let key = numbered(kind, *number);
        visitor
            .facts
            .insert(Area::Records, &key, &format!("{times}{place}"));
        before = Some(kind);
    }
    fields(records, &kinds, visitor);
}

/// Adds a fact for each field of each kind, so that a new field is one difference.
fn fields(records: &[Value], kinds: &[String], visitor: &mut Visitor) {
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    // Number of records with a field, and most fields of one record that read the same.
    let mut with: BTreeMap<(&str, String), (usize, usize)> = BTreeMap::new();
    for (record, kind) in records.iter().zip(kinds) {
        visitor.applied.count("output");
        *all.entry(kind).or_default() += 1;
        let fields = record.get("fields").and_then(Value::as_array);
        let mut alike: BTreeMap<String, usize> = BTreeMap::new();
        for field in fields.into_iter().flatten().filter_map(Value::as_str) {
            *alike.entry(visitor.text(field)).or_default() += 1;
        }
        for (field, number) in alike {
            let (records, most) = with.entry((kind, field)).or_default();
            *records += 1;
            *most = number.max(*most);
        }
    }
    for ((kind, field), (count, most)) in with {
        let is_in_each = all.get(kind).is_some_and(|all| *all <= count);
        let mut value = if is_in_each { "in each" } else { "in some" }.to_owned();
        if most > 1 {
            value.push_str(&format!(", up to {most} at once"));
        }
        let key = format!("{kind} field {field}");
        visitor.facts.insert(Area::Records, &key, &value);
    }
}

/// Kind of a record: `stream_event/message_start`, `system/init`, `assistant`.
fn kind(record: &Value, visitor: &mut Visitor) -> String {
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    let Some(kind) = text("type") else {
        return match text("fault") {
            Some(_) => "not a record".to_owned(),
            None => "record without a type".to_owned(),
        };
    };
    let is_event = kind == "stream_event";
    let name = match text(if is_event { "event" } else { "subtype" }) {
        Some(detail) => format!("{kind}/{detail}"),
        None => kind.to_owned(),
    };
    bounded(&visitor.text(&name))
}
