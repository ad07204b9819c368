//! Changes of a case that accept its findings.
//!
//! A change is proposed only if the judged run passes the check with it, and no other check fails that passed before.
//! A leaked credential, survivors, lost evidence and an end by the runner have no change.

mod records;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use model::case::change::Change;
use model::case::expect::{ExpectedExit, ProgramRule};
use model::case::{Count, Expectations};
use model::evidence::{Evidence, Exit, FileEntry, Sighting};
use model::expected::{
    judged, reason_for_attempt, reason_for_file, reason_for_question, rule_for_sighting,
};
use model::finding::Status;
use model::profile::ExpectedFile;
use model::report::sensitive;

use self::requests::Part;
use crate::check::{self, check};
use crate::observed;

/// Most changes of one finding: longer lists show that another rule is wanted.
const MAX_CHANGES: usize = 50;

/// A judged run of a case.
pub struct Judged<'a> {
    /// Expectations as the case file has them.
    pub own: &'a Expectations,
    /// Completes expectations of the case by those of the profile.
    pub complete: &'a dyn Fn(&Expectations) -> Expectations,
    /// Evidence of the run.
    pub evidence: &'a Evidence,
    /// Directory of the client's project, which rules of programs name by `{project}`.
    pub project: Option<&'a str>,
    /// Reason of each proposed rule.
    pub reason: &'a str,
}

