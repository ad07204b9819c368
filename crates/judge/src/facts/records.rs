//! Facts of records on standard output: the order of their kinds, and the names of their fields.

use std::collections::BTreeMap;

use model::difference::Area;

use super::form::Record;
use super::{Facts, Rule, bounded};

pub(super) fn read(records: &[Record], facts: &mut Facts) {
    if !records.is_empty() {
        facts.apply(Rule::Order);
        facts.apply(Rule::Lengths);
        facts.applied.add(Rule::Output, records.len());
    }
    let kinds: Vec<String> = records.iter().map(|record| kind(record, facts)).collect();
    let mut before: Option<&str> = None;
    for run in kinds.chunk_by(|one, other| one == other) {
        let Some(kind) = run.first() else { continue };
        let times = match run.len() {
            1 => String::new(),
            more => format!("× {more}, "),
        };
        let place = before.map_or("first".to_owned(), |before| format!("after {before}"));
        facts.insert(Area::Records, kind, &format!("{times}{place}"));
        before = Some(kind);
    }
    fields(records, &kinds, facts);
}

/// Adds a fact for each field of each kind, so that a new field is one difference.
fn fields(records: &[Record], kinds: &[String], facts: &mut Facts) {
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    let mut with: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for (record, kind) in records.iter().zip(kinds) {
        *all.entry(kind).or_default() += 1;
        for field in &record.fields {
            let field = facts.text(field);
            *with.entry((kind, field)).or_default() += 1;
        }
    }
    for ((kind, field), count) in with {
        let value = if all.get(kind).is_some_and(|all| *all <= count) {
            "in each"
        } else {
            "in some"
        };
        facts.insert(Area::Records, &format!("{kind} field {field}"), value);
    }
}

/// Kind of a record: `stream_event/message_start`, `system/init`, `assistant`.
fn kind(record: &Record, facts: &mut Facts) -> String {
    let Some(kind) = &record.kind else {
        return match record.fault {
            Some(_) => "not a record".to_owned(),
            None => "record without a type".to_owned(),
        };
    };
    let detail = if kind == "stream_event" {
        &record.event
    } else {
        &record.subtype
    };
    let name = match detail {
        Some(detail) => format!("{kind}/{detail}"),
        None => kind.clone(),
    };
    bounded(&facts.text(&name))
}
