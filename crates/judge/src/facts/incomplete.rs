//! Why what is missing from a run says nothing.
//!
//! The report is judged by what it says of the sandbox and of the client's end, and not by its verdict alone: a file
//! may have been changed, and a verdict tells several faults by one word. It must not know what the facts are.

use super::form::{Gap, Report};
use super::{Facts, Rule};

impl Report {
    /// Why what is missing from this run says nothing; empty for a sound one.
    pub fn incomplete(&self) -> Vec<String> {
        reasons(self)
    }
}

/// Why what is missing from this run says nothing; empty for a sound one.
///
/// A comparison with a lock file that could not be made is a fault of that file, and no gap in the evidence.
fn reasons(report: &Report) -> Vec<String> {
    let mut reasons = lost(report);
    let gaps = report.evidence.gaps.iter();
    let gaps = gaps.filter(|gap| passed_over(gap).is_none());
    reasons.extend(gaps.map(|gap| format!("its {} are not whole: {}", gap.what, gap.detail)));
    if report.verdict == "errored" && reasons.is_empty() && !only_the_baseline(report) {
        reasons.push("its verdict is errored".to_owned());
    }
    reasons
}

/// Counts the gaps in what no fact is made of.
pub(super) fn count_passed_over(gaps: &[Gap], facts: &mut Facts) {
    gaps.iter()
        .filter_map(passed_over)
        .for_each(|rule| facts.apply(rule));
}

/// The rule by which that is not compared in which this is a gap. Whether there is one depends on the load.
fn passed_over(gap: &Gap) -> Option<Rule> {
    match gap.what.as_str() {
        "lookups" => Some(Rule::Lookups),
        "order" => Some(Rule::Order),
        _ => None,
    }
}

/// What the run lost of its sandbox, or of its client. A word that nobody knows is no good one.
fn lost(report: &Report) -> Vec<String> {
    let mut reasons = Vec::new();
    let isolation = &report.isolation;
    if isolation.layers.is_empty() {
        reasons.push("no layer of its sandbox was read back".to_owned());
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
    reasons.extend(leaks.map(|canary| format!("a canary did not hold: {}", canary.name)));
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

/// Whether the verdict would not be errored without the lock file. Where a check failed, an errored one does not make
/// the verdict: then the run itself is unsound.
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
