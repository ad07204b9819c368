//! The credential of a run, and every form in which it might be written somewhere else.
//!
//! Owns finding and redacting: as written, backwards, UTF-16 and UTF-32 of either byte order, base64 (both alphabets,
//! all three alignments, with or without padding, also of UTF-16, wrapped anywhere by white space), hexadecimal (either
//! case, its pairs separated by white space, signs, `0x` or `\\x`), each of them percent-encoded or with JSON escapes in
//! any mixture. Not searched: parts of it, other bases and lists of decimal numbers, quoted-printable, HTML entities,
//! and whatever is compressed, encrypted or hashed. Knows nothing of where the bytes
//! come from: the runner uses it for output and files, the stub for requests. Values that were given to a program
//! by whoever started it are replaced the same way, and not searched for.

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

/// Shortest other value that is replaced: anything shorter stands in innocent text.
pub const MIN_HIDDEN_BYTES: usize = 8;

/// The credential of a run, ready to be searched for, and other values that no report shows. A clone shares the
/// preparation.
#[derive(Clone)]
pub struct SecretScanner {
    inner: Arc<Inner>,
    /// Replaced like the credential, and nobody is blamed for writing them.
    hidden: Arc<[Hidden]>,
}

/// Headers in which the credential may stand, alone, in a request to its host; in `authorization` behind `Bearer`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Belongs {
    /// In this header of the message, its name in lower case.
    InHeaderOfMessage(String),
    /// In any of [`AUTH_HEADERS`], of any request.
    InAnyAuthHeader,
}

/// Headers in which providers take a credential, in lower case.
pub const AUTH_HEADERS: [&str; 4] = ["x-api-key", "authorization", "x-goog-api-key", "api-key"];

/// Headers that carry a credential.
pub const CREDENTIAL_HEADERS: [&str; 6] = [
    "x-api-key",
    "authorization",
    "x-goog-api-key",
    "api-key",
    "proxy-authorization",
    "cookie",
];

impl Default for Belongs {
    fn default() -> Self {
        Self::InHeaderOfMessage("x-api-key".to_owned())
    }
}

impl Belongs {
    /// Checks for a header, by its name in lower case, in which the credential belongs.
    pub fn is_in(&self, name: &str) -> bool {
        match self {
            Self::InHeaderOfMessage(header) => header == name,
            Self::InAnyAuthHeader => AUTH_HEADERS.contains(&name),
        }
    }
}

/// A value that no report shows, and what stands in its place.
struct Hidden {
    value: Inner,
    name: String,
    replacement: String,
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
    /// With NUL bytes between its own: UTF-16 or UTF-32, of either byte order.
    Wide,
    /// Backwards.
    Reversed,
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
            Self::Wide => "UTF-16",
            Self::Reversed => "reversed",
            Self::Percent => "percent-encoded",
            Self::Escaped => "escaped",
        })
    }
}

/// Why a credential cannot be searched for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
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

