//! What a client did, as facts that two runs can be compared by: a sorted map from an area and a key to a value.
//!
//! It is made of the JSON form of a report (`runner.report/1`) and of nothing else. `runner diff` reads that form from
//! files; a run with `--baseline` makes its own and reads it back. So the two can never disagree.
//!
//! Keys are identities and not positions (`POST /v1/messages`, not `request 2`): what is put in somewhere is one
//! difference and not one for everything behind it. Positions stand only where they are the behaviour: in the body,
//! whose blocks have no other name. What varies by its nature is left out or replaced by a placeholder, always by a
//! [`Rule`] that is named and counted. Texts of at most [`SHORT_TEXT`] bytes in a body are compared by their digest,
//! since that is how the name of a model changes; longer ones by their length.
//!
//! Must not know: files, command lines, how an answer looks.

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

/// Longest text of a body that is compared by its digest, in bytes; a UUID has 36.
const SHORT_TEXT: u64 = 32;

/// Most facts of one run. A client writes as many as it likes, and each costs memory and time of ours.
const MOST_FACTS: usize = 100_000;

/// Longest key or value, in characters; of a longer one the beginning and the digest stand for it.
const LONGEST: usize = 400;
/// Before what a client wrote itself and would have a meaning here; once more where it stands there already.
const LITERALLY: &str = "the text ";
/// How much of a longer one is shown.
const BEGINNING: usize = 200;

/// What one run showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    facts: BTreeMap<Fact, String>,
    applied: Applied,
    /// There are more than are here.
    is_cut: bool,
}

impl Behaviour {
    /// Of a report.
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

    /// Every fact and its value, sorted.
    pub fn facts(&self) -> &BTreeMap<Fact, String> {
        &self.facts
    }

    /// Whether it is the beginning of one only.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Why it is not the whole.
    pub fn incomplete(&self) -> Option<String> {
        self.is_cut
            .then(|| format!("it shows more than {MOST_FACTS} facts"))
    }

    /// How often each rule was applied.
    pub fn applied(&self) -> Applied {
        self.applied
    }
}

/// What differs, sorted by fact.
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

/// Facts being gathered.
#[derive(Debug, Default)]
struct Facts {
    facts: BTreeMap<Fact, String>,
    /// The last number of each key that came more than once: a client may repeat one very often.
    repeated: BTreeMap<Fact, u64>,
    /// Those whose order and number say nothing: all values that one key has.
    sets: BTreeMap<Fact, BTreeSet<String>>,
    /// Paths of the client's own program.
    own: Vec<String>,
    /// Where the stub listened.
    stub: normal::StubPorts,
    /// Of both.
    number: usize,
    is_full: bool,
    applied: Applied,
}

impl Facts {
    /// For what is looked at beforehand: with room only where this one has some, and of the same run.
    fn beside(&self, number: usize) -> Self {
        Self {
            stub: self.stub.clone(),
            number,
            ..Self::default()
        }
    }

    /// Text of the client with what varies replaced.
    fn text(&mut self, text: &str) -> String {
        normal::text(text, &self.stub, &mut self.applied)
    }

    /// The path of a program, where that may be the client's own.
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

    /// Whether there is room for one more. Where there is none, nothing is gathered any more.
    fn has_room(&mut self) -> bool {
        self.is_full |= self.number >= MOST_FACTS;
        !self.is_full
    }

    /// A fact of its own; the second one of a key is `… #2`. Returns the key that it got.
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

    /// One of the values of a key; the same again adds nothing.
    fn gather(&mut self, area: Area, key: &str, value: String) {
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

    fn finish(mut self) -> Behaviour {
        for (fact, values) in std::mem::take(&mut self.sets) {
            let values: Vec<String> = values.into_iter().collect();
            self.put(fact.area, &fact.key, &values.join(" and "));
        }
        Behaviour {
            facts: self.facts,
            applied: self.applied,
            is_cut: self.is_full,
        }
    }
}

/// In a lock file `*` stands for any value, and no client may write that.
fn value_of(value: &str) -> String {
    if value.trim_start_matches(LITERALLY) == "*" {
        return bounded(&format!("{LITERALLY}{value}"));
    }
    bounded(value)
}

fn bounded(text: &str) -> String {
    if text.chars().nth(LONGEST).is_none() {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(BEGINNING).collect();
    let sha256 = digest::of_bytes(text.as_bytes());
    format!("{beginning}… ({} bytes, sha256 {sha256})", text.len())
}
