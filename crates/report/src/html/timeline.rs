//! Timeline of the run: a lane for each part, as a drawing and as a table.
//!
//! Owns the lanes and their marks; [`drawing`] owns their appearance.

use maud::{Markup, html};
use model::evidence::{Attempt, AttemptKind, Evidence, Outcome};
use model::expected;
use model::report::{Purpose, Report};

use super::budget::{Column, cells, head};
use super::frame::Section;
use super::text::{at, duration, number_of};
use crate::html::text::ClientText;
use crate::phrases;

mod drawing;

/// Lane of the timeline: one part of the run.
#[derive(Debug)]
struct Lane {
    name: &'static str,
    /// Summary: `4.2 ms`, `3, 2 denied`.
    note: String,
    /// Start and end, in microseconds.
    span: Option<(u64, u64)>,
    marks: Vec<Mark>,
}

/// Mark of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    at_us: u64,
    sign: Sign,
    /// May contain text of the client.
    text: String,
}

/// Kind of a moment, and its sign in the drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// Traffic with the stub, or a record: a dot.
    Dot,
    /// Allowed attempt: a ring.
    Ring,
    /// Denied attempt: a cross.
    Cross,
}

pub(super) fn section(report: &Report) -> Section {
    let evidence = &report.evidence;
    let lanes = lanes(report);
    let total = total(evidence, &lanes);
    let body = html! {
        (drawing::figure(&lanes, total, evidence.moments.released_us))
        details {
            summary { "Timeline as a table" }
            (as_table(&lanes))
        }
    };
    Section::new("timeline", "Timeline", body).with_note(duration(total))
}

/// Returns the end of the clock: the end of the run, or the last recorded moment.
fn total(evidence: &Evidence, lanes: &[Lane]) -> u64 {
    let marks = lanes.iter().flat_map(|lane| &lane.marks);
    let spans = lanes.iter().filter_map(|lane| lane.span);
    let last = marks.map(|mark| mark.at_us).chain(spans.map(|(_, to)| to));
    let whole = u64::try_from(evidence.duration.as_micros()).unwrap_or(u64::MAX);
    last.fold(whole.max(1), u64::max)
}

fn lanes(report: &Report) -> Vec<Lane> {
    let evidence = &report.evidence;
    let moments = evidence.moments;
    let whole = u64::try_from(evidence.duration.as_micros()).unwrap_or(u64::MAX);
    let client = match report.purpose {
        Purpose::Judge => "Client",
        Purpose::Audit => "Program",
    };
    // A phase without a recorded end lasted until the end of the run.
    let or_end = |moment: Option<u64>| moment.or(Some(whole));
    let mut lanes = vec![
        span("Set-up", Some(0), or_end(moments.supervised_us)),
        span("Canary", moments.supervised_us, or_end(moments.released_us)),
        span(client, moments.released_us, or_end(moments.ended_us)),
    ];
    lanes.push(connects(report));
    lanes.push(marks("Requests", requests(evidence)));
    lanes.push(marks("Stub events", answers(evidence)));
    if report.purpose == Purpose::Judge {
        lanes.push(marks("Records", records(evidence)));
    }
    let lookups = lookups(evidence);
    if !lookups.is_empty() {
        lanes.push(marks("Lookups", lookups));
    }
    lanes.push(span("End", moments.ended_us, Some(whole)));
    lanes
}

fn span(name: &'static str, from: Option<u64>, to: Option<u64>) -> Lane {
    let span = from.zip(to).filter(|(from, to)| from <= to);
    Lane {
        name,
        note: match span {
            Some((from, to)) => duration(to - from),
            None => "not reached".to_owned(),
        },
        span,
        marks: Vec::new(),
    }
}

fn marks(name: &'static str, mut marks: Vec<Mark>) -> Lane {
    marks.sort_by_key(|mark| mark.at_us);
    Lane {
        name,
        note: match marks.len() {
            0 => "none".to_owned(),
            number => phrases::grouped(number as u64),
        },
        span: None,
        marks,
    }
}

