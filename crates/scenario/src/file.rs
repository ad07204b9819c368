//! File form of the `[stub]` table, and its conversion into a [`Scenario`] and back.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::{self, BlockFile, Deltas, Stop, StopReason, Turn};
use super::fault::{self, BreakPoint, CutFile, ErrorEvent, EventFault, MAX_FAULTS, StallFile};
use super::framing::Framing;
use super::pacing::{Chunking, CutAt, MAX_CUTS, MAX_DELAY, Pace, delay};
use super::reply::{ErrorAnswer, Literal, Redirect};
use super::{Answer, Reply, Scenario, ScenarioError, builtin, limits};
use crate::script;

/// One answer and the answers that follow it. Keys are `Option`s because a key with its default value differs from an
/// absent key: `scenario` excludes the first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Answer")]
pub(super) struct AnswerFile {
    /// Text of the answer.
    #[schemars(length(min = 1, max = limits::MAX_TEXT_BYTES))]
    text: Option<String>,
    /// Number of text deltas, or a list of them.
    deltas: Option<Deltas>,
    /// Blocks of content, instead of `text` and `deltas`.
    #[schemars(length(min = 1, max = limits::MAX_BLOCKS))]
    blocks: Option<Vec<BlockFile>>,
    /// Reason why the turn stops; by default it follows from the last block.
    stop_reason: Option<StopReason>,
    /// The sequence that stopped the turn, for the stop reason `stop_sequence`.
    stop_sequence: Option<String>,
    /// Number of `ping` events after the first `content_block_start`.
    #[schemars(range(max = limits::MAX_PINGS))]
    pings: Option<u32>,
    /// Number of events of a kind that no client knows, after the pings.
    #[schemars(range(max = limits::MAX_PINGS))]
    unknown_events: Option<u32>,
    /// Framing of the events.
    framing: Option<Framing>,
    /// Faults of single events, applied in this order.
    #[schemars(length(max = MAX_FAULTS))]
    faults: Option<Vec<EventFault>>,
    /// An `error` event that ends the stream.
    error_event: Option<ErrorEvent>,
    /// Size in bytes of the pieces in which the body is sent.
    #[schemars(range(min = 1))]
    chunk_bytes: Option<usize>,
    /// Places at which the body is cut into pieces.
    #[schemars(length(min = 1, max = MAX_CUTS))]
    chunk_cuts: Option<Vec<CutAt>>,
    /// Seed for piece sizes of 1 to 64 bytes; equal seeds give equal sizes.
    chunk_seed: Option<u64>,
    /// Milliseconds before the answer starts.
    #[schemars(range(max = MAX_DELAY.as_millis() as u64))]
    first_delay_ms: Option<u64>,
    /// Milliseconds between two events.
    #[schemars(range(max = MAX_DELAY.as_millis() as u64))]
    event_delay_ms: Option<u64>,
    /// Milliseconds between two pieces of the body; needs one of the `chunk_` keys.
    #[schemars(range(max = MAX_DELAY.as_millis() as u64))]
    chunk_delay_ms: Option<u64>,
    /// Place at which the connection or the body ends early.
    cut: Option<CutFile>,
    /// Place after which no more bytes are sent.
    stall: Option<StallFile>,
    /// An error instead of a message.
    error: Option<ErrorAnswer>,
    /// A redirect instead of a message.
    redirect: Option<Redirect>,
    /// A body sent unchanged, instead of a message.
    literal: Option<Literal>,
    /// Name of a built-in scenario; only `then` may be set with it.
    #[schemars(extend("enum" = Vec::from_iter(builtin::names().map(|known| known.name))))]
    scenario: Option<String>,
    /// Answers to the second, third and later message requests; the last one repeats.
    #[schemars(length(max = MAX_ANSWERS - 1))]
    then: Option<Vec<AnswerFile>>,
}

/// Largest number of answers in one scenario.
pub const MAX_ANSWERS: usize = 100;

