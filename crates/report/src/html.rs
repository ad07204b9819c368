//! Report as one HTML page: the verdict, then all evidence.
//!
//! The page is one file without scripts. It loads no other file and links only to its own sections; a content security
//! policy makes the browser enforce both. Text of the client is always escaped. Each part of the evidence has its own
//! size budget, so that one part cannot displace another. The page counts the entries that it cuts.

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
        isolation::canary(report),
        Some(checks::all(report)),
        isolation::gaps(report),
        summary::settings(report),
        summary::wider_rules(report),
    ];
    parts.into_iter().flatten().collect()
}

/// Sections of an audit: attempts first, then the options that would show the program more.
///
/// The program's output is not shown, because an audit passes it through.
fn audited(report: &Report) -> Vec<Section> {
    let parts = [
        summary::unsound(report),
        Some(ledger::attempts(report)),
        ledger::names(report),
        Some(timeline::section(report)),
        traffic::any_requests(report),
        traffic::connections(report),
        ledger::lookups(report),
        checks::findings(report),
        Some(files::files(report)),
        files::transient(report),
        ledger::programs(report),
        Some(summary::claims(report)),
        summary::wider_rules(report),
        Some(isolation::layers(report)),
        isolation::canary(report),
        Some(checks::all(report)),
        isolation::gaps(report),
        summary::settings(report),
    ];
    parts.into_iter().flatten().collect()
}
