//! DNS queries (RFC 1035), read as evidence: which names a datagram asks for, and the answer that there are none.
//!
//! Pure, over bytes that a hostile program chose. No crate does it: a name is evidence byte for byte, also
//! where a resolver's library would normalise or refuse it, and the whole answer is a header and an echo. It
//! knows no socket and no ledger.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

pub(crate) mod strict;

/// ID, flags and four counts.
const HEADER_BYTES: usize = 12;
/// Bytes of a name on the wire, its length bytes included (RFC 1035, 3.1).
const NAME_BYTES: usize = 255;
/// Questions that are read from one datagram; servers in use take one.
const MOST_ASKED: usize = 16;

/// Byte 2 of the header: a response, the opcode, recursion desired.
const RESPONSE: u8 = 0x80;
const OPCODE: u8 = 0x78;
const RECURSION_DESIRED: u8 = 0x01;
/// Byte 3 of the header: recursion available, and the two codes that are given.
const RECURSION_AVAILABLE: u8 = 0x80;
const FORMAT_ERROR: u8 = 1;
const NO_SUCH_NAME: u8 = 3;

/// One question of a query.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Asked {
    /// Labels with dots between them, `.` for the root. A dot or backslash in a label has a backslash before
    /// it; what is no visible ASCII is `\DDD`, in decimal (RFC 1035, 5.1).
    pub name: String,
    /// `A`, `AAAA`, `MX`, …, or `TYPE65` (RFC 3597).
    pub kind: String,
    /// Further content of its datagram; `None` for an ordinary query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub odd: Option<Odd>,
}

/// Deviations of a datagram from an ordinary query.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Odd {
    /// Our words and numbers, nothing of the datagram's text.
    pub what: String,
    /// Form in which the datagram holds the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// What a datagram asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    /// From 1 to 16 of them.
    pub(crate) questions: Vec<Asked>,
    /// Where the section of the questions ends; [`strict::odd`] judges what follows.
    end: usize,
}

/// Why a datagram is no query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoQuery {
    /// Not even a header.
    Short,
    /// It is an answer itself.
    Response,
    /// A header and something that cannot be read, or no question, or more than sixteen.
    Malformed,
}

/// Reads the questions of a datagram.
///
/// # Errors
/// Why it is no query.
pub(crate) fn parse(datagram: &[u8]) -> Result<Query, NoQuery> {
    let header = datagram
        .first_chunk::<HEADER_BYTES>()
        .ok_or(NoQuery::Short)?;
    let [_, _, flags, _, count @ .., _, _, _, _, _, _] = header;
    if flags & RESPONSE != 0 {
        return Err(NoQuery::Response);
    }
    let count = usize::from(u16::from_be_bytes(*count));
    if !(1..=MOST_ASKED).contains(&count) {
        return Err(NoQuery::Malformed);
    }
    let mut questions = Vec::with_capacity(count);
    let mut end = HEADER_BYTES;
    for _ in 0..count {
        let (asked, next) = question(datagram, end).ok_or(NoQuery::Malformed)?;
        questions.push(asked);
        end = next;
    }
    Ok(Query { questions, end })
}

/// The names that a datagram asks for; none where it is no query.
pub(crate) fn names(datagram: &[u8]) -> Vec<String> {
    let asked = |query: Query| query.questions.into_iter().map(|asked| asked.name);
    parse(datagram)
        .map(asked)
        .map(Iterator::collect)
        .unwrap_or_default()
}

/// The answer to a datagram: no such name, with the questions echoed; a format error where it cannot be read;
/// nothing for an answer and for less than a header.
pub(crate) fn answer(datagram: &[u8], parsed: &Result<Query, NoQuery>) -> Option<Vec<u8>> {
    let (code, end) = match parsed {
        Ok(query) => (NO_SUCH_NAME, query.end),
        Err(NoQuery::Malformed) => (FORMAT_ERROR, HEADER_BYTES),
        Err(NoQuery::Short | NoQuery::Response) => return None,
    };
    let [id @ .., flags, _, _, _] = datagram.first_chunk::<6>()?;
    let count = match parsed {
        Ok(query) => u16::try_from(query.questions.len()).ok()?,
        Err(_) => 0,
    };
    let mut answer = Vec::with_capacity(end);
    answer.extend(id);
    answer.push(RESPONSE | flags & (OPCODE | RECURSION_DESIRED));
    answer.push(RECURSION_AVAILABLE | code);
    answer.extend(count.to_be_bytes());
    answer.extend([0; 6]);
    // At the same place as in the query, so that a pointer in it leads where it led.
    answer.extend(datagram.get(HEADER_BYTES..end)?);
    Some(answer)
}

/// The question at `start`, and where the next one begins.
fn question(message: &[u8], start: usize) -> Option<(Asked, usize)> {
    let (name, at) = name(message, start)?;
    let [kind @ .., _, _] = message.get(at..)?.first_chunk::<4>()?;
    let kind = kind_text(u16::from_be_bytes(*kind));
    let asked = Asked {
        name,
        kind,
        odd: None,
    };
    Some((asked, at + 4))
}

/// The name at `start`, and what follows it. A pointer must lead to a place before everything that was read
/// of the name so far, so there is no loop to be caught in.
fn name(message: &[u8], start: usize) -> Option<(String, usize)> {
    let mut text = String::new();
    let (mut at, mut from, mut bytes) = (start, start, 1);
    let mut end = None;
    loop {
        let first = *message.get(at)?;
        at += 1;
        match first {
            0 => break,
            1..=63 => {
                let label = message.get(at..at + usize::from(first))?;
                bytes += 1 + label.len();
                if bytes > NAME_BYTES {
                    return None;
                }
                push_label(&mut text, label);
                at += label.len();
            }
            // Two kinds of label that were never given a meaning.
            64..=191 => return None,
            192.. => {
                let target = usize::from(first & 0x3F) << 8 | usize::from(*message.get(at)?);
                if !(HEADER_BYTES..from).contains(&target) {
                    return None;
                }
                end.get_or_insert(at + 1);
                (at, from) = (target, target);
            }
        }
    }
    if text.is_empty() {
        text.push('.');
    }
    Some((text, end.unwrap_or(at)))
}

fn push_label(text: &mut String, label: &[u8]) {
    if !text.is_empty() {
        text.push('.');
    }
    for byte in label {
        // Writing to a string cannot fail.
        let _ = match byte {
            b'.' | b'\\' => write!(text, "\\{}", char::from(*byte)),
            byte if byte.is_ascii_graphic() => write!(text, "{}", char::from(*byte)),
            byte => write!(text, "\\{byte:03}"),
        };
    }
}

fn kind_text(kind: u16) -> String {
    let known = match kind {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        12 => "PTR",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        252 => "AXFR",
        255 => "ANY",
        other => return format!("TYPE{other}"),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests;
