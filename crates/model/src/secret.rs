//! Search and redaction of the run's credential, in every form in which a program might write it.
//!
//! These forms are found:
//!
//! - as written, reversed, and UTF-16 or UTF-32 of either byte order
//! - base64: both alphabets, all three alignments, with or without padding, also of UTF-16, wrapped anywhere by white
//!   space
//! - hexadecimal: either case, with white space, signs, `0x` or `\x` between the pairs
//! - each of these with percent-encoding or JSON escapes in any mixture
//!
//! Not searched: parts of the credential, other bases, lists of decimal numbers, quoted-printable, HTML entities, and
//! compressed, encrypted or hashed data.
//!
//! Knows no source of bytes: the runner searches output and files, the stub requests. Values of variables that the user
//! passed to a program are redacted in the same way, but not reported.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

mod forms;
mod redactor;

use forms::Pattern;
pub use redactor::Redactor;

/// Replacement for the credential.
pub const REPLACEMENT: &str = "<credential>";
/// Shortest credential, in bytes. A shorter one would often match by chance.
pub const MIN_BYTES: usize = 12;
/// Longest credential, in bytes.
pub const MAX_BYTES: usize = 1024;

/// Shortest other value that is redacted, in bytes. A shorter one would often match by chance.
pub const MIN_HIDDEN_BYTES: usize = 8;

/// A prepared search for the credential of a run, and for other values that no report shows. Clones share the
/// preparation.
#[derive(Clone)]
pub struct SecretScanner {
    inner: Arc<Inner>,
    /// Values that are redacted like the credential, but not reported as leaks.
    hidden: Arc<[Hidden]>,
}

/// Headers in which the credential belongs, as the only value, in requests to its host; in `authorization` it follows
/// `Bearer`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Belongs {
    /// This header of the message request, in lower case.
    InHeaderOfMessage(String),
    /// Each of [`AUTH_HEADERS`], in any request.
    InAnyAuthHeader,
}

/// Headers in which providers accept a credential, in lower case.
pub const AUTH_HEADERS: [&str; 4] = ["x-api-key", "authorization", "x-goog-api-key", "api-key"];

/// Headers that may carry a credential, in lower case.
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
    /// Returns true if the credential belongs in this header; `name` is in lower case.
    pub fn is_in(&self, name: &str) -> bool {
        match self {
            Self::InHeaderOfMessage(header) => header == name,
            Self::InAnyAuthHeader => AUTH_HEADERS.contains(&name),
        }
    }
}

/// A value that no report shows, and its replacement.
struct Hidden {
    value: Inner,
    name: String,
    replacement: String,
}

struct Inner {
    secret: String,
    patterns: Vec<Pattern>,
    /// Bit sets of the patterns that begin with each byte, one bit per pattern.
    starts: [u16; 256],
    longest: usize,
}

/// Form in which the credential was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Unchanged.
    AsWritten,
    /// Base64, standard or URL-safe, at any alignment.
    Base64,
    /// Hexadecimal of either case.
    Hex,
    /// With NUL bytes between the bytes: UTF-16 or UTF-32, of either byte order.
    Wide,
    /// Reversed.
    Reversed,
    /// With at least one percent-encoded byte.
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

/// Reason why a text cannot be a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The text is too short or too long.
    #[error("expected a credential of {MIN_BYTES} to {MAX_BYTES} bytes, found {bytes}")]
    Length {
        /// Length of the text in bytes.
        bytes: usize,
    },
    /// The text contains a byte that is not a visible ASCII character.
    #[error("the credential has a character that is not visible ASCII")]
    Character,
}

impl SecretScanner {
    /// Prepares the search for `credential`, which must be [`MIN_BYTES`] to [`MAX_BYTES`] visible ASCII characters.
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

