//! The message under construction: checks the order of events, and builds the aggregates for `assistant` records.
//!
//! Accepted order: `message_start`; blocks one after the other (start, deltas, stop, indices from 0); `message_delta`
//! once or more; `message_stop`. Any other order is an error, so a wrong stream never becomes an answer.
//!
//! **Time of the aggregates.** Each block that ends gives one `assistant` message with this block only. The message is
//! written directly before the block's `content_block_stop`. The observed turn has one text block, hence one aggregate.
//! With several blocks, a single message per turn would lose the later blocks if written at the first stop. If written
//! at the last stop, it would delay events. One message per block, all with the same `id`, avoids both.
//!
//! A block that `message_delta` cuts off (the provider does this at `max_tokens`) ends there. A message without blocks
//! has one empty aggregate, so a successful turn has at least one.
//!
//! Knows no decoder, record format or HTTP.

use serde_json::Value;

use crate::event::{Delta, Object, Payload};

/// Largest total text of the blocks in one message, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;
/// Largest number of blocks in one message.
pub(crate) const MAX_BLOCKS: u64 = 1000;

/// Reason why an event does not continue the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    /// The event is not allowed at this point.
    #[error("a {event} event came {state}")]
    OutOfOrder {
        event: &'static str,
        state: &'static str,
    },
    /// The event names another block than the expected one.
    #[error("a {event} event names block {found}, expected block {expected}")]
    WrongBlock {
        event: &'static str,
        found: u64,
        expected: u64,
    },
    /// The joined pieces of a tool's input are not JSON.
    #[error("the input of a tool_use block is not JSON")]
    ToolInput,
    /// The message has more text than the limit.
    #[error("the message holds more than {MAX_TEXT_BYTES} bytes of text")]
    TextTooLong,
    /// The message has more blocks than the limit.
    #[error("the message has more than {MAX_BLOCKS} blocks")]
    TooManyBlocks,
}

/// State of the message so far.
#[derive(Debug, Default)]
pub(crate) struct Message {
    stage: Stage,
    /// `message_start.message`; each aggregate replaces its `content`.
    head: Object,
    /// Number of started blocks.
    blocks: u64,
    block: Block,
    /// Total bytes of text in all blocks.
    text_bytes: usize,
    text: String,
    usage: Object,
    stop_reason: Option<String>,
}

/// Stage of the message, which decides the allowed events.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    BeforeStart,
    BetweenBlocks,
    InBlock,
    Ending,
    Stopped,
}

/// The open block.
#[derive(Debug, Default)]
struct Block {
    fields: Object,
    tool_input: String,
}

impl Message {
    /// Makes an empty message.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Applies the next event. Returns the aggregate to write before the event, if there is one.
    pub(crate) fn apply(&mut self, payload: Payload) -> Result<Option<&Object>, MessageError> {
        let event = payload.name();
        match (self.stage, payload) {
            (Stage::BeforeStart, Payload::MessageStart { message }) => {
                self.start(message);
                Ok(None)
            }
            (
                Stage::BetweenBlocks,
                Payload::ContentBlockStart {
                    index,
                    content_block,
                },
            ) => {
                self.open(index, content_block)?;
                Ok(None)
            }
            (Stage::InBlock, Payload::ContentBlockDelta { index, delta }) => {
                self.expect_open_block(event, index)?;
                self.extend(delta)?;
                Ok(None)
            }
            (Stage::InBlock, Payload::ContentBlockStop { index }) => {
                self.expect_open_block(event, index)?;
                self.block.finish_tool_input()?;
                self.stage = Stage::BetweenBlocks;
                Ok(Some(self.aggregate_of_block()))
            }
            (Stage::InBlock, Payload::MessageDelta { delta, usage }) => {
                self.end(delta.stop_reason, usage);
                Ok(Some(self.aggregate_of_block()))
            }
            (Stage::BetweenBlocks, Payload::MessageDelta { delta, usage }) if self.blocks == 0 => {
                self.end(delta.stop_reason, usage);
                Ok(Some(self.aggregate(Vec::new())))
            }
            (Stage::BetweenBlocks | Stage::Ending, Payload::MessageDelta { delta, usage }) => {
                self.end(delta.stop_reason, usage);
                Ok(None)
            }
            (Stage::Ending, Payload::MessageStop {}) => {
                self.stage = Stage::Stopped;
                Ok(None)
            }
            (stage, _) => Err(MessageError::OutOfOrder {
                event,
                state: stage.describe(),
            }),
        }
    }