impl SecretScanner {
    /// Prepares the search for `credential`, which is [`MIN_BYTES`] to [`MAX_BYTES`] visible ASCII characters.
    pub fn new(credential: &str) -> Result<Self, SecretError> {
        if !(MIN_BYTES..=MAX_BYTES).contains(&credential.len()) {
            return Err(SecretError::Length {
                bytes: credential.len(),
            });
        }
        if !credential.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SecretError::Character);
        }
        Ok(Self {
            inner: Arc::new(Inner::new(credential)),
            hidden: Arc::default(),
        })
    }

    /// The same, and with the values of these variables (name, value) replaced wherever the credential is: each one as
    /// a whole, and each line of it, where they are long enough.
    #[must_use]
    pub fn hiding<'v>(self, values: impl IntoIterator<Item = (&'v str, &'v str)>) -> Self {
        let mut hidden: Vec<Hidden> = values
            .into_iter()
            .flat_map(|(name, value)| {
                let lines = value.lines().filter(move |line| *line != value);
                std::iter::once(value)
                    .chain(lines)
                    .map(move |text| (name, text))
            })
            .filter(|(_, text)| text.len() >= MIN_HIDDEN_BYTES)
            .map(|(name, text)| Hidden::new(name, text))
            .collect();
        // One that holds another goes first.
        hidden.sort_by_key(|hidden| std::cmp::Reverse(hidden.value.secret.len()));
        Self {
            hidden: hidden.into(),
            ..self
        }
    }

    /// The search for the credential in small letters, which is what a host name makes of it.
    pub fn in_small_letters(&self) -> Self {
        let small =
            |hidden: &Hidden| Hidden::new(&hidden.name, &hidden.value.secret.to_ascii_lowercase());
        // As long, and as visible.
        Self {
            inner: Arc::new(Inner::new(&self.inner.secret.to_ascii_lowercase())),
            hidden: self.hidden.iter().map(small).collect(),
        }
    }

    /// The longest writing of anything that is replaced.
    pub fn longest(&self) -> usize {
        let hidden = self.hidden.iter().map(|hidden| hidden.value.longest);
        hidden.fold(self.inner.longest, usize::max)
    }

    /// Whether `bytes` are the credential itself and nothing else.
    pub fn is(&self, bytes: &[u8]) -> bool {
        self.inner.secret.as_bytes() == bytes
    }

    /// The first form of the credential in `haystack`, if there is one.
    pub fn find(&self, haystack: &[u8]) -> Option<Form> {
        self.inner.locate(haystack, 0).map(|(_, form)| form)
    }

    /// The name of a variable whose value stands in `haystack`, in any form in which it would be replaced.
    pub fn find_hidden(&self, haystack: &[u8]) -> Option<&str> {
        let stands = |hidden: &&Hidden| hidden.value.locate(haystack, 0).is_some();
        self.hidden.iter().find(stands).map(|one| &*one.name)
    }

    /// `text` with every form of the credential replaced by [`REPLACEMENT`], and other values by what names them.
    pub fn redact(&self, text: &str) -> String {
        let mut redacted = self.inner.replaced(text, REPLACEMENT);
        for Hidden {
            value, replacement, ..
        } in self.hidden.iter()
        {
            if value.locate(redacted.as_bytes(), 0).is_some() {
                redacted = value.replaced(&redacted, replacement);
            }
        }
        redacted
    }

    /// The same for bytes.
    pub fn redact_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut redacted = self.inner.replaced_bytes(bytes, REPLACEMENT.as_bytes());
        for Hidden {
            value, replacement, ..
        } in self.hidden.iter()
        {
            if value.locate(&redacted, 0).is_some() {
                redacted = value.replaced_bytes(&redacted, replacement.as_bytes());
            }
        }
        redacted
    }

    /// Whether anything in `haystack` is replaced.
    fn changes(&self, haystack: &[u8]) -> bool {
        let mut all = std::iter::once(&*self.inner).chain(self.hidden.iter().map(|one| &one.value));
        all.any(|inner| inner.locate(haystack, 0).is_some())
    }

    /// Replaces the same in the strings and keys of `value`.
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) if self.changes(text.as_bytes()) => *text = self.redact(text),
            Value::String(_) => {}
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(object) => {
                object.values_mut().for_each(|item| self.redact_json(item));
                if object.keys().any(|key| self.changes(key.as_bytes())) {
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
}

impl Hidden {
    fn new(name: &str, value: &str) -> Self {
        Self {
            value: Inner::new(value),
            name: name.to_owned(),
            replacement: format!("<value of {name}>"),
        }
    }
}

impl Inner {
    fn new(secret: &str) -> Self {
        let patterns = forms::patterns(secret.as_bytes());
        let mut starts = [0; 256];
        for (index, pattern) in patterns.iter().enumerate() {
            for byte in pattern.first_bytes() {
                starts[usize::from(byte)] |= 1 << index;
            }
        }
        let longest = patterns.iter().map(Pattern::longest).max().unwrap_or(0);
        Self {
            secret: secret.to_owned(),
            patterns,
            starts,
            longest,
        }
    }

    fn replaced(&self, text: &str, replacement: &str) -> String {
        let mut replaced = String::with_capacity(text.len());
        let mut copied = 0;
        // What is found begins and ends at borders of characters: it is ASCII, or text as it was given.
        while let Some((found, _)) = self.locate(text.as_bytes(), copied) {
            replaced.push_str(text.get(copied..found.start).unwrap_or_default());
            replaced.push_str(replacement);
            copied = found.end;
        }
        replaced.push_str(text.get(copied..).unwrap_or_default());
        replaced
    }

    fn replaced_bytes(&self, bytes: &[u8], replacement: &[u8]) -> Vec<u8> {
        let mut replaced = Vec::with_capacity(bytes.len());
        let mut copied = 0;
        while let Some((found, _)) = self.locate(bytes, copied) {
            replaced.extend_from_slice(&bytes[copied..found.start]);
            replaced.extend_from_slice(replacement);
            copied = found.end;
        }
        replaced.extend_from_slice(&bytes[copied..]);
        replaced
    }

    fn locate(&self, haystack: &[u8], from: usize) -> Option<(Range<usize>, Form)> {
        for at in from..haystack.len() {
            let byte = haystack[at];
            let mut candidates = self.starts[usize::from(byte)];
            if byte == b'%' || byte == b'\\' {
                let rest = &haystack[at..];
                candidates |=
                    forms::escape(rest).map_or(0, |unit| self.starts[usize::from(unit.byte)]);
            }
            while candidates != 0 {
                let pattern = &self.patterns[candidates.trailing_zeros() as usize];
                if let Some((length, form)) = pattern.matches(&haystack[at..]) {
                    return Some((pattern.whole(haystack, at, at + length, from), form));
                }
                candidates &= candidates - 1;
            }
        }
        None
    }
}

impl fmt::Debug for SecretScanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretScanner(<credential>)")
    }
}