impl AnswerFile {
    /// Returns the first key that is set among those for the content and streaming of a message.
    fn message_key(&self) -> Option<&'static str> {
        first(&[
            ("text", self.text.is_some()),
            ("deltas", self.deltas.is_some()),
            ("blocks", self.blocks.is_some()),
            ("stop_reason", self.stop_reason.is_some()),
            ("stop_sequence", self.stop_sequence.is_some()),
            ("pings", self.pings.is_some()),
            ("unknown_events", self.unknown_events.is_some()),
            ("framing", self.framing.is_some()),
            ("faults", self.faults.is_some()),
            ("error_event", self.error_event.is_some()),
            ("event_delay_ms", self.event_delay_ms.is_some()),
        ])
    }

    /// Returns the first key that is set among those for the pace, pieces and end of any answer.
    fn delivery_key(&self) -> Option<&'static str> {
        first(&[
            ("chunk_bytes", self.chunk_bytes.is_some()),
            ("chunk_cuts", self.chunk_cuts.is_some()),
            ("chunk_seed", self.chunk_seed.is_some()),
            ("first_delay_ms", self.first_delay_ms.is_some()),
            ("chunk_delay_ms", self.chunk_delay_ms.is_some()),
            ("cut", self.cut.is_some()),
            ("stall", self.stall.is_some()),
        ])
    }

    /// Lists the keys that are set among those that replace a message.
    fn reply_keys(&self) -> impl Iterator<Item = &'static str> {
        [
            ("error", self.error.is_some()),
            ("redirect", self.redirect.is_some()),
            ("literal", self.literal.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, is_set)| is_set.then_some(key))
    }

    /// Parses the answers of this table, without those of `then`.
    fn answers(self) -> Result<Vec<Answer>, ScenarioError> {
        let Some(name) = self.scenario.clone() else {
            return self.answer().map(|answer| vec![answer]);
        };
        let extra_key = self
            .message_key()
            .or_else(|| self.delivery_key())
            .or_else(|| self.reply_keys().next());
        if let Some(key) = extra_key {
            let other = "scenario";
            return Err(ScenarioError::Beside { key, other });
        }
        match builtin::named(&name) {
            Some(scenario) => Ok(scenario.into_answers()),
            None => Err(ScenarioError::Unknown { name }),
        }
    }

    fn answer(self) -> Result<Answer, ScenarioError> {
        let mut replies = self.reply_keys();
        let reply_key = replies.next();
        let extra_key = self.message_key().or_else(|| replies.next());
        if let (Some(other), Some(key)) = (reply_key, extra_key) {
            return Err(ScenarioError::Beside { key, other });
        }
        drop(replies);
        let pace = Pace {
            first: delay("first_delay_ms", self.first_delay_ms)?,
            event: delay("event_delay_ms", self.event_delay_ms)?,
            chunk: delay("chunk_delay_ms", self.chunk_delay_ms)?,
        };
        let chunking = Chunking::new(self.chunk_bytes, self.chunk_cuts, self.chunk_seed)?;
        if !pace.chunk.is_zero() && chunking.is_none() {
            return Err(ScenarioError::ChunkDelay);
        }
        let ending = fault::ending(self.cut, self.stall)?;
        let reply = match (self.error, self.redirect, self.literal) {
            (Some(error), _, _) => Reply::Error(error),
            (None, Some(redirect), _) => Reply::Redirect(redirect),
            (None, None, Some(literal)) => Reply::Literal(literal),
            (None, None, None) => {
                let blocks = content::blocks(self.blocks, self.text, self.deltas)?;
                let stop = Stop::new(self.stop_reason, self.stop_sequence, &blocks)?;
                Reply::Message(Turn {
                    stop,
                    blocks,
                    pings: event_count("pings", self.pings)?,
                    unknown_events: event_count("unknown_events", self.unknown_events)?,
                    framing: self.framing.unwrap_or_default(),
                    faults: self.faults.unwrap_or_default(),
                    error_event: self.error_event,
                })
            }
        };
        let answer = Answer {
            reply,
            chunking,
            pace,
            ending,
        };
        checked(answer)
    }
}

