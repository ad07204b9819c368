//! Facts of a run, by which two runs are compared: the flattened report, a sorted map from an area and a key to a value.
//!
//! The only input is the JSON form of a report (`runner.report/1`). `runner diff` reads that form from files. A run
//! with `--baseline` writes its own report and reads it back. So both always agree.
//!
//! Keys are identities, not positions (`POST /v1/messages`, not `request 2`): an inserted request is one difference,
//! and does not shift all later ones. Only blocks of a body are known by position, since they have no other name.
//!
//! [`rules`] has the lists with their keys, and the rules that leave out values or replace them by a placeholder. Uses
//! of rules are counted. A field without a rule is compared, except in records
//! and bodies: of these the kinds and fields, and the shape or the fault, are facts.
//!
//! Does not know files, command lines, or the form of an answer.

use std::collections::{BTreeMap, BTreeSet};

use model::difference::{Area, Change, Difference, Fact};
use model::digest;

mod document;
mod entry;
mod flatten;
mod mask;
mod records;
mod rules;
#[cfg(test)]
mod tests;
mod visitor;
mod word;

pub use document::Report;
pub use rules::{RULES, Rule};

/// Most text of the facts of one run, in bytes, since a hostile client can cause any number of them.
const MAX_BYTES: usize = 128 * 1024 * 1024;
/// Memory of a fact beside its text, in bytes, as counted for [`MAX_BYTES`].
const FACT_BYTES: usize = 64;

/// Longest key or value, in characters. A longer one is replaced by its beginning and its digest.
const MAX_CHARS: usize = 400;
/// Characters of a long key or value that stay.
const SHOWN_CHARS: usize = 200;

/// Number of uses of each rule, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied(BTreeMap<&'static str, u64>);

impl Applied {
    /// Number of uses of one rule.
    pub fn of(&self, rule: &str) -> u64 {
        self.0.get(rule).copied().unwrap_or(0)
    }

    /// Sum of both counts.
    pub fn and(mut self, other: &Self) -> Self {
        for (rule, times) in &other.0 {
            *self.0.entry(rule).or_default() += times;
        }
        self
    }

    fn count(&mut self, rule: &'static str) {
        *self.0.entry(rule).or_default() += 1;
    }
}

/// Facts of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    facts: BTreeMap<Fact, String>,
    applied: Applied,
    /// Facts beyond [`MAX_BYTES`] are missing.
    is_cut: bool,
}

impl RunFacts {
    /// Facts of a report.
    pub fn of(report: &Report) -> Self {
        flatten::flatten(report)
    }

    /// All facts and their values, sorted.
    pub fn facts(&self) -> &BTreeMap<Fact, String> {
        &self.facts
    }

    /// Checks for missing facts beyond the limit.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Reason why facts are missing; `None` if none are.
    pub fn incomplete(&self) -> Option<String> {
        let limit = MAX_BYTES / (1024 * 1024);
        self.is_cut
            .then(|| format!("it shows more than {limit} MiB of facts"))
    }

    /// Number of uses of each rule.
    pub fn applied(&self) -> &Applied {
        &self.applied
    }
}

/// Differences, sorted by fact.
pub fn compare(old: &BTreeMap<Fact, String>, new: &BTreeMap<Fact, String>) -> Vec<Difference> {
    let every: BTreeSet<&Fact> = old.keys().chain(new.keys()).collect();
    let change = |fact: &Fact| match (old.get(fact), new.get(fact)) {
        (Some(old), None) => Some(Change::Removed(old.clone())),
        (None, Some(new)) => Some(Change::Added(new.clone())),
        (Some(old), Some(new)) if old != new => Some(Change::Changed {
            old: old.clone(),
            new: new.clone(),
        }),
        (Some(_), Some(_)) | (None, None) => None,
    };
    let difference = |fact: &Fact| {
        change(fact).map(|change| Difference {
            fact: fact.clone(),
            change,
        })
    };
    every.into_iter().filter_map(difference).collect()
}

/// Collector of facts.
#[derive(Debug, Default)]
struct Facts {
    /// Values of each key: several, if keys of a body differ only in a placeholder.
    facts: BTreeMap<Fact, Vec<String>>,
    /// Values of keys whose order and number are not compared.
    sets: BTreeMap<Fact, BTreeSet<String>>,
    /// Text of all entries, in bytes.
    bytes: usize,
    is_full: bool,
}

impl Facts {
    /// Takes room for an entry. Without room, the collector is marked as full.
    fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes += bytes + FACT_BYTES;
        self.is_full |= self.bytes > MAX_BYTES;
        !self.is_full
    }

    fn insert(&mut self, area: Area, key: &str, value: &str) {
        let (fact, value) = (fact(area, key), bounded(value));
        if self.has_room(fact.key.len() + value.len()) {
            self.facts.entry(fact).or_default().push(value);
        }
    }

    /// Adds a value to the set of a key. Returns false if the set has the value.
    fn add_to_set(&mut self, area: Area, key: &str, value: String) -> bool {
        let fact = fact(area, key);
        let is_known = self.sets.get(&fact).is_some_and(|set| set.contains(&value));
        if !is_known && self.has_room(fact.key.len() + value.len()) {
            self.sets.entry(fact).or_default().insert(value);
        }
        !is_known
    }

    fn finish(mut self, applied: Applied) -> RunFacts {
        for (fact, values) in self.sets {
            self.facts.insert(fact, values.into_iter().collect());
        }
        let joined = |(fact, mut values): (Fact, Vec<String>)| {
            values.sort_unstable();
            (fact, bounded(&values.join(" and ")))
        };
        RunFacts {
            facts: self.facts.into_iter().map(joined).collect(),
            applied,
            is_cut: self.is_full,
        }
    }
}

fn fact(area: Area, key: &str) -> Fact {
    let key = bounded(key);
    Fact { area, key }
}

fn bounded(text: &str) -> String {
    if text.len() <= MAX_CHARS || text.chars().nth(MAX_CHARS).is_none() {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(SHOWN_CHARS).collect();
    let sha256 = digest::of_bytes(text.as_bytes());
    format!("{beginning}… ({} bytes, sha256 {sha256})", text.len())
}
