//! Sections on traffic: requests, their heads and bodies, and connections.

use model::evidence::Request;
use model::journal::{Body, Content, End, Head};
use model::labels;
use model::report::{Purpose, Report};
use serde_json::Value;

use super::{
    Block, Budget, Fold, Line, PAGE, Section, Table, Text, client, digest, fact, led, num, number,
    own, text, word,
};
use crate::phrases::{at, grouped, number_of, request_line};

/// Maximum number of lines of the shape of one body.
const MAX_SHAPE_LINES: usize = 300;
/// Maximum number of requests with an open head.
const MAX_OPEN_HEADS: usize = 3;

/// Lists the requests. A run that expects them also says that there are none.
pub(super) fn requests(report: &Report) -> Option<Section> {
    let columns = [
        number("number"),
        word("at"),
        word("class"),
        number("connection").wide(),
        word("answer"),
        number("bytes"),
        text("request"),
    ];
    let table = Table::of(
        Budget::Client,
        columns,
        &report.evidence.requests,
        |request| {
            let answer = request.status.map(|status| format!("status {status}"));
            [
                num(request.seq),
                own(at(request.at_us)),
                own(labels::class(request.class)),
                num(request.connection),
                own(answer.unwrap_or_else(|| "no answer".to_owned())),
                num(request.body.as_ref().map_or(0, |body| body.bytes)),
                client(request_line(request)),
            ]
        },
    );
    let requests = report.evidence.requests.iter();
    let table = table.with_ids(requests.map(|request| format!("request-{}", request.seq)));
    let none = || Section::new("requests", "Requests", "none", []);
    let section = table.section("requests", "Requests");
    section.or_else(|| (report.purpose == Purpose::Judge).then(none))
}

/// Shows the heads and bodies, with a budget of their own, so that a large one displaces no request.
pub(super) fn heads_and_bodies(report: &Report) -> Option<Section> {
    let requests = &report.evidence.requests;
    let is_open = requests.len() <= MAX_OPEN_HEADS;
    let folds: Vec<_> = requests
        .iter()
        .flat_map(|request| exchange(request, is_open))
        .collect();
    let number = number_of(requests.len() as u64, "request");
    let section = Section::new(
        "exchanges",
        "Heads and bodies",
        number,
        [Block::Folds(Budget::Bodies, folds)],
    );
    (!requests.is_empty()).then(|| section.only(PAGE))
}

/// Returns the head of a request, and its body, if there is any.
fn exchange(request: &Request, is_open: bool) -> Vec<Fold> {
    let seq = request.seq;
    let (summary, blocks) = match &request.head {
        Head::Request {
            version, headers, ..
        } => {
            let columns = [text("header"), led("value", ": ")];
            let table = Table::of(Budget::Part, columns, headers, |(name, value)| {
                [client(name), client(value)]
            });
            let number = number_of(headers.len() as u64, "header");
            (
                own(format!("Head {seq}: ")) + client(version) + ", " + number,
                table.blocks(),
            )
        }
        Head::Malformed { .. } | Head::Incomplete => (
            own(format!("Head {seq}: none that could be read")),
            Vec::new(),
        ),
    };
    let mut folds = vec![Fold {
        summary,
        is_open,
        blocks,
    }];
    folds.extend(request.body.as_ref().and_then(|body| content(seq, body)));
    folds
}

/// Returns a body, folded, because its shape may be long. The line of the request tells of an empty body.
fn content(seq: u64, body: &Body) -> Option<Fold> {
    let whole = if body.complete { "" } else { ", not whole" };
    let length = number_of(body.bytes, "byte");
    let summary = own(format!("Body {seq}: {length}{whole}, sha256 ")) + digest(&body.sha256);
    let (what, blocks) = match &body.content {
        Content::Json { shape } => (own(", its shape"), shape_lines(shape)),
        Content::Empty => return None,
        Content::DuplicateKey { path } => (
            own(", JSON that names a key twice: ") + client(path),
            Vec::new(),
        ),
        Content::Other { reason } => (own(", no JSON: ") + client(reason), Vec::new()),
    };
    Some(Fold {
        summary: summary + what,
        is_open: false,
        blocks,
    })
}

/// Returns the shape of a JSON body as lines: names, numbers and nesting, with length and digest for each text.
fn shape_lines(shape: &Value) -> Vec<Block> {
    let (mut lines, mut cut) = (Vec::new(), 0);
    add(&mut lines, &mut cut, 0, Text::default(), shape);
    let all = grouped((lines.len() + cut) as u64);
    let note = format!("{} more of {all} values", grouped(cut as u64));
    let mut blocks = vec![Block::Lines(Budget::Part, lines)];
    if cut > 0 {
        blocks.push(Block::Facts(Budget::Ours, vec![fact("cut", note)]));
    }
    blocks
}

fn add(lines: &mut Vec<Line>, cut: &mut usize, depth: usize, label: Text, value: &Value) {
    if lines.len() >= MAX_SHAPE_LINES {
        *cut += 1;
        return;
    }
    let mut line = |value: Text| {
        lines.push(Line {
            depth,
            text: label.clone() + value,
        })
    };
    if let Some((bytes, sha256)) = redacted(value) {
        return line(own(format!("text of {} ", number_of(bytes, "byte"))) + digest(sha256));
    }
    line(match value {
        Value::Object(map) if !map.is_empty() => Text::default(),
        Value::Array(values) if !values.is_empty() => {
            own(number_of(values.len() as u64, "element"))
        }
        Value::Object(_)
        | Value::Array(_)
        | Value::String(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_) => client(value.to_string()),
    });
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            add(lines, cut, depth + 1, client(name) + ": ", value);
        }),
        Value::Array(values) => values.iter().enumerate().for_each(|(index, value)| {
            add(lines, cut, depth + 1, own(format!("{index}: ")), value);
        }),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns length and digest of a text that was replaced by them.
fn redacted(value: &Value) -> Option<(u64, &str)> {
    let map = value.as_object()?;
    let bytes = map.get("bytes")?.as_u64()?;
    let sha256 = map.get("sha256")?.as_str()?;
    (map.len() == 2).then_some((bytes, sha256))
}

pub(super) fn connections(report: &Report) -> Option<Section> {
    let columns = [
        number("number"),
        word("accepted"),
        number("requests"),
        number("bytes"),
        number("in no request"),
        number("held"),
        text("end"),
    ];
    let table = Table::of(
        Budget::Client,
        columns,
        &report.evidence.connections,
        |one| {
            let end = match one.end {
                End::Closed => "closed by the client",
                End::Truncated => "closed by the client inside a request",
                End::Reset => "reset by the client",
                End::ByStub => "closed by the stub",
                End::Open => "open at the end of the run",
            };
            [
                num(one.seq),
                own(at(one.at_us)),
                num(one.requests),
                num(one.bytes),
                num(one.unaccounted),
                num(one.held),
                own(end),
            ]
        },
    );
    Some(table.section("connections", "Connections")?.only(PAGE))
}