    /// Adds the values of these variables (name, value) to the redaction: each value, and each of its lines, if it is
    /// long enough.
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
        // A value that contains another one is replaced first.
        hidden.sort_by_key(|hidden| std::cmp::Reverse(hidden.value.secret.len()));
        Self {
            hidden: hidden.into(),
            ..self
        }
    }

    /// Returns the search for the credential in lower case, the form that it has in a host name.
    pub fn in_lower_case(&self) -> Self {
        let lower =
            |hidden: &Hidden| Hidden::new(&hidden.name, &hidden.value.secret.to_ascii_lowercase());
        // Length and character set do not change.
        Self {
            inner: Arc::new(Inner::new(&self.inner.secret.to_ascii_lowercase())),
            hidden: self.hidden.iter().map(lower).collect(),
        }
    }

    /// Returns the largest length of any redacted form, in bytes.
    pub fn longest(&self) -> usize {
        let hidden = self.hidden.iter().map(|hidden| hidden.value.longest);
        hidden.fold(self.inner.longest, usize::max)
    }

    /// Returns true if `bytes` are exactly the credential.
    pub fn is(&self, bytes: &[u8]) -> bool {
        self.inner.secret.as_bytes() == bytes
    }

    /// Returns the form of the first occurrence of the credential in `haystack`.
    pub fn find(&self, haystack: &[u8]) -> Option<Form> {
        self.inner.locate(haystack, 0).map(|(_, form)| form)
    }

    /// Returns the name of a variable whose value is in `haystack`, in any redacted form.
    pub fn find_hidden(&self, haystack: &[u8]) -> Option<&str> {
        let stands = |hidden: &&Hidden| hidden.value.locate(haystack, 0).is_some();
        self.hidden.iter().find(stands).map(|one| &*one.name)
    }

    /// Replaces every form of the credential in `text` by [`REPLACEMENT`], and other values by their names.
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

    /// Replaces every form of the credential in `bytes` by [`REPLACEMENT`], and other values by their names.
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

    /// Returns true if redaction changes `haystack`.
    fn changes(&self, haystack: &[u8]) -> bool {
        let mut all = std::iter::once(&*self.inner).chain(self.hidden.iter().map(|one| &one.value));
        all.any(|inner| inner.locate(haystack, 0).is_some())
    }

    /// Redacts the strings and keys of `value`.
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
        // Matches begin and end at character boundaries: a match is ASCII, or text as it was given.
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

/// A search in bytes that arrive in pieces; it also finds a match across two pieces.
#[derive(Clone, Debug)]
pub struct Scanner {
    secrets: SecretScanner,
    border: Border,
    found: Option<Form>,
}

impl Scanner {
    /// Starts a search.
    pub fn new(secrets: &SecretScanner) -> Self {
        Self {
            border: Border::new(secrets.inner.longest),
            secrets: secrets.clone(),
            found: None,
        }
    }

    /// Searches the next piece. Returns the form at the first match, and `None` after it.
    pub fn push(&mut self, piece: &[u8]) -> Option<Form> {
        if self.found.is_some() {
            return None;
        }
        self.found = self.border.push(piece, |bytes| self.secrets.find(bytes));
        self.found
    }

    /// Returns the form of the first match so far.
    pub fn found(&self) -> Option<Form> {
        self.found
    }
}

/// A search in pieces for the values that are redacted besides the credential.
#[derive(Clone, Debug)]
pub struct HiddenScanner<'n> {
    secrets: &'n SecretScanner,
    border: Border,
    found: Option<&'n str>,
}

impl<'n> HiddenScanner<'n> {
    /// Starts a search.
    pub fn new(secrets: &'n SecretScanner) -> Self {
        let longest = secrets.hidden.iter().map(|hidden| hidden.value.longest);
        Self {
            secrets,
            border: Border::new(longest.max().unwrap_or(0)),
            found: None,
        }
    }

    /// Searches the next piece. After the first match, returns the name of its variable.
    pub fn push(&mut self, piece: &[u8]) -> Option<&'n str> {
        let secrets = self.secrets;
        if self.found.is_none() && !secrets.hidden.is_empty() {
            self.found = self.border.push(piece, |bytes| secrets.find_hidden(bytes));
        }
        self.found
    }

    /// Skips bytes that are all zero. Values contain no zero, so no match spans them.
    pub fn skip_zeros(&mut self) {
        self.border.tail.clear();
    }
}

/// Last bytes of the previous pieces, to find matches across two pieces.
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
