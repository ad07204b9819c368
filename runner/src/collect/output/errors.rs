//! Standard error, or output without records.

use std::io;

use model::evidence::{Sighting, Stderr};
use model::secret::{Scanner, SecretScanner};

use super::spool::{Shown, Spool};

/// Part of standard error that a report shows, in bytes.
pub(super) const TAIL_BYTES: usize = 4096;

/// Stream so far: counted, searched for the credential, and its last part kept.
#[derive(Debug)]
pub(crate) struct Errors {
    bytes: u64,
    tail: Vec<u8>,
    /// Kept bytes of the tail: more than are shown, so that a redacted text is complete at the cut.
    kept: usize,
    scanner: Scanner,
    copy: Option<Spool>,
}

impl Errors {
    /// Creates a stream whose first bytes are copied to `copy`.
    pub(crate) fn new(secrets: &SecretScanner, copy: Option<Spool>) -> Self {
        Self {
            bytes: 0,
            tail: Vec::new(),
            kept: TAIL_BYTES + secrets.longest(),
            scanner: Scanner::new(secrets),
            copy,
        }
    }

    /// Appends bytes that were read.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.scanner.push(piece);
        if let Some(copy) = &mut self.copy {
            copy.push(piece);
        }
        self.tail.extend_from_slice(piece);
        if self.tail.len() > 2 * self.kept {
            self.tail.drain(..self.tail.len() - self.kept);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the copy, and returns it with the credential redacted.
    pub(crate) fn copied(&mut self) -> Option<io::Result<Shown>> {
        let copy = self.copy.take()?;
        let is_cut = copy.is_full();
        Some(copy.finish(is_cut))
    }

    /// Returns the sighting of the credential in this stream, if there was one.
    pub(crate) fn sighting(&self, stream: &str) -> Option<Sighting> {
        self.scanner.found().map(|form| Sighting {
            place: stream.to_owned(),
            form: form.to_string(),
        })
    }

    /// Returns the evidence, and the sighting of the credential if there was one.
    pub(crate) fn into_stderr(self, secrets: &SecretScanner) -> (Stderr, Option<Sighting>) {
        let sighting = self.sighting("stderr");
        let text = secrets.redact(&String::from_utf8_lossy(&self.tail));
        let from = text.len().saturating_sub(TAIL_BYTES);
        let from = (from..text.len())
            .find(|index| text.is_char_boundary(*index))
            .unwrap_or(text.len());
        let tail = text.get(from..).unwrap_or_default().to_owned();
        (
            Stderr {
                bytes: self.bytes,
                tail,
            },
            sighting,
        )
    }
}
