//! One-line verdict, shared by the reports for people and for viewers.

use model::evidence::Exit;
use model::finding::{INTERRUPTED, Status, Verdict};
use model::report::{AuditFindings, BaselineOutcome, Report};
use model::text::count;

use super::tone::Tone;

/// Verdict word with a summary of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headline {
    /// `FAILED`; for an audit with the number of its findings: `AUDITED, 3 findings`.
    pub(super) word: String,
    pub(super) tone: Tone,
    /// Text between word and summary.
    pub(super) joint: &'static str,
    /// `case-b: 2 checks failed, 31 passed, 2 skipped`, `2 attempts, 1 name, credential in stdout`; may be empty.
    /// Hostile: the reason of an errored audit may quote an address.
    pub(super) text: String,
}

impl Headline {
    /// Returns the summary with the text before it; empty without a summary.
    pub(super) fn rest(&self) -> String {
        match self.text.as_str() {
            "" => String::new(),
            text => format!("{}{text}", self.joint),
        }
    }

    /// Returns the whole line.
    pub(super) fn line(&self) -> String {
        format!("{}{}", self.word, self.rest())
    }
}

/// Builds the headline of a run.
pub(super) fn headline(report: &Report) -> Headline {
    let findings = report.findings();
    let is_clean = findings.as_ref().is_none_or(|found| found.count == 0);
    let tone = tone(report.verdict, is_clean);
    let word = report.verdict.word().to_ascii_uppercase();
    match findings {
        None => Headline {
            word,
            tone,
            joint: "  ",
            text: judged(report),
        },
        Some(_) if report.evidence.exit == Exit::NotStarted => Headline {
            word,
            tone,
            joint: ": ",
            text: reasons(report).collect(),
        },
        Some(found) => Headline {
            word: format!("{word}, {}", number(&found, report.verdict)),
            tone,
            joint: ": ",
            text: audited(report, found),
        },
    }
}

/// Tone of a verdict. An audit is clean without findings.
pub(super) fn tone(verdict: Verdict, is_clean: bool) -> Tone {
    match verdict {
        Verdict::Audited if !is_clean => Tone::Seen,
        Verdict::Passed | Verdict::Audited => Tone::Good,
        Verdict::Failed => Tone::Bad,
        Verdict::Errored => Tone::Doubtful,
    }
}

/// `case-b: 2 checks failed, 31 passed, 2 skipped, 5 rules not reviewed; not judged: records`
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
    if report.not_reviewed > 0 {
        let rules = count(report.not_reviewed as usize, "rule");
        text.push_str(&format!(", {rules} not reviewed"));
    }
    if !report.not_judged.is_empty() {
        text.push_str(&format!("; not judged: {}", report.not_judged.join(", ")));
    }
    text
}

/// `3 findings`, `no findings in what was recorded`
fn number(found: &AuditFindings, verdict: Verdict) -> String {
    let number = match found.count {
        0 => "no findings".to_owned(),
        number => count(number, "finding"),
    };
    match verdict {
        Verdict::Errored => number + " in what was recorded",
        Verdict::Passed | Verdict::Failed | Verdict::Audited => number,
    }
}

/// `2 attempts, 1 name; 3 differences from the lock file`
fn audited(report: &Report, found: AuditFindings) -> String {
    let compared = report.baseline.iter();
    let compared = compared.filter(|one| one.outcome == BaselineOutcome::Compared);
    let drift = compared
        .map(|one| one.differences.len())
        .filter(|all| *all > 0);
    let drift = drift.map(|all| format!("{} from the lock file", count(all, "difference")));
    let summary = Some(found.summary).filter(|summary| !summary.is_empty());
    let parts = reasons(report).chain(summary).chain(drift);
    parts.collect::<Vec<_>>().join("; ")
}

/// Returns the main reason of an errored audit.
fn reasons(report: &Report) -> impl Iterator<Item = String> {
    // An interrupt also causes lost evidence, which would be named first.
    let interrupted = report.evidence.exit == Exit::Interrupted;
    let interrupted = interrupted.then(|| INTERRUPTED.to_owned());
    let errored = report.checks.iter();
    let errored = errored.filter(|one| one.status == Status::Errored);
    let errored = errored.filter_map(|one| one.because.clone());
    let unsound = report.unsound.iter().cloned();
    let all = interrupted.into_iter().chain(unsound).chain(errored);
    all.take(usize::from(report.verdict == Verdict::Errored))
}

#[cfg(test)]
mod tests {
    use model::difference::{Area, Change, Difference, Fact};
    use model::report::Baseline;

    use super::*;
    use crate::tests::ci::{audit, quiet_audit};

    fn line(report: &Report) -> String {
        headline(report).line()
    }

    #[test]
    fn headline_of_an_audit_counts_its_findings() {
        assert_eq!(line(&quiet_audit()), "AUDITED, no findings");
        let mut report = audit();
        assert_eq!(
            line(&report),
            "AUDITED, 3 findings: 1 attempt, 1 name, credential in stdout"
        );
        report.verdict = Verdict::Failed;
        assert!(line(&report).starts_with("FAILED, 3 findings: 1 attempt"));
    }

    #[test]
    fn headline_of_an_errored_audit_has_the_reason() {
        let mut report = audit();
        report.verdict = Verdict::Errored;
        report.unsound = vec!["the run was interrupted".to_owned()];
        assert!(line(&report).starts_with(
            "ERRORED, 3 findings in what was recorded: the run was interrupted; 1 attempt"
        ));
        report.evidence.exit = Exit::NotStarted;
        assert_eq!(line(&report), "ERRORED: the run was interrupted");
    }

    #[test]
    fn headline_of_an_audit_counts_drift() {
        let mut report = quiet_audit();
        report.verdict = Verdict::Failed;
        report.baseline = Some(Baseline {
            file: "agent.lock".to_owned(),
            outcome: BaselineOutcome::Compared,
            tier_before: None,
            differences: vec![Difference {
                fact: Fact {
                    area: Area::Names,
                    key: "a.example A".to_owned(),
                },
                change: Change::Added("asked for".to_owned()),
            }],
        });
        assert_eq!(
            line(&report),
            "FAILED, no findings: 1 difference from the lock file"
        );
    }
}
