//! One request body: counted, hashed, searched for the credential, and kept for parsing while small enough.

use model::journal::{Body, Content};
use model::secret::{Scanner, SecretScanner};
use model::shape::{self, Bounds};
use sha2::{Digest, Sha256};

use super::framing::{Decoder, Framing, FramingError};
use crate::limits::{Budget, Limits, Share};

/// Part of a request's body read so far.
#[derive(Debug)]
pub(crate) struct BodyTap {
    decoder: Decoder,
    hash: Sha256,
    bytes: u64,
    kept: Result<Vec<u8>, String>,
    share: Share,
    decoded: Option<Scanner>,
    /// Searches the bytes as on the wire, if they differ from the decoded bytes.
    wire: Option<Scanner>,
}

/// Facts about a body that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) body: Body,
    pub(crate) sighting: Option<&'static str>,
}

/// Result of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) consumed: usize,
    /// Number of the consumed bytes that are neither body nor necessary framing.
    pub(crate) surplus: u64,
}

impl BodyTap {
    pub(crate) fn new(
        framing: Framing,
        budget: &Budget,
        credential: Option<&SecretScanner>,
    ) -> Self {
        Self {
            decoder: Decoder::new(framing),
            hash: Sha256::new(),
            bytes: 0,
            kept: Ok(Vec::new()),
            share: budget.share(),
            decoded: credential.map(Scanner::new),
            wire: credential
                .filter(|_| framing == Framing::Chunked)
                .map(Scanner::new),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.decoder.is_done()
    }

    /// Consumes one run of data or framing from a non-empty input.
    pub(crate) fn step(&mut self, input: &[u8], limits: &Limits) -> Result<Taken, FramingError> {
        let piece = self.decoder.step(input)?;
        let data = &input[piece.data];
        self.hash.update(data);
        self.bytes += data.len() as u64;
        self.keep(data, limits);
        if let Some(scanner) = &mut self.decoded {
            scanner.push(data);
        }
        if let Some(scanner) = &mut self.wire {
            scanner.push(&input[..piece.consumed]);
        }
        Ok(Taken {
            consumed: piece.consumed,
            surplus: piece.surplus,
        })
    }

    fn keep(&mut self, data: &[u8], limits: &Limits) {
        let Ok(kept) = &mut self.kept else { return };
        let fault = if kept.len() + data.len() > limits.body_bytes {
            format!("longer than {} bytes", limits.body_bytes)
        } else if !self.share.take(data.len()) {
            format!(
                "more than {} bytes of bodies at one time",
                limits.buffered_bytes
            )
        } else {
            kept.extend_from_slice(data);
            return;
        };
        self.kept = Err(fault);
    }

    /// Returns the body for the journal. `fault` is a framing error that ended the body early, other than the end
    /// of the connection.
    pub(crate) fn end(
        self,
        fault: Option<FramingError>,
        limits: &Limits,
        credential: Option<&SecretScanner>,
    ) -> Ended {
        let complete = self.decoder.is_done();
        let bounds = Bounds {
            depth: limits.json_depth,
            values: limits.json_values.min(self.share.values_left()),
        };
        let content = match (fault, self.kept) {
            (Some(fault), _) => Content::Other {
                reason: fault.to_string(),
            },
            (None, Err(reason)) => Content::Other { reason },
            (None, Ok(kept)) if complete || kept.is_empty() => {
                shape::describe(&kept, bounds, credential)
            }
            (None, Ok(_)) => Content::Other {
                reason: "incomplete".to_owned(),
            },
        };
        if let Content::Json { shape } = &content {
            self.share.spend_values(shape::weight(shape));
        }
        let body = Body {
            bytes: self.bytes,
            sha256: model::digest::hex(&self.hash.finalize()),
            complete,
            content,
        };
        let hit =
            |scanner: Option<Scanner>| scanner.is_some_and(|scanner| scanner.found().is_some());
        let sighting = if hit(self.decoded) {
            Some("body")
        } else {
            hit(self.wire).then_some("chunk framing")
        };
        Ended { body, sighting }
    }
}
