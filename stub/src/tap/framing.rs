//! Message framing: finds the end of a body by Content-Length or the chunked coding (RFC 9112, sections 6 and
//! 7).
//!
//! An incremental decoder for both directions, which keeps no bytes. The decoder is stricter than the HTTP
//! server's own: a line ends in CR LF, and a chunk size begins with a hexadecimal digit. Knows no heads, journals
//! or sockets.

use std::ops::Range;

/// Framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Content-Length in bytes; 0 without a body.
    Length(u64),
    /// Chunked coding.
    Chunked,
    /// Body up to the end of the connection; answers only.
    ToClose,
}

/// Decoder of one body.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    state: State,
    /// Case of the first letter in a chunk size: true for upper case.
    has_capitals: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Length(u64),
    /// Inside a chunk size, after `digits` digits, leading zeros included.
    Size {
        value: u64,
        digits: u8,
    },
    Extension {
        value: u64,
    },
    SizeEnd {
        value: u64,
    },
    Data(u64),
    DataCr,
    DataLf,
    /// At the start of a trailer line, or of the empty line that ends the body.
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
    ToClose,
    Done,
}

/// Result of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes consumed; 0 only for empty input or after the end.
    pub(crate) consumed: usize,
    /// Range of the decoded bytes among them.
    pub(crate) data: Range<usize>,
    /// Number of the consumed bytes that are neither decoded bytes nor necessary framing: extensions, trailers,
    /// leading zeros, and letters of sizes in another case than the first.
    pub(crate) surplus: u64,
}

/// Malformed framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FramingError {
    #[error("a chunk size is not hexadecimal")]
    Size,
    #[error("a chunk size is larger than 64 bits")]
    Large,
    #[error("a line of the chunked coding does not end in CR LF")]
    LineEnd,
}

/// Largest number of digits in a chunk size, leading zeros included.
const MAX_DIGITS: u8 = 16;

impl Decoder {
    pub(crate) fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(remaining) => State::Length(remaining),
            Framing::Chunked => State::Size {
                value: 0,
                digits: 0,
            },
            Framing::ToClose => State::ToClose,
        };
        Self {
            state,
            has_capitals: None,
        }
    }

    /// Checks whether the body has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Consumes input up to the next border between data and framing.
    pub(crate) fn step(&mut self, input: &[u8]) -> Result<Piece, FramingError> {
        let take = |remaining: u64| {
            usize::try_from(remaining).map_or(input.len(), |remaining| remaining.min(input.len()))
        };
        let data = |taken: usize| Piece {
            consumed: taken,
            data: 0..taken,
            surplus: 0,
        };
        match self.state {
            State::Length(remaining) => {
                let taken = take(remaining);
                self.state = if remaining == taken as u64 {
                    State::Done
                } else {
                    State::Length(remaining - taken as u64)
                };
                Ok(data(taken))
            }
            State::Data(remaining) => {
                let taken = take(remaining);
                self.state = if remaining == taken as u64 {
                    State::DataCr
                } else {
                    State::Data(remaining - taken as u64)
                };
                Ok(data(taken))
            }
            State::ToClose => Ok(data(input.len())),
            State::Done => Ok(data(0)),
            State::Size { .. }
            | State::Extension { .. }
            | State::SizeEnd { .. }
            | State::DataCr
            | State::DataLf
            | State::TrailerStart
            | State::Trailer
            | State::TrailerLf
            | State::EndLf => self.frame(input),
        }
    }

    /// Consumes framing, byte by byte, up to data or the end of the body.
    fn frame(&mut self, input: &[u8]) -> Result<Piece, FramingError> {
        let mut piece = Piece {
            consumed: 0,
            data: 0..0,
            surplus: 0,
        };
        for byte in input {
            if matches!(self.state, State::Data(_) | State::Done) {
                break;
            }
            let before = self.state;
            let (next, surplus) = match self.state.after(*byte) {
                Ok(after) => after,
                // The bytes before the fault are valid framing; the next step starts at the fault and reports
                // it.
                Err(_) if piece.consumed > 0 => break,
                Err(error) => return Err(error),
            };
            self.state = next;
            piece.consumed += 1;
            piece.surplus += u64::from(surplus || self.is_other_letter(before, *byte));
        }
        Ok(piece)
    }

    /// Checks for a letter of a chunk size in another case than the first letter.
    fn is_other_letter(&mut self, before: State, byte: u8) -> bool {
        let is_letter = matches!(before, State::Size { .. }) && byte.is_ascii_alphabetic();
        let is_capital = byte.is_ascii_uppercase();
        is_letter && *self.has_capitals.get_or_insert(is_capital) != is_capital
    }
}

