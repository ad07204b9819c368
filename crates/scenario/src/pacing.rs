//! Pace and pieces of an answer: its delays, and the cuts of its body.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ScenarioError;
use crate::closed_set;

/// Longest single delay.
pub const MAX_DELAY: Duration = Duration::from_secs(60);
/// Largest number of cuts in one answer.
pub const MAX_CUTS: usize = 10_000;

/// Delays inside one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Before the answer starts.
    pub(crate) first: Duration,
    /// Between two events.
    pub(crate) event: Duration,
    /// Between two pieces of the body.
    pub(crate) chunk: Duration,
}

/// Cuts of the body into pieces. Each piece is one write and one HTTP chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chunking {
    /// Pieces of one size, at least 1 byte.
    Size(usize),
    /// Cuts at these places; never empty.
    At(Vec<CutAt>),
    /// Pieces of pseudo-random sizes that follow from this seed.
    Seed(u64),
}

/// One cut of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a cut is a number of bytes, \"mid-utf8\", \"mid-crlf\" or \"event-data\""
)]
pub(crate) enum CutAt {
    /// After this number of bytes; ignored if the body is shorter.
    Offset(usize),
    Named(CutName),
}

closed_set! {
    /// Cuts at places where decoders often fail.
    pub(crate) enum CutName {
        /// Inside each character of several bytes.
        MidUtf8 = "mid-utf8",
        /// Between each carriage return and its line feed.
        MidCrlf = "mid-crlf",
        /// Between the `event:` and the `data:` line of each event.
        EventData = "event-data",
    }
}

impl Chunking {
    pub(super) fn new(
        bytes: Option<usize>,
        cuts: Option<Vec<CutAt>>,
        seed: Option<u64>,
    ) -> Result<Option<Self>, ScenarioError> {
        Ok(match (bytes, cuts, seed) {
            (None, None, None) => None,
            (Some(0), None, None) => return Err(ScenarioError::NoChunk),
            (Some(size), None, None) => Some(Self::Size(size)),
            (None, Some(cuts), None) => Some(Self::At(checked(cuts)?)),
            (None, None, Some(seed)) => Some(Self::Seed(seed)),
            _ => return Err(ScenarioError::TwoChunkings),
        })
    }
}

fn checked(cuts: Vec<CutAt>) -> Result<Vec<CutAt>, ScenarioError> {
    if cuts.is_empty() || cuts.len() > MAX_CUTS {
        return Err(ScenarioError::Cuts { cuts: cuts.len() });
    }
    if cuts.contains(&CutAt::Offset(0)) {
        return Err(ScenarioError::NoChunk);
    }
    Ok(cuts)
}

/// Parses the delay of `key`, in milliseconds.
pub(super) fn delay(key: &'static str, ms: Option<u64>) -> Result<Duration, ScenarioError> {
    let ms = ms.unwrap_or(0);
    let delay = Duration::from_millis(ms);
    if delay > MAX_DELAY {
        Err(ScenarioError::LongDelay { key, ms })
    } else {
        Ok(delay)
    }
}
