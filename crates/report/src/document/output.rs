//! Sections on the client's output: records on standard output, and the end of standard error.

use model::evidence::{Before, Line as Kind, Record};
use model::report::Report;

use super::{
    Block, Budget, LONG, Line, Section, Table, Text, client, led, num, number, own, text, word,
};
use crate::phrases::{at, grouped, number_of};

/// Lists the records; consecutive records of one kind share a row.
pub(super) fn records(report: &Report) -> Section {
    let records = &report.evidence.records;
    let runs =
        records.chunk_by(|one, other| (one.label(), one.before) == (other.label(), other.before));
    let columns = [
        number("number"),
        word("read at"),
        number("bytes"),
        word("written before").wide(),
        text("record"),
        led("no JSON", ": "),
    ];
    let table = Table::of(Budget::Client, columns, runs, |run| {
        let bytes = run
            .iter()
            .map(|record| record.bytes)
            .fold(0, u64::saturating_add);
        match run {
            [] => Default::default(),
            [first, ..] => [
                own(numbers(run)),
                own(at(first.at_us)),
                num(bytes),
                own(before(first.before)),
                client(first.label()),
                match &first.line {
                    Kind::NotJson { reason } => client(reason),
                    Kind::Record(_) => Text::default(),
                },
            ],
        }
    });
    let title = "Records on standard output";
    let section = table.section("records", title).map(|section| Section {
        note: grouped(records.len() as u64),
        ..section
    });
    let none = || Section::new("records", title, "none", []);
    section.unwrap_or_else(none).only(LONG)
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

pub(super) fn stderr(report: &Report) -> Option<Section> {
    let stderr = &report.evidence.stderr;
    let lines = stderr.tail.lines().map(|line| Line {
        depth: 0,
        text: client(line),
    });
    let block = Block::Lines(Budget::Client, lines.collect());
    let note = format!("last part of {}", number_of(stderr.bytes, "byte"));
    let section = || Section::new("stderr", "Standard error", note, [block]).only(LONG);
    (stderr.bytes > 0).then(section)
}