/// Lane of connections to the stub and of attempts, each kind of attempt at its first time.
fn connects(report: &Report) -> Lane {
    let evidence = &report.evidence;
    let accepted = evidence.connections.iter().map(|one| Mark {
        at_us: one.at_us,
        sign: Sign::Dot,
        text: format!("connection {} to the stub", one.seq),
    });
    let tried = evidence.attempts.iter();
    let tried = tried.filter(|attempt| attempt.kind == AttemptKind::Attempt);
    let lane = marks(
        "Connects",
        accepted
            .chain(tried.map(|one| attempt(report, one)))
            .collect(),
    );
    let parts: Vec<String> = [
        (Sign::Dot, "to the stub"),
        (Sign::Cross, "denied"),
        (Sign::Ring, "let through"),
    ]
    .into_iter()
    .filter_map(|(sign, word)| {
        let number = lane.marks.iter().filter(|mark| mark.sign == sign).count();
        (number > 0).then(|| format!("{} {word}", phrases::grouped(number as u64)))
    })
    .collect();
    if parts.is_empty() {
        return lane;
    }
    let note = parts.join(", ");
    Lane { note, ..lane }
}

fn attempt(report: &Report, attempt: &Attempt) -> Mark {
    let known = expected::reason_for_attempt(&report.known.attempts, &report.evidence, attempt);
    let known = known.map_or("", |_| ", which the profile names");
    let often = match attempt.count {
        1 => String::new(),
        more => format!(", the first of {}", number_of(more, "time")),
    };
    Mark {
        at_us: attempt.at_us,
        sign: match attempt.outcome {
            Outcome::Denied(_) => Sign::Cross,
            Outcome::Allowed => Sign::Ring,
        },
        text: format!(
            "{}, {}{known}{often}",
            attempt.target(),
            attempt.outcome.words()
        ),
    }
}

fn requests(evidence: &Evidence) -> Vec<Mark> {
    let requests = evidence.requests.iter();
    dots(requests.map(|one| (one.at_us, phrases::request_line(one))))
}

fn answers(evidence: &Evidence) -> Vec<Mark> {
    let events = evidence.provider_events.iter();
    dots(events.map(|one| {
        (
            one.at_us,
            format!("{} for request {}", one.event, one.request),
        )
    }))
}

fn records(evidence: &Evidence) -> Vec<Mark> {
    let records = evidence.records.iter();
    dots(records.map(|one| (one.at_us, format!("record {}, {}", one.seq, one.label()))))
}

fn lookups(evidence: &Evidence) -> Vec<Mark> {
    let lookups = evidence.lookups.iter();
    dots(lookups.map(|one| (one.at_us, phrases::quoted(&one.path))))
}

fn dots(moments: impl Iterator<Item = (u64, String)>) -> Vec<Mark> {
    let dot = |(at_us, text)| Mark {
        at_us,
        sign: Sign::Dot,
        text,
    };
    moments.map(dot).collect()
}

/// Draws a table of the lanes, each with its first and last moment.
fn as_table(lanes: &[Lane]) -> Markup {
    let columns = [
        Column::Word("part"),
        Column::Text("what"),
        Column::Word("from"),
        Column::Word("to"),
    ];
    html! {
        table {
            (head(columns))
            tbody {
                @for lane in lanes {
                    @let first = lane.span.map(|(from, _)| from).or(lane.marks.first().map(|mark| mark.at_us));
                    @let last = lane.span.map(|(_, to)| to).or(lane.marks.last().map(|mark| mark.at_us));
                    tr { (cells(columns, [
                        html! { (lane.name) },
                        html! { (ClientText(&lane.note)) },
                        html! { @if let Some(first) = first { (at(first)) } },
                        html! { @if let Some(last) = last { (at(last)) } },
                    ])) }
                }
            }
        }
    }
}
