//! Changes of the rules of records.

use model::case::change::Change;
use model::case::expect::{FieldRule, RecordRule, ValueRule};
use model::evidence::Record;
use serde_json::Value;

use super::{Judged, widened};
use crate::observed;
use crate::observed::records::reason_with;

/// Rules for records that no rule selects, at each place, and wider rules for those that a rule selects.
pub(super) fn changes(run: &Judged<'_>) -> Vec<Vec<Change>> {
    let rules = run.own.records.as_ref();
    let Some(rules) = rules.and_then(|records| records.rules.as_ref()) else {
        return Vec::new();
    };
    let rules = &rules.rules;
    let mut selected: Vec<Vec<&Value>> = vec![Vec::new(); rules.len()];
    let mut unknown: Vec<Record> = Vec::new();
    for record in &run.evidence.records {
        let Some(json) = record.json() else {
            continue;
        };
        let place = rules.iter().position(|rule| rule.selects(json));
        match place.and_then(|place| selected.get_mut(place)) {
            Some(records) => records.push(json),
            None => unknown.push(record.clone()),
        }
    }
    let wider = rules.iter().zip(&selected).enumerate();
    let wider = wider.filter_map(|(place, (rule, records))| {
        let wider = RecordRule {
            count: widened(rule.count, records.len() as u64),
            fields: fields(&rule.fields, records),
            ..rule.clone()
        };
        (wider != *rule).then(|| {
            let pairs = wider.fields.iter().zip(&rule.fields);
            let widened =
                pairs.filter(|(new, old)| new != old && matches!(new.value, ValueRule::Kinds(_)));
            let reason = reason_with(widened.map(|(new, _)| new), run.reason);
            Change::ReplaceRecord(place, RecordRule { reason, ..wider })
        })
    });
    let wider: Vec<Change> = wider.collect();
    let Some(further) = observed::records::rules(&[&unknown], run.reason) else {
        return Vec::new();
    };
    if further.is_empty() {
        return vec![wider];
    }
    let places = std::iter::once(rules.len()).chain(0..rules.len());
    let with = places.map(|place| {
        let mut changes = wider.clone();
        changes.push(Change::AddRecords(place, further.clone()));
        changes
    });
    with.collect()
}

/// Expects the values of the records in fields that have others. A field that a record lacks stays expected.
fn fields(expected: &[FieldRule], records: &[&Value]) -> Vec<FieldRule> {
    let wider = |field: &FieldRule| {
        if records.iter().all(|record| field.is_met(record)) {
            return field.clone();
        }
        let values = records.iter().map(|record| record.pointer(&field.pointer));
        let values: Option<Vec<&Value>> = values.collect();
        let Some(values) = values else {
            return field.clone();
        };
        FieldRule {
            value: observed::records::value(&values),
            pointer: field.pointer.clone(),
        }
    };
    expected.iter().map(wider).collect()
}
