//! What the stub answers and how the answer travels, as a case file states it.
//!
//! Owns the `[stub]` table: its wire form, its limits and its defaults. Knows nothing of HTTP or of the
//! events' JSON; that is the room of [`crate::messages`].

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest text of one answer, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Most text deltas of one answer.
pub const MAX_DELTAS: usize = 10_000;
/// Most pings of one answer.
pub const MAX_PINGS: u32 = 100;
/// Longest single delay.
pub const MAX_DELAY: Duration = Duration::from_secs(60);

/// The text that is answered where a scenario names none.
const DEFAULT_TEXT: &str = "Hello from the stub.";

/// How the provider answers a message.
///
/// In TOML (the `[stub]` table of a case), all keys optional:
///
/// ```toml
/// text = "Hello."        # what the assistant says
/// deltas = 3             # in that many text deltas, or a list: ["Hel", "lo."]
/// chunk_bytes = 7        # body in pieces of 7 bytes, wherever they cut
/// first_delay_ms = 0     # before the answer starts
/// event_delay_ms = 0     # between events
/// chunk_delay_ms = 0     # between pieces of the body
/// pings = 1              # `ping` events after the first content_block_start
/// ```
///
/// The default is one text delta, no pieces, no delays, no pings: the six events of the observed turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Wire", into = "Wire")]
#[schemars(
    rename = "Stub",
    description = "What the provider stub answers to the message request, and how the answer travels. Every key is optional."
)]
pub struct Scenario {
    deltas: Vec<String>,
    chunk_bytes: Option<usize>,
    pace: Pace,
    pings: u32,
}

/// The waits inside one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Before the answer starts.
    pub first: Duration,
    /// Between two events.
    pub event: Duration,
    /// Between two pieces of the body.
    pub chunk: Duration,
}

/// Why a scenario is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// `text`, or the list of `deltas`, holds no character.
    #[error("the answer has no text")]
    NoText,
    /// The text is too long.
    #[error("the text has {bytes} bytes; at most {MAX_TEXT_BYTES} are allowed")]
    LongText {
        /// Length of the text.
        bytes: usize,
    },
    /// The number of deltas does not fit the text.
    #[error("`deltas` is {deltas}; with {characters} characters of text it must be 1 to {most}", most = (*characters).min(MAX_DELTAS))]
    Deltas {
        /// What was asked for.
        deltas: usize,
        /// Characters of the text.
        characters: usize,
    },
    /// A list of deltas that does not add up to `text`.
    #[error("the list `deltas` does not add up to `text`; leave `text` away, or make them agree")]
    Disagree,
    /// Pieces of zero bytes.
    #[error("`chunk_bytes` must be at least 1")]
    NoChunk,
    /// A wait between pieces, but no pieces.
    #[error("`chunk_delay_ms` needs `chunk_bytes`")]
    ChunkDelay,
    /// A delay is too long.
    #[error("`{key}` is {ms}; at most {most} is allowed", most = MAX_DELAY.as_millis())]
    LongDelay {
        /// The key.
        key: &'static str,
        /// Its value.
        ms: u64,
    },
    /// Too many pings.
    #[error("`pings` is {pings}; at most {MAX_PINGS} are allowed")]
    Pings {
        /// What was asked for.
        pings: u32,
    },
}

impl Scenario {
    /// The pieces of text, one a delta, in order; none is empty.
    pub fn deltas(&self) -> &[String] {
        &self.deltas
    }

    /// The whole text of the answer.
    pub fn text(&self) -> String {
        self.deltas.concat()
    }

    /// The size of the pieces in which the body of a stream is handed over; `None`: one piece an event.
    pub fn chunk_bytes(&self) -> Option<usize> {
        self.chunk_bytes
    }

    /// The waits inside the answer.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// How many `ping` events follow the first `content_block_start`.
    pub fn pings(&self) -> u32 {
        self.pings
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            deltas: vec![DEFAULT_TEXT.to_owned()],
            chunk_bytes: None,
            pace: Pace::default(),
            pings: 0,
        }
    }
}

/// The table as it is written.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Wire {
    /// What the assistant says.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_TEXT_BYTES))]
    text: Option<String>,
    /// In how many text deltas, or these.
    #[serde(skip_serializing_if = "Option::is_none")]
    deltas: Option<Deltas>,
    /// The body of the answer goes out in pieces of so many bytes, wherever they cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    chunk_bytes: Option<usize>,
    /// Milliseconds before the answer starts.
    #[schemars(range(max = MAX_DELAY.as_millis() as u64))]
    first_delay_ms: u64,
    /// Milliseconds between two events.
    #[schemars(range(max = MAX_DELAY.as_millis() as u64))]
    event_delay_ms: u64,
    /// Milliseconds between two pieces of the body; it needs `chunk_bytes`.
    #[schemars(range(max = MAX_DELAY.as_millis() as u64))]
    chunk_delay_ms: u64,
    /// How many `ping` events follow the first `content_block_start`.
    #[schemars(range(max = MAX_PINGS))]
    pings: u32,
}

