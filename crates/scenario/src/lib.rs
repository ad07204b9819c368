//! What the stub answers and how the answer travels, as a case file states it.
//!
//! Owns the `[stub]` table: its wire form, its limits, its defaults, and the built-in scenarios. Knows
//! nothing of HTTP; how an answer becomes bytes is the room of [`crate::script`].
//!
//! All keys are optional; an empty table is one text delta, no pieces, no delays, no pings: the six events
//! of the observed turn.
//!
//! ```toml
//! [stub]
//! scenario = "error-529"     # a whole answer by its name; then no other key but `then` beside it
//!
//! # What the assistant says.
//! text = "Hello."
//! deltas = 3                 # in that many deltas, or a list: ["Hel", "lo."]
//! stop_reason = "end_turn"   # by default what the last block asks for
//! stop_sequence = "END"      # if that was the reason
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
//! # How it travels.
//! first_delay_ms = 0         # before the answer starts
//! event_delay_ms = 0         # between events
//! chunk_delay_ms = 0         # between pieces of the body
//! chunk_bytes = 7            # pieces of 7 bytes, wherever they cut; or
//! chunk_cuts = [10, "mid-utf8", "mid-crlf", "event-data"]   # cut at these places; or
//! chunk_seed = 1             # pieces of 1 to 64 bytes, the same for the same number
//!
//! # How the events are spelt.
//! framing = { line_end = "lf|crlf|cr", bom = false, comments = false, data_space = true, last_blank_line = true }
//!
//! # What is wrong with single events, in this order. `nth` counts the events of that name, from 1. Faults:
//! # duplicate, missing, early (before its predecessor), malformed-json, invalid-utf8, no-type, no-event-line,
//! # no-usage, wrong-index.
//! faults = [{ fault = "wrong-index", event = "content_block_delta", nth = 2, index = 7 }]
//! error_event = { after = "message_start", nth = 1, type = "overloaded_error", message = "Overloaded" }
//!
//! # Where the answer breaks off. One of: at = "before-head" or "after-head", after = EVENT, inside = EVENT,
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
//! A message that is asked for without `stream` is answered with the same content as one JSON value; what
//! concerns events does not apply to it, and `at` and `byte` do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod builtin;
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

/// How the provider answers message requests: the first, the second, and so on; the last answer repeats.
///
/// Parsed from the `[stub]` table of a case, whose keys the [module](self) lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "file::AnswerFile", into = "file::AnswerFile")]
#[schemars(
    rename = "Stub",
    description = "What the provider stub answers to the message request, and how the answer travels. Every key is optional."
)]
pub struct Scenario {
    first: Answer,
    then: Vec<Answer>,
}

/// The name of a built-in scenario, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What `scenario = "…"` takes.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub(crate) says: Says,
    pub(crate) chunking: Option<Chunking>,
    pub(crate) pace: Pace,
    pub(crate) ending: Option<Ending>,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Message(Turn),
    Error(reply::ErrorAnswer),
    Redirect(reply::Redirect),
    Literal(reply::Literal),
}

impl Scenario {
    /// The built-in scenario of that name.
    pub fn named(name: &str) -> Option<Self> {
        builtin::named(name)
    }

    /// The built-in scenarios, the default one first.
    pub fn names() -> impl Iterator<Item = Summary> {
        builtin::names()
    }

    /// Whether an answer leads to the second host: a run then needs one.
    pub fn needs_elsewhere(&self) -> bool {
        let leads_elsewhere = |answer: &Answer| matches!(&answer.says, Says::Redirect(redirect) if matches!(redirect.to, Address::Elsewhere(_)));
        leads_elsewhere(&self.first) || self.then.iter().any(leads_elsewhere)
    }

    /// The answer to the message request with that many before it.
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
            says: Says::Message(Turn::default()),
            chunking: None,
            pace: Pace::default(),
            ending: None,
        }
    }
}

#[cfg(test)]
mod tests;
