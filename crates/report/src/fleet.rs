//! Reports of several runs, in the formats of a single one.
//!
//! Human, Markdown and HTML list the runs. JSON, JUnit and SARIF hold the report of each run as a part of their own, so
//! that the caller can store each part when its run ends, and memory does not grow with the number of runs.

use model::escape;
use model::evidence::Exit;
use model::finding::{Finding, Status, Verdict};
use model::fleet::{FirstFinding, Fleet, FleetRun};
use model::report::Report;
use schemars::Schema;

use super::document::Document;
use super::frame::Frame;
use super::human::Colour;
use super::phrases::{self, in_short, verdict_word};
use super::{Format, RenderError, html, human, json, junit, markdown, sarif};

/// Returns true for a format that holds the report of each run.
pub fn has_parts(format: Format) -> bool {
    match format {
        Format::Json | Format::Junit | Format::Sarif => true,
        Format::Human | Format::Markdown | Format::Html => false,
    }
}

/// Text between two parts of a format.
pub fn separator(format: Format) -> &'static str {
    match format {
        Format::Json | Format::Sarif => ",\n",
        Format::Junit => "\n",
        Format::Human | Format::Markdown | Format::Html => "",
    }
}

/// Renders the part of one run; empty if the format has no parts. `report` is `None` if the run has none.
///
/// # Errors
/// A value that the format cannot hold.
pub fn part(
    run: &FleetRun,
    report: Option<&Report>,
    format: Format,
) -> Result<Vec<u8>, RenderError> {
    match (format, report) {
        (Format::Json, report) => json::part(run, report),
        (Format::Junit, report) => junit::part(run, report),
        (Format::Sarif, Some(report)) => sarif::part(report),
        // An upload without a run of this case leaves its alerts as they are.
        (Format::Sarif, None) | (Format::Human | Format::Markdown | Format::Html, _) => {
            Ok(Vec::new())
        }
    }
}

/// Renders the text around the parts. `colour` applies to [`Format::Human`].
///
/// # Errors
/// A value that the format cannot hold.
pub fn frame(fleet: &Fleet, format: Format, colour: Colour) -> Result<Frame, RenderError> {
    let whole = |text: String| Frame {
        head: text.into_bytes(),
        tail: Vec::new(),
    };
    Ok(match format {
        Format::Human => whole(human::lay_out(&Document::of_fleet(fleet), colour)?),
        Format::Markdown => whole(markdown::lay_out(&Document::of_fleet(fleet))?),
        Format::Html => whole(html::lay_out(&Document::of_fleet(fleet))),
        Format::Json => json::frame(fleet)?,
        Format::Junit => junit::frame(fleet)?,
        Format::Sarif => sarif::frame()?,
    })
}

/// Returns the schema of the JSON document.
pub fn schema() -> Schema {
    json::fleet_schema()
}

/// Returns the line of a run that has ended, for a terminal: `[2/30] FAILED  agent, 40.3 ms; requests/query: …`.
pub fn line(
    run: &FleetRun,
    (number, all): (usize, usize),
    finding: Option<&FirstFinding>,
) -> String {
    let word = verdict_word(run.verdict).to_ascii_uppercase();
    let time = phrases::duration(run.duration_ms.saturating_mul(1_000));
    let finding = finding.map(|found| format!("; {}", in_short(found)));
    let line = format!(
        "[{number}/{all}] {word:<7}  {}, {time}{}",
        run.case,
        finding.unwrap_or_default()
    );
    escape::visible(&line) + "\n"
}

/// Returns the first finding of a run: the end of the client if that is the cause, else the first failed check, else the
/// first errored one. `None` for a run that passed.
pub fn first_finding(report: &Report) -> Option<FirstFinding> {
    if report.verdict == Verdict::Passed {
        return None;
    }
    let of_check = |finding: &Finding| FirstFinding {
        check: Some(finding.id.to_string()),
        message: [Some(&finding.message), finding.because.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" "),
    };
    let cause = phrases::is_cause(report).then(|| FirstFinding {
        check: None,
        message: cause(report),
    });
    let with = |status| report.checks.iter().find(move |one| one.status == status);
    let check = || {
        with(Status::Failed)
            .or_else(|| with(Status::Errored))
            .map(of_check)
    };
    let unsound = || {
        report.unsound.first().map(|reason| FirstFinding {
            check: None,
            message: reason.clone(),
        })
    };
    cause.or_else(check).or_else(unsound)
}

/// End of the client, with its last line of standard error, or with the reason why it was never started.
fn cause(report: &Report) -> String {
    let end = phrases::exit(&report.evidence);
    let is_own = matches!(report.evidence.exit, Exit::Code(_) | Exit::Signal(_));
    let last = report.evidence.stderr.tail.lines().next_back();
    match phrases::reason_of_no_start(report).or(last.filter(|_| is_own)) {
        Some(reason) => format!("{end}: {reason}"),
        None => end,
    }
}
