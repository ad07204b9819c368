//! Content of an answer: blocks in deltas, and the reason why the turn stopped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ScenarioError;
use super::fault::{ErrorEvent, EventFault};
use super::framing::Framing;
use super::limits::{MAX_BLOCKS, MAX_DELTAS, MAX_TEXT_BYTES};
use crate::closed_set;

/// Default text of an answer.
const DEFAULT_TEXT: &str = "Hello from the stub.";
/// Default signature of a thinking block.
const DEFAULT_SIGNATURE: &str = "c3R1Yi1zaWduYXR1cmU=";

/// One turn of the assistant, and its form as a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// At least one.
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop: Stop,
    pub(crate) pings: u32,
    pub(crate) unknown_events: u32,
    pub(crate) framing: Framing,
    pub(crate) faults: Vec<EventFault>,
    pub(crate) error_event: Option<ErrorEvent>,
}

/// A block of content. Its deltas, joined, are the whole content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Text {
        deltas: Vec<String>,
    },
    Thinking {
        deltas: Vec<String>,
        signature: String,
    },
    ToolUse {
        /// `None`: a new id for each answer.
        id: Option<String>,
        name: String,
        input: Map<String, Value>,
        /// The input as JSON text.
        deltas: Vec<String>,
    },
}

closed_set! {
    /// Reason why a turn stopped, in the words of the public interface.
    pub(crate) enum StopReason {
        EndTurn = "end_turn",
        MaxTokens = "max_tokens",
        StopSequence = "stop_sequence",
        ToolUse = "tool_use",
        PauseTurn = "pause_turn",
        Refusal = "refusal",
        ModelContextWindowExceeded = "model_context_window_exceeded",
    }
}

/// End of a turn. Only [`StopReason::StopSequence`] has a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    reason: StopReason,
    sequence: Option<String>,
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            blocks: vec![Block::Text {
                deltas: vec![DEFAULT_TEXT.to_owned()],
            }],
            stop: Stop {
                reason: StopReason::EndTurn,
                sequence: None,
            },
            pings: 0,
            unknown_events: 0,
            framing: Framing::default(),
            faults: Vec::new(),
            error_event: None,
        }
    }
}

impl Block {
    pub(crate) fn deltas(&self) -> &[String] {
        match self {
            Self::Text { deltas }
            | Self::Thinking { deltas, .. }
            | Self::ToolUse { deltas, .. } => deltas,
        }
    }
}

impl Stop {
    /// Checks a reason of a file. The default follows from the last block.
    pub(super) fn new(
        reason: Option<StopReason>,
        sequence: Option<String>,
        blocks: &[Block],
    ) -> Result<Self, ScenarioError> {
        let default = match (&sequence, blocks.last()) {
            (Some(_), _) => StopReason::StopSequence,
            (None, Some(Block::ToolUse { .. })) => StopReason::ToolUse,
            (None, _) => StopReason::EndTurn,
        };
        let reason = reason.unwrap_or(default);
        if sequence.is_some() != (reason == StopReason::StopSequence) {
            return Err(ScenarioError::StopSequence);
        }
        Ok(Self { reason, sequence })
    }

    pub(crate) fn reason(&self) -> StopReason {
        self.reason
    }

    pub(crate) fn sequence(&self) -> Option<&str> {
        self.sequence.as_deref()
    }
}

/// A block in its file form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Block")]
pub(super) enum BlockFile {
    /// A text block.
    Text {
        /// The text.
        text: Option<String>,
        /// Number of deltas, or a list of them.
        deltas: Option<Deltas>,
    },
    /// A thinking block.
    Thinking {
        /// The text.
        thinking: Option<String>,
        /// Number of deltas, or a list of them.
        deltas: Option<Deltas>,
        /// Signature of the block.
        signature: Option<String>,
    },
    /// A call of a tool.
    ToolUse {
        /// Id of the call; by default a new one for each answer.
        id: Option<String>,
        /// Name of the tool.
        name: String,
        /// Input of the tool.
        #[serde(default)]
        input: Map<String, Value>,
        /// Number of deltas of the input, as JSON text.
        deltas: Option<usize>,
    },
}

/// Deltas of a text in their file form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`deltas` is a number or a list of texts")]
pub(super) enum Deltas {
    /// The text is cut into this number of deltas.
    Count(#[schemars(range(min = 1, max = MAX_DELTAS))] usize),
    /// The deltas, in order.
    List(#[schemars(length(min = 1, max = MAX_DELTAS), inner(length(min = 1)))] Vec<String>),
}

impl TryFrom<BlockFile> for Block {
    type Error = ScenarioError;

    fn try_from(file: BlockFile) -> Result<Self, ScenarioError> {
        Ok(match file {
            BlockFile::Text { text, deltas } => Self::Text {
                deltas: pieces(text, deltas)?,
            },
            BlockFile::Thinking {
                thinking,
                deltas,
                signature,
            } => Self::Thinking {
                deltas: pieces(thinking, deltas)?,
                signature: signature.unwrap_or_else(|| DEFAULT_SIGNATURE.to_owned()),
            },
            BlockFile::ToolUse {
                id,
                name,
                input,
                deltas,
            } => {
                let json = Value::Object(input.clone()).to_string();
                Self::ToolUse {
                    id,
                    name,
                    input,
                    deltas: split(&json, deltas.unwrap_or(1))?,
                }
            }
        })
    }
}

impl From<Block> for BlockFile {
    fn from(block: Block) -> Self {
        match block {
            Block::Text { deltas } => Self::Text {
                text: None,
                deltas: Some(Deltas::List(deltas)),
            },
            Block::Thinking { deltas, signature } => Self::Thinking {
                thinking: None,
                deltas: Some(Deltas::List(deltas)),
                signature: Some(signature),
            },
            Block::ToolUse {
                id,
                name,
                input,
                deltas,
            } => Self::ToolUse {
                id,
                name,
                input,
                deltas: Some(deltas.len()),
            },
        }
    }
}

/// Returns the blocks of `blocks`, or one text block of `text` and `deltas`.
pub(super) fn blocks(
    blocks: Option<Vec<BlockFile>>,
    text: Option<String>,
    deltas: Option<Deltas>,
) -> Result<Vec<Block>, ScenarioError> {
    let Some(list) = blocks else {
        let deltas = pieces(text, deltas)?;
        return Ok(vec![Block::Text { deltas }]);
    };
    if list.is_empty() || list.len() > MAX_BLOCKS {
        return Err(ScenarioError::Blocks { blocks: list.len() });
    }
    let blocks: Vec<Block> = list
        .into_iter()
        .map(Block::try_from)
        .collect::<Result<_, _>>()?;
    let lengths = blocks.iter().flat_map(Block::deltas).map(String::len);
    let bytes = lengths.sum();
    if bytes > MAX_TEXT_BYTES {
        return Err(ScenarioError::LongText { bytes });
    }
    Ok(blocks)
}

fn pieces(text: Option<String>, deltas: Option<Deltas>) -> Result<Vec<String>, ScenarioError> {
    let whole = |text: Option<String>| text.unwrap_or_else(|| DEFAULT_TEXT.to_owned());
    match deltas {
        Some(Deltas::List(list)) => listed(list, text),
        Some(Deltas::Count(count)) => split(&whole(text), count),
        None => split(&whole(text), 1),
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

/// Cuts the text between characters into `count` pieces. Their lengths differ by at most one character.
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
