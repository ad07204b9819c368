//! The public Messages shapes: events of a stream, a whole message, an error.
//!
//! Source: the types of the official SDKs and the public documentation of the Messages interface. Only
//! JSON is made here; how it travels is the room of [`crate::answer`].

use std::hash::{BuildHasher as _, RandomState};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::scenario::Scenario;

/// The input tokens that each answer claims.
const INPUT_TOKENS: u64 = 25;
/// The output tokens that are claimed before any text.
const FIRST_TOKENS: u64 = 1;

/// The part of a request that the provider needs. Everything else is let through.
#[derive(Debug, Deserialize)]
pub(crate) struct Ask {
    pub(crate) model: String,
    #[serde(rename = "max_tokens")]
    _max_tokens: std::num::NonZeroU64,
    #[serde(rename = "messages")]
    _messages: Vec<serde_json::Map<String, Value>>,
    #[serde(default)]
    pub(crate) stream: bool,
}

/// One event of a stream.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    MessageStart {
        message: Message<'a>,
    },
    ContentBlockStart {
        index: u32,
        content_block: Block<'a>,
    },
    Ping,
    ContentBlockDelta {
        index: u32,
        delta: Delta<'a>,
    },
    ContentBlockStop {
        index: u32,
    },
    MessageDelta {
        delta: Stop,
        usage: OutputUsage,
    },
    MessageStop,
}

/// A message, whole or at its start.
#[derive(Debug, Serialize)]
pub(crate) struct Message<'a> {
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block<'a>>,
    stop_reason: Option<&'static str>,
    stop_sequence: Option<&'static str>,
    usage: Usage,
}

/// A block of content.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block<'a> {
    Text { text: &'a str },
}

/// A piece of a block.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Delta<'a> {
    TextDelta { text: &'a str },
}

/// How a message ended.
#[derive(Debug, Serialize)]
pub(crate) struct Stop {
    stop_reason: &'static str,
    stop_sequence: Option<&'static str>,
}

/// Tokens of a whole turn.
#[derive(Debug, Serialize)]
pub(crate) struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

/// Tokens so far.
#[derive(Debug, Serialize)]
pub(crate) struct OutputUsage {
    output_tokens: u64,
}

impl Event<'_> {
    /// The name on the `event:` line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::MessageStart { .. } => "message_start",
            Self::ContentBlockStart { .. } => "content_block_start",
            Self::Ping => "ping",
            Self::ContentBlockDelta { .. } => "content_block_delta",
            Self::ContentBlockStop { .. } => "content_block_stop",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageStop => "message_stop",
        }
    }
}

/// The events of the answer, in order: the text as one block.
pub(crate) fn events<'a>(scenario: &'a Scenario, id: &'a str, model: &'a str) -> Vec<Event<'a>> {
    let start = Message {
        id,
        r#type: "message",
        role: "assistant",
        model,
        content: Vec::new(),
        stop_reason: None,
        stop_sequence: None,
        usage: Usage {
            input_tokens: INPUT_TOKENS,
            output_tokens: FIRST_TOKENS,
        },
    };
    let mut events = Vec::with_capacity(scenario.deltas().len() + 8);
    events.push(Event::MessageStart { message: start });
    events.push(Event::ContentBlockStart {
        index: 0,
        content_block: Block::Text { text: "" },
    });
    events.extend((0..scenario.pings()).map(|_| Event::Ping));
    let delta = |text| Event::ContentBlockDelta {
        index: 0,
        delta: Delta::TextDelta { text },
    };
    events.extend(scenario.deltas().iter().map(|text| delta(text.as_str())));
    events.push(Event::ContentBlockStop { index: 0 });
    events.push(Event::MessageDelta {
        delta: Stop {
            stop_reason: "end_turn",
            stop_sequence: None,
        },
        usage: OutputUsage {
            output_tokens: tokens(&scenario.text()),
        },
    });
    events.push(Event::MessageStop);
    events
}

