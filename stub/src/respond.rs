//! Response writer: sends an answer's pieces with the scenario's waits and ends it as the scenario says.
//!
//! Owns the time of each piece of a [`Script`]. [`scenario::script`] builds the pieces. The connection counts the
//! bytes written; a [`ConnectionHandle`] queries them.

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

/// Header with the id of the answer.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Builds the response after the script's wait. If the script ends before the head, the connection ends, and the
/// returned response is never written.
pub(crate) async fn respond(script: Script, connection: ConnectionHandle) -> Response {
    if !script.wait.is_zero() {
        sleep(script.wait).await;
    }
    let Some(head) = &script.head else {
        match script.end {
            End::Hangup(by) => connection.close_by(by),
            End::Stall | End::Whole => {
                connection.closed().await;
                connection.close_by(Hangup::Fin);
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
        Body::from_stream(Paced::new(script, connection))
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
        // Scenarios are checked to hold valid headers, and the other values are the stub's own.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
}

/// Body stream of one answer, at the scenario's pace. Without waits, the first piece is ready at the first poll,
/// so that it leaves together with the head.
#[derive(Debug)]
struct Paced {
    pieces: VecDeque<Piece>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Each piece waits until the pieces before it were written.
    apart: bool,
    end: End,
    connection: ConnectionHandle,
    request_id: String,
    /// Bytes yielded so far.
    given: u64,
}

/// Error of a body in which the scenario ends the connection.
#[derive(Debug, thiserror::Error)]
#[error("the scenario ends the connection here")]
struct HungUp;

impl Paced {
    fn new(script: Script, connection: ConnectionHandle) -> Self {
        Self {
            pieces: script.pieces,
            timer: None,
            apart: script.separate_writes,
            end: script.end,
            connection,
            request_id: script.request_id,
            given: 0,
        }
    }

    /// Returns ready when the connection has written all bytes yielded so far.
    fn poll_written(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.connection
            .poll_written(&self.request_id, self.given, cx)
    }
}

impl Stream for Paced {
    type Item = Result<Bytes, HungUp>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(next) = self.pieces.front() {
            let wait = next.wait;
            if self.apart && self.given > 0 {
                ready!(self.poll_written(cx));
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
                ready!(self.poll_written(cx));
                by
            }
            End::Stall => {
                ready!(self.connection.poll_closed(cx));
                Hangup::Fin
            }
        };
        self.connection.close_by(by);
        Poll::Ready(Some(Err(HungUp)))
    }
}
