//! Types of the provider's events: the known names, and the fields of each.
//!
//! Events are selected by the `event:` name, as in the public SDKs. `ping`, unknown names and events without a name
//! give [`Incoming::Ignored`]; their data is not read. A known event must be a JSON object whose `type` equals the
//! name, with the fields of the public interface. Any other data is malformed. Fields that the client does not use are
//! not checked.
//!
//! Knows no order of events, records or HTTP.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::sse;

/// A JSON object with its fields in the received order.
pub(crate) type Object = Map<String, Value>;

/// Classification of one event of the stream.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A ping, an unknown name, or no name.
    Ignored,
    /// An error of the provider, with its type and message as far as they are readable.
    Error(ErrorDetail),
    /// One of the six known events.
    Known(ProviderEvent),
}

/// A known event, unchanged and parsed.
#[derive(Debug)]
pub(crate) struct ProviderEvent {
    /// JSON of the provider, unchanged, on one line.
    pub(crate) json: Box<RawValue>,
    /// Parsed fields.
    pub(crate) payload: Payload,
}

/// The six known events.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Payload {
    MessageStart {
        message: Object,
    },
    ContentBlockStart {
        index: u64,
        content_block: Object,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: Stop,
        #[serde(default)]
        usage: Object,
    },
    MessageStop {},
}

/// Addition of a delta to its block.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(rename = "citations_delta")]
    Citations { citation: Value },
    /// A kind that was added to the interface later. It is written like any event, and does not change the aggregate.
    #[serde(other)]
    Unknown,
}

/// End of the message, from `message_delta`.
#[derive(Debug, Deserialize)]
pub(crate) struct Stop {
    #[serde(default)]
    pub(crate) stop_reason: Option<String>,
}

/// Error in the public form, from an `error` event or from the body of a failed response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ErrorDetail {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) message: String,
}

/// Reason why a known event is unusable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventError {
    /// The data is not UTF-8.
    #[error("the data of a {name} event is not UTF-8")]
    NotUtf8 { name: &'static str },
    /// The data is not JSON, or not the JSON of this event.
    #[error("the data of a {name} event is malformed")]
    Malformed {
        name: &'static str,
        source: serde_json::Error,
    },
    /// The data is JSON, but not an object.
    #[error("the data of a {name} event is not a JSON object")]
    NotAnObject { name: &'static str },
    /// The name and the `type` in the data differ.
    #[error("a {name} event carries the type {found}")]
    TypeMismatch {
        name: &'static str,
        found: &'static str,
    },
}

impl Payload {
    /// Returns the name of the event on the wire.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::MessageStart { .. } => "message_start",
            Self::ContentBlockStart { .. } => "content_block_start",
            Self::ContentBlockDelta { .. } => "content_block_delta",
            Self::ContentBlockStop { .. } => "content_block_stop",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageStop {} => "message_stop",
        }
    }
}

impl fmt::Display for ErrorDetail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind.as_str(), self.message.as_str()) {
            ("", "") => formatter.write_str("no reason given"),
            (kind, "") => formatter.write_str(kind),
            ("", message) => formatter.write_str(message),
            (kind, message) => write!(formatter, "{kind}: {message}"),
        }
    }
}

/// Parses one event of the stream.
pub(crate) fn read(event: &sse::Event) -> Result<Incoming, EventError> {
    let name = match event.name.as_slice() {
        b"message_start" => "message_start",
        b"content_block_start" => "content_block_start",
        b"content_block_delta" => "content_block_delta",
        b"content_block_stop" => "content_block_stop",
        b"message_delta" => "message_delta",
        b"message_stop" => "message_stop",
        b"error" => return Ok(Incoming::Error(error_detail(&event.data))),
        _ => return Ok(Incoming::Ignored),
    };
    known(name, &event.data).map(Incoming::Known)
}

/// Parses an error of the provider. Data of another form gives an empty error, because an unreadable error is still
/// one.
pub(crate) fn error_detail(json: &[u8]) -> ErrorDetail {
    #[derive(Deserialize)]
    struct Envelope {
        error: ErrorDetail,
    }
    serde_json::from_slice(json)
        .map(|Envelope { error }| error)
        .unwrap_or_default()
}

fn known(name: &'static str, data: &[u8]) -> Result<ProviderEvent, EventError> {
    let malformed = |source| EventError::Malformed { name, source };
    let text = str::from_utf8(data).map_err(|_| EventError::NotUtf8 { name })?;
    let json: &RawValue = serde_json::from_str(text).map_err(malformed)?;
    // Derived deserialisers also accept an array for a struct.
    if !json.get().starts_with('{') {
        return Err(EventError::NotAnObject { name });
    }
    let payload: Payload = serde_json::from_str(json.get()).map_err(malformed)?;
    if payload.name() != name {
        return Err(EventError::TypeMismatch {
            name,
            found: payload.name(),
        });
    }
    Ok(ProviderEvent {
        json: on_one_line(json).map_err(malformed)?,
        payload,
    })
}