/// The text deltas of an answer.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`deltas` is a number or a list of texts")]
enum Deltas {
    /// The text is cut into so many.
    Count(#[schemars(range(min = 1, max = MAX_DELTAS))] usize),
    /// These, one after the other.
    List(#[schemars(length(min = 1, max = MAX_DELTAS), inner(length(min = 1)))] Vec<String>),
}

impl TryFrom<Wire> for Scenario {
    type Error = ScenarioError;

    fn try_from(wire: Wire) -> Result<Self, ScenarioError> {
        let deltas = match wire.deltas {
            Some(Deltas::List(list)) => listed(list, wire.text)?,
            Some(Deltas::Count(count)) => {
                split(&wire.text.unwrap_or_else(|| DEFAULT_TEXT.to_owned()), count)?
            }
            None => split(&wire.text.unwrap_or_else(|| DEFAULT_TEXT.to_owned()), 1)?,
        };
        if wire.chunk_bytes == Some(0) {
            return Err(ScenarioError::NoChunk);
        }
        if wire.chunk_delay_ms > 0 && wire.chunk_bytes.is_none() {
            return Err(ScenarioError::ChunkDelay);
        }
        if wire.pings > MAX_PINGS {
            return Err(ScenarioError::Pings { pings: wire.pings });
        }
        let pace = Pace {
            first: delay("first_delay_ms", wire.first_delay_ms)?,
            event: delay("event_delay_ms", wire.event_delay_ms)?,
            chunk: delay("chunk_delay_ms", wire.chunk_delay_ms)?,
        };
        Ok(Self {
            deltas,
            chunk_bytes: wire.chunk_bytes,
            pace,
            pings: wire.pings,
        })
    }
}

impl From<Scenario> for Wire {
    fn from(scenario: Scenario) -> Self {
        let ms = |delay: Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        Self {
            text: None,
            deltas: Some(Deltas::List(scenario.deltas)),
            chunk_bytes: scenario.chunk_bytes,
            first_delay_ms: ms(scenario.pace.first),
            event_delay_ms: ms(scenario.pace.event),
            chunk_delay_ms: ms(scenario.pace.chunk),
            pings: scenario.pings,
        }
    }
}

fn listed(list: Vec<String>, text: Option<String>) -> Result<Vec<String>, ScenarioError> {
    let whole = list.concat();
    if list.is_empty() || list.iter().any(String::is_empty) {
        return Err(ScenarioError::NoText);
    }
    if text.is_some_and(|text| text != whole) {
        return Err(ScenarioError::Disagree);
    }
    if whole.len() > MAX_TEXT_BYTES {
        return Err(ScenarioError::LongText { bytes: whole.len() });
    }
    if list.len() > MAX_DELTAS {
        return Err(ScenarioError::Deltas {
            deltas: list.len(),
            characters: whole.chars().count(),
        });
    }
    Ok(list)
}

/// Cuts the text between characters into `count` pieces that differ by one character at most.
fn split(text: &str, count: usize) -> Result<Vec<String>, ScenarioError> {
    if text.is_empty() {
        return Err(ScenarioError::NoText);
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(ScenarioError::LongText { bytes: text.len() });
    }
    let characters = text.chars().count();
    if count == 0 || count > characters.min(MAX_DELTAS) {
        return Err(ScenarioError::Deltas {
            deltas: count,
            characters,
        });
    }
    let mut rest = text.chars();
    let pieces = (0..count).map(|index| {
        let length = characters / count + usize::from(index < characters % count);
        rest.by_ref().take(length).collect()
    });
    Ok(pieces.collect())
}

fn delay(key: &'static str, ms: u64) -> Result<Duration, ScenarioError> {
    let delay = Duration::from_millis(ms);
    if delay > MAX_DELAY {
        Err(ScenarioError::LongDelay { key, ms })
    } else {
        Ok(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(toml: &str) -> Result<Scenario, String> {
        toml::from_str(toml).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_table_is_the_default_of_one_delta() {
        assert_eq!(parse("").unwrap(), Scenario::default());
        assert_eq!(Scenario::default().deltas().len(), 1);
    }

    #[test]
    fn a_number_of_deltas_cuts_the_text_between_characters() {
        let scenario = parse("text = \"añb€c\"\ndeltas = 3").unwrap();
        assert_eq!(scenario.deltas(), ["añ", "b€", "c"]);
        assert_eq!(scenario.text(), "añb€c");
    }

    #[test]
    fn a_list_of_deltas_is_taken_as_written() {
        assert_eq!(parse("deltas = [\"Hel\", \"lo\"]").unwrap().text(), "Hello");
        assert!(
            parse("text = \"Hi\"\ndeltas = [\"Hel\", \"lo\"]")
                .unwrap_err()
                .contains("does not add up")
        );
    }

    #[test]
    fn unknown_keys_and_values_out_of_range_are_refused_by_name() {
        for (toml, message) in [
            ("txt = \"a\"", "txt"),
            ("text = \"\"", "no text"),
            ("deltas = 0", "must be 1 to 20"),
            ("deltas = 21", "must be 1 to 20"),
            ("deltas = \"x\"", "a number or a list"),
            ("chunk_bytes = 0", "at least 1"),
            ("chunk_delay_ms = 1", "needs `chunk_bytes`"),
            ("event_delay_ms = 60001", "`event_delay_ms` is 60001"),
            ("pings = 101", "at most 100"),
        ] {
            let error = parse(toml).unwrap_err();
            assert!(error.contains(message), "{toml}: {error}");
        }
    }

    #[test]
    fn a_scenario_survives_its_wire_form() {
        let scenario =
            parse("text = \"abc\"\ndeltas = 2\nchunk_bytes = 3\nchunk_delay_ms = 4\npings = 1")
                .unwrap();
        let wire = serde_json::to_string(&scenario).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&wire).unwrap(), scenario);
    }
}
