//! The report of an audit: what the program tried, grouped, and what it was shown. What it printed went where its
//! output goes, so none of it stands here.

use std::fmt;

use model::finding::Verdict;
use model::report::Report;

use super::page::{Page, Tone};
use super::{evidence, ledger, lookups};
use crate::headline::{Headline, headline, is_told_as_an_attempt};

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

/// `AUDITED  curl: exit code 7; 2 attempts, denied; asked for 1 name`
fn summary(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let tone = match report.verdict {
        Verdict::Passed => Tone::Good,
        Verdict::Failed => Tone::Doubtful,
        Verdict::Errored => Tone::Bad,
    };
    let Headline { word, text } = headline(report);
    page.headline(word, tone, &text)
}
