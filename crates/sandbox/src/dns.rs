//! DNS queries (RFC 1035) as evidence: the names that a datagram asks for, and the answer "no such name".
//!
//! Pure functions over bytes of a hostile program; no sockets, no ledger. No crate is used: a name is evidence byte for
//! byte, while DNS libraries normalise or reject odd names. The answer is a header and the echoed questions; `localhost`
//! has the address that it has by definition (RFC 6761, 6.3).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

pub(crate) mod strict;

/// Length of the header: id, flags and four counts.
const HEADER_BYTES: usize = 12;
/// Longest name on the wire, with its length bytes (RFC 1035, 3.1).
const NAME_BYTES: usize = 255;
/// Most questions of one datagram; common servers accept one.
const MAX_QUESTIONS_PER_QUERY: usize = 16;

/// Bits of byte 2 of the header: response, opcode, recursion desired.
const RESPONSE: u8 = 0x80;
const OPCODE: u8 = 0x78;
const RECURSION_DESIRED: u8 = 0x01;
/// Bits of byte 3 of the header: recursion available, and the two response codes in use.
const RECURSION_AVAILABLE: u8 = 0x80;
const NO_ERROR: u8 = 0;
const FORMAT_ERROR: u8 = 1;
const NO_SUCH_NAME: u8 = 3;

/// One question of a query.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Asked {
    /// Labels joined by dots, `.` for the root. A dot or backslash in a label is escaped by a backslash; other bytes
    /// than visible ASCII are `\DDD`, in decimal (RFC 1035, 5.1).
    pub name: String,
    /// Type of the question: `A`, `AAAA`, `MX`, …, or `TYPE65` (RFC 3597).
    pub kind: String,
    /// Deviations of the datagram from an ordinary query; `None` for an ordinary one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub odd: Option<Odd>,
}

/// Deviations of a datagram from an ordinary query.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Odd {
    /// Description in our own words and numbers, without text of the datagram.
    pub what: String,
    /// Form of the credential in the datagram, if it holds one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// Parsed query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    /// From 1 to 16 questions.
    pub(crate) questions: Vec<Asked>,
    /// Offset of the first byte after the questions, where [`strict::odd`] continues.
    end: usize,
}

/// Reason why a datagram is no query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoQuery {
    /// Shorter than a header.
    Short,
    /// A DNS response.
    Response,
    /// A header with unreadable questions, no question, or more than 16.
    Malformed,
}

/// Parses the questions of a datagram.
///
/// # Errors
/// The reason why the datagram is no query.
pub(crate) fn parse(datagram: &[u8]) -> Result<Query, NoQuery> {
    let header = datagram
        .first_chunk::<HEADER_BYTES>()
        .ok_or(NoQuery::Short)?;
    let [_, _, flags, _, count @ .., _, _, _, _, _, _] = header;
    if flags & RESPONSE != 0 {
        return Err(NoQuery::Response);
    }
    let count = usize::from(u16::from_be_bytes(*count));
    if !(1..=MAX_QUESTIONS_PER_QUERY).contains(&count) {
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

/// Names that a datagram asks for; empty if the datagram is no query.
pub(crate) fn names(datagram: &[u8]) -> Vec<String> {
    let asked = |query: Query| query.questions.into_iter().map(|asked| asked.name);
    parse(datagram)
        .map(asked)
        .map(Iterator::collect)
        .unwrap_or_default()
}

/// Answer to a datagram: "no such name" with the echoed questions, or a format error for a malformed query. Returns
/// `None` for responses and for datagrams shorter than a header.
pub(crate) fn answer(datagram: &[u8], parsed: &Result<Query, NoQuery>) -> Option<Vec<u8>> {
    let (code, end) = match parsed {
        Ok(query) => (NO_SUCH_NAME, query.end),
        Err(NoQuery::Malformed) => (FORMAT_ERROR, HEADER_BYTES),
        Err(NoQuery::Short | NoQuery::Response) => return None,
    };
    let questions = match parsed {
        Ok(query) => u16::try_from(query.questions.len()).ok()?,
        Err(_) => 0,
    };
    response(datagram.get(..end)?, code, [questions, 0])
}

/// Header of a response, and the questions of `query`, a datagram up to the end of its questions. `counts` are those
/// of questions and of answers.
fn response(query: &[u8], code: u8, counts: [u16; 2]) -> Option<Vec<u8>> {
    let [id @ .., flags, _, _, _] = query.first_chunk::<6>()?;
    let mut response = Vec::with_capacity(query.len());
    response.extend(id);
    response.push(RESPONSE | flags & (OPCODE | RECURSION_DESIRED));
    response.push(RECURSION_AVAILABLE | code);
    response.extend(counts.map(u16::to_be_bytes).as_flattened());
    response.extend([0; 4]);
    // The questions keep their offset, so that compression pointers in them stay valid.
    response.extend(query.get(HEADER_BYTES..)?);
    Some(response)
}

/// Answer to an ordinary query for the address of `localhost`: 127.0.0.1, and none of IPv6, where the stub does not
/// listen. Returns `None` for any other query. The name is never asked of a server, so it is no evidence.
pub(crate) fn of_localhost(datagram: &[u8], query: &Query) -> Option<Vec<u8>> {
    let [
        Asked {
            name,
            kind,
            odd: None,
        },
    ] = query.questions.as_slice()
    else {
        return None;
    };
    let record: &[u8] = match (name.as_str(), kind.as_str()) {
        // The name of the question, A, IN, no lifetime, four bytes.
        ("localhost", "A") => &[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1],
        ("localhost", "AAAA") => &[],
        _ => return None,
    };
    let counts = [1, u16::from(!record.is_empty())];
    let mut answer = response(datagram.get(..query.end)?, NO_ERROR, counts)?;
    answer.extend(record);
    Some(answer)
}

/// Question at `start`, and the offset of the next one.
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

/// Name at `start`, and the offset after it. A pointer must point before all bytes of the name that were read, so that
/// pointers cannot loop.
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
            // Label types that RFC 1035 reserves.
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
