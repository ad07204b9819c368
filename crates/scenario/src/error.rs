//! Errors of scenarios.

use super::fault::MAX_FAULTS;
use super::file::MAX_ANSWERS;
use super::limits::{MAX_BLOCKS, MAX_DELTAS, MAX_PINGS, MAX_TEXT_BYTES};
use super::pacing::{MAX_CUTS, MAX_DELAY};
use super::reply::ELSEWHERE;

/// Reason why a scenario is rejected.
#[allow(missing_docs, reason = "the fields are named in each message")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// `text`, or an entry of the list `deltas`, is empty.
    #[error("the answer has no text")]
    NoText,
    /// The text is too long.
    #[error("the text has {bytes} bytes; at most {MAX_TEXT_BYTES} are allowed")]
    LongText { bytes: usize },
    /// There are more deltas than characters, or none.
    #[error("`deltas` is {deltas}; with {characters} characters of text it must be 1 to {most}", most = (*characters).min(MAX_DELTAS))]
    Deltas { deltas: usize, characters: usize },
    /// The list of deltas, joined, differs from `text`.
    #[error("the list `deltas` does not add up to `text`; remove `text`, or make them equal")]
    Disagree,
    /// There is no block, or there are too many.
    #[error("`blocks` has {blocks} blocks; 1 to {MAX_BLOCKS} are allowed")]
    Blocks { blocks: usize },
    /// The stop sequence has no matching stop reason, or the reverse.
    #[error("`stop_sequence` goes with `stop_reason = \"stop_sequence\"`, and only with it")]
    StopSequence,
    /// A piece of the body has no byte.
    #[error(
        "a piece of the body has at least 1 byte; `chunk_bytes` and each cut must be at least 1"
    )]
    NoChunk,
    /// The body is cut in more than one way.
    #[error("`chunk_bytes`, `chunk_cuts` and `chunk_seed` exclude each other")]
    TwoChunkings,
    /// There is no cut, or there are too many.
    #[error("`chunk_cuts` names {cuts} cuts; 1 to {MAX_CUTS} are allowed")]
    Cuts { cuts: usize },
    /// The body has no place for a named cut.
    #[error("`chunk_cuts` has `{cut}`, but the body has no such place")]
    NoSuchCut { cut: &'static str },
    /// A delay between pieces is set, but the body is not cut.
    #[error("`chunk_delay_ms` needs `chunk_bytes`, `chunk_cuts` or `chunk_seed`")]
    ChunkDelay,
    /// A delay is too long.
    #[error("`{key}` is {ms}; at most {most} is allowed", most = MAX_DELAY.as_millis())]
    LongDelay { key: &'static str, ms: u64 },
    /// There are too many pings or unknown events.
    #[error("`{key}` is {events}; at most {MAX_PINGS} are allowed")]
    Many { key: &'static str, events: u32 },
    /// There are too many faults.
    #[error("`faults` has {faults} entries; at most {MAX_FAULTS} are allowed")]
    Faults { faults: usize },
    /// An event number is 0.
    #[error("expected `nth` of at least 1, found 0: `nth` counts from 1")]
    Nth,
    /// An event number is set, but no event.
    #[error("`nth` needs the name of the event that it counts")]
    NthOfNothing,
    /// `index` is set without the fault `wrong-index`, or the reverse.
    #[error("`index` goes with the fault `wrong-index`, and only with it")]
    Index,
    /// The event does not have the field that the fault changes.
    #[error("`{event}` has no `{key}` to change")]
    NoField {
        event: &'static str,
        key: &'static str,
    },
    /// The stream does not have the event, or not at this point.
    #[error("`{key}` names `{event}` number {nth}, but the stream has no such event there")]
    NoEvent {
        key: &'static str,
        event: &'static str,
        nth: usize,
    },
    /// The place is an event, but the answer has no events.
    #[error("only a message has events; use `at` or `byte`")]
    EventOfNothing,
    /// No place is named, or more than one.
    #[error("expected exactly one place: `at`, `byte`, `after` or `inside`")]
    OnePlace,
    /// The answer has two endings.
    #[error("`cut` and `stall` exclude each other")]
    CutAndStall,
    /// The body would end before the head.
    #[error("a body cannot end before its head; use `by = \"fin\"` or `by = \"reset\"`")]
    EndNowhere,
    /// The status is not allowed for this answer.
    #[error("the status of `{key}` is {status}; it must be {allowed}")]
    Status {
        key: &'static str,
        status: u16,
        allowed: &'static str,
    },
    /// The target of a redirect is not a URL.
    #[error(
        "`to` is `{to}`; it must be a full http:// or https:// address, or `{ELSEWHERE}` and a path"
    )]
    Address { to: String },
    /// The content type cannot be a header value.
    #[error("`content_type` must be visible ASCII")]
    ContentType,
    /// Two keys exclude each other.
    #[error("`{key}` does not go with `{other}`; remove one of the two")]
    Beside {
        key: &'static str,
        other: &'static str,
    },
    /// The name is not that of a built-in scenario.
    #[error("there is no scenario `{name}`")]
    Unknown { name: String },
    /// A sequence contains a sequence.
    #[error("`then` inside `then` is not allowed; write all answers in one list")]
    ThenInThen,
    /// There are too many answers.
    #[error("the scenario has {answers} answers; at most {MAX_ANSWERS} are allowed")]
    Answers { answers: usize },
}
