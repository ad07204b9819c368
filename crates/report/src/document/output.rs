//! Sections on the client's output: records on standard output, and the end of standard error.

use model::evidence::{Before, Line as Kind, Record};
use model::report::Report;
use model::text::{count, grouped};

use super::{
    Block, Budget, LONG, MAX_ENTRIES, Section, Table, client, fact, led, number, own, text, word,
};
use crate::phrases::{self, at};

/// Lists the records; consecutive records of one kind share a row.
pub(super) fn records(report: &Report) -> Section {
    let records = &report.evidence.records;
    let runs =
        records.chunk_by(|one, other| (one.label(), one.before) == (other.label(), other.before));
    let table = Table::of(Budget::Client, runs, |run| {
        let first = run.first();
        let bytes = run.iter().map(|record| record.bytes);
        let is_no_json = first.and_then(|first| match &first.line {
            Kind::NotJson { reason } => Some(client(reason)),
            Kind::Record(_) => None,
        });
        [
            word("number", numbers(run)),
            word("read at", first.map(|first| own(at(first.at_us)))),
            number("bytes", bytes.fold(0, u64::saturating_add)),
            word(
                "written before",
                first.map(|first| own(before(first.before))),
            )
            .wide(),
            text("record", first.map(|first| client(first.label()))),
            led(": ", "no JSON", is_no_json),
        ]
    });
    let title = "Records on standard output";
    let mut section = table.section_or_none("records", title).only(LONG);
    if !records.is_empty() {
        section.note = grouped(records.len() as u64);
    }
    section
}

fn numbers(run: &[Record]) -> String {
    match run {
        [] => String::new(),
        [only] => only.seq.to_string(),
        [first, .., last] => format!("{}-{}", first.seq, last.seq),
    }
}

fn before(before: Before) -> &'static str {
    match before {
        Before::Connect => "connection",
        Before::Post => "POST",
        Before::None => "",
    }
}

/// Shows the end of the program if that explains other findings: with its last lines on standard error, or with the
/// reason why the program was never started.
pub(super) fn cause(report: &Report) -> Option<Section> {
    if !phrases::is_cause(report) {
        return None;
    }
    let evidence = &report.evidence;
    let reason = phrases::reason_of_no_start(report);
    let reason = reason.map(|reason| fact("because", client(reason)));
    let lines = Table::of(Budget::Part, phrases::last_lines(evidence), |line| {
        [text("end of standard error", client(line))]
    });
    let reason = reason.map(|reason| Block::Facts(Budget::Ours, vec![reason]));
    let blocks: Vec<Block> = reason.into_iter().chain(lines.blocks()).collect();
    Some(Section::new(
        "end",
        "How it ended",
        phrases::exit(evidence),
        blocks,
    ))
}

pub(super) fn stderr(report: &Report) -> Option<Section> {
    let stderr = &report.evidence.stderr;
    let left_out = stderr.tail.lines().count().saturating_sub(MAX_ENTRIES);
    let lines = stderr.tail.lines().skip(left_out);
    let lines = Table::of(Budget::Client, lines, |line| [text("line", client(line))]);
    let block = Block::Lines(lines);
    let note = format!("last part of {}", count(stderr.bytes, "byte"));
    let section = || Section::new("stderr", "Standard error", note, [block]).only(LONG);
    (stderr.bytes > 0).then(section)
}
