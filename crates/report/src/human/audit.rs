//! Terminal report of an audit: attempts in groups, and the host paths that the program saw.
//!
//! The program's output is not shown, because an audit passes it through.

use std::fmt;

use model::finding::Verdict;
use model::report::Report;

use super::page::{Page, Tone};
use super::{evidence, ledger, lookups};
use crate::headline::{Headline, headline, is_shown_as_attempts};

pub(super) fn render(page: &mut Page<String>, report: &Report) -> fmt::Result {
    summary(page, report)?;
    super::run(page, report)?;
    super::unsound(page, report)?;
    super::findings(page, report, |finding| !is_shown_as_attempts(finding))?;
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
    super::wider_rules(page, report, "Rules added by the command line")?;
    super::claims(page, report)?;
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