    /// Returns true after `message_stop`.
    pub(crate) fn is_complete(&self) -> bool {
        self.stage == Stage::Stopped
    }

    /// Returns the joined text of the text blocks.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the token counts: those of `message_start`, overwritten by those of `message_delta`.
    pub(crate) fn usage(&self) -> &Object {
        &self.usage
    }

    /// Returns the stop reason of the provider, if it has arrived.
    pub(crate) fn stop_reason(&self) -> Option<&str> {
        self.stop_reason.as_deref()
    }

    fn start(&mut self, message: Object) {
        if let Some(Value::Object(usage)) = message.get("usage") {
            self.usage = usage.clone();
        }
        self.head = message;
        self.stage = Stage::BetweenBlocks;
    }

    fn open(&mut self, index: u64, fields: Object) -> Result<(), MessageError> {
        if index != self.blocks {
            let event = "content_block_start";
            return Err(MessageError::WrongBlock {
                event,
                found: index,
                expected: self.blocks,
            });
        }
        if self.blocks == MAX_BLOCKS {
            return Err(MessageError::TooManyBlocks);
        }
        let text = fields
            .get("text")
            .and_then(Value::as_str)
            .unwrap_or_default();
        self.count(text.len())?;
        self.blocks += 1;
        self.block = Block {
            fields,
            tool_input: String::new(),
        };
        self.stage = Stage::InBlock;
        Ok(())
    }

    fn expect_open_block(&self, event: &'static str, found: u64) -> Result<(), MessageError> {
        let expected = self.blocks.saturating_sub(1);
        if found == expected {
            Ok(())
        } else {
            Err(MessageError::WrongBlock {
                event,
                found,
                expected,
            })
        }
    }

    fn extend(&mut self, delta: Delta) -> Result<(), MessageError> {
        let (field, piece) = match delta {
            Delta::Text { text } => ("text", text),
            Delta::Thinking { thinking } => ("thinking", thinking),
            Delta::Signature { signature } => ("signature", signature),
            Delta::InputJson { partial_json } => {
                self.count(partial_json.len())?;
                self.block.tool_input.push_str(&partial_json);
                return Ok(());
            }
            Delta::Citations { citation } => {
                self.count(citation.to_string().len())?;
                self.block.push_citation(citation);
                return Ok(());
            }
            Delta::Unknown => return Ok(()),
        };
        self.count(piece.len())?;
        self.block.append(field, piece);
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), MessageError> {
        self.text_bytes += bytes;
        if self.text_bytes > MAX_TEXT_BYTES {
            Err(MessageError::TextTooLong)
        } else {
            Ok(())
        }
    }

    fn end(&mut self, stop_reason: Option<String>, usage: Object) {
        self.usage.extend(usage);
        self.stop_reason = stop_reason;
        self.stage = Stage::Ending;
    }

    fn aggregate_of_block(&mut self) -> &Object {
        let fields = std::mem::take(&mut self.block.fields);
        if fields.get("type").and_then(Value::as_str) == Some("text") {
            self.text.push_str(
                fields
                    .get("text")
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
            );
        }
        self.aggregate(vec![Value::Object(fields)])
    }

    fn aggregate(&mut self, content: Vec<Value>) -> &Object {
        self.head
            .insert("content".to_owned(), Value::Array(content));
        &self.head
    }
}

impl Stage {
    fn describe(self) -> &'static str {
        match self {
            Self::BeforeStart => "before message_start",
            Self::BetweenBlocks => "while no block was open",
            Self::InBlock => "while a block was open",
            Self::Ending => "after message_delta",
            Self::Stopped => "after message_stop",
        }
    }
}

impl Block {
    fn append(&mut self, field: &str, piece: String) {
        match self.fields.get_mut(field) {
            Some(Value::String(text)) => text.push_str(&piece),
            _ => {
                self.fields.insert(field.to_owned(), Value::String(piece));
            }
        }
    }

    fn push_citation(&mut self, citation: Value) {
        match self.fields.get_mut("citations") {
            Some(Value::Array(citations)) => citations.push(citation),
            _ => {
                self.fields
                    .insert("citations".to_owned(), Value::Array(vec![citation]));
            }
        }
    }

    fn finish_tool_input(&mut self) -> Result<(), MessageError> {
        let pieces = std::mem::take(&mut self.tool_input);
        if !pieces.is_empty() {
            let input = serde_json::from_str(&pieces).map_err(|_| MessageError::ToolInput)?;
            self.fields.insert("input".to_owned(), input);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