/// Rejects places and faults that name events or cuts the answer does not have.
fn checked(answer: Answer) -> Result<Answer, ScenarioError> {
    let place = answer.ending.map(fault::Ending::place);
    match &answer.reply {
        Reply::Message(turn) if turn.faults.len() > MAX_FAULTS => {
            let faults = turn.faults.len();
            return Err(ScenarioError::Faults { faults });
        }
        Reply::Message(turn) => {
            script::check(turn, answer.chunking.as_ref(), place)?;
        }
        Reply::Error(_) | Reply::Redirect(_) | Reply::Literal(_) => {
            if let Some(BreakPoint::After(_) | BreakPoint::Inside(_)) = place {
                return Err(ScenarioError::EventOfNothing);
            }
            if let Some(Chunking::At(cuts)) = &answer.chunking {
                let named = cuts.iter().find_map(|cut| match cut {
                    CutAt::Named(name) => Some(name.word()),
                    CutAt::Offset(_) => None,
                });
                if let Some(cut) = named {
                    return Err(ScenarioError::NoSuchCut { cut });
                }
            }
        }
    }
    Ok(answer)
}

fn first(keys: &[(&'static str, bool)]) -> Option<&'static str> {
    keys.iter().find_map(|(key, is_set)| is_set.then_some(*key))
}

fn event_count(key: &'static str, count: Option<u32>) -> Result<u32, ScenarioError> {
    match count.unwrap_or(0) {
        events if events > limits::MAX_PINGS => Err(ScenarioError::Many { key, events }),
        events => Ok(events),
    }
}

impl TryFrom<AnswerFile> for Scenario {
    type Error = ScenarioError;

    fn try_from(mut file: AnswerFile) -> Result<Self, ScenarioError> {
        let then = file.then.take().unwrap_or_default();
        let mut answers = file.answers()?;
        for file in then {
            if file.then.is_some() {
                return Err(ScenarioError::ThenInThen);
            }
            answers.extend(file.answers()?);
        }
        if answers.len() > MAX_ANSWERS {
            let answers = answers.len();
            return Err(ScenarioError::Answers { answers });
        }
        let mut answers = answers.into_iter();
        // A table makes at least one answer.
        let first = answers.next().unwrap_or_default();
        let then = answers.collect();
        Ok(Self { first, then })
    }
}

impl From<Scenario> for AnswerFile {
    fn from(scenario: Scenario) -> Self {
        let then: Vec<Self> = scenario.then.into_iter().map(Self::from).collect();
        Self {
            then: (!then.is_empty()).then_some(then),
            ..Self::from(scenario.first)
        }
    }
}

impl From<Answer> for AnswerFile {
    fn from(answer: Answer) -> Self {
        let ms = |delay: Duration| {
            (!delay.is_zero()).then(|| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
        };
        let (cut, stall) = fault::tables(answer.ending);
        let mut file = Self {
            first_delay_ms: ms(answer.pace.first),
            event_delay_ms: ms(answer.pace.event),
            chunk_delay_ms: ms(answer.pace.chunk),
            cut,
            stall,
            ..Self::default()
        };
        match answer.chunking {
            None => {}
            Some(Chunking::Size(size)) => file.chunk_bytes = Some(size),
            Some(Chunking::At(cuts)) => file.chunk_cuts = Some(cuts),
            Some(Chunking::Seed(seed)) => file.chunk_seed = Some(seed),
        }
        match answer.reply {
            Reply::Error(error) => file.error = Some(error),
            Reply::Redirect(redirect) => file.redirect = Some(redirect),
            Reply::Literal(literal) => file.literal = Some(literal),
            Reply::Message(turn) => {
                file.blocks = Some(turn.blocks.into_iter().map(BlockFile::from).collect());
                file.stop_reason = Some(turn.stop.reason());
                file.stop_sequence = turn.stop.sequence().map(str::to_owned);
                file.pings = Some(turn.pings);
                file.unknown_events = Some(turn.unknown_events);
                file.framing = Some(turn.framing);
                file.faults = Some(turn.faults);
                file.error_event = turn.error_event;
            }
        }
        file
    }
}