impl Judged<'_> {
    /// Returns the changes that accept the finding of the check with this id; empty if no rule can.
    pub fn changes(&self, id: &str) -> Vec<Change> {
        if !self.is_acceptable() {
            return Vec::new();
        }
        let candidates = match id {
            "requests/first-and-only" | "requests/sequence" | "requests/post-count" => {
                requests::further(self)
            }
            "requests/query" => vec![requests::wider(self, Part::Query)],
            "headers/user-agent" => vec![requests::wider(self, Part::UserAgent)],
            "headers/nothing-else" => vec![requests::wider(self, Part::AllowedHeaders)],
            "headers/rules" => vec![requests::wider(self, Part::RequiredHeaders)],
            "body/fields" => vec![requests::wider(self, Part::Fields)],
            "records/rules" => records::changes(self),
            "files/nothing-else" => vec![self.further_files()],
            "files/rules" => vec![self.wider_files()],
            "outbound/no-attempts" => vec![self.attempts()],
            "process/programs" => vec![self.programs()],
            "process/exit-zero" => vec![self.exit()],
            _ => Vec::new(),
        };
        let before = self.wrong(self.own);
        let mut candidates = candidates.into_iter();
        let accepted = candidates.find(|changes| {
            let number = changes.iter().map(Change::rules).sum();
            (1..=MAX_CHANGES).contains(&number) && self.is_accepted(id, changes, &before)
        });
        accepted.unwrap_or_default()
    }

    /// Checks for a whole run, which ended by itself and kept the credential where its rules allow it.
    fn is_acceptable(&self) -> bool {
        let evidence = self.evidence;
        let complete = (self.complete)(self.own);
        let is_leak = |sighting: &Sighting| {
            let files = complete.files.as_ref();
            files.is_none_or(|files| rule_for_sighting(files, sighting).is_none())
        };
        let ended = matches!(evidence.exit, Exit::Code(_) | Exit::Signal(_));
        let is_listed = evidence.unlisted.attempts() + evidence.unlisted.questions == 0;
        let is_whole = evidence.gaps.is_empty() && check::unsound(evidence).is_empty();
        ended && is_listed && is_whole && !evidence.sightings.iter().any(is_leak)
    }

    fn is_accepted(&self, id: &str, changes: &[Change], before: &BTreeSet<String>) -> bool {
        let mut changed = self.own.clone();
        for change in changes {
            change.apply(&mut changed);
        }
        let after = self.wrong(&changed);
        !after.contains(id) && after.is_subset(before)
    }

    /// Ids of the checks that these expectations fail.
    fn wrong(&self, expect: &Expectations) -> BTreeSet<String> {
        let findings = check(&(self.complete)(expect), self.evidence).into_iter();
        let wrong =
            findings.filter(|finding| matches!(finding.status, Status::Failed | Status::Errored));
        wrong.map(|finding| finding.id.into_owned()).collect()
    }

    fn further_files(&self) -> Vec<Change> {
        let complete = (self.complete)(self.own);
        let Some(files) = &complete.files else {
            return Vec::new();
        };
        let unknown =
            |entry: &&FileEntry| !entry.transient && reason_for_file(files, entry).is_none();
        let entries: Vec<FileEntry> = self
            .evidence
            .files
            .iter()
            .filter(unknown)
            .cloned()
            .collect();
        if entries.len() > MAX_CHANGES {
            return Vec::new();
        }
        let mut refused = BTreeSet::new();
        let rules = observed::files(&[&entries], self.reason, &mut refused);
        let rules = rules.expected.into_iter().map(Change::AddFile);
        rules.filter(|_| refused.is_empty()).collect()
    }

    /// Widens the numbers and modes of the case's rules to those of the run.
    fn wider_files(&self) -> Vec<Change> {
        let complete = (self.complete)(self.own);
        let own = self.own.files.iter().flat_map(|files| &files.expected);
        let complete = complete.files.iter().flat_map(|files| &files.expected);
        let pairs = own.zip(complete).enumerate();
        let changed = pairs.filter_map(|(place, (own, complete))| {
            let found = self.evidence.files.iter();
            let found = found.filter(|entry| check::is_file_of(complete, entry));
            let modes = BTreeSet::from_iter(found.clone().map(|entry| entry.mode));
            let is_right = |mode: &u32| modes.iter().all(|found| found == mode);
            let only = modes.first().copied().filter(|_| modes.len() == 1);
            let wider = ExpectedFile {
                count: widened(own.count, found.count() as u64),
                mode: own
                    .mode
                    .filter(is_right)
                    .or(only.filter(|_| own.mode.is_some())),
                ..own.clone()
            };
            (wider != *own).then(|| {
                let reason = self.reason.to_owned();
                Change::ReplaceFile(place, ExpectedFile { reason, ..wider })
            })
        });
        changed.collect()
    }

    fn attempts(&self) -> Vec<Change> {
        let complete = (self.complete)(self.own);
        let expected = &complete.attempts;
        let attempts =
            judged(self.evidence).filter(|attempt| reason_for_attempt(expected, attempt).is_none());
        let names = self.evidence.names.iter();
        let names = names.filter(|name| reason_for_question(expected, name).is_none());
        let mut refused = BTreeSet::new();
        let rules = observed::attempts(attempts, names, self.reason, &mut refused);
        // A run cannot justify a look at keys or at the metadata of a cloud.
        let places = sensitive(self.evidence);
        if rules
            .iter()
            .any(|rule| observed::is_sensitive(rule, &places))
        {
            return Vec::new();
        }
        let rules = rules.into_iter().map(Change::AddAttempt);
        rules.filter(|_| refused.is_empty()).collect()
    }

    fn programs(&self) -> Vec<Change> {
        let complete = (self.complete)(self.own);
        let known = complete.programs.as_deref().unwrap_or_default();
        let mut programs = observed::further_programs(self.evidence);
        programs.retain(|program| !known.iter().any(|rule| rule.program.matches(program)));
        let mut refused = BTreeSet::new();
        let rules = observed::program_rules(vec![programs], self.reason, &mut refused);
        let rules = rules.into_iter().map(|rule| match self.project {
            Some(project) => ProgramRule {
                program: rule.program.without(project),
                ..rule
            },
            None => rule,
        });
        let rules = rules.map(Change::AddProgram);
        rules.filter(|_| refused.is_empty()).collect()
    }

    fn exit(&self) -> Vec<Change> {
        match self.evidence.exit {
            Exit::Code(code) => vec![Change::ReplaceExit(ExpectedExit::Code(code))],
            Exit::Signal(_)
            | Exit::Timeout(_)
            | Exit::OutputLimit
            | Exit::RequestLimit
            | Exit::Interrupted
            | Exit::NotStarted => Vec::new(),
        }
    }
}

/// Widens a number of times so that it allows this one.
fn widened(count: Count, found: u64) -> Count {
    Count {
        from: count.from.min(found),
        to: count.to.map(|to| to.max(found)),
    }
}