/// A search through bytes that arrive in pieces: what is cut by a border is found as well.
#[derive(Clone, Debug)]
pub struct Scanner {
    secrets: SecretScanner,
    border: Border,
    found: Option<Form>,
}

impl Scanner {
    /// A search that has seen nothing yet.
    pub fn new(secrets: &SecretScanner) -> Self {
        Self {
            border: Border::new(secrets.inner.longest),
            secrets: secrets.clone(),
            found: None,
        }
    }

    /// Looks through the next piece. Says the form at the first hit, and nothing after it.
    pub fn push(&mut self, piece: &[u8]) -> Option<Form> {
        if self.found.is_some() {
            return None;
        }
        self.found = self.border.push(piece, |bytes| self.secrets.find(bytes));
        self.found
    }

    /// The form of the first hit so far.
    pub fn found(&self) -> Option<Form> {
        self.found
    }
}

/// The same search for the values that are replaced beside the credential.
#[derive(Clone, Debug)]
pub struct HiddenScanner<'n> {
    secrets: &'n SecretScanner,
    border: Border,
    found: Option<&'n str>,
}

impl<'n> HiddenScanner<'n> {
    /// A search that has seen nothing yet.
    pub fn new(secrets: &'n SecretScanner) -> Self {
        let longest = secrets.hidden.iter().map(|hidden| hidden.value.longest);
        Self {
            secrets,
            border: Border::new(longest.max().unwrap_or(0)),
            found: None,
        }
    }

    /// Looks through the next piece. The name of the variable whose value was found, from then on.
    pub fn push(&mut self, piece: &[u8]) -> Option<&'n str> {
        let secrets = self.secrets;
        if self.found.is_none() && !secrets.hidden.is_empty() {
            self.found = self.border.push(piece, |bytes| secrets.find_hidden(bytes));
        }
        self.found
    }

    /// Passes over bytes that are all zero, of which no value has any: what had begun before them ends there.
    pub fn skip_zeros(&mut self) {
        self.border.tail.clear();
    }
}

/// What is kept of the bytes so far, for what a border between pieces cuts.
#[derive(Clone, Debug)]
struct Border {
    tail: Vec<u8>,
    overlap: usize,
}

impl Border {
    fn new(longest: usize) -> Self {
        Self {
            tail: Vec::new(),
            overlap: longest.saturating_sub(1),
        }
    }

    fn push<T>(&mut self, piece: &[u8], look: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let border = &piece[..piece.len().min(self.overlap)];
        self.tail.extend_from_slice(border);
        let mut found = look(&self.tail);
        if found.is_none() && piece.len() > border.len() {
            found = look(piece);
            self.tail.clear();
            self.tail
                .extend_from_slice(&piece[piece.len() - self.overlap..]);
        }
        let surplus = self.tail.len().saturating_sub(self.overlap);
        self.tail.drain(..surplus);
        found
    }
}

#[cfg(test)]
mod tests;
