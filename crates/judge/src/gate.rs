//! Gates of an audit, and its verdict.
//!
//! An audit has no expectations of its program, so only the options `--fail-on` and `--baseline` decide: each is a check
//! of its own. Pure.

use model::case::Tier;
use model::evidence::{Evidence, Exit, GapKind};
use model::finding::{AskedBy, BASELINE, FAIL_ON, Finding, Status, Verdict};
use model::report::{FindingKind, Report};

use crate::check::unsound;

/// Checks that decide on an audit.
const GATES: [&str; 2] = [BASELINE, FAIL_ON];

/// Verdict of an audit, by the first rule that applies:
///
/// 1. *Errored* if the sandbox did not hold, evidence is lost, or a check is errored.
/// 2. *Failed* if a gate failed.
/// 3. *Passed* if a gate passed.
/// 4. *Audited*.
pub fn verdict(findings: &[Finding], evidence: &Evidence) -> Verdict {
    let gate = |status| {
        let mut gates = findings.iter().filter(|one| GATES.contains(&&*one.id));
        gates.any(|gate| gate.status == status)
    };
    let is_errored = findings.iter().any(|one| one.status == Status::Errored);
    if is_errored || !unsound(evidence).is_empty() {
        Verdict::Errored
    } else if gate(Status::Failed) {
        Verdict::Failed
    } else if gate(Status::Passed) {
        Verdict::Passed
    } else {
        Verdict::Audited
    }
}

/// Makes the check of `--fail-on`: failed if there is a finding of one of these kinds, errored if there may be one that
/// the evidence does not show.
pub fn fail_on(kinds: &[FindingKind], report: &Report) -> Finding {
    let findings = report.findings().unwrap_or_default();
    let found: Vec<String> = kinds
        .iter()
        .filter_map(|kind| findings.words(*kind))
        .collect();
    let words: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
    let words = words.join(", ");
    let unknown = kinds.iter().find_map(|kind| not_recorded(*kind, report));
    let (status, message, because) = match (report.evidence.exit, found.as_slice(), unknown) {
        (Exit::NotStarted, ..) => (
            Status::Skipped,
            "Not checked.".to_owned(),
            Some("the program was never started".to_owned()),
        ),
        (_, [], None) => (
            Status::Passed,
            format!("The audit found nothing that `--fail-on` names: {words}."),
            None,
        ),
        (_, [], Some(because)) => (
            Status::Errored,
            "The evidence does not show what `--fail-on` names.".to_owned(),
            Some(because),
        ),
        (_, found, _) => (
            Status::Failed,
            format!(
                "The audit found what `--fail-on` names: {}.",
                found.join(", ")
            ),
            None,
        ),
    };
    Finding {
        id: FAIL_ON.into(),
        status,
        message,
        object: None,
        expected: (!found.is_empty()).then(|| format!("none of these: {words}")),
        found: (!found.is_empty()).then(|| found.join(", ")),
        because,
        accept: None,
        asked_by: AskedBy::CommandLine,
    }
}

/// Reason why a kind of finding may be missing, beyond the gaps that make other checks errored.
fn not_recorded(kind: FindingKind, report: &Report) -> Option<String> {
    let inherited = |what: &str| {
        let is_one = report.tier == Tier::Inherited;
        is_one.then(|| format!("isolation inherited does not record {what}"))
    };
    match kind {
        FindingKind::Names => inherited("names asked for"),
        FindingKind::Sensitive => inherited("paths that are looked for").or_else(|| {
            let gap = report.evidence.gap(&[GapKind::Lookups])?;
            Some(gap.detail.clone())
        }),
        FindingKind::Attempts | FindingKind::Credential | FindingKind::Survivors => None,
    }
}

#[cfg(test)]
mod tests;
