//! Sections on traffic: requests with heads and bodies, and connections.

use maud::{Markup, PreEscaped, html};
use model::evidence::{Connection, Request};
use model::journal::{Body, Content, End, Head};
use model::report::Report;

use super::budget::{Budget, Column, missing};
use super::frame::Section;
use super::shape;
use super::text::{at, bytes, code, digest, number_of};
use crate::html::text::ClientText;
use crate::phrases;

/// Maximum size of all heads and bodies together, in bytes.
const MAX_DETAIL_BYTES: usize = 2 << 20;

/// Draws the requests, also if there are none.
pub(super) fn requests(report: &Report) -> Section {
    any_requests(report).unwrap_or_else(|| {
        let body = html! { p.none { "None." } };
        Section::new("requests", "Requests", body).with_note("0")
    })
}

/// Draws the requests, if there are any.
///
/// Request lines have a budget of their own, so that a large head cannot displace the line of another request.
pub(super) fn any_requests(report: &Report) -> Option<Section> {
    let requests = &report.evidence.requests;
    if requests.is_empty() {
        return None;
    }
    // Heads are folded on a page with many requests.
    let is_open = requests.len() <= 3;
    let lines = Budget::CLIENT.first(requests, line);
    let cut = requests.len() - lines.len();
    let mut left = MAX_DETAIL_BYTES;
    let mut cut_details = 0;
    let mut shown = String::new();
    for (request, line) in requests.iter().zip(lines) {
        let details = details(request, is_open);
        let details = match left.checked_sub(details.0.len()) {
            Some(rest) => {
                left = rest;
                details
            }
            None => {
                cut_details += 1;
                html! { p.cut { "Cut: its head and body." } }
            }
        };
        shown.push_str(&article(request, &line, &details).0);
    }
    let body = html! {
        (PreEscaped(shown))
        (missing(cut, requests.len()))
        @if cut_details > 0 {
            p.cut {
                "Cut: head and body of " (number_of(cut_details, "request")) " of " (phrases::grouped(requests.len() as u64)) "."
            }
        }
    };
    Some(Section::new("requests", "Requests", body).with_note(requests.len().to_string()))
}

fn article(request: &Request, line: &Markup, details: &Markup) -> Markup {
    html! {
        article.request id={ "request-" (request.seq) } { (line) (details) }
    }
}

fn line(request: &Request) -> Markup {
    let answer = match request.status {
        Some(status) => format!("status {status}"),
        None => "no answer".to_owned(),
    };
    let length = request.body.as_ref().map_or(0, |body| body.bytes);
    html! {
        h3 {
            span.number { (request.seq) } " " (code(&phrases::request_line(request)))
        }
        p.facts {
            span { (at(request.at_us)) }
            span { "class " (request.class.word()) }
            span { "connection " (request.connection) }
            span { (bytes(length)) }
            span { (answer) }
        }
    }
}

fn details(request: &Request, is_open: bool) -> Markup {
    html! {
        (head(&request.head, is_open))
        @if let Some(body) = &request.body { (content(body)) }
    }
}

fn head(head: &Head, is_open: bool) -> Markup {
    let columns = [Column::Text("header"), Column::Text("value")];
    html! {
        @match head {
            Head::Request { version, headers, .. } => details open[is_open] {
                summary { "Head: " (ClientText(version)) ", " (number_of(headers.len() as u64, "header")) }
                (Budget::PART.table(columns, headers, |(name, value)| [code(name), code(value)]))
            },
            Head::Malformed { .. } | Head::Incomplete => p.none { "No head that could be read." },
        }
    }
}

/// Draws a body, folded, because its shape may be long.
fn content(body: &Body) -> Markup {
    let whole = if body.complete { "" } else { ", not whole" };
    let summary = html! { "Body: " (bytes(body.bytes)) (whole) ", sha256 " (digest(&body.sha256)) };
    html! {
        @match &body.content {
            Content::Json { shape } => details {
                summary { (summary) ", its shape" }
                (shape::lines(shape))
            },
            // The line of the request already has the length.
            Content::Empty => {},
            Content::DuplicateKey { path } => p.aside { (summary) ", JSON that names a key twice: " (code(path)) },
            Content::Other { reason } => p.aside { (summary) ", no JSON: " (ClientText(reason)) },
        }
    }
}

pub(super) fn connections(report: &Report) -> Option<Section> {
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
    let body = Budget::CLIENT.table(columns, connections, |one| {
        [
            html! { (one.seq) },
            html! { (at(one.at_us)) },
            html! { (one.requests) },
            html! { (phrases::grouped(one.bytes)) },
            html! { (phrases::grouped(one.unaccounted)) },
            html! {
                (end(one))
                @if one.held > 0 { ", " (phrases::grouped(one.held)) " bytes held" }
            },
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