/// The answer as one message.
pub(crate) fn message<'a>(text: &'a str, id: &'a str, model: &'a str) -> Message<'a> {
    Message {
        id,
        r#type: "message",
        role: "assistant",
        model,
        content: vec![Block::Text { text }],
        stop_reason: Some("end_turn"),
        stop_sequence: None,
        usage: Usage {
            input_tokens: INPUT_TOKENS,
            output_tokens: tokens(text),
        },
    }
}

/// A plausible number of tokens: one a word, at least one.
fn tokens(text: &str) -> u64 {
    text.split_whitespace().count().max(1) as u64
}

/// The kinds of error of the public interface that the stub answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    #[serde(rename = "invalid_request_error")]
    InvalidRequest,
    #[serde(rename = "authentication_error")]
    Authentication,
    #[serde(rename = "not_found_error")]
    NotFound,
    RequestTooLarge,
}

/// The body of an error.
pub(crate) fn error_body(fault: Fault, message: &str, request_id: &str) -> String {
    #[derive(Serialize)]
    struct Outer<'a> {
        r#type: &'static str,
        error: Inner<'a>,
        request_id: &'a str,
    }
    #[derive(Serialize)]
    struct Inner<'a> {
        r#type: Fault,
        message: &'a str,
    }
    let outer = Outer {
        r#type: "error",
        error: Inner {
            r#type: fault,
            message,
        },
        request_id,
    };
    // Plain strings always serialise.
    serde_json::to_string(&outer).unwrap_or_default()
}

/// A new opaque identifier, such as `msg_…` or `req_…`.
///
/// The bits are those with which the standard library keys its hash maps, from getrandom(2). Crates that
/// find that call through the dynamic linker open `/dev/random` in a static program, and here no file can
/// be opened.
pub(crate) fn new_id(prefix: &str) -> String {
    let bits = || RandomState::new().hash_one(prefix);
    format!("{prefix}_{:016x}{:016x}", bits(), bits())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_default_answer_is_the_six_events_in_their_public_shapes() {
        let scenario = Scenario::default();
        let events = events(&scenario, "msg_1", "model-x");
        let values: Vec<Value> = events
            .iter()
            .map(|event| serde_json::to_value(event).unwrap())
            .collect();
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "model-x", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 25, "output_tokens": 1 },
        });
        assert_eq!(
            values,
            [
                json!({ "type": "message_start", "message": message }),
                json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hello from the stub." } }),
                json!({ "type": "content_block_stop", "index": 0 }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null }, "usage": { "output_tokens": 4 } }),
                json!({ "type": "message_stop" }),
            ]
        );
        for (event, value) in events.iter().zip(values) {
            assert_eq!(event.name(), value["type"]);
        }
    }

    #[test]
    fn pings_follow_the_start_of_the_block() {
        let scenario: Scenario =
            serde_json::from_value(json!({ "pings": 2, "deltas": 2 })).unwrap();
        let names: Vec<_> = events(&scenario, "msg_1", "m")
            .iter()
            .map(Event::name)
            .collect();
        assert_eq!(
            names[1..6],
            [
                "content_block_start",
                "ping",
                "ping",
                "content_block_delta",
                "content_block_delta"
            ]
        );
        assert_eq!(
            serde_json::to_string(&Event::Ping).unwrap(),
            r#"{"type":"ping"}"#
        );
    }

    #[test]
    fn each_identifier_is_new_and_of_one_form() {
        let ids: std::collections::HashSet<String> = (0..100).map(|_| new_id("msg")).collect();
        assert_eq!(ids.len(), 100);
        let hexadecimal = |id: &String| {
            id.strip_prefix("msg_")
                .is_some_and(|bits| u128::from_str_radix(bits, 16).is_ok())
        };
        assert!(ids.iter().all(|id| hexadecimal(id) && id.len() == 36));
    }

    #[test]
    fn an_error_has_the_public_shape() {
        let body: Value =
            serde_json::from_str(&error_body(Fault::RequestTooLarge, "too much", "req_1")).unwrap();
        let error = json!({ "type": "request_too_large", "message": "too much" });
        assert_eq!(
            body,
            json!({ "type": "error", "error": error, "request_id": "req_1" })
        );
    }
}
