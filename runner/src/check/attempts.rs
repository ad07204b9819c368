//! What the client tried beside its way to the stub, against what its profile names.

use std::collections::BTreeSet;

use crate::evidence::{
    Attempt, AttemptKind, Evidence, Outcome as End, Question, RESOLVER, Unlisted,
};
use crate::profile::{Destination, ExpectedAttempt};

use super::Expected;
use super::outcome::{Deviation, Outcome, count, list};

/// [`Attempt::target`] of the way to the resolver.
pub fn resolver_target() -> String {
    let (address, port) = RESOLVER;
    format!("inet:{address}:{port}")
}

/// Attempts of one program at one destination that came out the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptGroup {
    /// Path of the program, as seen inside; hostile.
    pub program: String,
    /// [`Attempt::target`]; hostile.
    pub target: String,
    /// What became of them.
    pub outcome: End,
    /// How many they are.
    pub count: u64,
    /// Why they are no finding, in the profile's words; `None` where they are one.
    pub reason: Option<String>,
}

impl AttemptGroup {
    /// `denied ENETUNREACH`, `let through`; a question to the resolver of the run went no further than that.
    pub fn outcome_words(&self) -> String {
        let resolver = resolver_target();
        let asked = |rest: &str| rest.is_empty() || rest.starts_with(" for ");
        match self.outcome {
            End::Allowed if self.target.strip_prefix(&resolver).is_some_and(asked) => {
                "answered by the resolver inside".to_owned()
            }
            End::Allowed | End::Denied(_) => self.outcome.words(),
        }
    }
}

/// The ledger's attempts by program, destination and outcome, in the order of the first of each; what is
/// setup is left out.
pub fn attempt_groups(expected: &[ExpectedAttempt], evidence: &Evidence) -> Vec<AttemptGroup> {
    grouped(judged(evidence).map(|attempt| AttemptGroup {
        program: attempt.program.clone(),
        target: attempt.target(),
        outcome: attempt.outcome,
        count: attempt.count,
        reason: reason_for_attempt(expected, evidence, attempt).map(str::to_owned),
    }))
}

/// The calls that met a limit of the sandbox, by program and limit, which stands as the target; not judged.
pub fn met_limits(evidence: &Evidence) -> Vec<AttemptGroup> {
    grouped(evidence.attempts.iter().filter_map(|attempt| {
        let limit = attempt.met_limit()?;
        // No other limit that a call meets has a key in the case.
        let key = if limit.contains("shared memory") {
            "; raised by file_size in the case"
        } else {
            ""
        };
        Some(AttemptGroup {
            program: attempt.program.clone(),
            target: format!("{limit}{key}"),
            outcome: attempt.outcome,
            count: attempt.count,
            reason: None,
        })
    }))
}

fn grouped(all: impl Iterator<Item = AttemptGroup>) -> Vec<AttemptGroup> {
    let mut groups: Vec<AttemptGroup> = Vec::new();
    for new in all {
        let same = |group: &&mut AttemptGroup| {
            (&group.program, &group.target, group.outcome, &group.reason)
                == (&new.program, &new.target, new.outcome, &new.reason)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.count = group.count.saturating_add(new.count),
            None => groups.push(new),
        }
    }
    groups
}

/// Why an attempt is no finding, in the profile's words; `None` where it is one. A rule speaks of destinations: a
/// call that has none, a listening socket among them, is never allowed.
pub fn reason_for_attempt<'a>(
    expected: &'a [ExpectedAttempt],
    evidence: &Evidence,
    attempt: &Attempt,
) -> Option<&'a str> {
    if !attempt.is_directed() {
        return None;
    }
    let rule = expected
        .iter()
        .find(|rule| leads_to(&rule.destination, attempt));
    rule.map(|rule| rule.reason.as_str())
        .or_else(|| asks_for_names(expected, evidence, attempt))
}

/// Reason from the profile for a question that is no finding; `None` for a finding. A rule for a name covers ordinary
/// queries only: an odd datagram is a finding for any name.
pub fn reason_for_question<'a>(
    expected: &'a [ExpectedAttempt],
    question: &Question,
) -> Option<&'a str> {
    reason_for_name(expected, &question.name).filter(|_| question.odd.is_none())
}

/// Why asking for a name is no finding, in the profile's words; `None` where it is one.
fn reason_for_name<'a>(expected: &'a [ExpectedAttempt], name: &str) -> Option<&'a str> {
    let rule = expected.iter().find(|rule| match &rule.destination {
        // Names are compared without regard to case (RFC 4343).
        Destination::Name(named) => named.eq_ignore_ascii_case(name),
        Destination::Unix(_) | Destination::Inet(..) => false,
    })?;
    Some(&rule.reason)
}

