//! Encoder of events as the lines of an event stream.

use super::chunks::{Body, Span};
use super::stream_faults::FaultyEvent;
use crate::Framing;

/// Writes the events, and records the position of each.
pub(super) fn write(events: &[FaultyEvent<'_>], framing: Framing) -> Body {
    let line_end = framing.line_end.bytes();
    let mut bytes = Vec::new();
    let mut spans = Vec::with_capacity(events.len());
    if framing.bom {
        bytes.extend_from_slice("\u{feff}".as_bytes());
    }
    for faulty in events {
        // A byte order mark belongs to the first event.
        let start = if spans.is_empty() { 0 } else { bytes.len() };
        if framing.comments {
            bytes.extend_from_slice(b": the stub is here");
            bytes.extend_from_slice(line_end);
        }
        if !faulty.is_nameless {
            bytes.extend_from_slice(b"event: ");
            bytes.extend_from_slice(faulty.event.name().as_bytes());
            bytes.extend_from_slice(line_end);
        }
        let data = bytes.len();
        bytes.extend_from_slice(if framing.data_space {
            b"data: "
        } else {
            b"data:"
        });
        bytes.extend_from_slice(&faulty.data());
        let middle = data + (bytes.len() - data) / 2;
        bytes.extend_from_slice(line_end);
        bytes.extend_from_slice(line_end);
        spans.push(Span {
            name: faulty.event.known(),
            start,
            data,
            middle,
            end: bytes.len(),
        });
    }
    if !framing.last_blank_line {
        bytes.truncate(bytes.len().saturating_sub(line_end.len()));
    }
    Body { bytes, spans }
}
