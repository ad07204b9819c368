//! Journal of the stub: one entry for each event of a run, in order.
//!
//! These are wire types, one JSON object per line. The stub writes them; the runner reads them, and so can readers of
//! the file that a stub writes without a runner. Nothing here does I/O.
//!
//! Most entries share these fields. `connection` and `request` count from 1 over the whole run; `request` is 0 in an
//! [`Entry::Sighting`] before the first request of a connection. `at_us` is microseconds of `CLOCK_MONOTONIC`, a clock
//! that other processes share.
//!
//! Every byte read from a connection is part of a head, of a body or of the framing that a body needs. All other bytes
//! are counted in `unaccounted` of [`Entry::Closed`]:
//!
//! - empty lines before a request
//! - white space around header values, except one space before each, as the first header has it
//! - leading zeros of Content-Length
//! - chunk extensions, trailers, leading zeros of chunk sizes, and their letters in another case than the first
//! - a malformed or truncated head, and everything after a malformed head or malformed framing
//!
//! Urgent data stays in its place in the stream and counts as the byte that it is.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Replacement for the credential of the run in the value of a credential header.
pub const REDACTED: &str = "<redacted>";

/// One line of the journal.
#[allow(
    missing_docs,
    reason = "the module explains the shared fields, and the types the others"
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
    /// The first byte of a request was read. If a [`Control`] side exists, the answer waits for [`Control::Go`] with
    /// this request.
    Began {
        connection: u64,
        request: u64,
        at_us: u64,
    },
    /// The head of a request was read completely, or its connection ended inside it.
    Head {
        connection: u64,
        request: u64,
        at_us: u64,
        head: Head,
    },
    /// The body of a request was read completely, or its connection ended inside it.
    Body {
        connection: u64,
        request: u64,
        at_us: u64,
        body: Body,
    },
    /// The status line of a response was written.
    Answered {
        connection: u64,
        request: u64,
        at_us: u64,
        status: u16,
    },
    /// One provider event was sent.
    Sent {
        connection: u64,
        request: u64,
        at_us: u64,
        event: String,
        data: Value,
    },
    /// The credential of the run was found in a location where it does not belong.
    Sighting {
        connection: u64,
        request: u64,
        at_us: u64,
        place: String,
    },
    /// A request was answered before [`Control::Go`] arrived, so its order is not proved.
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
    /// A socket of the ended client still held bytes at the end of the run. It belongs to the connection with this
    /// peer, or to one that was never accepted.
    Held {
        at_us: u64,
        peer: SocketAddr,
        #[serde(default)]
        host: Host,
        bytes: u64,
    },
    /// Connections beyond the limit of the run were closed unread; the count so far. Written at the first one and, if
    /// there were more, again before [`Entry::Done`].
    Refused { at_us: u64, connections: u64 },
    /// Answer to [`Control::Finish`]: every connection was read to its end, and no entry follows.
    Done { at_us: u64 },
}

/// Host on which a connection was accepted, and so the server that the client addressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Host {
    /// The provider that the client is configured for.
    #[default]
    Stub,
    /// The second host, which only a redirect of the provider names.
    Elsewhere,
}

/// Head of one request, as received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Head {
    /// A well-formed head.
    Request {
        /// Method, as received.
        method: String,
        /// Target up to the first `?`; in path and query, a backslash is `\\`.
        path: String,
        /// Text after the first `?`; `None` without a `?`.
        query: Option<String>,
        /// `HTTP/1.1` or `HTTP/1.0`.
        version: String,
        /// Names as received, in order, and values. A byte that is not UTF-8 is `\xNN`, and a backslash is `\\`.
        ///
        /// The credential of the run is `<redacted>`, and any other value is `<N bytes, sha256 HEX>`, in these headers:
        /// `x-api-key`, `authorization`, `x-goog-api-key`, `api-key`, `proxy-authorization`, `cookie`, and the header
        /// where the credential belongs.
        headers: Vec<(String, String)>,
    },
    /// Bytes that are not a request head, with the reason.
    Malformed {
        /// Reason, a fixed text without any text of the client.
        reason: String,
    },
    /// The connection ended inside the head.
    Incomplete,
}

/// Body of one request, without its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Body {
    /// Length in bytes, without chunk framing.
    pub bytes: u64,
    /// SHA-256 of these bytes, lower-case hex.
    pub sha256: String,
    /// True if the whole body arrived.
    pub complete: bool,
    /// Content of the body.
    pub content: Content,
}

impl Body {
    /// Returns the shape of a complete JSON body without duplicate keys.
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

/// Content of a body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// An empty body.
    Empty,
    /// One JSON value. Each string is replaced by `{"bytes", "sha256"}`, except names under the keys `type` and `role`.
    /// Numbers, booleans and null are kept. See [`crate::shape`].
    Json {
        /// The value, without its text.
        shape: Value,
    },
    /// JSON with a duplicate key in an object, which readers may interpret in two ways.
    DuplicateKey {
        /// Path of the key: keys and indices, each after a `/`.
        path: String,
    },
    /// Bytes that are not JSON, or JSON beyond a limit on depth or size.
    Other {
        /// Reason, a fixed text without any text of the client.
        reason: String,
    },
}

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The peer closed the connection between requests.
    Closed,
    /// The peer closed the connection inside a request.
    Truncated,
    /// The peer reset the connection.
    Reset,
    /// The stub closed the connection: after its last answer, after a malformed request, at a limit, or as the scenario
    /// states.
    ByStub,
    /// The peer had neither closed nor reset the connection when the run was frozen, even if the stub had ended its own
    /// side. All bytes that had arrived were read.
    Open,
}

/// Commands from the reader of the journal to the stub, one JSON object per line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "control", rename_all = "snake_case")]
pub enum Control {
    /// Permission to answer `request`: the state of the client at its first byte is recorded.
    Go {
        /// The request that [`Entry::Began`] named.
        request: u64,
    },
    /// The client has ended: read all bytes that arrived, journal them, and write [`Entry::Done`].
    Finish,
}
