//! Changes of a case file, each of which makes a finding an expectation.

use super::expect::{Expectations, ExpectedExit, ProgramRule, RecordRule, RequestRule};
use crate::profile::{ExpectedAttempt, ExpectedFile};

/// A change of a case file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds rules of requests before the rule with this number, or at the end.
    AddRequests(usize, Vec<RequestRule>),
    /// Replaces the rule of requests with this number.
    ReplaceRequest(usize, Box<RequestRule>),
    /// Adds rules of records before the rule with this number, or at the end.
    AddRecords(usize, Vec<RecordRule>),
    /// Replaces the rule of records with this number.
    ReplaceRecord(usize, RecordRule),
    /// Adds a rule of files.
    AddFile(ExpectedFile),
    /// Replaces the rule of files with this number.
    ReplaceFile(usize, ExpectedFile),
    /// Adds a program.
    AddProgram(ProgramRule),
    /// Adds an attempt or a name.
    AddAttempt(ExpectedAttempt),
    /// Replaces the exit.
    ReplaceExit(ExpectedExit),
}

impl Change {
    /// Number of rules.
    pub fn rules(&self) -> usize {
        match self {
            Self::AddRequests(_, rules) => rules.len(),
            Self::AddRecords(_, rules) => rules.len(),
            Self::ReplaceRequest(..)
            | Self::ReplaceRecord(..)
            | Self::AddFile(_)
            | Self::ReplaceFile(..)
            | Self::AddProgram(_)
            | Self::AddAttempt(_)
            | Self::ReplaceExit(_) => 1,
        }
    }

    /// Returns the change that adds the same rules at the end.
    pub fn addition(&self) -> Self {
        const END: usize = usize::MAX;
        match self.clone() {
            Self::AddRequests(_, rules) => Self::AddRequests(END, rules),
            Self::ReplaceRequest(_, rule) => Self::AddRequests(END, vec![*rule]),
            Self::AddRecords(_, rules) => Self::AddRecords(END, rules),
            Self::ReplaceRecord(_, rule) => Self::AddRecords(END, vec![rule]),
            Self::AddFile(rule) | Self::ReplaceFile(_, rule) => Self::AddFile(rule),
            Self::AddProgram(rule) => Self::AddProgram(rule),
            Self::AddAttempt(rule) => Self::AddAttempt(rule),
            Self::ReplaceExit(exit) => Self::ReplaceExit(exit),
        }
    }

    /// Makes the change, if the expectations have its table and its rule.
    pub fn apply(&self, expect: &mut Expectations) {
        let requests = expect.requests.as_mut().map(|all| &mut all.rules);
        let records = expect.records.as_mut();
        let records = records.and_then(|records| records.rules.as_mut());
        let records = records.map(|all| &mut all.rules);
        let files = expect.files.as_mut().map(|files| &mut files.expected);
        match self.clone() {
            Self::AddRequests(place, rules) => insert(requests, place, rules),
            Self::ReplaceRequest(place, rule) => replace(requests, place, *rule),
            Self::AddRecords(place, rules) => insert(records, place, rules),
            Self::ReplaceRecord(place, rule) => replace(records, place, rule),
            Self::AddFile(rule) => insert(files, usize::MAX, vec![rule]),
            Self::ReplaceFile(place, rule) => replace(files, place, rule),
            Self::AddProgram(rule) => insert(expect.programs.as_mut(), usize::MAX, vec![rule]),
            Self::AddAttempt(rule) => expect.attempts.push(rule),
            Self::ReplaceExit(exit) => expect.exit = Some(exit),
        }
    }
}

fn insert<T>(rules: Option<&mut Vec<T>>, place: usize, further: Vec<T>) {
    if let Some(rules) = rules {
        let place = place.min(rules.len());
        rules.splice(place..place, further);
    }
}

fn replace<T>(rules: Option<&mut Vec<T>>, place: usize, rule: T) {
    if let Some(old) = rules.and_then(|rules| rules.get_mut(place)) {
        *old = rule;
    }
}
