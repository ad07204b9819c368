//! One answer, ready to be handed over: its head, the pieces of its body, and how it ends.
//!
//! Owns the way from a scenario's answer to bytes, and is pure: the same answer, identifiers and model give
//! the same script. Knows nothing of the server or of time; handing over is the room of
//! [`crate::handover`].

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::{
    Address, Answer, BreakPoint, Chunking, CutAt, Ending, Hangup, Says, ScenarioError, Target,
    Turn, messages,
};

mod chunks;
mod frame;
mod stream_faults;

use chunks::Body;

/// The type of a body of JSON.
const JSON: &str = "application/json";
/// The type of a stream.
const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// One answer, ready to be handed over.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    pub request_id: String,
    pub wait: Duration,
    /// `None`: the answer ends before it.
    pub head: Option<Head>,
    pub pieces: VecDeque<Piece>,
    /// Each piece is a write of its own.
    pub apart: bool,
    pub end: End,
}

/// The head of an answer, but for the request's identifier.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    /// The length that it states; `None`: the body is chunked.
    pub length: Option<usize>,
}

/// One piece of the body, and the wait before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub wait: Duration,
    pub bytes: Bytes,
}

/// What follows the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end of the body.
    Whole,
    /// The end of the connection.
    Hangup(Hangup),
    /// Nothing.
    Stall,
}

/// What an answer depends on beside its scenario.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub request_id: &'a str,
    pub message_id: &'a str,
    pub model: &'a str,
    pub streams: bool,
    /// The origin of the second host.
    pub elsewhere: &'a str,
}

impl Script {
    pub fn new(answer: &Answer, context: Context<'_>) -> Self {
        let (mut head, mut body) = written(answer, context);
        let end = match answer.ending {
            None => End::Whole,
            Some(ending) => broken(ending, &mut body, head.length.is_some()),
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
            apart: answer.chunking.is_some(),
            end,
        }
    }
}

/// The whole of an answer, nothing left out.
fn written(answer: &Answer, context: Context<'_>) -> (Head, Body) {
    let json = |status, headers: Vec<_>, text: String| {
        let typed = [vec![("content-type", JSON.to_owned())], headers].concat();
        sized(status, typed, text)
    };
    match &answer.says {
        Says::Message(turn) if context.streams => {
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
        Says::Message(turn) => {
            let message = messages::message(turn, context.message_id, context.model);
            // Plain structs and strings always serialise.
            let text = serde_json::to_string(&message).unwrap_or_default();
            json(200, Vec::new(), text)
        }
        Says::Error(error) => {
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
        Says::Redirect(redirect) => {
            let to = match &redirect.to {
                Address::Url(url) => url.clone(),
                Address::Elsewhere(path) => format!("{}{path}", context.elsewhere),
            };
            sized(redirect.status, vec![("location", to)], String::new())
        }
        Says::Literal(literal) => {
            let headers = vec![("content-type", literal.content_type.clone())];
            sized(literal.status, headers, literal.body.clone())
        }
    }
}

/// An answer that states its length.
fn sized(status: u16, headers: Vec<(&'static str, String)>, text: String) -> (Head, Body) {
    let head = Head {
        status,
        headers,
        length: Some(text.len()),
    };
    (head, Body::whole(text.into_bytes()))
}

/// The body of a stream, with the faults of its events.
fn stream(turn: &Turn, id: &str, model: &str) -> Body {
    frame::write(&stream_faults::drafts(turn, id, model).events, turn.framing)
}

/// Cuts the body off where the answer breaks off, and says what follows.
fn broken(ending: Ending, body: &mut Body, states_length: bool) -> End {
    let mut length = match ending.place() {
        BreakPoint::BeforeHead | BreakPoint::AfterHead => 0,
        BreakPoint::Byte(byte) => byte,
        // A place in a stream is none in an answer that is not one.
        BreakPoint::After(_) | BreakPoint::Inside(_) if states_length => return End::Whole,
        BreakPoint::After(target) => body.after(target),
        BreakPoint::Inside(target) => body.inside(target),
    };
    // The server takes a body of the stated length for whole, whatever follows.
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

/// Refuses a turn whose faults, places or cuts name what its stream does not have.
pub(crate) fn check(
    turn: &Turn,
    chunking: Option<&Chunking>,
    place: Option<BreakPoint>,
) -> Result<(), ScenarioError> {
    let drafts = stream_faults::drafts(turn, "", "");
    if let Some((key, target)) = drafts.missing {
        return Err(no_event(key, target));
    }
    let body = frame::write(&drafts.events, turn.framing);
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
