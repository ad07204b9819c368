//! Wire types of the public Messages interface: events of a stream, a whole message, an error.
//!
//! Source: the types of the official SDKs and the public documentation. This module makes JSON only; [`crate::script`]
//! turns it into the bytes of an answer.

use std::hash::{BuildHasher as _, RandomState};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Block, ErrorType, EventName, Turn};

/// Input tokens that each answer reports.
const INPUT_TOKENS: u64 = 25;
/// Output tokens that `message_start` reports.
const FIRST_TOKENS: u64 = 1;

/// The fields of a request that the stub needs. Other fields are ignored.
#[derive(Debug, Deserialize)]
pub struct MessageRequest {
    /// Name of the model.
    pub model: String,
    #[serde(rename = "max_tokens")]
    _max_tokens: std::num::NonZeroU64,
    #[serde(rename = "messages")]
    _messages: Vec<Map<String, Value>>,
    /// True if the client asks for a stream.
    #[serde(default)]
    pub stream: bool,
}

/// One event of a stream.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    MessageStart {
        message: Message<'a>,
    },
    ContentBlockStart {
        index: u32,
        content_block: Content<'a>,
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
        delta: Stop<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<OutputUsage>,
    },
    MessageStop,
    Error {
        error: ErrorDetail<'a>,
    },
    /// An event that the interface does not define. Clients must ignore unknown events, because the interface may grow.
    StubNotice {
        note: &'static str,
    },
}

/// A whole message, or its start.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Message<'a> {
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Content<'a>>,
    stop_reason: Option<&'a str>,
    stop_sequence: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
}

/// A whole block of content, or its start.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Content<'a> {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        signature: &'a str,
    },
    ToolUse {
        id: String,
        name: &'a str,
        input: Map<String, Value>,
    },
}

/// One delta of a block.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(
    clippy::enum_variant_names,
    reason = "the names of the interface, which all have this suffix"
)]
pub(crate) enum Delta<'a> {
    TextDelta { text: &'a str },
    ThinkingDelta { thinking: &'a str },
    SignatureDelta { signature: &'a str },
    InputJsonDelta { partial_json: &'a str },
}

/// Stop reason of a message.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Stop<'a> {
    stop_reason: &'a str,
    stop_sequence: Option<&'a str>,
}

/// Token counts of a whole turn.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

/// Output tokens so far.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct OutputUsage {
    output_tokens: u64,
}

/// Type and message of an error.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ErrorDetail<'a> {
    r#type: ErrorType,
    message: &'a str,
}

impl Event<'_> {
    /// Returns the name on the `event:` line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Error { .. } => "error",
            Self::StubNotice { .. } => "stub_notice",
            Self::MessageStart { .. }
            | Self::ContentBlockStart { .. }
            | Self::Ping
            | Self::ContentBlockDelta { .. }
            | Self::ContentBlockStop { .. }
            | Self::MessageDelta { .. }
            | Self::MessageStop => self.known().map_or("", EventName::word),
        }
    }

    /// Returns the name by which a scenario can refer to the event.
    pub(crate) fn known(&self) -> Option<EventName> {
        Some(match self {
            Self::MessageStart { .. } => EventName::MessageStart,
            Self::ContentBlockStart { .. } => EventName::ContentBlockStart,
            Self::Ping => EventName::Ping,
            Self::ContentBlockDelta { .. } => EventName::ContentBlockDelta,
            Self::ContentBlockStop { .. } => EventName::ContentBlockStop,
            Self::MessageDelta { .. } => EventName::MessageDelta,
            Self::MessageStop => EventName::MessageStop,
            Self::Error { .. } | Self::StubNotice { .. } => return None,
        })
    }

    /// Builds an `error` event.
    pub(crate) fn error(kind: ErrorType, message: &str) -> Event<'_> {
        Event::Error {
            error: ErrorDetail {
                r#type: kind,
                message,
            },
        }
    }
}

/// Lists the events of an answer in order, without faults.
pub(crate) fn events<'a>(turn: &'a Turn, id: &'a str, model: &'a str) -> Vec<Event<'a>> {
    let delta_count: usize = turn.blocks.iter().map(|block| block.deltas().len()).sum();
    let mut events = Vec::with_capacity(delta_count + 8);
    events.push(Event::MessageStart {
        message: Message {
            id,
            r#type: "message",
            role: "assistant",
            model,
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            usage: Some(Usage {
                input_tokens: INPUT_TOKENS,
                output_tokens: FIRST_TOKENS,
            }),
        },
    });
    for (index, block) in (0..).zip(&turn.blocks) {
        events.push(Event::ContentBlockStart {
            index,
            content_block: empty(block, index, id),
        });
        if index == 0 {
            let note = "a client that does not know this event goes on";
            events.extend((0..turn.pings).map(|_| Event::Ping));
            events.extend((0..turn.unknown_events).map(|_| Event::StubNotice { note }));
        }
        let delta = |delta| Event::ContentBlockDelta { index, delta };
        events.extend(deltas(block).into_iter().map(delta));
        events.push(Event::ContentBlockStop { index });
    }
    events.push(Event::MessageDelta {
        delta: Stop {
            stop_reason: turn.stop.reason().word(),
            stop_sequence: turn.stop.sequence(),
        },
        usage: Some(OutputUsage {
            output_tokens: tokens(turn),
        }),
    });
    events.push(Event::MessageStop);
    events
}

