//! The byte patterns of a credential, and the escapes that may stand for any byte of them.

use std::ops::Range;

use super::Form;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Length of the longest escape of one byte, `\u0041`.
const LONGEST_ESCAPE: usize = 6;

/// One byte sequence that gives the credential away.
pub(super) struct Pattern {
    bytes: Vec<u8>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    AsWritten,
    Base64,
    Hex,
}

/// One byte written in more than one.
pub(super) struct Unit {
    pub(super) byte: u8,
    pub(super) length: usize,
    form: Form,
}

/// Every pattern of `secret`: as written, base64 at three alignments in two alphabets, hexadecimal.
pub(super) fn patterns(secret: &[u8]) -> Vec<Pattern> {
    let mut patterns = vec![Pattern {
        bytes: secret.to_vec(),
        kind: Kind::AsWritten,
    }];
    for alphabet in [STANDARD, URL_SAFE] {
        for offset in 0..3 {
            let bytes = base64_core(secret, offset, alphabet);
            if patterns.iter().all(|known| known.bytes != bytes) {
                patterns.push(Pattern {
                    bytes,
                    kind: Kind::Base64,
                });
            }
        }
    }
    let digits = b"0123456789abcdef";
    let hex = secret.iter().flat_map(|byte| {
        [
            digits[usize::from(byte >> 4)],
            digits[usize::from(byte & 15)],
        ]
    });
    patterns.push(Pattern {
        bytes: hex.collect(),
        kind: Kind::Hex,
    });
    patterns
}

/// The characters that depend on `secret` alone where it stands `offset` bytes after a group of three.
fn base64_core(secret: &[u8], offset: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let first = (offset * 8).div_ceil(6);
    let end = (offset + secret.len()) * 8 / 6;
    let bit = |index: usize| {
        let byte = (index / 8).checked_sub(offset).map_or(0, |at| secret[at]);
        usize::from(byte >> (7 - index % 8) & 1)
    };
    (first..end)
        .map(|symbol| {
            alphabet[(symbol * 6..symbol * 6 + 6).fold(0, |value, at| value << 1 | bit(at))]
        })
        .collect()
}

impl Pattern {
    /// The bytes with which the pattern may begin where nothing is escaped.
    pub(super) fn first_bytes(&self) -> impl Iterator<Item = u8> {
        let first = self.bytes.first().copied();
        let upper = first
            .filter(|_| self.kind == Kind::Hex)
            .map(|byte| byte.to_ascii_uppercase());
        first.into_iter().chain(upper)
    }

    /// Length of the longest writing of the pattern.
    pub(super) fn longest(&self) -> usize {
        self.bytes.len() * LONGEST_ESCAPE
    }

    /// Whether `haystack` begins with the pattern: the length of what matched, and its form.
    pub(super) fn matches(&self, haystack: &[u8]) -> Option<(usize, Form)> {
        if self.kind == Kind::AsWritten && haystack.starts_with(&self.bytes) {
            return Some((self.bytes.len(), Form::AsWritten));
        }
        let mut at = 0;
        let mut escapes = None;
        for expected in &self.bytes {
            let rest = haystack.get(at..)?;
            let unit = escape(rest).filter(|unit| self.same(unit.byte, *expected));
            match unit {
                Some(unit) => {
                    at += unit.length;
                    escapes = Some(unit.form);
                }
                None if self.same(*rest.first()?, *expected) => at += 1,
                None => return None,
            }
        }
        let form = match self.kind {
            Kind::AsWritten => escapes.unwrap_or(Form::AsWritten),
            Kind::Base64 => Form::Base64,
            Kind::Hex => Form::Hex,
        };
        Some((at, form))
    }

    /// What has to go when the pattern is redacted: characters beside a base64 pattern carry bits of it.
    pub(super) fn whole(
        &self,
        haystack: &[u8],
        start: usize,
        end: usize,
        from: usize,
    ) -> Range<usize> {
        let symbol = |at: usize| {
            haystack
                .get(at)
                .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte))
        };
        if self.kind != Kind::Base64 {
            return start..end;
        }
        let before = usize::from(start > from && symbol(start - 1));
        start - before..end + usize::from(symbol(end))
    }

    fn same(&self, byte: u8, expected: u8) -> bool {
        byte == expected || self.kind == Kind::Hex && byte.to_ascii_lowercase() == expected
    }
}

/// The escape with which `rest` begins: `%41`, `%2541`, `\u0041`, `\x41`, or a backslash before a sign.
pub(super) fn escape(rest: &[u8]) -> Option<Unit> {
    let pair = |at: usize| Some(nibble(*rest.get(at)?)? << 4 | nibble(*rest.get(at + 1)?)?);
    match rest {
        [b'%', b'2', b'5', ..] if pair(3).is_some() => Some(Unit {
            byte: pair(3)?,
            length: 5,
            form: Form::Percent,
        }),
        [b'%', ..] => Some(Unit {
            byte: pair(1)?,
            length: 3,
            form: Form::Percent,
        }),
        [b'\\', b'u', b'0', b'0', ..] => Some(Unit {
            byte: pair(4)?,
            length: 6,
            form: Form::Escaped,
        }),
        [b'\\', b'x', ..] => Some(Unit {
            byte: pair(2)?,
            length: 4,
            form: Form::Escaped,
        }),
        [b'\\', sign, ..] if sign.is_ascii_punctuation() => Some(Unit {
            byte: *sign,
            length: 2,
            form: Form::Escaped,
        }),
        _ => None,
    }
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}
