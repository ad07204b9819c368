//! The bytes of a body, the places in it, and the pieces that it is cut into.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;
use std::{iter, slice};

use bytes::Bytes;

use super::Piece;
use crate::{Chunking, CutAt, CutName, EventName, Pace, Target};

/// Largest piece of a seeded cut, in bytes.
const MAX_PIECE: u64 = 64;

/// A body, and where the events stand in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    pub(super) spans: Vec<Span>,
}

/// Where one event stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) name: Option<EventName>,
    pub(super) start: usize,
    /// The start of its `data:` line.
    pub(super) data: usize,
    /// The middle of its `data:` line.
    pub(super) middle: usize,
    pub(super) end: usize,
}

impl Body {
    /// A body that is no stream.
    pub(super) fn whole(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            spans: Vec::new(),
        }
    }

    pub(super) fn has(&self, target: Target) -> bool {
        self.span(target).is_some()
    }

    /// The end of the event; that of the body where it is not there.
    pub(super) fn after(&self, target: Target) -> usize {
        let span = self.span(target);
        span.map_or(self.bytes.len(), |span| span.end)
    }

    /// The middle of the event; the end of the body where it is not there.
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

    /// Where the body is cut by that name.
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

    /// The pieces in which the body is handed over; none is empty. Without a chunking each event is one.
    pub(super) fn pieces(self, chunking: Option<&Chunking>, pace: Pace) -> VecDeque<Piece> {
        let events = self.events();
        let starts: BTreeSet<usize> = events.iter().map(|event| event.start).collect();
        let whole = 0..self.bytes.len();
        let cuts = match chunking {
            None => starts.clone(),
            // Pieces run across events; with a wait between events each event starts a new piece.
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

    /// Where each event stands in what is left of the body.
    fn events(&self) -> Vec<Range<usize>> {
        let length = self.bytes.len();
        if self.spans.is_empty() {
            return iter::once(0..length).collect();
        }
        let there = self.spans.iter().filter(|span| span.start < length);
        there.map(|span| span.start..span.end.min(length)).collect()
    }

    /// Where the body is cut: at the start of each stretch, and inside as the chunking says.
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

/// Sizes of pieces from a number: SplitMix64, a small generator of good spread.
struct Sizes(u64);

impl Sizes {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // Below 65 in any case.
        usize::try_from(1 + bits % MAX_PIECE).unwrap_or(1)
    }
}
