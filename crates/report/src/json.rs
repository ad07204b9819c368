//! JSON report: one document of schema `runner.report/1`.
//!
//! Readers ignore unknown keys. Texts read back unchanged: each dangerous character is a `\u` escape, so that the
//! document is safe to print.

use std::io::{self, Write};

use model::finding::Verdict;
use model::fleet::{self, Fleet, FleetRun};
use model::report::document::{self, Document};
use model::report::{Report, Runner};
use model::schema::values::Timestamp;
use model::{escape, schema, time};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::frame::Frame;
use super::{RenderError, claims};

/// Renders the report as UTF-8 JSON, indented, with a line feed at the end.
pub fn render(report: &Report) -> Result<Vec<u8>, RenderError> {
    Ok(document(&Document::of(report, claims::not_proved(report)))?)
}

/// Writes any value in the form of [`render`].
///
/// # Errors
/// A value without a JSON form.
pub fn document(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut writer = Escaping {
        out: Vec::new(),
        before: None,
    };
    serde_json::to_writer_pretty(&mut writer, value)?;
    writer.out.push(b'\n');
    Ok(writer.out)
}

/// Returns the schema of the documents that [`render`] writes.
pub fn schema() -> Schema {
    schema::of_document::<Document<'_>>(document::SCHEMA)
}

/// Runs of several cases. Readers ignore unknown keys. Texts may come from the client and be hostile; control and
/// invisible characters are escaped.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Fleet of runner")]
struct FleetForm<'a> {
    /// Schema of this document.
    schema: &'static str,
    /// The `runner` executable that made the runs.
    runner: &'a Runner,
    /// Verdict of all runs, the worst of them; `errored` also if a run was not made.
    verdict: Verdict,
    /// Number of runs by verdict.
    counts: Counts,
    /// Start of the first run.
    #[schemars(with = "Timestamp")]
    started_at: String,
    /// Time from the start of the first run to the end of the last one, in milliseconds.
    duration_ms: u64,
    /// TOML files of the directories that are no cases, escaped.
    not_cases: &'a [String],
    /// The runs, sorted by the name of their case.
    runs: Vec<RunForm<'a>>,
}

/// Number of runs by verdict.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RunCounts")]
struct Counts {
    /// Runs that passed.
    passed: usize,
    /// Runs that failed.
    failed: usize,
    /// Runs that errored.
    errored: usize,
    /// Runs that were not made, because of an interruption.
    not_run: usize,
}

/// One run with its report.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Run")]
struct RunForm<'a> {
    /// Summary of the run.
    #[serde(flatten)]
    run: &'a FleetRun,
    /// Report of the run, of the schema `runner.report/1`; null if there is none.
    report: Option<Document<'a>>,
}

/// Place of the runs in a rendered [`FleetForm`] or SARIF log.
pub(super) const NO_RUNS: &str = "\"runs\": []";
/// Texts before and after the runs.
pub(super) const AROUND_RUNS: [&str; 2] = ["\"runs\": [\n", "\n  ]"];

/// Renders the entry of one run.
pub(super) fn part(run: &FleetRun, report: Option<&Report>) -> Result<Vec<u8>, RenderError> {
    let report = report.map(|report| Document::of(report, claims::not_proved(report)));
    Ok(indented(&document(&RunForm { run, report })?))
}

/// Renders the document without its runs.
pub(super) fn frame(fleet: &Fleet) -> Result<Frame, RenderError> {
    let count = |verdict| fleet.count(Some(verdict));
    let form = FleetForm {
        schema: fleet::SCHEMA,
        runner: &fleet.runner,
        verdict: fleet.verdict(),
        counts: Counts {
            passed: count(Verdict::Passed),
            failed: count(Verdict::Failed),
            errored: count(Verdict::Errored),
            not_run: fleet.count(None),
        },
        started_at: fleet.started_at(),
        duration_ms: time::millis(fleet.duration),
        not_cases: &fleet.not_cases,
        runs: Vec::new(),
    };
    Frame::split(&document(&form)?, NO_RUNS, AROUND_RUNS).ok_or(RenderError::NoPlace)
}

/// Returns the schema of fleets.
pub(super) fn fleet_schema() -> Schema {
    schema::of_document::<FleetForm<'_>>(fleet::SCHEMA)
}

/// Indents a document as an entry of a list. No text of JSON has a line feed.
pub(super) fn indented(document: &[u8]) -> Vec<u8> {
    let lines = document.trim_ascii_end().split(|byte| *byte == b'\n');
    let lines = lines.map(|line| [b"    ", line].concat());
    lines.collect::<Vec<_>>().join(&b'\n')
}

/// Writer of JSON that replaces each dangerous character of a text by its `\u` escape. Line feeds are the layout's: those
/// of a text are escaped already.
struct Escaping {
    out: Vec<u8>,
    before: Option<char>,
}

impl Write for Escaping {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        // serde_json writes whole characters.
        let piece = str::from_utf8(piece).map_err(io::Error::other)?;
        for c in piece.chars() {
            if c != '\n' && escape::is_dangerous(self.before, c) {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04x}")?;
                }
            } else {
                self.out
                    .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            self.before = Some(c);
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