impl State {
    /// Returns the state after one byte of framing, and whether that byte is surplus.
    fn after(self, byte: u8) -> Result<(Self, bool), FramingError> {
        let expect = |expected: u8, next: Self| {
            if byte == expected {
                Ok((next, false))
            } else {
                Err(FramingError::LineEnd)
            }
        };
        match self {
            Self::Size { value, digits } => match (byte, char::from(byte).to_digit(16)) {
                (_, Some(_)) if digits == MAX_DIGITS => Err(FramingError::Large),
                (_, Some(digit)) => {
                    let zero_before = digits > 0 && value == 0;
                    Ok((
                        Self::Size {
                            value: value << 4 | u64::from(digit),
                            digits: digits + 1,
                        },
                        zero_before,
                    ))
                }
                (_, None) if digits == 0 => Err(FramingError::Size),
                (b'\r', None) => Ok((Self::SizeEnd { value }, false)),
                (b';' | b' ' | b'\t', None) => Ok((Self::Extension { value }, true)),
                _ => Err(FramingError::Size),
            },
            Self::Extension { value } => match byte {
                b'\r' => Ok((Self::SizeEnd { value }, false)),
                b'\n' => Err(FramingError::LineEnd),
                _ => Ok((Self::Extension { value }, true)),
            },
            Self::SizeEnd { value: 0 } => expect(b'\n', Self::TrailerStart),
            Self::SizeEnd { value } => expect(b'\n', Self::Data(value)),
            Self::DataCr => expect(b'\r', Self::DataLf),
            Self::DataLf => expect(
                b'\n',
                Self::Size {
                    value: 0,
                    digits: 0,
                },
            ),
            Self::TrailerStart if byte == b'\r' => Ok((Self::EndLf, false)),
            Self::TrailerStart | Self::Trailer => match byte {
                b'\r' => Ok((Self::TrailerLf, true)),
                b'\n' => Err(FramingError::LineEnd),
                _ => Ok((Self::Trailer, true)),
            },
            Self::TrailerLf if byte == b'\n' => Ok((Self::TrailerStart, true)),
            Self::TrailerLf => Err(FramingError::LineEnd),
            Self::EndLf => expect(b'\n', Self::Done),
            Self::Length(_) | Self::Data(_) | Self::ToClose | Self::Done => Ok((self, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Outcome {
        data: Vec<u8>,
        consumed: usize,
        surplus: u64,
        done: bool,
    }

    fn decode(framing: Framing, input: &[u8], size: usize) -> Result<Outcome, FramingError> {
        let mut decoder = Decoder::new(framing);
        let mut outcome = Outcome {
            data: Vec::new(),
            consumed: 0,
            surplus: 0,
            done: decoder.is_done(),
        };
        for mut chunk in input.chunks(size) {
            while !chunk.is_empty() && !decoder.is_done() {
                let piece = decoder.step(chunk)?;
                outcome.data.extend_from_slice(&chunk[piece.data]);
                outcome.consumed += piece.consumed;
                outcome.surplus += piece.surplus;
                chunk = &chunk[piece.consumed..];
            }
        }
        outcome.done = decoder.is_done();
        Ok(outcome)
    }

    #[test]
    fn a_length_ends_the_body_and_leaves_what_follows() {
        let outcome = decode(Framing::Length(3), b"abcdef", 2).unwrap();
        assert_eq!(
            (outcome.data.as_slice(), outcome.consumed, outcome.done),
            (b"abc".as_slice(), 3, true)
        );
        assert!(decode(Framing::Length(0), b"abc", 1).unwrap().done);
        assert!(!decode(Framing::Length(9), b"abc", 1).unwrap().done);
    }

    #[test]
    fn chunks_are_joined_at_any_split_of_the_wire() {
        let wire = b"4\r\nWiki\r\nA\r\npedia in c\r\n0\r\n\r\nnext";
        for size in 1..wire.len() {
            let outcome = decode(Framing::Chunked, wire, size).unwrap();
            assert_eq!(outcome.data, b"Wikipedia in c");
            assert_eq!(
                (outcome.consumed, outcome.surplus, outcome.done),
                (wire.len() - 4, 0, true)
            );
        }
    }

    #[test]
    fn extensions_trailers_and_leading_zeros_are_surplus() {
        let surplus = |wire: &[u8]| {
            decode(Framing::Chunked, wire, 1).map(|outcome| (outcome.surplus, outcome.done))
        };
        assert_eq!(surplus(b"1;name=value\r\na\r\n0\r\n\r\n"), Ok((11, true)));
        assert_eq!(surplus(b"1 \r\na\r\n0\r\n\r\n"), Ok((1, true)));
        assert_eq!(surplus(b"0001\r\na\r\n000\r\n\r\n"), Ok((5, true)));
        assert_eq!(surplus(b"0\r\nA: b\r\nC:\r\n\r\n"), Ok((10, true)));
    }

    #[test]
    fn letters_of_sizes_in_both_cases_are_surplus() {
        let wire = |first: &str, second: &str| {
            let data = "x".repeat(10);
            format!("{first}\r\n{data}\r\n{second}\r\n{data}\r\n0\r\n\r\n").into_bytes()
        };
        for (first, second, surplus) in
            [("a", "a", 0), ("A", "A", 0), ("a", "A", 1), ("A", "0a", 1)]
        {
            let outcome = decode(Framing::Chunked, &wire(first, second), 1).unwrap();
            assert_eq!(
                (outcome.surplus, outcome.done),
                (surplus, true),
                "{first} {second}"
            );
        }
    }

    #[test]
    fn framing_off_the_grammar_is_an_error() {
        let error = |wire: &[u8]| decode(Framing::Chunked, wire, 1).map(|_| ()).unwrap_err();
        assert_eq!(error(b"x\r\n"), FramingError::Size);
        assert_eq!(error(b"\r\n"), FramingError::Size);
        assert_eq!(error(b"-1\r\n"), FramingError::Size);
        assert_eq!(error(b"1\na"), FramingError::Size);
        assert_eq!(error(b"1;a\nb"), FramingError::LineEnd);
        assert_eq!(error(b"1\r\nab"), FramingError::LineEnd);
        assert_eq!(error(b"1\r\na\r\r"), FramingError::LineEnd);
        assert_eq!(error(b"0\r\nA: b\n"), FramingError::LineEnd);
        assert_eq!(error(b"00000000000000001"), FramingError::Large);
    }
}
