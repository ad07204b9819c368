//! Reasons why a run is incomplete, so that a missing fact proves nothing.
//!
//! The reasons come from the report's layers, probes, gaps and exit, and not from its verdict alone: the file may have
//! been edited, and a verdict covers several faults. Does not know the facts.

use super::form::{Gap, Report};
use super::{Facts, Rule};

impl Report {
    /// Reasons why the run is incomplete; empty for a complete one.
    pub fn incomplete(&self) -> Vec<String> {
        reasons(self)
    }
}

/// Reasons why the run is incomplete; empty for a complete one.
///
/// A failed comparison with a lock file is no reason: it is a fault of that file.
fn reasons(report: &Report) -> Vec<String> {
    let mut reasons = lost(report);
    let gaps = report.evidence.gaps.iter();
    let gaps = gaps.filter(|gap| passed_over(gap).is_none());
    reasons.extend(gaps.map(|gap| format!("its {} are incomplete: {}", gap.what, gap.detail)));
    if report.verdict == "errored" && reasons.is_empty() && !only_the_baseline(report) {
        reasons.push("its verdict is errored".to_owned());
    }
    reasons
}

/// Counts the gaps in evidence that has no facts.
pub(super) fn count_passed_over(gaps: &[Gap], facts: &mut Facts) {
    gaps.iter()
        .filter_map(passed_over)
        .for_each(|rule| facts.apply(rule));
}

/// Rule that leaves out the evidence of this gap. Such gaps depend on the load of the host.
fn passed_over(gap: &Gap) -> Option<Rule> {
    match gap.what.as_str() {
        "lookups" => Some(Rule::Lookups),
        "order" => Some(Rule::Order),
        _ => None,
    }
}

/// Faults of the sandbox, and an early end of the client. An unknown status counts as a fault.
fn lost(report: &Report) -> Vec<String> {
    let mut reasons = Vec::new();
    let isolation = &report.isolation;
    if isolation.layers.is_empty() {
        reasons.push("no layer of its sandbox was verified".to_owned());
    }
    let layers = isolation.layers.iter();
    let lost = layers.filter(|layer| layer.need != "if-offered" && layer.status != "enforced");
    reasons.extend(lost.map(|layer| {
        let (name, status) = (&layer.name, &layer.status);
        format!("a layer of its sandbox is {status}: {name}")
    }));
    if isolation.canaries.is_empty() {
        reasons.push("no canary was tried".to_owned());
    }
    let canaries = isolation.canaries.iter();
    let leaks = canaries.filter(|one| !matches!(one.status.as_str(), "held" | "not-applicable"));
    reasons.extend(leaks.map(|canary| format!("a probe did not hold: {}", canary.name)));
    if ends_with(report, "not_started") {
        reasons.push("its client was never started".to_owned());
    }
    if ends_with(report, "interrupted") {
        reasons.push("it was interrupted".to_owned());
    }
    reasons
}

fn ends_with(report: &Report, how: &str) -> bool {
    report.client.exit.contains_key(how)
}

/// Checks that the verdict is errored only because of the lock file. With a failed check the verdict would be failed,
/// so an errored verdict beside one means a fault of the run itself.
fn only_the_baseline(report: &Report) -> bool {
    let with = |status: &'static str| {
        let found = report.checks.iter();
        found.filter(move |check| check.status == status)
    };
    let errored = with("errored").map(|check| check.id.as_str());
    errored.eq([model::finding::BASELINE])
        && with("failed").next().is_none()
        && with("passed").next().is_some()
}