/// Removes line breaks from the JSON, because a record is one line.
///
/// A string in valid JSON has no raw line break (RFC 8259, section 7). So each line break is between two tokens, where
/// a space has the same meaning.
fn on_one_line(json: &RawValue) -> Result<Box<RawValue>, serde_json::Error> {
    if json.get().contains(['\n', '\r']) {
        RawValue::from_string(json.get().replace(['\n', '\r'], " "))
    } else {
        Ok(json.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> sse::Event {
        sse::Event {
            name: name.into(),
            data: data.into(),
        }
    }

    fn json_of(name: &str, data: &str) -> String {
        let Incoming::Known(known) = read(&event(name, data)).unwrap() else {
            panic!("{name}")
        };
        known.json.get().to_owned()
    }

    fn error_of(name: &str, data: &str) -> String {
        read(&event(name, data)).unwrap_err().to_string()
    }

    #[test]
    fn pings_unknown_names_and_nameless_events_are_ignored_unread() {
        for name in ["ping", "later_addition", "", "message_start "] {
            assert!(
                matches!(read(&event(name, "\0{")), Ok(Incoming::Ignored)),
                "{name:?}"
            );
        }
    }

    #[test]
    fn the_json_of_a_known_event_is_kept_byte_for_byte() {
        let data =
            r#"{"type": "content_block_stop","index":0 , "extra":[1.50,{"b":1,"a":"ü\u00fc"}]   }"#;
        assert_eq!(json_of("content_block_stop", data), data);
    }

    #[test]
    fn json_over_several_data_lines_becomes_one_line_with_the_same_meaning() {
        let json = json_of(
            "content_block_stop",
            "{\n\"type\":\"content_block_stop\",\n\"index\":0}",
        );
        assert_eq!(json, r#"{ "type":"content_block_stop", "index":0}"#);
    }

    #[test]
    fn a_raw_line_break_inside_a_string_is_malformed_and_not_repaired() {
        let data = "{\"type\":\"message_stop\",\"note\":\"a\nb\"}";
        assert_eq!(
            error_of("message_stop", data),
            "the data of a message_stop event is malformed"
        );
    }

    #[test]
    fn a_known_event_that_is_not_its_json_is_malformed() {
        for data in [
            "",
            "{",
            "{}",
            "{\"type\":\"nonsense\"}",
            "{\"type\":\"message_stop\"} x",
            "\0",
        ] {
            assert!(
                matches!(
                    read(&event("message_stop", data)),
                    Err(EventError::Malformed { .. })
                ),
                "{data:?}",
            );
        }
    }

    #[test]
    fn an_array_is_no_event() {
        let message = error_of("message_stop", "[\"message_stop\"]");
        assert_eq!(
            message,
            "the data of a message_stop event is not a JSON object"
        );
    }

    #[test]
    fn a_type_that_differs_from_the_name_is_an_error() {
        let message = error_of("message_stop", r#"{"type":"content_block_stop","index":0}"#);
        assert_eq!(
            message,
            "a message_stop event carries the type content_block_stop"
        );
    }

    #[test]
    fn deep_json_is_an_error_and_not_a_stack_overflow() {
        let deep = format!(
            r#"{{"type":"message_stop","x":{}{}}}"#,
            "[".repeat(200_000),
            "]".repeat(200_000),
        );
        assert!(matches!(
            read(&event("message_stop", &deep)),
            Err(EventError::Malformed { .. })
        ));
    }

    #[test]
    fn data_that_is_not_utf8_is_an_error_in_a_known_event_only() {
        let bytes = |name: &str| sse::Event {
            name: name.into(),
            data: vec![b'"', 0xff, b'"'],
        };
        assert!(matches!(
            read(&bytes("message_stop")),
            Err(EventError::NotUtf8 { .. })
        ));
        assert!(matches!(read(&bytes("ping")), Ok(Incoming::Ignored)));
    }

    #[test]
    fn an_error_event_carries_the_providers_words() {
        let data = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let Ok(Incoming::Error(detail)) = read(&event("error", data)) else {
            panic!()
        };
        assert_eq!(detail.kind, "overloaded_error");
        assert_eq!(detail.message, "Overloaded");
    }

    #[test]
    fn an_unreadable_error_event_is_still_an_error() {
        let Ok(Incoming::Error(detail)) = read(&event("error", "nonsense")) else {
            panic!()
        };
        assert_eq!(detail, ErrorDetail::default());
    }
}