pub(super) fn no_attempts(evidence: &Evidence, asked: Expected<'_>) -> Outcome {
    let expected = asked.attempts;
    let (allowed, found): (Vec<_>, Vec<_>) = attempt_groups(expected, evidence)
        .into_iter()
        .partition(|group| group.reason.is_some());
    let names: Vec<_> = evidence
        .names
        .iter()
        .filter(|question| reason_for_question(expected, question).is_none())
        .collect();
    let unlisted = &evidence.unlisted;
    if found.is_empty() && names.is_empty() {
        if unlisted.attempts() + unlisted.questions > 0 {
            let deviation = Deviation::new("More was tried than is listed.")
                .expected("no attempt but those that the profile names")
                .found(beyond(unlisted));
            // Where none is expected, each of them is a finding.
            if expected.is_empty() && unlisted.attempts() > 0 {
                return deviation.failed();
            }
            return deviation
                .undecided("what is not listed is not compared with what the profile names");
        }
        let seen = match total(&allowed) {
            0 => "No attempt was seen.".to_owned(),
            number => format!(
                "No attempt was seen but {} that the profile names.",
                times(number, "attempt")
            ),
        };
        let limits = evidence.limits_of_ledger().join(" ");
        if limits.is_empty() {
            return Ok(seen);
        }
        if asked.complete_ledger {
            return Deviation::new(limits).undecided("the case asks for a complete ledger");
        }
        return Ok(format!("{seen} {limits}"));
    }
    let shown = found
        .iter()
        .map(describe)
        .chain(names.iter().map(|name| ask(name)))
        .chain((unlisted.attempts() + unlisted.questions > 0).then(|| beyond(unlisted)));
    Deviation::new(message(&found, names.len()))
        .expected("no attempt but those that the profile names")
        .found(list(shown))
        .failed()
}

/// `The client tried more than its way to the stub: 7 attempts of 1 program at 2 destinations, …`
fn message(found: &[AttemptGroup], names: usize) -> String {
    let mut parts = Vec::new();
    if !found.is_empty() {
        let programs = BTreeSet::from_iter(found.iter().map(|group| &group.program));
        let targets = BTreeSet::from_iter(found.iter().map(|group| &group.target));
        let denied = found
            .iter()
            .filter(|group| matches!(group.outcome, End::Denied(_)));
        let denied: u64 = denied.map(|group| group.count).fold(0, u64::saturating_add);
        let all = total(found);
        parts.push(format!(
            "{} of {} at {} ({denied} denied, {} let through)",
            times(all, "attempt"),
            count(programs.len(), "program"),
            count(targets.len(), "destination"),
            all.saturating_sub(denied),
        ));
    }
    if names > 0 {
        parts.push(format!("{} asked for", count(names, "name")));
    }
    format!(
        "The client tried more than its way to the stub: {}.",
        parts.join(", ")
    )
}

/// `3 attempts and 1 question beyond what is listed`
fn beyond(unlisted: &Unlisted) -> String {
    format!(
        "{} and {} beyond what is listed",
        times(unlisted.attempts(), "attempt"),
        times(unlisted.questions, "question")
    )
}

/// `inet:192.0.2.1:443 by /usr/bin/x, denied ENETUNREACH, 3 times`; client text.
fn describe(group: &AttemptGroup) -> String {
    format!(
        "{} by {}, {}, {}",
        group.target,
        group.program,
        group.outcome_words(),
        times(group.count, "time"),
    )
}

/// `name:api.example.com (A), 2 times`, `name:api.example.com (A, class 3, 33 bytes), 1 time`; client text.
fn ask(question: &Question) -> String {
    format!(
        "name:{} ({}), {}",
        question.name,
        question.kind_and_odd(),
        times(question.count, "time")
    )
}

fn judged(evidence: &Evidence) -> impl Iterator<Item = &Attempt> {
    evidence
        .attempts
        .iter()
        .filter(|attempt| attempt.kind == AttemptKind::Attempt)
}

fn leads_to(destination: &Destination, attempt: &Attempt) -> bool {
    match destination {
        Destination::Unix(path) => {
            attempt.family.as_deref() == Some("unix")
                && attempt.address.as_deref() == Some(path.as_str())
        }
        Destination::Inet(address, ports) => {
            attempt.ip() == Some(*address) && attempt.port.is_some_and(|port| ports.include(port))
        }
        Destination::Name(_) => false,
    }
}

/// The way to the resolver is allowed with the names that are asked for there: all of them, and one at least.
/// Where the call itself shows none (a connect, then sends without an address), it is all that were asked for.
fn asks_for_names<'a>(
    expected: &'a [ExpectedAttempt],
    evidence: &Evidence,
    attempt: &Attempt,
) -> Option<&'a str> {
    if !attempt.is_to_resolver() {
        return None;
    }
    let asked: Vec<&str> = if attempt.names.is_empty() {
        evidence
            .names
            .iter()
            .map(|name| name.name.as_str())
            .collect()
    } else {
        attempt.names.iter().map(String::as_str).collect()
    };
    let reasons: Option<Vec<&str>> = asked
        .into_iter()
        .map(|name| reason_for_name(expected, name))
        .collect();
    reasons?.first().copied()
}

fn total(groups: &[AttemptGroup]) -> u64 {
    groups
        .iter()
        .map(|group| group.count)
        .fold(0, u64::saturating_add)
}

fn times(number: u64, noun: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}
