//! The credential of a run, and every form in which it might be written somewhere else.
//!
//! Owns finding and redacting: as written, base64 (both alphabets, all three alignments), hexadecimal,
//! each of them percent-encoded or with JSON escapes in any mixture. Knows nothing of where the bytes
//! come from: the runner uses it for output and files, the stub for requests.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

mod forms;

use forms::Pattern;

/// What a redacted credential is replaced by.
pub const REPLACEMENT: &str = "<credential>";
/// Shortest credential: anything shorter would be found in innocent bytes.
pub const MIN_BYTES: usize = 12;
/// Longest credential.
pub const MAX_BYTES: usize = 1024;

/// The credential of a run, ready to be searched for. A clone shares the preparation.
#[derive(Clone)]
pub struct Needle {
    inner: Arc<Inner>,
}

struct Inner {
    secret: String,
    patterns: Vec<Pattern>,
    /// Which patterns begin with a byte, one bit a pattern.
    starts: [u16; 256],
    longest: usize,
}

/// The form in which the credential was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Byte for byte.
    AsWritten,
    /// Base64, standard or URL-safe, at any alignment.
    Base64,
    /// Hexadecimal of either case.
    Hex,
    /// With at least one byte percent-encoded.
    Percent,
    /// With at least one JSON escape.
    Escaped,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AsWritten => "as written",
            Self::Base64 => "base64",
            Self::Hex => "hexadecimal",
            Self::Percent => "percent-encoded",
            Self::Escaped => "escaped",
        })
    }
}

/// Why a credential cannot be searched for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NeedleError {
    /// Too short or too long.
    #[error("a credential of {bytes} bytes; {MIN_BYTES} to {MAX_BYTES} are allowed")]
    Length {
        /// Length of the credential.
        bytes: usize,
    },
    /// A byte that is not a visible ASCII character.
    #[error("the credential holds a character that is not visible ASCII")]
    Character,
}

impl Needle {
    /// Prepares the search for `credential`, which is [`MIN_BYTES`] to [`MAX_BYTES`] visible ASCII characters.
    pub fn new(credential: &str) -> Result<Self, NeedleError> {
        if !(MIN_BYTES..=MAX_BYTES).contains(&credential.len()) {
            return Err(NeedleError::Length {
                bytes: credential.len(),
            });
        }
        if !credential.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(NeedleError::Character);
        }
        let patterns = forms::patterns(credential.as_bytes());
        let mut starts = [0; 256];
        for (index, pattern) in patterns.iter().enumerate() {
            for byte in pattern.first_bytes() {
                starts[usize::from(byte)] |= 1 << index;
            }
        }
        let longest = patterns.iter().map(Pattern::longest).max().unwrap_or(0);
        Ok(Self {
            inner: Arc::new(Inner {
                secret: credential.to_owned(),
                patterns,
                starts,
                longest,
            }),
        })
    }

    /// The search for the credential in small letters, which is what a host name makes of it.
    pub fn in_small_letters(&self) -> Self {
        // As long, and as visible.
        Self::new(&self.inner.secret.to_ascii_lowercase()).unwrap_or_else(|_| self.clone())
    }

    /// Whether `bytes` are the credential itself and nothing else.
    pub fn is(&self, bytes: &[u8]) -> bool {
        self.inner.secret.as_bytes() == bytes
    }

    /// The first form of the credential in `haystack`, if there is one.
    pub fn find(&self, haystack: &[u8]) -> Option<Form> {
        self.locate(haystack, 0).map(|(_, form)| form)
    }

    /// `text` with every form of the credential replaced by [`REPLACEMENT`].
    pub fn redact(&self, text: &str) -> String {
        let mut redacted = String::with_capacity(text.len());
        let mut copied = 0;
        // What is found begins and ends at ASCII bytes, which are borders of characters.
        while let Some((found, _)) = self.locate(text.as_bytes(), copied) {
            redacted.push_str(text.get(copied..found.start).unwrap_or_default());
            redacted.push_str(REPLACEMENT);
            copied = found.end;
        }
        redacted.push_str(text.get(copied..).unwrap_or_default());
        redacted
    }

    /// `bytes` with every form of the credential replaced by [`REPLACEMENT`].
    pub fn redact_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut redacted = Vec::with_capacity(bytes.len());
        let mut copied = 0;
        while let Some((found, _)) = self.locate(bytes, copied) {
            redacted.extend_from_slice(&bytes[copied..found.start]);
            redacted.extend_from_slice(REPLACEMENT.as_bytes());
            copied = found.end;
        }
        redacted.extend_from_slice(&bytes[copied..]);
        redacted
    }

    /// Replaces every form of the credential in the strings and keys of `value` by [`REPLACEMENT`].
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) if self.find(text.as_bytes()).is_some() => {
                *text = self.redact(text)
            }
            Value::String(_) => {}
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(object) => {
                object.values_mut().for_each(|item| self.redact_json(item));
                if object.keys().any(|key| self.find(key.as_bytes()).is_some()) {
                    let entries = std::mem::take(object);
                    object.extend(
                        entries
                            .into_iter()
                            .map(|(key, item)| (self.redact(&key), item)),
                    );
                }
            }
        }
    }

    fn locate(&self, haystack: &[u8], from: usize) -> Option<(Range<usize>, Form)> {
        for at in from..haystack.len() {
            let byte = haystack[at];
            let mut candidates = self.inner.starts[usize::from(byte)];
            if byte == b'%' || byte == b'\\' {
                let rest = &haystack[at..];
                candidates |=
                    forms::escape(rest).map_or(0, |unit| self.inner.starts[usize::from(unit.byte)]);
            }
            while candidates != 0 {
                let pattern = &self.inner.patterns[candidates.trailing_zeros() as usize];
                if let Some((length, form)) = pattern.matches(&haystack[at..]) {
                    return Some((pattern.whole(haystack, at, at + length, from), form));
                }
                candidates &= candidates - 1;
            }
        }
        None
    }
}

impl fmt::Debug for Needle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Needle(<credential>)")
    }
}

/// A search through bytes that arrive in pieces: what is cut by a border is found as well.
#[derive(Clone, Debug)]
pub struct Scanner {
    needle: Needle,
    tail: Vec<u8>,
    found: Option<Form>,
}

impl Scanner {
    /// A search that has seen nothing yet.
    pub fn new(needle: &Needle) -> Self {
        Self {
            needle: needle.clone(),
            tail: Vec::new(),
            found: None,
        }
    }

    /// Looks through the next piece. Says the form at the first hit, and nothing after it.
    pub fn push(&mut self, piece: &[u8]) -> Option<Form> {
        if self.found.is_some() {
            return None;
        }
        let overlap = self.needle.inner.longest.saturating_sub(1);
        let border = &piece[..piece.len().min(overlap)];
        self.tail.extend_from_slice(border);
        self.found = self.needle.find(&self.tail);
        if self.found.is_none() && piece.len() > border.len() {
            self.found = self.needle.find(piece);
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - overlap..]);
        }
        let surplus = self.tail.len().saturating_sub(overlap);
        self.tail.drain(..surplus);
        self.found
    }

    /// The form of the first hit so far.
    pub fn found(&self) -> Option<Form> {
        self.found
    }
}

#[cfg(test)]
mod tests;
