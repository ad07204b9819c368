//! Faults of an answer: in single events of its stream, and at an early end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ScenarioError;
use super::reply::ErrorType;
use crate::closed_set;

/// Largest number of event faults in one answer.
pub const MAX_FAULTS: usize = 100;

closed_set! {
    /// Events that a place or a fault can name.
    pub(crate) enum EventName {
        MessageStart = "message_start",
        ContentBlockStart = "content_block_start",
        Ping = "ping",
        ContentBlockDelta = "content_block_delta",
        ContentBlockStop = "content_block_stop",
        MessageDelta = "message_delta",
        MessageStop = "message_stop",
    }
}

/// One event of a stream: number `nth` of this name, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) event: EventName,
    pub(crate) nth: usize,
}

/// A fault of one event. Faults are applied in order, each to the stream that the previous faults produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "FaultFile", into = "FaultFile")]
pub(crate) struct EventFault {
    pub(crate) target: Target,
    pub(crate) edit: Edit,
}

/// Change to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Send the event twice.
    Duplicate,
    /// Omit the event.
    Missing,
    /// Swap the event with the one before it.
    Early,
    /// Stop the JSON of the data line in the middle.
    MalformedJson,
    /// Insert a byte that is not UTF-8 at the end of the last string.
    InvalidUtf8,
    /// Omit `type` from the data.
    NoType,
    /// Omit the `event:` line.
    NoEventLine,
    /// Omit `usage` from the data.
    NoUsage,
    /// Replace the index of the block.
    WrongIndex(u32),
}

/// An `error` event that ends the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "ErrorEventFile", into = "ErrorEventFile")]
pub(crate) struct ErrorEvent {
    /// `None`: the error is the first event.
    pub(crate) after: Option<Target>,
    pub(crate) kind: ErrorType,
    pub(crate) message: String,
}

/// Early end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The connection ends.
    Cut { at: BreakPoint, by: Hangup },
    /// The body ends as if it were complete.
    Early { at: BreakPoint },
    /// No more bytes are sent until the client closes the connection or the run ends.
    Stall { at: BreakPoint },
}

/// The two ways in which the stub ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// Send FIN: bytes sent before it still arrive.
    Fin,
    /// Send RST.
    Reset,
}

/// A place in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BreakPoint {
    BeforeHead,
    AfterHead,
    /// After this number of bytes of the body.
    Byte(usize),
    After(Target),
    /// In the middle of the event.
    Inside(Target),
}

impl Ending {
    pub(crate) fn place(self) -> BreakPoint {
        match self {
            Self::Cut { at, .. } | Self::Early { at } | Self::Stall { at } => at,
        }
    }
}

/// A fault of one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FaultFile {
    /// The fault.
    fault: FaultWord,
    /// Name of the event.
    event: EventName,
    /// Number of the event among those of its name, from 1.
    #[schemars(range(min = 1))]
    nth: Option<usize>,
    /// Index of the block to write, for `wrong-index`.
    index: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum FaultWord {
    Duplicate,
    Missing,
    Early,
    MalformedJson,
    #[serde(rename = "invalid-utf8")]
    InvalidUtf8,
    NoType,
    NoEventLine,
    NoUsage,
    WrongIndex,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ErrorEventFile {
    /// The event before the error; by default the error is the first event.
    after: Option<EventName>,
    /// Number of the event among those of its name, from 1.
    #[schemars(range(min = 1))]
    nth: Option<usize>,
    /// Type of the error.
    r#type: Option<ErrorType>,
    /// Message of the error.
    message: Option<String>,
}

/// The table `cut` in its file form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CutFile {
    /// Before or after the head.
    at: Option<HeadPlace>,
    /// After this number of bytes of the body.
    byte: Option<usize>,
    /// After this event.
    after: Option<EventName>,
    /// In the middle of this event.
    inside: Option<EventName>,
    /// Number of the event among those of its name, from 1.
    #[schemars(range(min = 1))]
    nth: Option<usize>,
    /// `fin` ends the connection, `reset` resets it, and `end` ends the body as if it were complete.
    by: Option<CutWord>,
}

