//! Strict form of a query: each byte of a datagram either belongs to an ordinary query or is reported as odd.
//!
//! Ordinary queries are those of the resolvers of glibc, musl, Go and c-ares: one question of class IN, and at most one
//! OPT record without options (RFC 6891). The transaction id, RD and AD of the header, the UDP size and the DO bit of
//! OPT may have any value. EDNS options are always odd, since they can hold bytes of the client's choice. That includes
//! the EDNS cookies that some libraries add.

use super::{HEADER_BYTES, NoQuery, Query};

/// Class IN.
const INTERNET: u16 = 1;
/// Type of the OPT record.
const OPT: u16 = 41;
/// Length of an OPT record without options: root name, type, size, extended code, version, flags, length.
const OPT_BYTES: usize = 11;
/// DO bit, "DNSSEC OK": the only defined flag of OPT.
const DNSSEC_OK: u16 = 0x8000;

/// Header bits that ordinary queries do not set: byte, mask, name.
const ODD_BITS: [(usize, u8, &str); 5] = [
    (2, 0x04, "authoritative-answer bit"),
    (2, 0x02, "truncation bit"),
    (3, 0x80, "recursion-available bit"),
    (3, 0x40, "reserved bit"),
    (3, 0x10, "checking-disabled bit"),
];

/// Describes how a datagram differs from an ordinary query; `None` for an ordinary one.
pub(crate) fn odd(datagram: &[u8], parsed: &Result<Query, NoQuery>) -> Option<String> {
    let size = datagram.len();
    let query = match parsed {
        Ok(query) => query,
        Err(NoQuery::Short) => return Some(format!("shorter than a DNS header, {size} bytes")),
        Err(NoQuery::Response) => return Some(format!("a DNS response, {size} bytes")),
        Err(NoQuery::Malformed) => return Some(format!("no DNS query, {size} bytes")),
    };
    let mut found = header(datagram, query.questions.len());
    if is_compressed(datagram) {
        found.push("compressed name".to_owned());
    }
    if query.questions.len() == 1 {
        let class = number(datagram, query.end.saturating_sub(2));
        found.extend(
            class
                .filter(|class| *class != INTERNET)
                .map(|class| format!("class {class}")),
        );
    }
    let records = number(datagram, 10).unwrap_or_default();
    let rest = datagram.get(query.end..).unwrap_or_default();
    found.extend(additional(rest, records));
    (!found.is_empty()).then(|| format!("{}, {size} bytes", found.join(", ")))
}

fn header(datagram: &[u8], questions: usize) -> Vec<String> {
    let byte = |at: usize| datagram.get(at).copied().unwrap_or_default();
    let mut found = Vec::new();
    let opcode = byte(2) >> 3 & 0x0F;
    if opcode != 0 {
        found.push(format!("opcode {opcode}"));
    }
    let is_set = |(at, mask, _): &&(usize, u8, &str)| byte(*at) & mask != 0;
    let bits = ODD_BITS.iter().filter(is_set);
    found.extend(bits.map(|(_, _, name)| (*name).to_owned()));
    let code = byte(3) & 0x0F;
    if code != 0 {
        found.push(format!("response code {code}"));
    }
    if questions != 1 {
        found.push(format!("{questions} questions"));
    }
    for (at, name) in [(6, "answer"), (8, "authority")] {
        let records = number(datagram, at).unwrap_or_default();
        if records > 0 {
            found.push(format!("{records} {name} records"));
        }
    }
    found
}

/// Deviations in the bytes after the questions. `records` is the header's count of additional records.
fn additional(rest: &[u8], records: u16) -> Vec<String> {
    let mut found = Vec::new();
    if records > 1 {
        found.push(format!("{records} additional records"));
    }
    let is_opt = rest.first() == Some(&0) && number(rest, 1) == Some(OPT);
    if records != 1 || !is_opt || rest.len() < OPT_BYTES {
        if records == 1 {
            found.push("an additional record other than OPT".to_owned());
        }
        if !rest.is_empty() {
            found.push(format!("{} bytes after the question", rest.len()));
        }
        return found;
    }
    let byte = |at: usize| rest.get(at).copied().unwrap_or_default();
    if byte(5) != 0 {
        found.push(format!("extended response code {}", byte(5)));
    }
    if byte(6) != 0 {
        found.push(format!("EDNS version {}", byte(6)));
    }
    let flags = number(rest, 7).unwrap_or_default() & !DNSSEC_OK;
    if flags != 0 {
        found.push(format!("EDNS flags {flags:#06x}"));
    }
    let promised = usize::from(number(rest, 9).unwrap_or_default());
    let behind = rest.len() - OPT_BYTES;
    let options = promised.min(behind);
    if promised > 0 {
        found.push(format!("{options} bytes of EDNS options"));
    }
    if behind > options {
        found.push(format!("{} bytes after OPT", behind - options));
    }
    found
}

/// Checks for a compression pointer in the first name of the questions. The length byte of a label is below 64.
fn is_compressed(datagram: &[u8]) -> bool {
    let mut at = HEADER_BYTES;
    loop {
        match datagram.get(at) {
            None | Some(0) => return false,
            Some(length @ 1..=63) => at += 1 + usize::from(*length),
            Some(_) => return true,
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*pair))
}

#[cfg(test)]
mod tests;
