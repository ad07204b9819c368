//! Why a scenario is refused.

use super::fault::MAX_FAULTS;
use super::file::MAX_ANSWERS;
use super::limits::{MAX_BLOCKS, MAX_DELTAS, MAX_PINGS, MAX_TEXT_BYTES};
use super::pacing::{MAX_CUTS, MAX_DELAY};
use super::reply::ELSEWHERE;

/// Why a scenario is refused.
#[allow(missing_docs, reason = "the fields are named in each message")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// `text`, or the list of `deltas`, holds no character.
    #[error("the answer has no text")]
    NoText,
    /// The text is too long.
    #[error("the text has {bytes} bytes; at most {MAX_TEXT_BYTES} are allowed")]
    LongText { bytes: usize },
    /// The number of deltas does not fit the text.
    #[error("`deltas` is {deltas}; with {characters} characters of text it must be 1 to {most}", most = (*characters).min(MAX_DELTAS))]
    Deltas { deltas: usize, characters: usize },
    /// A list of deltas that does not add up to `text`.
    #[error("the list `deltas` does not add up to `text`; leave `text` away, or make them agree")]
    Disagree,
    /// No block, or too many.
    #[error("`blocks` has {blocks} blocks; 1 to {MAX_BLOCKS} are allowed")]
    Blocks { blocks: usize },
    /// A sequence without its reason, or the reverse.
    #[error("`stop_sequence` goes with `stop_reason = \"stop_sequence\"`, and only with it")]
    StopSequence,
    /// Pieces of zero bytes.
    #[error(
        "a piece of the body has at least 1 byte; `chunk_bytes` and each cut must be at least 1"
    )]
    NoChunk,
    /// More than one way to cut the body.
    #[error("`chunk_bytes`, `chunk_cuts` and `chunk_seed` exclude each other")]
    TwoChunkings,
    /// No cut, or too many.
    #[error("`chunk_cuts` names {cuts} cuts; 1 to {MAX_CUTS} are allowed")]
    Cuts { cuts: usize },
    /// A named cut that the body has no place for.
    #[error("`chunk_cuts` names `{cut}`, and the body has no such place")]
    NoSuchCut { cut: &'static str },
    /// A wait between pieces, but no pieces.
    #[error("`chunk_delay_ms` needs `chunk_bytes`, `chunk_cuts` or `chunk_seed`")]
    ChunkDelay,
    /// A delay is too long.
    #[error("`{key}` is {ms}; at most {most} is allowed", most = MAX_DELAY.as_millis())]
    LongDelay { key: &'static str, ms: u64 },
    /// Too many pings or unknown events.
    #[error("`{key}` is {events}; at most {MAX_PINGS} are allowed")]
    Many { key: &'static str, events: u32 },
    /// Too many faults.
    #[error("`faults` has {faults} entries; at most {MAX_FAULTS} are allowed")]
    Faults { faults: usize },
    /// Events are counted from 1.
    #[error("`nth` counts from 1")]
    Nth,
    /// A count without an event.
    #[error("`nth` counts events; it needs the event that it counts")]
    NthOfNothing,
    /// `index` without the fault that takes it, or the reverse.
    #[error("`index` goes with the fault `wrong-index`, and only with it")]
    Index,
    /// A field that the event does not have.
    #[error("`{event}` has no `{key}` that could be wrong")]
    NoField {
        event: &'static str,
        key: &'static str,
    },
    /// An event that the stream does not have at this point.
    #[error("`{key}` names `{event}` number {nth}, and the stream has no such event there")]
    NoEvent {
        key: &'static str,
        event: &'static str,
        nth: usize,
    },
    /// A place in the events of an answer that has none.
    #[error("only a message has events; use `at` or `byte`")]
    EventOfNothing,
    /// No place, or more than one.
    #[error("name one place: `at`, `byte`, `after` or `inside`")]
    OnePlace,
    /// Two ends of one answer.
    #[error("`cut` and `stall` exclude each other")]
    CutAndStall,
    /// A body that ends before it begins.
    #[error("before the head no body can end; use `by = \"fin\"` or `by = \"reset\"`")]
    EndNowhere,
    /// A status that the answer cannot have.
    #[error("the status of `{key}` is {status}; it must be {allowed}")]
    Status {
        key: &'static str,
        status: u16,
        allowed: &'static str,
    },
    /// A redirect to nowhere.
    #[error(
        "`to` is `{to}`; it must be a full http:// or https:// address, or `{ELSEWHERE}` and a path"
    )]
    Address { to: String },
    /// A content type that no header can hold.
    #[error("`content_type` must be visible ASCII")]
    ContentType,
    /// Two keys that exclude each other.
    #[error("`{key}` does not go with `{other}`; remove one of the two")]
    Beside {
        key: &'static str,
        other: &'static str,
    },
    /// No built-in scenario of that name.
    #[error("there is no scenario `{name}`")]
    Unknown { name: String },
    /// A sequence in a sequence.
    #[error("`then` cannot stand inside `then`; write all answers in one list")]
    ThenInThen,
    /// Too many answers.
    #[error("the scenario has {answers} answers; at most {MAX_ANSWERS} are allowed")]
    Answers { answers: usize },
}
