//! Facts of a run, by which two runs are compared: a sorted map from an area and a key to a value.
//!
//! The only input is the JSON form of a report (`runner.report/1`). `runner diff` reads that form from files. A run
//! with `--baseline` writes its own report and reads it back. So both always agree.
//!
//! Keys are identities, not positions (`POST /v1/messages`, not `request 2`): an inserted request is one difference,
//! and does not shift all later ones. Only blocks of a body are known by position, since they have no other name.
//!
//! Each [`Rule`] leaves out values that vary from run to run, or replaces them by a placeholder. Uses of rules are
//! counted. Texts in a body are compared by digest up to [`SHORT_TEXT`] bytes, so that another model name is a
//! difference; longer texts are compared by length.
//!
//! Does not know files, command lines, or the form of an answer.

use std::collections::{BTreeMap, BTreeSet};

use model::difference::{Area, Change, Difference, Fact};
use model::digest;

mod body;
mod files;
pub mod form;
mod incomplete;
mod ledger;
mod normal;
mod records;
mod requests;
mod rule;
#[cfg(test)]
mod tests;
mod times;

use form::Report;

pub use rule::{Applied, Rule};

/// Longest text of a body that is compared by digest, in bytes. A UUID is longer, 36 bytes.
const SHORT_TEXT: u64 = 32;

/// Most facts of one run, since a hostile client can cause any number of them.
const MAX_FACTS: usize = 100_000;

/// Longest key or value, in characters. A longer one is replaced by its beginning and its digest.
const MAX_CHARS: usize = 400;
/// Prefix that escapes client text with a special meaning, such as `*` or a placeholder. The prefix is escaped too.
const LITERALLY: &str = "the text ";
/// Characters of a long key or value that stay.
const SHOWN_CHARS: usize = 200;

/// Facts of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    facts: BTreeMap<Fact, String>,
    applied: Applied,
    /// Facts beyond [`MAX_FACTS`] are missing.
    is_cut: bool,
}

impl RunFacts {
    /// Facts of a report.
    pub fn of(report: &Report) -> Self {
        let mut facts = Facts {
            own: ledger::own_paths(report),
            stub: ledger::stub_ports(&report.evidence.attempts),
            ..Facts::default()
        };
        incomplete::count_passed_over(&report.evidence.gaps, &mut facts);
        requests::read(&report.evidence, &mut facts);
        records::read(&report.evidence.records, &mut facts);
        files::read(&report.evidence.files, &mut facts);
        ledger::read(&report.evidence, &mut facts);
        ledger::outcome(report, &mut facts);
        facts.finish()
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
        self.is_cut
            .then(|| format!("it shows more than {MAX_FACTS} facts"))
    }

    /// Number of uses of each rule.
    pub fn applied(&self) -> Applied {
        self.applied
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
    facts: BTreeMap<Fact, String>,
    /// Last number of each repeated key, since a client may repeat a key very often.
    repeated: BTreeMap<Fact, u64>,
    /// Values of keys whose order and number are not compared.
    sets: BTreeMap<Fact, BTreeSet<String>>,
    /// Paths of the client's own program.
    own: Vec<String>,
    /// Ports of the stub.
    stub: normal::StubPorts,
    /// Number of entries in `facts` and `sets`.
    number: usize,
    is_full: bool,
    applied: Applied,
}

impl Facts {
    /// Empty collector for a preview of the same run, with `number` entries of its limit used up.
    fn with_room_of(&self, number: usize) -> Self {
        Self {
            stub: self.stub.clone(),
            number,
            ..Self::default()
        }
    }

    /// Text of the client with placeholders.
    fn text(&mut self, text: &str) -> String {
        normal::text(text, &self.stub, &mut self.applied)
    }

    /// Path of a program; `{client}` for the client's own.
    fn program(&mut self, path: &str) -> String {
        if self.own.iter().any(|own| own == path) {
            self.apply(Rule::OwnPath);
            return "{client}".to_owned();
        }
        self.text(path)
    }

    fn apply(&mut self, rule: Rule) {
        self.applied.count(rule);
    }

    /// Checks for room for one more entry. Without room, the collector is marked as full.
    fn has_room(&mut self) -> bool {
        self.is_full |= self.number >= MAX_FACTS;
        !self.is_full
    }

    /// Adds a fact; a second fact of a key gets the key `… #2`. Returns the key.
    fn insert(&mut self, area: Area, key: &str, value: &str) -> String {
        if !self.has_room() {
            return bounded(key);
        }
        self.number += 1;
        self.put(area, key, value)
    }

    fn put(&mut self, area: Area, key: &str, value: &str) -> String {
        let first = Fact {
            area,
            key: bounded(key),
        };
        let mut fact = first.clone();
        while self.facts.contains_key(&fact) {
            let number = self.repeated.entry(first.clone()).or_insert(1);
            *number += 1;
            fact.key = format!("{} #{number}", first.key);
        }
        let key = fact.key.clone();
        self.facts.insert(fact, value_of(value));
        key
    }

    /// Adds a value to the set of a key.
    fn add_to_set(&mut self, area: Area, key: &str, value: String) {
        let fact = Fact {
            area,
            key: bounded(key),
        };
        let is_known = |values: &BTreeSet<String>| values.contains(&value);
        if self.sets.get(&fact).is_some_and(is_known) {
            self.applied.count(Rule::Counts);
        } else if self.has_room() {
            self.number += 1;
            self.sets.entry(fact).or_default().insert(value);
        }
    }

    fn finish(mut self) -> RunFacts {
        for (fact, values) in std::mem::take(&mut self.sets) {
            let values: Vec<String> = values.into_iter().collect();
            self.put(fact.area, &fact.key, &values.join(" and "));
        }
        RunFacts {
            facts: self.facts,
            applied: self.applied,
            is_cut: self.is_full,
        }
    }
}

/// Escapes a value `*`, which accepts any value in a lock file.
fn value_of(value: &str) -> String {
    if value.trim_start_matches(LITERALLY) == "*" {
        return bounded(&format!("{LITERALLY}{value}"));
    }
    bounded(value)
}

fn bounded(text: &str) -> String {
    if text.chars().nth(MAX_CHARS).is_none() {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(SHOWN_CHARS).collect();
    let sha256 = digest::of_bytes(text.as_bytes());
    format!("{beginning}… ({} bytes, sha256 {sha256})", text.len())
}
