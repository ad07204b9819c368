//! Connections and requests: what was asked of the stub, head by head.

use maud::{Markup, html};
use stub::journal::{Body, Content, End, Head};

use crate::evidence::{Connection, Request};
use crate::report::{Report, words};

use super::frame::Section;
use super::room::{Column, Room, missing};
use super::shape;
use super::text::{Client, at, bytes, code, digest, number_of};

/// The requests, also where there are none.
pub(super) fn requests(report: &Report, room: &Room) -> Section {
    asked(report, room).unwrap_or_else(|| {
        let body = html! { p.none { "None." } };
        Section::new("requests", "Requests", body).with_note("0")
    })
}

/// The requests, if there are any.
pub(super) fn asked(report: &Report, room: &Room) -> Option<Section> {
    let requests = &report.evidence.requests;
    if requests.is_empty() {
        return None;
    }
    // Of many, none is open.
    let is_open = requests.len() <= 3;
    let (shown, cut) = room.entries(requests, |one| request(one, is_open, room));
    let body = html! { (shown) (missing(cut, requests.len())) };
    Some(Section::new("requests", "Requests", body).with_note(requests.len().to_string()))
}

fn request(request: &Request, is_open: bool, room: &Room) -> Markup {
    let answer = match request.status {
        Some(status) => format!("status {status}"),
        None => "no answer".to_owned(),
    };
    let length = request.body.as_ref().map_or(0, |body| body.bytes);
    html! {
        article.request id={ "request-" (request.seq) } {
            h3 {
                span.number { (request.seq) } " " (code(&words::request_line(request)))
            }
            p.facts {
                span { (at(request.at_us)) }
                span { "class " (words::class(request.class)) }
                span { "connection " (request.connection) }
                span { (bytes(length)) }
                span { (answer) }
            }
            (head(&request.head, is_open, room))
            @if let Some(body) = &request.body { (content(body)) }
        }
    }
}

fn head(head: &Head, is_open: bool, room: &Room) -> Markup {
    let columns = [Column::Text("header"), Column::Text("value")];
    html! {
        @match head {
            Head::Request { version, headers, .. } => details open[is_open] {
                summary { "Head: " (Client(version)) ", " (number_of(headers.len() as u64, "header")) }
                (room.table(columns, headers, |(name, value)| [code(name), code(value)]))
            },
            Head::Malformed { .. } | Head::Incomplete => p.none { "No head that could be read." },
        }
    }
}

/// What a body is made of, folded away: it is long, and its digest says as much.
fn content(body: &Body) -> Markup {
    let whole = if body.complete { "" } else { ", not whole" };
    let summary = html! { "Body: " (bytes(body.bytes)) (whole) ", sha256 " (digest(&body.sha256)) };
    html! {
        @match &body.content {
            Content::Json { shape } => details {
                summary { (summary) ", its shape" }
                (shape::lines(shape))
            },
            // Its length stands above.
            Content::Empty => {},
            Content::DuplicateKey { path } => p.aside { (summary) ", JSON that names a key twice: " (code(path)) },
            Content::Other { reason } => p.aside { (summary) ", no JSON: " (Client(reason)) },
        }
    }
}

pub(super) fn connections(report: &Report, room: &Room) -> Option<Section> {
    let connections = &report.evidence.connections;
    if connections.is_empty() {
        return None;
    }
    let columns = [
        Column::Word("number"),
        Column::Word("accepted"),
        Column::Number("requests"),
        Column::Number("bytes"),
        Column::Number("in no request"),
        Column::Text("end"),
    ];
    let body = room.table(columns, connections, |one| {
        [
            html! { (one.seq) },
            html! { (at(one.at_us)) },
            html! { (one.requests) },
            html! { (words::grouped(one.bytes)) },
            html! { (words::grouped(one.unaccounted)) },
            html! { (end(one)) },
        ]
    });
    let number = connections.len().to_string();
    Some(Section::new("connections", "Connections", body).with_note(number))
}

fn end(connection: &Connection) -> &'static str {
    match connection.end {
        End::Closed => "closed by the client",
        End::Truncated => "closed by the client inside a request",
        End::Reset => "reset by the client",
        End::ByStub => "closed by the stub",
        End::Open => "open at the end of the run",
    }
}
