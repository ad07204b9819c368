//! Redaction of bytes that arrive in pieces.

use super::{Inner, REPLACEMENT, SecretScanner};

/// A redaction in pieces. All results together are [`SecretScanner::redact_bytes`] of all pieces together.
#[derive(Debug)]
pub struct Redactor {
    secrets: SecretScanner,
    /// One stage for the credential, then one for each other value, as they are replaced.
    stages: Vec<Stage>,
}

impl Redactor {
    /// Starts a redaction.
    pub fn new(secrets: &SecretScanner) -> Self {
        let stages = std::iter::repeat_with(Stage::default);
        Self {
            stages: stages.take(1 + secrets.hidden.len()).collect(),
            secrets: secrets.clone(),
        }
    }

    /// Adds a piece. Returns the bytes that no later piece can change.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.pass(piece, End::Open)
    }

    /// Ends the input. Returns the remaining bytes.
    pub fn finish(&mut self) -> Vec<u8> {
        self.pass(&[], End::Last)
    }

    /// Returns true if any bytes were replaced so far.
    pub fn has_replaced(&self) -> bool {
        self.stages.iter().any(|stage| stage.has_replaced)
    }

    fn pass(&mut self, piece: &[u8], end: End) -> Vec<u8> {
        let hidden = self.secrets.hidden.iter();
        let hidden = hidden.map(|hidden| (&hidden.value, hidden.replacement.as_str()));
        let searches = std::iter::once((&*self.secrets.inner, REPLACEMENT)).chain(hidden);
        let mut bytes = piece.to_vec();
        for (stage, (search, replacement)) in self.stages.iter_mut().zip(searches) {
            bytes = stage.pass(&bytes, search, replacement.as_bytes(), end);
        }
        bytes
    }
}

/// Position of a piece in the input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// More pieces may follow.
    Open,
    Last,
}

/// Redaction of one value.
#[derive(Debug, Default)]
struct Stage {
    /// Bytes that a later piece may still change, after one byte that a match may take with it.
    held: Vec<u8>,
    has_replaced: bool,
}

impl Stage {
    fn pass(&mut self, piece: &[u8], search: &Inner, replacement: &[u8], end: End) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        // A match and the character behind it.
        let ahead = search.longest + 1;
        // Twice as many, so that each byte is searched at most twice.
        if end == End::Open && self.held.len() <= 2 * ahead {
            return Vec::new();
        }
        let decided = match end {
            End::Open => self.held.len() - ahead,
            End::Last => usize::MAX,
        };
        let mut passed = Vec::with_capacity(self.held.len());
        let mut copied = 0;
        while let Some((found, _)) = search.locate(&self.held, copied) {
            // The range may begin one byte before the match.
            if found.start + 1 >= decided {
                break;
            }
            passed.extend_from_slice(&self.held[copied..found.start]);
            passed.extend_from_slice(replacement);
            copied = found.end;
            self.has_replaced = true;
        }
        let keep = match end {
            End::Open => copied.max(decided.saturating_sub(2)),
            End::Last => self.held.len(),
        };
        passed.extend_from_slice(&self.held[copied..keep]);
        self.held.drain(..keep);
        passed
    }
}
