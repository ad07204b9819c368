//! Reader of the stream: checks each event, then writes it as records when it arrives.
//!
//! An event that does not continue the message is an error and is not written. After `message_stop` the turn has
//! succeeded. The rest of the stream is awaited briefly, so that the exchange ends in order. A known event in the rest
//! is an error; a missing end is not.
//!
//! Knows no request and no record format.

use std::{io::Write, time::Duration};

use tokio::time::{Instant, timeout_at};

use crate::{
    event::{self, ErrorDetail, EventError, Incoming},
    message::{Message, MessageError},
    provider::{Answer, ProviderError},
    records::{OutputError, Records},
    sse::{self, Decoder, SseError},
};

/// Largest stream, in bytes, including pings and comments.
pub(crate) const MAX_STREAM_BYTES: usize = 64 * 1024 * 1024;
/// Time limit for the end of the body after `message_stop`.
const TRAILING_TIMEOUT: Duration = Duration::from_secs(1);

/// Reason why the stream did not become an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnError {
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error(transparent)]
    Sse(#[from] SseError),
    #[error(transparent)]
    Event(#[from] EventError),
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("the provider ended the stream with an error: {0}")]
    Reported(ErrorDetail),
    #[error("the stream ended before message_stop")]
    Unfinished,
    #[error("the stream is longer than {MAX_STREAM_BYTES} bytes")]
    TooLong,
}

/// Reads the stream to its end, and writes each event as it arrives.
pub(crate) async fn read<W: Write>(
    mut answer: Answer,
    message: &mut Message,
    records: &mut Records<W>,
) -> Result<(), TurnError> {
    let mut decoder = Decoder::new();
    let mut received = 0;
    let mut deadline = None;
    while let Some(chunk) = next_chunk(&mut answer, deadline).await? {
        let mut rest = chunk.as_ref();
        received += rest.len();
        if received > MAX_STREAM_BYTES {
            return Err(TurnError::TooLong);
        }
        while let Some(event) = decoder.next_event(&mut rest)? {
            expose(&event, message, records)?;
        }
        if message.is_complete() && deadline.is_none() {
            deadline = Some(Instant::now() + TRAILING_TIMEOUT);
        }
    }
    if message.is_complete() {
        Ok(())
    } else {
        Err(TurnError::Unfinished)
    }
}

/// Returns the next piece; `None` at the end of the stream, or at the deadline after `message_stop`.
async fn next_chunk(
    answer: &mut Answer,
    deadline: Option<Instant>,
) -> Result<Option<impl AsRef<[u8]> + use<>>, ProviderError> {
    match deadline {
        None => answer.chunk().await,
        Some(deadline) => {
            let chunk = timeout_at(deadline, answer.chunk()).await;
            Ok(chunk.ok().and_then(Result::ok).flatten())
        }
    }
}

fn expose<W: Write>(
    event: &sse::Event,
    message: &mut Message,
    records: &mut Records<W>,
) -> Result<(), TurnError> {
    match event::read(event)? {
        Incoming::Ignored => Ok(()),
        Incoming::Error(detail) => Err(TurnError::Reported(detail)),
        Incoming::Known(known) => {
            if let Some(aggregate) = message.apply(known.payload)? {
                records.assistant(aggregate)?;
            }
            Ok(records.stream_event(&known.json)?)
        }
    }
}
