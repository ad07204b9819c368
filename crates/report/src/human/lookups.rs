//! Section of the terminal report on failed path lookups, each with the option that would show the path.

use std::fmt;

use model::case::Tier;
use model::evidence::{Advice, Exit, Lookup};
use model::report::Report;

use super::ledger::times;
use super::page::{Align, Page, Row};
use crate::phrases::{self, quoted};

pub(super) fn lookups(page: &mut Page<String>, report: &Report) -> fmt::Result {
    let lookups = &report.evidence.lookups;
    if report.tier == Tier::Inherited && report.evidence.exit != Exit::NotStarted {
        page.heading(
            "Paths that it looked for and did not get: not recorded with isolation inherited",
        )?;
    }
    if lookups.is_empty() {
        return Ok(());
    }
    page.heading("Paths that it looked for and did not get")?;
    page.table(
        [Align::Left, Align::Right],
        &lookups.iter().map(row).collect::<Vec<_>>(),
    )
}

fn row(lookup: &Lookup) -> Row<2> {
    let path = quoted(&lookup.path);
    let paths = match lookup.paths {
        1 => path,
        several => format!("{path} ({several} paths)"),
    };
    let advice = match &lookup.advice {
        Advice::Read(path) => format!("--read {}", quoted(path)),
        Advice::Write(path) => format!("--write {}", quoted(path)),
        Advice::Never(reason) => format!("({})", phrases::reason_in_full(*reason)),
    };
    Row {
        cells: [lookup.kind.word().to_owned(), times(lookup.count)],
        last: format!("{paths}   {advice}"),
    }
}