/// Builds the answer as one message.
pub(crate) fn message<'a>(turn: &'a Turn, id: &'a str, model: &'a str) -> Message<'a> {
    Message {
        id,
        r#type: "message",
        role: "assistant",
        model,
        content: (0..)
            .zip(&turn.blocks)
            .map(|(index, block)| whole(block, index, id))
            .collect(),
        stop_reason: Some(turn.stop.reason().word()),
        stop_sequence: turn.stop.sequence(),
        usage: Some(Usage {
            input_tokens: INPUT_TOKENS,
            output_tokens: tokens(turn),
        }),
    }
}

/// Builds a block as its `content_block_start` shows it.
fn empty<'a>(block: &'a Block, index: u32, message_id: &str) -> Content<'a> {
    match block {
        Block::Text { .. } => Content::Text {
            text: String::new(),
        },
        Block::Thinking { .. } => Content::Thinking {
            thinking: String::new(),
            signature: "",
        },
        Block::ToolUse { id, name, .. } => Content::ToolUse {
            id: tool_id(id.as_deref(), index, message_id),
            name,
            input: Map::new(),
        },
    }
}

fn whole<'a>(block: &'a Block, index: u32, message_id: &str) -> Content<'a> {
    match block {
        Block::Text { deltas } => Content::Text {
            text: deltas.concat(),
        },
        Block::Thinking { deltas, signature } => Content::Thinking {
            thinking: deltas.concat(),
            signature,
        },
        Block::ToolUse {
            id, name, input, ..
        } => Content::ToolUse {
            id: tool_id(id.as_deref(), index, message_id),
            name,
            input: input.clone(),
        },
    }
}

/// Lists the deltas of a block. As recorded, a signature comes last, and JSON begins with an empty delta.
fn deltas(block: &Block) -> Vec<Delta<'_>> {
    match block {
        Block::Text { deltas } => deltas
            .iter()
            .map(|text| Delta::TextDelta { text })
            .collect(),
        Block::Thinking { deltas, signature } => deltas
            .iter()
            .map(|thinking| Delta::ThinkingDelta { thinking })
            .chain([Delta::SignatureDelta { signature }])
            .collect(),
        Block::ToolUse { deltas, .. } => [""]
            .into_iter()
            .chain(deltas.iter().map(String::as_str))
            .map(|partial_json| Delta::InputJsonDelta { partial_json })
            .collect(),
    }
}

/// Returns the id of a tool call: the one of the scenario, or one derived from the id of the message.
fn tool_id(given: Option<&str>, index: u32, message_id: &str) -> String {
    let bits = message_id.strip_prefix("msg_").unwrap_or(message_id);
    given.map_or_else(|| format!("toolu_{index:02}{bits}"), str::to_owned)
}

/// Counts a plausible number of tokens: one for each word, and at least one.
fn tokens(turn: &Turn) -> u64 {
    let words = |block: &Block| block.deltas().concat().split_whitespace().count();
    turn.blocks.iter().map(words).sum::<usize>().max(1) as u64
}

/// Builds the JSON body of an error.
pub fn error_body(kind: ErrorType, message: &str, request_id: &str) -> String {
    #[derive(Serialize)]
    struct Outer<'a> {
        r#type: &'static str,
        error: ErrorDetail<'a>,
        request_id: &'a str,
    }
    let outer = Outer {
        r#type: "error",
        error: ErrorDetail {
            r#type: kind,
            message,
        },
        request_id,
    };
    // Serialising plain strings cannot fail.
    serde_json::to_string(&outer).unwrap_or_default()
}

/// Makes a new opaque identifier, such as `msg_…` or `req_…`.
///
/// The bits are the keys of the standard library's hash maps, from getrandom(2). Crates that look for getrandom through
/// the dynamic linker open `/dev/random` in a static program, which fails in the sandbox.
pub fn new_id(prefix: &str) -> String {
    let bits = || RandomState::new().hash_one(prefix);
    format!("{prefix}_{:016x}{:016x}", bits(), bits())
}

#[cfg(test)]
mod tests;
