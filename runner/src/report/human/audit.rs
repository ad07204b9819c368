//! The report of an audit: what the program tried, grouped, and what it was shown. What it printed went where its
//! output goes, so none of it stands here.

use std::fmt;

use crate::check::{self, AttemptGroup, count};
use crate::evidence::Outcome;
use crate::report::Report;
use crate::verdict::{Status, Verdict};

use super::page::{Page, Tone};
use super::{evidence, exit, ledger};

pub(super) fn render(page: &mut Page<String>, report: &Report) -> fmt::Result {
    summary(page, report)?;
    super::run(page, report)?;
    super::unsound(page, report)?;
    super::findings(page, report, |finding| !is_told_as_an_attempt(finding))?;
    ledger::attempts(page, report)?;
    ledger::names(page, report)?;
    if !report.evidence.requests.is_empty() {
        evidence::requests(page, report)?;
    }
    evidence::files(page, report)?;
    evidence::transient_files(page, report)?;
    ledger::programs(page, report)?;
    evidence::survivors(page, report)?;
    evidence::isolation_in_short(page, report)?;
    evidence::gaps(page, report)?;
    super::wider_rules(
        page,
        report,
        "What the command line adds to what every program is shown",
    )?;
    super::shown(page, report)?;
    page.blank()?;
    summary(page, report)
}

/// Told in full as attempts and names.
fn is_told_as_an_attempt(finding: &crate::verdict::Finding) -> bool {
    finding.id == "outbound/no-attempts" && finding.status == Status::Failed
}

/// `AUDITED  curl: exit code 6; 2 attempts at 1 destination, all denied; 1 name asked for`
fn summary(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let (word, tone) = match report.verdict {
        Verdict::Passed => ("AUDITED", Tone::Good),
        Verdict::Failed => ("AUDITED", Tone::Doubtful),
        Verdict::Errored => ("ERRORED", Tone::Bad),
    };
    let name = report.client.program.rsplit('/').next().unwrap_or_default();
    let mut parts = vec![format!("{name}: {}", exit(report.evidence.exit))];
    parts.push(attempts(&check::attempt_groups(
        &report.expected_attempts,
        &report.evidence,
    )));
    let counts = [
        (report.evidence.names.len(), "name", "asked for"),
        (report.evidence.requests.len(), "request", "to the stub"),
    ];
    let more = counts.into_iter().filter(|(number, ..)| *number > 0);
    parts.extend(more.map(|(number, noun, what)| format!("{} {what}", count(number, noun))));
    page.headline(word, tone, &parts.join("; "))
}

fn attempts(groups: &[AttemptGroup]) -> String {
    let found: Vec<_> = groups
        .iter()
        .filter(|group| group.reason.is_none())
        .collect();
    let all: u64 = found
        .iter()
        .map(|group| group.count)
        .fold(0, u64::saturating_add);
    let denied = found
        .iter()
        .filter(|group| matches!(group.outcome, Outcome::Denied(_)));
    let denied: u64 = denied.map(|group| group.count).fold(0, u64::saturating_add);
    let number = count(usize::try_from(all).unwrap_or(usize::MAX), "attempt");
    match (all, denied) {
        (0, _) => "no attempt".to_owned(),
        (all, denied) if all == denied => format!("{number}, denied"),
        (_, 0) => format!("{number} inside the sandbox"),
        (_, denied) => format!("{number}, {denied} of them denied"),
    }
}
