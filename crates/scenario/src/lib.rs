//! Scenarios: the answers of the provider stub and the way they are sent, as a case file states them.
//!
//! Owns the `[stub]` table: its file form, limits, defaults, and the built-in scenarios. [`script`] turns an answer
//! into bytes. This crate knows no HTTP server.
//!
//! All keys are optional. An empty table is one text delta without cuts, delays or pings: the six events of the
//! observed turn.
//!
//! ```toml
//! [stub]
//! scenario = "error-529"     # a complete answer by its name; only `then` may be set with it
//!
//! # Content.
//! text = "Hello."
//! deltas = 3                 # this number of deltas, or a list: ["Hel", "lo."]
//! stop_reason = "end_turn"   # by default it follows from the last block
//! stop_sequence = "END"      # for the stop reason "stop_sequence"
//! pings = 1                  # `ping` events after the first content_block_start
//! unknown_events = 1         # events of a kind that no client knows, after the pings
//!
//! # Instead of `text` and `deltas`: blocks.
//! blocks = [
//!     { type = "thinking", thinking = "Let me see.", deltas = 2, signature = "c2ln" },
//!     { type = "text", text = "Hello.", deltas = 2 },
//!     { type = "tool_use", name = "get_weather", input = { city = "Bern" }, deltas = 3, id = "toolu_1" },
//! ]
//!
//! # Pace and pieces.
//! first_delay_ms = 0         # before the answer starts
//! event_delay_ms = 0         # between events
//! chunk_delay_ms = 0         # between pieces of the body
//! chunk_bytes = 7            # pieces of 7 bytes; or
//! chunk_cuts = [10, "mid-utf8", "mid-crlf", "event-data"]   # cut at these places; or
//! chunk_seed = 1             # pieces of 1 to 64 bytes, equal in each run with this seed
//!
//! # Framing of the events. `line_end` is "lf", "crlf" or "cr".
//! framing = { line_end = "crlf", bom = false, comments = false, data_space = true, last_blank_line = true }
//!
//! # Faults of single events, applied in the order of this list. `nth` counts the events of that name, from 1. Faults:
//! # duplicate, missing, early (before its predecessor), malformed-json, invalid-utf8, no-type, no-event-line,
//! # no-usage, wrong-index.
//! faults = [{ fault = "wrong-index", event = "content_block_delta", nth = 2, index = 7 }]
//! error_event = { after = "message_start", nth = 1, type = "overloaded_error", message = "Overloaded" }
//!
//! # Early end of the answer. One of: at = "before-head" or "after-head", after = EVENT, inside = EVENT,
//! # byte = N of the body. A cut is by "fin", "reset" or "end" (the body ends as if it were whole).
//! cut = { after = "content_block_delta", nth = 2, by = "reset" }
//! stall = { at = "before-head" }
//!
//! # Instead of a message:
//! error = { status = 429, type = "rate_limit_error", message = "…", retry_after_s = 2, should_retry = true }
//! redirect = { status = 307, to = "{elsewhere}/v1/messages" }   # or a full URL
//! literal = { status = 200, content_type = "text/html", body = "<p>Sign in</p>" }
//!
//! # The answers to the second, third … message request; the last one repeats.
//! [[stub.then]]
//! scenario = "text"
//! ```
//!
//! A request without `stream` is answered with the same content as one JSON value. Keys about events do not apply to
//! that answer; `at` and `byte` do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod builtin;
mod closed_set;
mod content;
mod error;
mod fault;
mod file;
mod framing;
mod limits;
pub mod messages;
mod pacing;
mod reply;
pub mod script;

pub(crate) use content::{Block, Turn};
pub use error::ScenarioError;
pub use fault::Hangup;
pub use fault::MAX_FAULTS;
pub(crate) use fault::{BreakPoint, Edit, Ending, EventName, Target};
pub use file::MAX_ANSWERS;
pub(crate) use framing::Framing;
pub use limits::{MAX_BLOCKS, MAX_DELTAS, MAX_PINGS, MAX_TEXT_BYTES};
pub(crate) use pacing::{Chunking, CutAt, CutName, Pace};
pub use pacing::{MAX_CUTS, MAX_DELAY};
pub(crate) use reply::Address;
pub use reply::ELSEWHERE;
pub use reply::ErrorType;

/// Answers of the provider to the first, second and later message requests; the last answer repeats.
///
/// Parsed from the `[stub]` table of a case, whose keys the [crate] lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "file::AnswerFile", into = "file::AnswerFile")]
#[schemars(
    rename = "Stub",
    description = "Answers of the provider stub to message requests, and the way they are sent. Every key is optional."
)]
pub struct Scenario {
    first: Answer,
    then: Vec<Answer>,
}

/// Name and description of a built-in scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Value of the key `scenario`.
    pub name: &'static str,
    /// Description in one line.
    pub summary: &'static str,
}

/// One answer of the stub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub(crate) reply: Reply,
    pub(crate) chunking: Option<Chunking>,
    pub(crate) pace: Pace,
    pub(crate) ending: Option<Ending>,
}

/// Content of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Message(Turn),
    Error(reply::ErrorAnswer),
    Redirect(reply::Redirect),
    Literal(reply::Literal),
}

impl Scenario {
    /// Returns the built-in scenario of that name.
    pub fn named(name: &str) -> Option<Self> {
        builtin::named(name)
    }

    /// Lists the built-in scenarios, the default one first.
    pub fn names() -> impl Iterator<Item = Summary> {
        builtin::names()
    }

    /// Returns true if an answer redirects to the second host, which the run must then start.
    pub fn needs_elsewhere(&self) -> bool {
        let leads_elsewhere = |answer: &Answer| matches!(&answer.reply, Reply::Redirect(redirect) if matches!(redirect.to, Address::Elsewhere(_)));
        leads_elsewhere(&self.first) || self.then.iter().any(leads_elsewhere)
    }

    /// Returns the answer to the message request that `before` other ones preceded.
    pub fn answer(&self, before: usize) -> &Answer {
        let then = before.checked_sub(1).and_then(|index| {
            let last = self.then.len().checked_sub(1)?;
            self.then.get(index.min(last))
        });
        then.unwrap_or(&self.first)
    }

    fn into_answers(self) -> Vec<Answer> {
        let mut answers = vec![self.first];
        answers.extend(self.then);
        answers
    }
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            reply: Reply::Message(Turn::default()),
            chunking: None,
            pace: Pace::default(),
            ending: None,
        }
    }
}

#[cfg(test)]
mod tests;
