//! The report as one page for a browser, to be kept beside a review: everything that was collected, the verdict first.
//!
//! The page is one file. It has no script, asks for nothing, leads nowhere but to its own parts, and says so to the
//! browser, which holds it to that. Text of the client is text whatever stands in it, and the page is bounded: what is
//! cut is counted. How it looks stands in `html/style.css`.

use super::{Purpose, RenderError, Report};

mod badge;
mod checks;
mod drift;
mod frame;
mod isolation;
mod ledger;
mod left;
mod output;
mod room;
mod shape;
mod summary;
mod text;
mod timeline;
mod traffic;

use frame::Section;
use room::Room;

/// Renders the report as one HTML document in UTF-8.
pub fn render(report: &Report) -> Result<Vec<u8>, RenderError> {
    let room = Room::default();
    let sections = match report.purpose {
        Purpose::Judge => judged(report, &room),
        Purpose::Audit => audited(report, &room),
    };
    Ok(frame::document(report, sections).into_bytes())
}

fn judged(report: &Report, room: &Room) -> Vec<Section> {
    let parts = [
        summary::unsound(report, room),
        checks::findings(report, room),
        drift::section(report, room),
        Some(summary::claims(report, room)),
        Some(timeline::section(report)),
        Some(traffic::requests(report, room)),
        traffic::connections(report, room),
        Some(ledger::attempts(report, room)),
        ledger::names(report, room),
        Some(left::files(report, room)),
        left::transient(report, room),
        ledger::programs(report, room),
        ledger::lookups(report, room),
        Some(output::records(report, room)),
        output::stderr(report, room),
        Some(isolation::layers(report, room)),
        isolation::canaries(report, room),
        Some(checks::all(report, room)),
        isolation::gaps(report, room),
        summary::settings(report, room),
        summary::wider_rules(report, room),
    ];
    parts.into_iter().flatten().collect()
}

/// What was tried comes before all else, and what would let the program get further. Its output went where its output
/// goes.
fn audited(report: &Report, room: &Room) -> Vec<Section> {
    let parts = [
        summary::unsound(report, room),
        Some(ledger::attempts(report, room)),
        ledger::names(report, room),
        Some(timeline::section(report)),
        traffic::asked(report, room),
        traffic::connections(report, room),
        ledger::lookups(report, room),
        checks::findings(report, room),
        Some(left::files(report, room)),
        left::transient(report, room),
        ledger::programs(report, room),
        Some(summary::claims(report, room)),
        summary::wider_rules(report, room),
        Some(isolation::layers(report, room)),
        isolation::canaries(report, room),
        Some(checks::all(report, room)),
        isolation::gaps(report, room),
        summary::settings(report, room),
    ];
    parts.into_iter().flatten().collect()
}
