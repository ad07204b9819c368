//! Body bytes of an answer, the positions of its events, and the cuts into pieces.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;
use std::{iter, slice};

use bytes::Bytes;

use super::Piece;
use crate::{Chunking, CutAt, CutName, EventName, Pace, Target};

/// Largest piece of a seeded cut, in bytes.
const MAX_PIECE: u64 = 64;

/// A body, and the positions of its events.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    pub(super) spans: Vec<Span>,
}

/// Position of one event in the body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) name: Option<EventName>,
    pub(super) start: usize,
    /// Start of the `data:` line.
    pub(super) data: usize,
    /// Middle of the `data:` line.
    pub(super) middle: usize,
    pub(super) end: usize,
}

impl Body {
    /// Builds a body without events.
    pub(super) fn whole(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            spans: Vec::new(),
        }
    }

    pub(super) fn has(&self, target: Target) -> bool {
        self.span(target).is_some()
    }

    /// Returns the end of the event, or of the body if the event is missing.
    pub(super) fn after(&self, target: Target) -> usize {
        let span = self.span(target);
        span.map_or(self.bytes.len(), |span| span.end)
    }

    /// Returns the middle of the event, or the end of the body if the event is missing.
    pub(super) fn inside(&self, target: Target) -> usize {
        let span = self.span(target);
        span.map_or(self.bytes.len(), |span| span.middle)
    }

    fn span(&self, target: Target) -> Option<&Span> {
        let mut named = self
            .spans
            .iter()
            .filter(|span| span.name == Some(target.event));
        named.nth(target.nth.saturating_sub(1))
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Lists the offsets of a named cut.
    pub(super) fn places(&self, name: CutName) -> Vec<usize> {
        match name {
            CutName::MidUtf8 => {
                let leads = (0..self.bytes.len()).filter(|at| self.bytes[*at] >= 0xc0);
                leads.map(|at| at + 1).collect()
            }
            CutName::MidCrlf => {
                let pairs = self.bytes.windows(2).zip(1..);
                pairs
                    .filter_map(|(pair, at)| (pair == b"\r\n").then_some(at))
                    .collect()
            }
            CutName::EventData => {
                let named = self.spans.iter().filter(|span| span.data > span.start);
                named.map(|span| span.data).collect()
            }
        }
    }

    /// Cuts the body into pieces to send; none is empty. Without a chunking, each event is one piece.
    pub(super) fn pieces(self, chunking: Option<&Chunking>, pace: Pace) -> VecDeque<Piece> {
        let events = self.events();
        let starts: BTreeSet<usize> = events.iter().map(|event| event.start).collect();
        let whole = 0..self.bytes.len();
        let cuts = match chunking {
            None => starts.clone(),
            // Pieces may span events. With a delay between events, each event starts a new piece.
            Some(chunking) if pace.event.is_zero() => self.cuts(chunking, slice::from_ref(&whole)),
            Some(chunking) => self.cuts(chunking, &events),
        };
        let mut rest = Bytes::from(self.bytes);
        let mut pieces = VecDeque::with_capacity(cuts.len() + 1);
        let mut at = 0;
        for end in cuts.into_iter().chain([whole.end]) {
            if end <= at || rest.is_empty() {
                continue;
            }
            let wait = if at == 0 {
                Duration::ZERO
            } else if !pace.event.is_zero() && starts.contains(&at) {
                pace.event
            } else {
                pace.chunk
            };
            let bytes = rest.split_to((end - at).min(rest.len()));
            at += bytes.len();
            pieces.push_back(Piece { wait, bytes });
        }
        pieces
    }

    /// Lists the ranges of the events in the body, which may be truncated.
    fn events(&self) -> Vec<Range<usize>> {
        let length = self.bytes.len();
        if self.spans.is_empty() {
            return iter::once(0..length).collect();
        }
        let there = self.spans.iter().filter(|span| span.start < length);
        there.map(|span| span.start..span.end.min(length)).collect()
    }

    /// Lists the cuts: at the start of each stretch, and inside it by the chunking.
    fn cuts(&self, chunking: &Chunking, stretches: &[Range<usize>]) -> BTreeSet<usize> {
        let mut cuts: BTreeSet<usize> = stretches.iter().map(|stretch| stretch.start).collect();
        match chunking {
            Chunking::Size(size) => {
                for stretch in stretches {
                    cuts.extend(stretch.clone().step_by(*size));
                }
            }
            Chunking::At(places) => {
                for place in places {
                    match place {
                        CutAt::Offset(offset) => {
                            cuts.insert(*offset);
                        }
                        CutAt::Named(name) => cuts.extend(self.places(*name)),
                    }
                }
            }
            Chunking::Seed(seed) => {
                let mut sizes = Sizes(*seed);
                for stretch in stretches {
                    let mut at = stretch.start;
                    while at < stretch.end {
                        cuts.insert(at);
                        at += sizes.next();
                    }
                }
            }
        }
        cuts
    }
}

/// Piece sizes from a seed: SplitMix64, a small generator with a good distribution.
struct Sizes(u64);

impl Sizes {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // At most 64, so the conversion cannot fail.
        usize::try_from(1 + bits % MAX_PIECE).unwrap_or(1)
    }
}