// Repeats the place of `CutFile`: below `flatten`, serde loses the line and the expected keys of an unknown key.
/// The table `stall` in its file form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StallFile {
    /// Before or after the head.
    at: Option<HeadPlace>,
    /// After this number of bytes of the body.
    byte: Option<usize>,
    /// After this event.
    after: Option<EventName>,
    /// In the middle of this event.
    inside: Option<EventName>,
    /// Number of the event among those of its name, from 1.
    #[schemars(range(min = 1))]
    nth: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum HeadPlace {
    BeforeHead,
    AfterHead,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CutWord {
    #[default]
    Fin,
    Reset,
    End,
}

impl Target {
    fn new(event: EventName, nth: Option<usize>) -> Result<Self, ScenarioError> {
        match nth.unwrap_or(1) {
            0 => Err(ScenarioError::Nth),
            nth => Ok(Self { event, nth }),
        }
    }
}

impl TryFrom<FaultFile> for EventFault {
    type Error = ScenarioError;

    fn try_from(file: FaultFile) -> Result<Self, ScenarioError> {
        use EventName::{
            ContentBlockDelta, ContentBlockStart, ContentBlockStop, MessageDelta, MessageStart,
        };
        let edit = match (file.fault, file.index) {
            (FaultWord::WrongIndex, Some(index)) => Edit::WrongIndex(index),
            (FaultWord::WrongIndex, None) | (_, Some(_)) => return Err(ScenarioError::Index),
            (FaultWord::Duplicate, None) => Edit::Duplicate,
            (FaultWord::Missing, None) => Edit::Missing,
            (FaultWord::Early, None) => Edit::Early,
            (FaultWord::MalformedJson, None) => Edit::MalformedJson,
            (FaultWord::InvalidUtf8, None) => Edit::InvalidUtf8,
            (FaultWord::NoType, None) => Edit::NoType,
            (FaultWord::NoEventLine, None) => Edit::NoEventLine,
            (FaultWord::NoUsage, None) => Edit::NoUsage,
        };
        let (fits, key) = match edit {
            Edit::WrongIndex(_) => (
                matches!(
                    file.event,
                    ContentBlockStart | ContentBlockDelta | ContentBlockStop
                ),
                "index",
            ),
            Edit::NoUsage => (matches!(file.event, MessageStart | MessageDelta), "usage"),
            Edit::Duplicate
            | Edit::Missing
            | Edit::Early
            | Edit::MalformedJson
            | Edit::InvalidUtf8
            | Edit::NoType
            | Edit::NoEventLine => (true, ""),
        };
        if !fits {
            let event = file.event.word();
            return Err(ScenarioError::NoField { event, key });
        }
        let target = Target::new(file.event, file.nth)?;
        Ok(Self { target, edit })
    }
}

impl From<EventFault> for FaultFile {
    fn from(fault: EventFault) -> Self {
        let (word, index) = match fault.edit {
            Edit::Duplicate => (FaultWord::Duplicate, None),
            Edit::Missing => (FaultWord::Missing, None),
            Edit::Early => (FaultWord::Early, None),
            Edit::MalformedJson => (FaultWord::MalformedJson, None),
            Edit::InvalidUtf8 => (FaultWord::InvalidUtf8, None),
            Edit::NoType => (FaultWord::NoType, None),
            Edit::NoEventLine => (FaultWord::NoEventLine, None),
            Edit::NoUsage => (FaultWord::NoUsage, None),
            Edit::WrongIndex(index) => (FaultWord::WrongIndex, Some(index)),
        };
        Self {
            fault: word,
            event: fault.target.event,
            nth: Some(fault.target.nth),
            index,
        }
    }
}

impl TryFrom<ErrorEventFile> for ErrorEvent {
    type Error = ScenarioError;

    fn try_from(file: ErrorEventFile) -> Result<Self, ScenarioError> {
        let after = match file.after {
            Some(event) => Some(Target::new(event, file.nth)?),
            None if file.nth.is_some() => return Err(ScenarioError::NthOfNothing),
            None => None,
        };
        let kind = file.r#type.unwrap_or(ErrorType::Overloaded);
        let message = file.message.unwrap_or_else(|| kind.message().to_owned());
        Ok(Self {
            after,
            kind,
            message,
        })
    }
}

impl From<ErrorEvent> for ErrorEventFile {
    fn from(event: ErrorEvent) -> Self {
        Self {
            after: event.after.map(|target| target.event),
            nth: event.after.map(|target| target.nth),
            r#type: Some(event.kind),
            message: Some(event.message),
        }
    }
}

/// Parses the place of `cut` or `stall`.
fn place(
    at: Option<HeadPlace>,
    byte: Option<usize>,
    after: Option<EventName>,
    inside: Option<EventName>,
    nth: Option<usize>,
) -> Result<BreakPoint, ScenarioError> {
    let target = |event| Target::new(event, nth);
    let place = match (at, byte, after, inside) {
        (Some(HeadPlace::BeforeHead), None, None, None) => BreakPoint::BeforeHead,
        (Some(HeadPlace::AfterHead), None, None, None) => BreakPoint::AfterHead,
        (None, Some(byte), None, None) => BreakPoint::Byte(byte),
        (None, None, Some(event), None) => BreakPoint::After(target(event)?),
        (None, None, None, Some(event)) => BreakPoint::Inside(target(event)?),
        _ => return Err(ScenarioError::OnePlace),
    };
    if nth.is_some() && after.is_none() && inside.is_none() {
        return Err(ScenarioError::NthOfNothing);
    }
    Ok(place)
}

/// Parses the early end of an answer from `cut` or `stall`, if one is set.
pub(super) fn ending(
    cut: Option<CutFile>,
    stall: Option<StallFile>,
) -> Result<Option<Ending>, ScenarioError> {
    let ending = match (cut, stall) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(ScenarioError::CutAndStall),
        (None, Some(stall)) => Ending::Stall {
            at: place(stall.at, stall.byte, stall.after, stall.inside, stall.nth)?,
        },
        (Some(cut), None) => {
            let at = place(cut.at, cut.byte, cut.after, cut.inside, cut.nth)?;
            match cut.by.unwrap_or_default() {
                CutWord::Fin => Ending::Cut {
                    at,
                    by: Hangup::Fin,
                },
                CutWord::Reset => Ending::Cut {
                    at,
                    by: Hangup::Reset,
                },
                CutWord::End if at == BreakPoint::BeforeHead => {
                    return Err(ScenarioError::EndNowhere);
                }
                CutWord::End => Ending::Early { at },
            }
        }
    };
    Ok(Some(ending))
}

