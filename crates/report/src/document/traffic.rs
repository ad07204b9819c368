//! Sections on traffic: requests, their heads and bodies, and connections.

use model::evidence::Request;
use model::journal::{Body, Content, End, Head};
use model::report::{Purpose, Report};
use model::shape;
use model::text::count;
use serde_json::Value;

use super::{
    Block, Budget, Fold, Medium, PAGE, Section, Table, client, digest, number, own, text, word,
};
use crate::phrases::{at, request_line};

/// Maximum number of requests with an open head.
const MAX_OPEN_HEADS: usize = 3;

/// Lists the requests. A run that expects them also says that there are none.
pub(super) fn requests(report: &Report) -> Option<Section> {
    let table = Table::of(Budget::Client, &report.evidence.requests, |request| {
        let answer = request.status.map(|status| format!("status {status}"));
        [
            number("number", request.seq),
            word("at", at(request.at_us)),
            word("class", request.class.word()),
            number("connection", request.connection).wide(),
            word("answer", answer.unwrap_or_else(|| "no answer".to_owned())),
            number("bytes", request.body.as_ref().map_or(0, |body| body.bytes)),
            text("request", client(request_line(request))),
        ]
    });
    let requests = report.evidence.requests.iter();
    let table = table.with_ids(requests.map(|request| format!("request-{}", request.seq)));
    match report.purpose {
        Purpose::Judge => Some(table.section_or_none("requests", "Requests")),
        Purpose::Audit => table.section("requests", "Requests"),
    }
}

/// Shows the heads and bodies, with a budget of their own, so that a large one displaces no request.
pub(super) fn heads_and_bodies(report: &Report, media: &[Medium]) -> Option<Section> {
    let requests = &report.evidence.requests;
    if requests.is_empty() || !PAGE.iter().any(|medium| media.contains(medium)) {
        return None;
    }
    let is_open = requests.len() <= MAX_OPEN_HEADS;
    let folds: Vec<_> = requests
        .iter()
        .flat_map(|request| exchange(request, is_open))
        .collect();
    let number = count(requests.len(), "request");
    let section = Section::new(
        "exchanges",
        "Heads and bodies",
        number,
        [Block::Folds(Budget::Bodies, folds)],
    );
    Some(section.only(PAGE))
}

/// Returns the head of a request, and its body, if there is any.
fn exchange(request: &Request, is_open: bool) -> Vec<Fold> {
    let seq = request.seq;
    let (summary, blocks) = match &request.head {
        Head::Request {
            version, headers, ..
        } => {
            let table = Table::of(Budget::Part, headers, |(name, value)| {
                [text("header", client(name)), text("value", client(value))]
            });
            let number = count(headers.len(), "header");
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
    let length = count(body.bytes, "byte");
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

/// Returns the shape of a JSON body as lines, each text as its length and digest.
fn shape_lines(shape: &Value) -> Vec<Block> {
    let shown = format!("{:#}", with_texts(shape));
    vec![Block::Lines(Table::of(
        Budget::Part,
        shown.lines(),
        |line| [text("line", client(line))],
    ))]
}

/// Replaces length and digest of each redacted text by one text.
fn with_texts(shape: &Value) -> Value {
    match shape {
        text if shape::is_text(text) => {
            let part = |key: &str| {
                text[key]
                    .as_str()
                    .map_or_else(|| text[key].to_string(), str::to_owned)
            };
            format!("<{} bytes, sha256 {}>", part("bytes"), part("sha256")).into()
        }
        Value::Object(map) => {
            let entries = map.iter();
            let entries = entries.map(|(name, value)| (name.clone(), with_texts(value)));
            Value::Object(entries.collect())
        }
        Value::Array(values) => values.iter().map(with_texts).collect(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => shape.clone(),
    }
}

pub(super) fn connections(report: &Report) -> Option<Section> {
    let table = Table::of(Budget::Client, &report.evidence.connections, |one| {
        let end = match one.end {
            End::Closed => "closed by the client",
            End::Truncated => "closed by the client inside a request",
            End::Reset => "reset by the client",
            End::ByStub => "closed by the stub",
            End::Open => "open at the end of the run",
        };
        [
            number("number", one.seq),
            word("accepted", at(one.at_us)),
            number("requests", one.requests),
            number("bytes", one.bytes),
            number("in no request", one.unaccounted),
            number("held", one.held),
            text("end", end),
        ]
    });
    Some(table.section("connections", "Connections")?.only(PAGE))
}
