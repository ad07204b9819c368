//! Differences between two runs, a line each, and drift from the lock file with the line that would accept it.

use std::fmt;

use model::difference::{Accept, Change, Difference};
use model::report::{Baseline, Report};

use super::page::{Page, Tone};
use crate::phrases;

/// Maximum number of differences shown; the JSON report has all.
const MAX_DIFFERENCES: usize = 500;

/// Shows the lock file and the drift from it.
pub(super) fn section(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let Some(baseline) = &report.baseline else {
        return Ok(());
    };
    let (file, differences) = (&baseline.file, &baseline.differences);
    let what = phrases::lock_file(baseline);
    page.heading("Baseline")?;
    page.say("lock file", Tone::Quiet, &format!("{file}: {what}"))?;
    for one in differences.iter().take(MAX_DIFFERENCES) {
        drift(page, baseline, one)?;
    }
    match differences.len().checked_sub(MAX_DIFFERENCES) {
        None | Some(0) => Ok(()),
        Some(more) => page.say(
            "",
            Tone::Quiet,
            &format!("and {more} more, in the JSON report"),
        ),
    }
}

fn drift(page: &mut Page<String>, baseline: &Baseline, found: &Difference) -> fmt::Result {
    difference(page, found)?;
    match baseline.to_accept(found) {
        Some(Accept { verb, table, line }) => {
            page.whole(&format!("      {verb} in {table}"))?;
            page.whole(&format!("      {line}"))
        }
        None => Ok(()),
    }
}

/// Writes `+ key: value`, `- key: value`, or `~ key` with both values below it.
pub fn difference(page: &mut Page<String>, found: &Difference) -> fmt::Result {
    let key = &found.fact.key;
    match &found.change {
        Change::Added(new) => page.whole(&format!("+ {key}: {new}")),
        Change::Removed(old) => page.whole(&format!("- {key}: {old}")),
        Change::Changed { old, new } => {
            page.whole(&format!("~ {key}"))?;
            page.whole(&format!("    - {old}"))?;
            page.whole(&format!("    + {new}"))
        }
    }
}
