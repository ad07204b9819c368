//! Handing an answer over: its waits, its pieces one by one, and its end.
//!
//! Owns when a part of a [`Script`] goes out. What the parts are is the room of [`scenario::script`], and what
//! really went out that of the connection, which is asked here through its [`ConnectionHandle`].

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_core::Stream;
use scenario::Hangup;
use scenario::script::{End, Head, Piece, Script};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::connection::ConnectionHandle;

/// The header that names an answer.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Makes the response, after its wait. Where the answer ends before its head, the connection ends, and the
/// response that is returned is never written.
pub(crate) async fn respond(script: Script, line: ConnectionHandle) -> Response {
    if !script.wait.is_zero() {
        sleep(script.wait).await;
    }
    let Some(head) = &script.head else {
        match script.end {
            End::Hangup(by) => line.hang_up(by),
            End::Stall | End::Whole => {
                line.gone().await;
                line.hang_up(Hangup::Fin);
            }
        }
        return Response::new(Body::empty());
    };
    let mut response = Response::new(Body::empty());
    if let Ok(status) = StatusCode::from_u16(head.status) {
        *response.status_mut() = status;
    }
    write_headers(response.headers_mut(), head, &script.request_id);
    *response.body_mut() = if script.end == End::Whole && script.pieces.is_empty() {
        Body::empty()
    } else {
        Body::from_stream(Paced::new(script, line))
    };
    response
}

fn write_headers(headers: &mut HeaderMap, head: &Head, request_id: &str) {
    let length = head.length.map(|length| length.to_string());
    let known = head
        .headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), value.as_str()))
        .chain(
            length
                .as_deref()
                .map(|length| (header::CONTENT_LENGTH, length)),
        )
        .chain([(REQUEST_ID, request_id)]);
    for (name, value) in known {
        // Scenarios hold nothing that is no header, and the rest is ours.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
}

/// The pieces of one answer, handed over at the scenario's pace. Without waits and pieces of its own the
/// first event is there at the first poll, so that it leaves together with the head.
#[derive(Debug)]
struct Paced {
    pieces: VecDeque<Piece>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Each piece waits until the connection has taken those before it.
    apart: bool,
    end: End,
    line: ConnectionHandle,
    request_id: String,
    /// Bytes given so far.
    given: u64,
}

/// The connection ends inside the body.
#[derive(Debug, thiserror::Error)]
#[error("the scenario ends the connection here")]
struct HungUp;

impl Paced {
    fn new(script: Script, line: ConnectionHandle) -> Self {
        Self {
            pieces: script.pieces,
            timer: None,
            apart: script.separate_writes,
            end: script.end,
            line,
            request_id: script.request_id,
            given: 0,
        }
    }

    /// Ready when the connection has taken everything that was given.
    fn poll_taken(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.line.poll_taken(&self.request_id, self.given, cx)
    }
}

impl Stream for Paced {
    type Item = Result<Bytes, HungUp>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(next) = self.pieces.front() {
            let wait = next.wait;
            if self.apart && self.given > 0 {
                ready!(self.poll_taken(cx));
            }
            if !wait.is_zero() {
                let timer = self
                    .timer
                    .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + wait)));
                ready!(timer.as_mut().poll(cx));
            }
            self.timer = None;
            let piece = self.pieces.pop_front().map(|piece| piece.bytes);
            self.given += piece.as_ref().map_or(0, Bytes::len) as u64;
            return Poll::Ready(piece.map(Ok));
        }
        let by = match self.end {
            End::Whole => return Poll::Ready(None),
            End::Hangup(by) => {
                ready!(self.poll_taken(cx));
                by
            }
            End::Stall => {
                ready!(self.line.poll_gone(cx));
                Hangup::Fin
            }
        };
        self.line.hang_up(by);
        Poll::Ready(Some(Err(HungUp)))
    }
}
