//! The byte patterns of a credential, the escapes that may stand for any byte of them, and what may lie between.
//!
//! One walk over the bytes normalises all of it: it reads an escape as the byte that it stands for, passes over what
//! each kind of pattern may have between its bytes, and stops at the first byte that fits neither.

use std::ops::Range;

use super::Form;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Length of the longest escape of one byte, `\u0041`.
const LONGEST_ESCAPE: usize = 6;
/// Most bytes between two bytes of a pattern: an indented line end, `\u000d\u000a`.
const MOST_BETWEEN: usize = 32;
/// Most of them in all: so many for each byte of the pattern, and as many again as stand between two.
const BETWEEN_EACH: usize = 6;
/// Most NUL bytes between two bytes: UTF-32 has three, UTF-16 one.
const MOST_NULS: usize = 3;

/// One byte sequence that gives the credential away.
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

/// One byte written in more than one.
pub(super) struct Unit {
    pub(super) byte: u8,
    pub(super) length: usize,
    form: Form,
}

/// Every pattern of `secret`: as written, backwards, base64 at three alignments, that of its UTF-16, hexadecimal.
pub(super) fn patterns(secret: &[u8]) -> Vec<Pattern> {
    let mut patterns = vec![Pattern {
        bytes: secret.to_vec(),
        kind: Kind::AsWritten,
    }];
    let backwards: Vec<u8> = secret.iter().rev().copied().collect();
    // Other text is cut into its characters only as it is written.
    if secret.is_ascii() && backwards != secret {
        patterns.push(Pattern {
            bytes: backwards,
            kind: Kind::Reversed,
        });
    }
    // Of either byte order: without the byte at its border both are the same.
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
        let first = self.bytes.first().copied().unwrap_or_default();
        (0..=u8::MAX).filter(move |byte| self.same(*byte, first))
    }

    /// Length of the longest writing of the pattern.
    pub(super) fn longest(&self) -> usize {
        self.bytes.len() * LONGEST_ESCAPE + self.most_between()
    }

    /// Most bytes that lie between its bytes, all together.
    fn most_between(&self) -> usize {
        self.bytes.len() * BETWEEN_EACH + MOST_BETWEEN
    }

    /// Whether `haystack` begins with the pattern: the length of what matched, and its form.
    pub(super) fn matches(&self, haystack: &[u8]) -> Option<(usize, Form)> {
        if self.kind == Kind::AsWritten && haystack.starts_with(&self.bytes) {
            return Some((self.bytes.len(), Form::AsWritten));
        }
        // `\x33` is the digit 3, or the prefix of two digits.
        let prefixed = || match self.kind {
            Kind::Hex => self.walk(haystack, true),
            Kind::AsWritten | Kind::Reversed | Kind::Base64 => None,
        };
        self.walk(haystack, false).or_else(prefixed)
    }

    /// One walk; `separators_first` where a separator is passed over although an escape fits as well.
    fn walk(&self, haystack: &[u8], separators_first: bool) -> Option<(usize, Form)> {
        let mut at = 0;
        let mut escapes = None;
        let mut left = self.most_between();
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
                if between > MOST_BETWEEN {
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

    /// Length of what may lie before the byte at `index`, with which `rest` begins; `passed` bytes are passed already.
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
                (passed < MOST_NULS * nul).then_some(nul)
            }
            Kind::Base64 => white_space(rest),
            // Pairs of digits stay together.
            Kind::Hex if index % 2 == 1 => None,
            Kind::Hex => white_space(rest).or_else(|| separator(rest)),
        }
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
        byte == expected
            || match self.kind {
                Kind::AsWritten | Kind::Reversed => false,
                // The URL-safe alphabet has other signs for the last two values.
                Kind::Base64 => matches!((byte, expected), (b'-', b'+') | (b'_', b'/')),
                Kind::Hex => byte.to_ascii_lowercase() == expected,
            }
    }
}

/// Length of the white space with which `rest` begins, as it is or escaped.
fn white_space(rest: &[u8]) -> Option<usize> {
    match rest {
        [byte, ..] if byte.is_ascii_whitespace() => Some(1),
        [b'\\', b'n' | b'r' | b't', ..] => Some(2),
        // In a string within a string.
        [b'\\', b'\\', b'n' | b'r' | b't', ..] => Some(3),
        _ => escape(rest)
            .filter(|unit| unit.byte.is_ascii_whitespace())
            .map(|unit| unit.length),
    }
}

/// Length of the separator or prefix of hexadecimal digits with which `rest` begins: `:`, `, `, `0x`, `\x`, `u00`.
fn separator(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'0', b'x' | b'X', ..] => Some(2),
        [b'u', b'0', b'0', ..] => Some(3),
        [sign, ..] if b":,;.-_|/'\"\\xX%=".contains(sign) => Some(1),
        _ => None,
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
