//! The report of an audit: what the program tried, grouped, and what it was shown. What it printed went where its
//! output goes, so none of it stands here.

use std::collections::BTreeSet;
use std::fmt;

use crate::check::{self, AttemptGroup, count};
use crate::evidence::{Evidence, Outcome};
use crate::report::Report;
use crate::verdict::{Finding, Status, Verdict};

use super::page::{Page, Tone};
use super::{evidence, ledger, lookups, words};

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
    lookups::lookups(page, report)?;
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
fn is_told_as_an_attempt(finding: &Finding) -> bool {
    finding.id == "outbound/no-attempts" && finding.status == Status::Failed
}

/// `AUDITED  curl: exit code 7; 2 attempts, denied; asked for 1 name`
fn summary(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let (word, tone) = match report.verdict {
        Verdict::Passed => ("AUDITED", Tone::Good),
        Verdict::Failed => ("AUDITED", Tone::Doubtful),
        Verdict::Errored => ("ERRORED", Tone::Bad),
    };
    let name = report.client.program.rsplit('/').next().unwrap_or_default();
    let mut parts = vec![format!("{name}: {}", words::exit(report.evidence.exit))];
    parts.push(attempts(report));
    parts.extend(names(&report.evidence));
    parts.extend(
        some(report.evidence.requests.len(), "request").map(|all| format!("{all} to the stub")),
    );
    page.headline(word, tone, &parts.join("; "))
}

/// What is no finding is left out, and so is the way to the resolver where the names tell more.
fn attempts(report: &Report) -> String {
    let groups = check::attempt_groups(&report.known.attempts, &report.evidence);
    let told = |group: &&AttemptGroup| {
        let by_name = group.target == check::resolver_target() && !report.evidence.names.is_empty();
        group.reason.is_none() && !by_name
    };
    let found: Vec<_> = groups.iter().filter(told).collect();
    let sum = |denied_only: bool| {
        let counted = found
            .iter()
            .filter(|group| !denied_only || matches!(group.outcome, Outcome::Denied(_)));
        counted
            .map(|group| group.count)
            .fold(0, u64::saturating_add)
    };
    let (all, denied) = (sum(false), sum(true));
    let number = count(usize::try_from(all).unwrap_or(usize::MAX), "attempt");
    match (all, denied) {
        (0, _) => "no attempt at an address".to_owned(),
        (all, denied) if all == denied => format!("{number}, denied"),
        (_, 0) => format!("{number} inside the sandbox"),
        (_, denied) => format!("{number}, {denied} of them denied"),
    }
}

/// Names are asked for with a type each, and are one name all the same.
fn names(evidence: &Evidence) -> Option<String> {
    let asked = evidence.names.iter().map(|question| question.name.as_str());
    let asked: BTreeSet<&str> = asked.collect();
    match asked.len() {
        1 => asked
            .first()
            .map(|only| format!("asked for the name {only}")),
        more => some(more, "name").map(|all| format!("asked for {all}")),
    }
}

fn some(number: usize, noun: &str) -> Option<String> {
    (number > 0).then(|| count(number, noun))
}
