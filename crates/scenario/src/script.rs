//! Scripts: the head, body pieces and end of one answer, ready to send.
//!
//! Pure: equal answers, identifiers and models give equal scripts. The stub's module `respond` sends them; this module
//! knows neither the server nor the clock.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::{
    Address, Answer, BreakPoint, Chunking, CutAt, Ending, Hangup, Reply, ScenarioError, Target,
    Turn, messages,
};

mod chunks;
mod frame;
mod stream_faults;

use chunks::Body;

/// Content type of a JSON body.
const JSON: &str = "application/json";
/// Content type of a stream.
const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// One answer, ready to send.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    /// Value of the header `request-id`.
    pub request_id: String,
    /// Delay before the answer starts.
    pub wait: Duration,
    /// `None`: the answer ends before its head.
    pub head: Option<Head>,
    /// The body, in order.
    pub pieces: VecDeque<Piece>,
    /// True if each piece needs its own write and HTTP chunk.
    pub separate_writes: bool,
    /// End of the answer, after the last piece.
    pub end: End,
}

/// Head of an answer, without the header for the request's identifier.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// HTTP status.
    pub status: u16,
    /// Names and values of the headers, in order.
    pub headers: Vec<(&'static str, String)>,
    /// Value of Content-Length; `None` for a chunked body.
    pub length: Option<usize>,
}

/// One piece of the body, and the delay before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Delay before the piece.
    pub wait: Duration,
    /// Bytes of the piece.
    pub bytes: Bytes,
}

/// End of an answer, after its last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The body ends.
    Whole,
    /// The connection ends.
    Hangup(Hangup),
    /// No more bytes are sent.
    Stall,
}

/// Inputs of an answer besides its scenario.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Identifier of the request, as in the answer's header.
    pub request_id: &'a str,
    /// Identifier of the message.
    pub message_id: &'a str,
    /// Model that the request names.
    pub model: &'a str,
    /// True if the request asks for a stream.
    pub streams: bool,
    /// Origin of the second host.
    pub elsewhere: &'a str,
}

impl Script {
    /// Builds the script of an answer.
    pub fn new(answer: &Answer, context: Context<'_>) -> Self {
        let (mut head, mut body) = written(answer, context);
        let end = match answer.ending {
            None => End::Whole,
            Some(ending) => break_off(ending, &mut body, head.length.is_some()),
        };
        if matches!(answer.ending, Some(Ending::Early { .. })) {
            head.length = head.length.map(|_| body.bytes.len());
        }
        let before_head = answer
            .ending
            .is_some_and(|ending| ending.place() == BreakPoint::BeforeHead);
        Self {
            request_id: context.request_id.to_owned(),
            wait: answer.pace.first,
            head: (!before_head).then_some(head),
            pieces: body.pieces(answer.chunking.as_ref(), answer.pace),
            separate_writes: answer.chunking.is_some(),
            end,
        }
    }
}

/// Builds the complete answer, before any early end.
fn written(answer: &Answer, context: Context<'_>) -> (Head, Body) {
    let json = |status, headers: Vec<_>, text: String| {
        let typed = [vec![("content-type", JSON.to_owned())], headers].concat();
        sized(status, typed, text)
    };
    match &answer.reply {
        Reply::Message(turn) if context.streams => {
            let headers = vec![
                ("content-type", EVENT_STREAM.to_owned()),
                ("cache-control", "no-cache".to_owned()),
            ];
            let head = Head {
                status: 200,
                headers,
                length: None,
            };
            (head, stream(turn, context.message_id, context.model))
        }
        Reply::Message(turn) => {
            let message = messages::message(turn, context.message_id, context.model);
            // Serialising plain structs and strings cannot fail.
            let text = serde_json::to_string(&message).unwrap_or_default();
            json(200, Vec::new(), text)
        }
        Reply::Error(error) => {
            let should_retry = error
                .should_retry
                .map(|retry| ("x-should-retry", retry.to_string()));
            let retry_after = error
                .retry_after_s
                .map(|seconds| ("retry-after", seconds.to_string()));
            let headers = should_retry.into_iter().chain(retry_after).collect();
            let text = messages::error_body(error.kind, &error.message, context.request_id);
            json(error.status, headers, text)
        }
        Reply::Redirect(redirect) => {
            let to = match &redirect.to {
                Address::Url(url) => url.clone(),
                Address::Elsewhere(path) => format!("{}{path}", context.elsewhere),
            };
            sized(redirect.status, vec![("location", to)], String::new())
        }
        Reply::Literal(literal) => {
            let headers = vec![("content-type", literal.content_type.clone())];
            sized(literal.status, headers, literal.body.clone())
        }
    }
}

/// Builds an answer with a Content-Length.
fn sized(status: u16, headers: Vec<(&'static str, String)>, text: String) -> (Head, Body) {
    let head = Head {
        status,
        headers,
        length: Some(text.len()),
    };
    (head, Body::whole(text.into_bytes()))
}

/// Builds the body of a stream with the faults of its events.
fn stream(turn: &Turn, id: &str, model: &str) -> Body {
    frame::write(
        &stream_faults::apply_faults(turn, id, model).events,
        turn.framing,
    )
}

/// Truncates the body at an early end, and returns the end of the answer.
fn break_off(ending: Ending, body: &mut Body, states_length: bool) -> End {
    let mut length = match ending.place() {
        BreakPoint::BeforeHead | BreakPoint::AfterHead => 0,
        BreakPoint::Byte(byte) => byte,
        // A place in a stream does not exist in an answer without events.
        BreakPoint::After(_) | BreakPoint::Inside(_) if states_length => return End::Whole,
        BreakPoint::After(target) => body.after(target),
        BreakPoint::Inside(target) => body.inside(target),
    };
    // The server treats a body of the stated length as complete, whatever follows.
    if states_length {
        length = length.min(body.bytes.len().saturating_sub(1));
    }
    body.truncate(length);
    match ending {
        Ending::Cut { by, .. } => End::Hangup(by),
        Ending::Early { .. } => End::Whole,
        Ending::Stall { .. } => End::Stall,
    }
}

/// Rejects a turn whose faults, places or cuts do not exist in its stream.
pub(crate) fn check(
    turn: &Turn,
    chunking: Option<&Chunking>,
    place: Option<BreakPoint>,
) -> Result<(), ScenarioError> {
    let faulty = stream_faults::apply_faults(turn, "", "");
    if let Some((key, target)) = faulty.missing {
        return Err(no_event(key, target));
    }
    let body = frame::write(&faulty.events, turn.framing);
    let named = match place {
        Some(BreakPoint::After(target)) => Some(("after", target)),
        Some(BreakPoint::Inside(target)) => Some(("inside", target)),
        Some(BreakPoint::BeforeHead | BreakPoint::AfterHead | BreakPoint::Byte(_)) | None => None,
    };
    if let Some((key, target)) = named.filter(|(_, target)| !body.has(*target)) {
        return Err(no_event(key, target));
    }
    let Some(Chunking::At(cuts)) = chunking else {
        return Ok(());
    };
    for cut in cuts {
        if let CutAt::Named(name) = cut
            && body.places(*name).is_empty()
        {
            return Err(ScenarioError::NoSuchCut { cut: name.word() });
        }
    }
    Ok(())
}

fn no_event(key: &'static str, target: Target) -> ScenarioError {
    ScenarioError::NoEvent {
        key,
        event: target.event.word(),
        nth: target.nth,
    }
}

#[cfg(test)]
mod tests;
