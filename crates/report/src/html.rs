//! The report as one page for a browser, to be kept beside a review: everything that was collected, the verdict first.
//!
//! The page is one file. It has no script, asks for nothing, leads nowhere but to its own parts, and says so to the
//! browser, which holds it to that. Text of the client is text whatever stands in it. The page is bounded, each part of the
//! evidence by itself, so that none takes another off the page, and what is cut is counted. How it looks stands in `html/style.css`.

use model::report::{Purpose, Report};

use super::RenderError;

mod badge;
mod budget;
mod checks;
mod drift;
mod files;
mod frame;
mod isolation;
mod ledger;
mod output;
mod shape;
mod summary;
mod text;
mod timeline;
mod traffic;

use frame::Section;

/// Renders the report as one HTML document in UTF-8.
pub fn render(report: &Report) -> Result<Vec<u8>, RenderError> {
    let sections = match report.purpose {
        Purpose::Judge => judged(report),
        Purpose::Audit => audited(report),
    };
    let frame = [summary::identity(report), summary::reading()];
    Ok(frame::document(report, frame, sections).into_bytes())
}

fn judged(report: &Report) -> Vec<Section> {
    let parts = [
        summary::unsound(report),
        checks::findings(report),
        drift::section(report),
        Some(summary::claims(report)),
        Some(timeline::section(report)),
        Some(traffic::requests(report)),
        traffic::connections(report),
        Some(ledger::attempts(report)),
        ledger::names(report),
        Some(files::files(report)),
        files::transient(report),
        ledger::programs(report),
        ledger::lookups(report),
        Some(output::records(report)),
        output::stderr(report),
        Some(isolation::layers(report)),
        isolation::canaries(report),
        Some(checks::all(report)),
        isolation::gaps(report),
        summary::settings(report),
        summary::wider_rules(report),
    ];
    parts.into_iter().flatten().collect()
}

/// What was tried comes before all else, and what would let the program get further. Its output went where its output
/// goes.
fn audited(report: &Report) -> Vec<Section> {
    let parts = [
        summary::unsound(report),
        Some(ledger::attempts(report)),
        ledger::names(report),
        Some(timeline::section(report)),
        traffic::asked(report),
        traffic::connections(report),
        ledger::lookups(report),
        checks::findings(report),
        Some(files::files(report)),
        files::transient(report),
        ledger::programs(report),
        Some(summary::claims(report)),
        summary::wider_rules(report),
        Some(isolation::layers(report)),
        isolation::canaries(report),
        Some(checks::all(report)),
        isolation::gaps(report),
        summary::settings(report),
    ];
    parts.into_iter().flatten().collect()
}