/// Returns the tables `cut` and `stall` for `ending`.
pub(super) fn tables(ending: Option<Ending>) -> (Option<CutFile>, Option<StallFile>) {
    let Some(ending) = ending else {
        return (None, None);
    };
    let mut cut = CutFile::default();
    match ending.place() {
        BreakPoint::BeforeHead => cut.at = Some(HeadPlace::BeforeHead),
        BreakPoint::AfterHead => cut.at = Some(HeadPlace::AfterHead),
        BreakPoint::Byte(byte) => cut.byte = Some(byte),
        BreakPoint::After(target) => {
            (cut.after, cut.nth) = (Some(target.event), Some(target.nth));
        }
        BreakPoint::Inside(target) => {
            (cut.inside, cut.nth) = (Some(target.event), Some(target.nth));
        }
    }
    cut.by = Some(match ending {
        Ending::Stall { .. } => {
            let stall = StallFile {
                at: cut.at,
                byte: cut.byte,
                after: cut.after,
                inside: cut.inside,
                nth: cut.nth,
            };
            return (None, Some(stall));
        }
        Ending::Early { .. } => CutWord::End,
        Ending::Cut {
            by: Hangup::Fin, ..
        } => CutWord::Fin,
        Ending::Cut {
            by: Hangup::Reset, ..
        } => CutWord::Reset,
    });
    (Some(cut), None)
}
