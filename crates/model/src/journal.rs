//! What one run of the stub saw, entry by entry, in the order in which it happened.
//!
//! These are the types of the journal's wire: one JSON object a line. The stub writes them; the runner
//! (and whoever reads the file of a stub that runs alone) reads them. Nothing in here does I/O.
//!
//! The fields that most entries share are explained once, here: `connection` and `request` count from 1
//! over the whole run (`request` is 0 in a [`Entry::Sighting`] before the first request of a connection);
//! `at_us` is microseconds of `CLOCK_MONOTONIC`, so that entries can be put on one clock with what other
//! processes saw.
//!
//! Every byte that a connection read is part of a head, a body or the framing that a body needs, or it is
//! counted in `unaccounted` of [`Entry::Closed`]: empty lines before a request; white space around header
//! values, but one space before each, as the first has it; leading zeros of Content-Length; chunk extensions,
//! trailers, leading zeros of chunk sizes, their letters in another case than the first; a malformed or cut-off
//! head, and everything after a malformed head or malformed framing. Urgent data stays in its place in the stream
//! and is counted as the byte it is.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Replacement of the run's credential in the value of a credential header.
pub const REDACTED: &str = "<redacted>";

/// One line of the journal.
#[allow(
    missing_docs,
    reason = "the shared fields are explained at the top, the others where they stand"
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// A connection was accepted.
    Accepted {
        connection: u64,
        at_us: u64,
        peer: SocketAddr,
        #[serde(default)]
        host: Host,
    },
    /// The first byte of a request was read. Where a [`Control`] side listens, the answer is held until
    /// it says [`Control::Go`] for this request.
    Began {
        connection: u64,
        request: u64,
        at_us: u64,
    },
    /// The head of a request was read to its end, or its connection ended inside it.
    Head {
        connection: u64,
        request: u64,
        at_us: u64,
        head: Head,
    },
    /// The body of a request was read to its end, or its connection ended inside it.
    Body {
        connection: u64,
        request: u64,
        at_us: u64,
        body: Body,
    },
    /// The first line of an answer was written.
    Answered {
        connection: u64,
        request: u64,
        at_us: u64,
        status: u16,
    },
    /// One provider event was handed to the connection.
    Sent {
        connection: u64,
        request: u64,
        at_us: u64,
        event: String,
        data: Value,
    },
    /// The credential of the run was found where it does not belong.
    Sighting {
        connection: u64,
        request: u64,
        at_us: u64,
        place: String,
    },
    /// A request was answered before [`Control::Go`] arrived: its order is not proved.
    Unordered {
        connection: u64,
        request: u64,
        at_us: u64,
    },
    /// The connection ended.
    Closed {
        connection: u64,
        at_us: u64,
        bytes: u64,
        unaccounted: u64,
        requests: u64,
        end: End,
    },
    /// A socket of the ended client still held bytes when the run ended: of the connection with this peer, or of
    /// one that was never accepted.
    Held {
        at_us: u64,
        peer: SocketAddr,
        #[serde(default)]
        host: Host,
        bytes: u64,
    },
    /// Connections beyond the limit of the run were closed unread: how many so far. Written at the first
    /// one and, when there were more, once more before [`Entry::Done`].
    Refused { at_us: u64, connections: u64 },
    /// After [`Control::Finish`]: every connection was read to its end and nothing follows.
    Done { at_us: u64 },
}

/// Where a connection was accepted, and so what the client took for its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Host {
    /// The provider that the client was given.
    #[default]
    Stub,
    /// The second host, to which only an answer of the provider can have led.
    Elsewhere,
}

/// The head of one request as it stood on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Head {
    /// A head that follows the grammar.
    Request {
        /// As spelt.
        method: String,
        /// The target up to the first `?`; a backslash in it and in the query is `\\`.
        path: String,
        /// What follows the first `?`; `None` without one.
        query: Option<String>,
        /// `HTTP/1.1` or `HTTP/1.0`.
        version: String,
        /// Names as spelt, in order. In `x-api-key`, `authorization`, `x-goog-api-key`, `api-key`,
        /// `proxy-authorization`, `cookie` and the header where it belongs the credential of the run is `<redacted>`, and any other value `<N bytes, sha256 HEX>`. Other bytes than UTF-8
        /// are `\xNN`, and a backslash is `\\`.
        headers: Vec<(String, String)>,
    },
    /// Bytes that are no request, with the reason.
    Malformed {
        /// A fixed text; it never quotes the client.
        reason: String,
    },
    /// The connection ended before the head did.
    Incomplete,
}

/// The body of one request, without its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Body {
    /// Decoded length (chunk framing taken away).
    pub bytes: u64,
    /// SHA-256 of the decoded bytes, lower-case hex.
    pub sha256: String,
    /// The whole body arrived.
    pub complete: bool,
    /// What the bytes are.
    pub content: Content,
}

impl Body {
    /// The shape of a body that arrived whole and is JSON without duplicate keys.
    pub fn whole_shape(&self) -> Option<&Value> {
        match &self.content {
            Content::Json { shape } if self.complete => Some(shape),
            Content::Json { .. }
            | Content::Empty
            | Content::DuplicateKey { .. }
            | Content::Other { .. } => None,
        }
    }
}

/// What the bytes of a body are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// No byte.
    Empty,
    /// One JSON value: each string is replaced by `{"bytes", "sha256"}`, except names under the keys `type`
    /// and `role`; numbers, booleans and null are kept. See [`crate::shape`].
    Json {
        /// The value without its text.
        shape: Value,
    },
    /// JSON in which an object names a key twice, which readers may understand in two ways.
    DuplicateKey {
        /// The keys and indices that lead to it, each after a `/`.
        path: String,
    },
    /// Not JSON, or nested or long beyond the limit.
    Other {
        /// A fixed text; it never quotes the client.
        reason: String,
    },
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The peer closed, between requests.
    Closed,
    /// The peer closed inside a request.
    Truncated,
    /// The peer reset the connection.
    Reset,
    /// The stub closed: after an answer that said so, a malformed request, a limit, or where the scenario ends
    /// the connection.
    ByStub,
    /// Neither closed nor reset when the run was frozen, also where the stub had ended its own side; everything
    /// that had arrived was read.
    Open,
}

/// What the other side of the journal tells the stub: one JSON object a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "control", rename_all = "snake_case")]
pub enum Control {
    /// The state of the client at the first byte of `request` is recorded; its answer may go out.
    Go {
        /// The request that [`Entry::Began`] named.
        request: u64,
    },
    /// The client has ended: read everything that arrived, journal it, write [`Entry::Done`].
    Finish,
}
