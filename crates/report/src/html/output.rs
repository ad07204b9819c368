//! Sections on the client's output: records on standard output, and the end of standard error.

use maud::html;
use model::evidence::{Before, Line, Record};
use model::report::Report;

use super::budget::{Budget, Column, missing};
use super::frame::Section;
use super::text::{at, bytes, code};
use crate::html::text::ClientText;
use crate::phrases;

/// Draws the records; consecutive records of one kind share a row.
pub(super) fn records(report: &Report) -> Section {
    let records = &report.evidence.records;
    let runs: Vec<&[Record]> = records
        .chunk_by(|one, other| (one.label(), one.before) == (other.label(), other.before))
        .collect();
    let columns = [
        Column::Word("number"),
        Column::Word("read at"),
        Column::Text("record"),
        Column::Number("bytes"),
        Column::Text("written before"),
    ];
    let body = html! {
        @if records.is_empty() {
            p.none { "None." }
        } @else {
            (Budget::CLIENT.table(columns, &runs, |run| {
                let length = run.iter().map(|record| record.bytes).fold(0, u64::saturating_add);
                let first = run.first();
                [
                    html! { (numbers(run)) },
                    html! { @if let Some(first) = first { (at(first.at_us)) } },
                    html! { @if let Some(first) = first {
                        (code(&first.label()))
                        @if let Line::NotJson { reason } = &first.line { p.because { (ClientText(reason)) } }
                    } },
                    html! { (phrases::grouped(length)) },
                    html! { @if let Some(first) = first { (before(first.before)) } },
                ]
            }))
        }
    };
    let title = "Records on standard output";
    Section::new("records", title, body).with_note(phrases::grouped(records.len() as u64))
}

fn numbers(run: &[Record]) -> String {
    match run {
        [] => String::new(),
        [only] => only.seq.to_string(),
        [first, .., last] => format!("{}–{}", first.seq, last.seq),
    }
}

fn before(before: Before) -> &'static str {
    match before {
        Before::Connect => "the connection of the POST",
        Before::Post => "the first byte of the POST",
        Before::None => "",
    }
}

pub(super) fn stderr(report: &Report) -> Option<Section> {
    let stderr = &report.evidence.stderr;
    if stderr.bytes == 0 {
        return None;
    }
    let lines: Vec<&str> = stderr.tail.lines().collect();
    let (shown, cut) = Budget::CLIENT.entries(&lines, |line| html! { li { (code(line)) } });
    let body = html! {
        ol.said { (shown) }
        (missing(cut, lines.len()))
    };
    let note = format!("last part of {}", bytes(stderr.bytes));
    Some(Section::new("stderr", "Standard error", body).with_note(note))
}
