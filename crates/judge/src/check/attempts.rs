//! Check of the client's attempts, except connections to the stub, against the attempts that its profile names.

use std::collections::BTreeSet;

use model::evidence::{Evidence, Outcome as End, Question, Unlisted};
use model::expected::{AttemptGroup, attempt_groups, reason_for_attempt, reason_for_question};
use model::text::count;

use super::Expected;
use super::outcome::{Deviation, Outcome, list};

pub(super) fn no_attempts(evidence: &Evidence, asked: Expected<'_>) -> Outcome {
    let expected = asked.attempts;
    let (allowed, found): (Vec<_>, Vec<_>) =
        attempt_groups(evidence, |attempt| reason_for_attempt(expected, attempt))
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
            let deviation = Deviation::new("The client made more attempts than the ledger lists.")
                .expected("no attempt but those that the profile names")
                .found(beyond(unlisted));
            // Without expected attempts, each unlisted attempt is a finding.
            if expected.is_empty() && unlisted.attempts() > 0 {
                return deviation.failed();
            }
            return deviation.undecided("unlisted attempts cannot be compared with the profile");
        }
        let seen = match total(&allowed) {
            0 => "No attempt was seen.".to_owned(),
            number => format!(
                "No attempt was seen but {} that the profile names.",
                count(number, "attempt")
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
    let asked = BTreeSet::from_iter(names.iter().map(|question| &question.name));
    Deviation::new(message(&found, asked.len()))
        .expected("no attempt but those that the profile names")
        .found(list(shown))
        .failed()
}

/// Message of the finding: `The client tried more than its way to the stub: 7 attempts of 1 program …`.
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
            count(all, "attempt"),
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

/// Text `3 attempts and 1 question beyond what is listed`.
fn beyond(unlisted: &Unlisted) -> String {
    format!(
        "{} and {} beyond what is listed",
        count(unlisted.attempts(), "attempt"),
        count(unlisted.questions, "question")
    )
}

/// Text of an attempt, `inet:192.0.2.1:443 by /usr/bin/x, denied ENETUNREACH, 3 times`; hostile.
fn describe(group: &AttemptGroup) -> String {
    format!(
        "{} by {}, {}, {}",
        group.target,
        group.program,
        group.outcome.words(),
        count(group.count, "time"),
    )
}

/// Text of a question, `name:api.example.com (A), 2 times`, `name:api.example.com (A, class 3, 33 bytes), 1 time`;
/// hostile.
fn ask(question: &Question) -> String {
    format!(
        "name:{} ({}), {}",
        question.name,
        question.kind_and_odd(),
        count(question.count, "time")
    )
}

fn total(groups: &[AttemptGroup]) -> u64 {
    groups
        .iter()
        .map(|group| group.count)
        .fold(0, u64::saturating_add)
}
