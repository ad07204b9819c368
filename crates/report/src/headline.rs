//! One-line verdict, shared by the reports for people and for viewers.

use std::collections::BTreeSet;

use model::evidence::{Evidence, Outcome};
use model::expected;
use model::finding::{Finding, Status, Verdict};
use model::report::{Purpose, Report};
use model::text::count;

use super::phrases;
use super::tone::Tone;

/// Verdict word with a summary of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headline {
    /// `FAILED`. A sound audit has `AUDITED`, because it expects nothing of its program.
    pub(super) word: &'static str,
    pub(super) tone: Tone,
    /// `case-b: 2 checks failed, 31 passed, 2 skipped`. Hostile: an audit quotes a queried name.
    pub(super) text: String,
}

/// Builds the headline of a run.
pub(super) fn headline(report: &Report) -> Headline {
    let word = match (report.purpose, report.verdict) {
        (_, Verdict::Errored) => "ERRORED",
        (Purpose::Audit, Verdict::Passed | Verdict::Failed) => "AUDITED",
        (Purpose::Judge, Verdict::Passed) => "PASSED",
        (Purpose::Judge, Verdict::Failed) => "FAILED",
    };
    let tone = match (report.purpose, report.verdict) {
        (_, Verdict::Passed) => Tone::Good,
        (Purpose::Judge, Verdict::Failed) => Tone::Bad,
        (Purpose::Audit, Verdict::Failed) => Tone::Seen,
        (_, Verdict::Errored) => Tone::Doubtful,
    };
    let text = match report.purpose {
        Purpose::Judge => judged(report),
        Purpose::Audit => audited(report),
    };
    Headline { word, tone, text }
}

/// Returns true for the finding that an audit shows as its list of attempts.
pub(super) fn is_shown_as_attempts(finding: &Finding) -> bool {
    finding.id == "outbound/no-attempts" && finding.status == Status::Failed
}

/// `case-b: 2 checks failed, 31 passed, 2 skipped`
fn judged(report: &Report) -> String {
    let ranked = [
        Status::Failed,
        Status::Errored,
        Status::Passed,
        Status::Skipped,
    ];
    let with = |status| report.checks.iter().filter(move |one| one.status == status);
    let counts = ranked.map(|status| (with(status).count(), status.word()));
    let mut counts = counts.into_iter().filter(|(number, _)| *number > 0);
    let name = &report.case.name;
    let mut text = match counts.next() {
        Some((number, word)) => format!("{name}: {} {word}", count(number, "check")),
        None => format!("{name}: no checks"),
    };
    for (number, word) in counts {
        text.push_str(&format!(", {number} {word}"));
    }
    text
}

/// `curl: exit code 7; 2 attempts, denied; asked for 1 name`
fn audited(report: &Report) -> String {
    let name = report.client.program.rsplit('/').next().unwrap_or_default();
    let mut parts = vec![format!("{name}: {}", phrases::exit(&report.evidence))];
    parts.push(attempts(report));
    parts.extend(names(&report.evidence));
    parts.extend(
        counted(report.evidence.requests.len(), "request").map(|all| format!("{all} to the stub")),
    );
    parts.join("; ")
}

/// Counts the attempts that no profile rule expects.
///
/// If queried names are listed, attempts at the resolver are left out.
fn attempts(report: &Report) -> String {
    let evidence = &report.evidence;
    let resolver = expected::resolver_target();
    let unexpected = expected::judged(evidence).filter(|attempt| attempt.expected.is_none());
    let (by_name, found): (Vec<_>, Vec<_>) =
        unexpected.partition(|attempt| !evidence.names.is_empty() && attempt.target() == resolver);
    let sum = |denied_only: bool| {
        let counted = found
            .iter()
            .filter(|attempt| !denied_only || matches!(attempt.outcome, Outcome::Denied(_)));
        counted
            .map(|attempt| attempt.count)
            .fold(0, u64::saturating_add)
    };
    let unlisted = &evidence.unlisted;
    let all = sum(false).saturating_add(unlisted.attempts());
    let denied = sum(true).saturating_add(unlisted.denied);
    let number = count(all, "attempt");
    match (all, denied) {
        (0, _) if !by_name.is_empty() => "no attempt at an address but the resolver's".to_owned(),
        (0, _) => "no attempt at an address".to_owned(),
        (all, denied) if all == denied => format!("{number}, denied"),
        (_, 0) => format!("{number} inside the sandbox"),
        (_, denied) => format!("{number}, {denied} of them denied"),
    }
}

/// Counts the queried names. Queries of several types for one name count once.
fn names(evidence: &Evidence) -> Option<String> {
    let asked = evidence.names.iter().map(|question| question.name.as_str());
    let asked: BTreeSet<&str> = asked.collect();
    match asked.len() {
        1 => asked
            .first()
            .map(|only| format!("asked for the name {only}")),
        more => counted(more, "name").map(|all| format!("asked for {all}")),
    }
}

/// Returns `None` for zero.
fn counted(number: usize, noun: &str) -> Option<String> {
    (number > 0).then(|| count(number, noun))
}

#[cfg(test)]
mod tests {
    use model::evidence::fixture::{connect, question};

    use super::*;
    use crate::tests::ci::audit;

    #[test]
    fn audit_counts_attempts_beside_the_resolvers() {
        let (resolver, port) = model::evidence::RESOLVER;
        let mut report = audit();

        report.evidence.attempts = vec![connect("inet", &resolver.to_string(), Some(port))];
        report.evidence.names.clear();
        assert_eq!(attempts(&report), "1 attempt, denied");
        report.evidence.names = vec![question("api.example.com")];
        assert_eq!(
            attempts(&report),
            "no attempt at an address but the resolver's"
        );
        let mut repeated = connect("inet", "192.0.2.1", Some(443));
        repeated.count = 1_234;
        report.evidence.attempts.push(repeated);
        assert_eq!(attempts(&report), "1,234 attempts, denied");
        report.evidence.attempts[1].outcome = Outcome::Allowed;
        assert_eq!(attempts(&report), "1,234 attempts inside the sandbox");
        report.evidence.attempts[1].expected = Some("known".to_owned());
        report.evidence.names.clear();
        report.evidence.attempts.remove(0);
        assert_eq!(attempts(&report), "no attempt at an address");
    }
}
