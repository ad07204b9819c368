//! The body of a streamed answer: events cut into pieces, each after its wait.
//!
//! Owns how an answer travels. What it says is the room of [`crate::messages`].

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::messages::Event;
use crate::scenario::Scenario;

/// One piece of the body, and the wait before it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    wait: Duration,
    bytes: Bytes,
}

/// The pieces of one answer, handed over at the scenario's pace. Without waits and pieces of a fixed size
/// the first event is there at the first poll, so that it leaves together with the head.
#[derive(Debug)]
pub(crate) struct Paced {
    pieces: VecDeque<Piece>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Hand the task back between pieces, so that each is written by itself.
    apart: bool,
    yielded: bool,
}

impl Paced {
    pub(crate) fn new(scenario: &Scenario, events: &[Event<'_>]) -> Self {
        let pieces = pieces(scenario, events);
        Self {
            pieces,
            timer: None,
            apart: scenario.chunk_bytes().is_some(),
            yielded: true,
        }
    }
}

impl Stream for Paced {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(next) = self.pieces.front() else {
            return Poll::Ready(None);
        };
        let wait = next.wait;
        if !wait.is_zero() {
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + wait)));
            ready!(timer.as_mut().poll(cx));
        } else if self.apart && !self.yielded {
            self.yielded = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.timer = None;
        self.yielded = false;
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(piece.bytes)))
    }
}

fn pieces(scenario: &Scenario, events: &[Event<'_>]) -> VecDeque<Piece> {
    let pace = scenario.pace();
    let mut pieces = VecDeque::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        let frame = frame(event);
        let wait = if index == 0 {
            Duration::ZERO
        } else {
            pace.event
        };
        match scenario.chunk_bytes() {
            None => pieces.push_back(Piece { wait, bytes: frame }),
            // Pieces run across events; with a wait between events each event starts a new piece.
            Some(size) => cut(&mut pieces, frame, size, wait, pace.chunk),
        }
    }
    pieces
}

/// Adds the bytes of one event in pieces of `size`, filling up the last piece first where no wait is between.
fn cut(
    pieces: &mut VecDeque<Piece>,
    mut frame: Bytes,
    size: usize,
    wait: Duration,
    between: Duration,
) {
    if wait.is_zero()
        && let Some(last) = pieces.back_mut()
        && last.bytes.len() < size
    {
        let missing = (size - last.bytes.len()).min(frame.len());
        let mut joined = BytesMut::from(&last.bytes[..]);
        joined.extend_from_slice(&frame.split_to(missing));
        last.bytes = joined.freeze();
    }
    let mut wait = if wait.is_zero() && !pieces.is_empty() {
        between
    } else {
        wait
    };
    while !frame.is_empty() {
        pieces.push_back(Piece {
            wait,
            bytes: frame.split_to(size.min(frame.len())),
        });
        wait = between;
    }
}

/// One server-sent event.
fn frame(event: &Event<'_>) -> Bytes {
    // Plain structs and strings always serialise.
    let data = serde_json::to_string(event).unwrap_or_default();
    Bytes::from(format!("event: {}\ndata: {data}\n\n", event.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    fn cut_up(toml: &str) -> (Vec<Piece>, Vec<u8>) {
        let scenario: Scenario = toml::from_str(toml).unwrap();
        let events = messages::events(&scenario, "msg_1", "m");
        let whole = events
            .iter()
            .flat_map(|event| frame(event).to_vec())
            .collect();
        (pieces(&scenario, &events).into(), whole)
    }

    fn joined(pieces: &[Piece]) -> Vec<u8> {
        pieces
            .iter()
            .flat_map(|piece| piece.bytes.to_vec())
            .collect()
    }

    #[test]
    fn without_pieces_each_event_is_handed_over_by_itself() {
        let (pieces, whole) = cut_up("event_delay_ms = 5");
        assert_eq!((pieces.len(), joined(&pieces)), (6, whole));
        assert_eq!(pieces[0].wait, Duration::ZERO);
        assert!(
            pieces[1..]
                .iter()
                .all(|piece| piece.wait == Duration::from_millis(5))
        );
        assert!(pieces[5].bytes.starts_with(b"event: message_stop\ndata: {"));
    }

    #[test]
    fn pieces_have_the_size_that_was_asked_for_wherever_it_cuts() {
        for size in [1, 2, 7, 1000, 100_000] {
            let (pieces, whole) = cut_up(&format!(
                "text = \"añb€c\"\nchunk_bytes = {size}\nchunk_delay_ms = 3"
            ));
            assert_eq!(joined(&pieces), whole);
            assert!(
                pieces[..pieces.len() - 1]
                    .iter()
                    .all(|piece| piece.bytes.len() == size)
            );
            assert!(
                pieces[1..]
                    .iter()
                    .all(|piece| piece.wait == Duration::from_millis(3))
            );
        }
    }

    #[test]
    fn a_wait_between_events_starts_a_new_piece() {
        let (pieces, whole) = cut_up("chunk_bytes = 1000\nevent_delay_ms = 9\nchunk_delay_ms = 3");
        assert_eq!((pieces.len(), joined(&pieces)), (6, whole));
        assert!(
            pieces[1..]
                .iter()
                .all(|piece| piece.wait == Duration::from_millis(9))
        );
    }
}
