//! Byte patterns of a credential, escapes of their bytes, and separators between them.
//!
//! One pass over the bytes normalises all of it. The pass decodes an escape to its byte, skips the separators that the
//! kind of pattern allows, and stops at the first byte that does not match.

use std::ops::Range;

use super::Form;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Length of the longest escape of one byte, `\u0041`.
const MAX_ESCAPE_BYTES: usize = 6;
/// Largest number of separator bytes between two bytes of a pattern: an indented line end, `\u000d\u000a`.
const MAX_GAP_BYTES: usize = 32;
/// Allowance of separator bytes per pattern byte; the total may exceed it by [`MAX_GAP_BYTES`].
const SEPARATORS_PER_BYTE: usize = 6;
/// Largest number of NUL bytes between two bytes: three in UTF-32, one in UTF-16.
const MAX_NULS: usize = 3;

/// One byte sequence that reveals the credential.
pub(super) struct Pattern {
    bytes: Vec<u8>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    AsWritten,
    Reversed,
    Base64,
    Hex,
}

/// One escaped byte.
pub(super) struct Unit {
    pub(super) byte: u8,
    pub(super) length: usize,
    form: Form,
}

/// Lists the patterns of `secret`: as written, reversed, base64 at three alignments, base64 of its UTF-16, hexadecimal.
pub(super) fn patterns(secret: &[u8]) -> Vec<Pattern> {
    let mut patterns = vec![Pattern {
        bytes: secret.to_vec(),
        kind: Kind::AsWritten,
    }];
    let reversed: Vec<u8> = secret.iter().rev().copied().collect();
    // Only ASCII is searched reversed: a match of other reversed text would not end at character boundaries.
    if secret.is_ascii() && reversed != secret {
        patterns.push(Pattern {
            bytes: reversed,
            kind: Kind::Reversed,
        });
    }
    // This covers both byte orders: without the border byte they are equal.
    let wide: Vec<u8> = secret.iter().flat_map(|byte| [*byte, 0]).collect();
    for text in [secret, &wide[..wide.len().saturating_sub(1)]] {
        for offset in 0..3 {
            patterns.push(Pattern {
                bytes: base64_core(text, offset, STANDARD),
                kind: Kind::Base64,
            });
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

/// Returns the base64 characters that depend only on `secret`, if it begins `offset` bytes after a group of three.
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
    /// Lists the bytes with which an unescaped match may begin.
    pub(super) fn first_bytes(&self) -> impl Iterator<Item = u8> {
        let first = self.bytes.first().copied().unwrap_or_default();
        (0..=u8::MAX).filter(move |byte| self.same(*byte, first))
    }

    /// Returns the largest length of a match.
    pub(super) fn longest(&self) -> usize {
        self.bytes.len() * MAX_ESCAPE_BYTES + self.max_separators()
    }

    /// Returns the largest total number of separator bytes.
    fn max_separators(&self) -> usize {
        self.bytes.len() * SEPARATORS_PER_BYTE + MAX_GAP_BYTES
    }

    /// Matches the pattern at the start of `haystack`. Returns the length and the form of the match.
    pub(super) fn matches(&self, haystack: &[u8]) -> Option<(usize, Form)> {
        if self.kind == Kind::AsWritten && haystack.starts_with(&self.bytes) {
            return Some((self.bytes.len(), Form::AsWritten));
        }
        // `\x33` may be the digit 3, or a prefix and the two digits 33.
        let prefixed = || match self.kind {
            Kind::Hex => self.walk(haystack, true),
            Kind::AsWritten | Kind::Reversed | Kind::Base64 => None,
        };
        self.walk(haystack, false).or_else(prefixed)
    }

    /// Matches in one pass; with `separators_first`, a separator takes precedence over an escape.
    fn walk(&self, haystack: &[u8], separators_first: bool) -> Option<(usize, Form)> {
        let mut at = 0;
        let mut escapes = None;
        let mut left = self.max_separators();
        let mut is_wide = false;
        for (index, expected) in self.bytes.iter().enumerate() {
            let mut between = 0;
            loop {
                let rest = haystack.get(at..)?;
                let unit = escape(rest).filter(|unit| self.same(unit.byte, *expected));
                let unit = unit.filter(|_| !separators_first);
                if let Some(unit) = unit {
                    at += unit.length;
                    escapes = Some(unit.form);
                    break;
                }
                if self.same(*rest.first()?, *expected) {
                    at += 1;
                    break;
                }
                let passed = self.between(index, between, rest)?;
                between += passed;
                left = left.checked_sub(passed)?;
                if between > MAX_GAP_BYTES {
                    return None;
                }
                at += passed;
                is_wide = true;
            }
        }
        let form = match self.kind {
            Kind::AsWritten if is_wide => Form::Wide,
            Kind::AsWritten => escapes.unwrap_or(Form::AsWritten),
            Kind::Reversed => Form::Reversed,
            Kind::Base64 => Form::Base64,
            Kind::Hex => Form::Hex,
        };
        Some((at, form))
    }

    /// Returns the length of the separator at the start of `rest`, before the byte at `index`. `passed` counts the
    /// bytes already skipped there.
    fn between(&self, index: usize, passed: usize, rest: &[u8]) -> Option<usize> {
        if index == 0 {
            return None;
        }
        match self.kind {
            Kind::AsWritten | Kind::Reversed => {
                let nul = match rest {
                    [0, ..] => 1,
                    _ => escape(rest).filter(|unit| unit.byte == 0)?.length,
                };
                (passed < MAX_NULS * nul).then_some(nul)
            }
            Kind::Base64 => white_space(rest),
            // The two digits of a pair are adjacent.
            Kind::Hex if index % 2 == 1 => None,
            Kind::Hex => white_space(rest).or_else(|| separator(rest)),
        }
    }

    /// Returns the range to redact: the characters next to a base64 match carry bits of it.
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
        byte == expected
            || match self.kind {
                Kind::AsWritten | Kind::Reversed => false,
                // The URL-safe alphabet differs in the last two characters.
                Kind::Base64 => matches!((byte, expected), (b'-', b'+') | (b'_', b'/')),
                Kind::Hex => byte.to_ascii_lowercase() == expected,
            }
    }
}

/// Returns the length of the white space at the start of `rest`, plain or escaped.
fn white_space(rest: &[u8]) -> Option<usize> {
    match rest {
        [byte, ..] if byte.is_ascii_whitespace() => Some(1),
        [b'\\', b'n' | b'r' | b't', ..] => Some(2),
        // A string inside a string.
        [b'\\', b'\\', b'n' | b'r' | b't', ..] => Some(3),
        _ => escape(rest)
            .filter(|unit| unit.byte.is_ascii_whitespace())
            .map(|unit| unit.length),
    }
}

/// Returns the length of the separator or prefix of hexadecimal digits at the start of `rest`: `:`, `, `, `0x`, `\x`,
/// `u00`.
fn separator(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'0', b'x' | b'X', ..] => Some(2),
        [b'u', b'0', b'0', ..] => Some(3),
        [sign, ..] if b":,;.-_|/'\"\\xX%=".contains(sign) => Some(1),
        _ => None,
    }
}

/// Decodes the escape at the start of `rest`: `%41`, `%2541`, `\u0041`, `\x41`, or a backslash before a punctuation
/// character.
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
