//! Client text with placeholders for values that differ from run to run.
//!
//! A placeholder replaces a whole word: a run of letters and digits. Parts of longer words stay, and so do versions,
//! dates and short numbers.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::{Applied, LITERALLY, Rule, times};

/// First ephemeral port of a new network namespace (`ip_local_port_range` of ip(7)).
const FIRST_GIVEN_PORT: u16 = 32768;
/// Fewest hexadecimal digits of an id.
const MIN_HEX_DIGITS: usize = 16;
/// Most decimal digits of a 64-bit number.
const MAX_DECIMAL_DIGITS_64: usize = 20;
/// Most decimal digits of a 128-bit number.
const MAX_DECIMAL_DIGITS_128: usize = 39;
/// Fewest characters of an id after its prefix.
const MIN_ID_CHARS: usize = 16;
/// Fewest groups of digits in an id of one case: a name may contain one number, or end in a date.
const MIN_DIGIT_GROUPS: usize = 2;
/// Longest address with its brackets and the colon after it, in bytes (INET6_ADDRSTRLEN of inet_ntop(3)).
const MAX_HOST_BYTES: usize = 48;
/// Directory whose random names are replaced.
const TMP: &str = "/tmp/";
/// Names of the placeholders.
const PLACEHOLDERS: [&str; 8] = [
    "time", "uuid", "port", "random", "id", "digits", "hex", "client",
];
/// Lengths of the parts of a UUID.
const UUID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];

/// Ports of the stub, which can be lower than [`FIRST_GIVEN_PORT`] in a container's network.
pub(super) type StubPorts = BTreeSet<u16>;

/// Replaces the values that vary by placeholders, and counts them.
pub(super) fn text(text: &str, stub: &StubPorts, applied: &mut Applied) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match replaced(&out, rest, stub) {
            Some((length, placeholder, rule)) => {
                applied.count(rule);
                out.push_str(&placeholder);
                length
            }
            None => {
                let length = word(rest).len().max(first.len_utf8());
                out.push_str(rest.get(..length).unwrap_or(rest));
                if is_placeholder(rest) {
                    out.push_str(LITERALLY);
                }
                length
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// Checks for a placeholder that the client wrote itself.
fn is_placeholder(rest: &str) -> bool {
    rest.strip_prefix('{').is_some_and(|inner| {
        let name = inner.trim_start_matches(LITERALLY);
        let mut known = PLACEHOLDERS.into_iter();
        known.any(|one| matches!(name.strip_prefix(one), Some(end) if end.starts_with(['}', ':'])))
    })
}

/// Replacement at the beginning of `rest`: its length, its text and its rule. `rest` begins with a word.
fn replaced(before: &str, rest: &str, stub: &StubPorts) -> Option<(usize, String, Rule)> {
    if let Some(length) = times::date_time(rest) {
        return Some((length, "{time}".to_owned(), Rule::Times));
    }
    if let Some(length) = uuid(rest) {
        return Some((length, "{uuid}".to_owned(), Rule::Ids));
    }
    if let Some((length, prefix)) = loopback_port(rest, stub) {
        return Some((length, format!("{prefix}{{port}}"), Rule::Ports));
    }
    if let Some((length, prefix)) = random_name(before, rest) {
        return Some((length, format!("{prefix}{{random}}"), Rule::RandomNames));
    }
    let word = word(rest);
    if before.ends_with('_') && is_mixed_id(word) {
        return Some((word.len(), format!("{{id:{}}}", word.len()), Rule::Ids));
    }
    if let Some(length) = times::since_1970(rest) {
        return Some((length, "{digits}".to_owned(), Rule::Times));
    }
    if is_hex_id(word) {
        let placeholder = format!("{{hex:{}}}", digits_of(word));
        return Some((word.len(), placeholder, Rule::Ids));
    }
    None
}

/// Leading letters and digits of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric());
    text.get(..end.unwrap_or(text.len())).unwrap_or(text)
}

fn is_hex_id(word: &str) -> bool {
    word.len() >= MIN_HEX_DIGITS
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Number of hexadecimal digits of an id, rounded to whole bytes. Numbers without leading zeros, hexadecimal or
/// decimal, differ in length from run to run.
fn digits_of(word: &str) -> usize {
    let is_decimal = word.bytes().all(|byte| byte.is_ascii_digit());
    match word.len() {
        MIN_HEX_DIGITS..=MAX_DECIMAL_DIGITS_64 if is_decimal => MIN_HEX_DIGITS,
        MIN_HEX_DIGITS..=MAX_DECIMAL_DIGITS_128 if is_decimal => 2 * MIN_HEX_DIGITS,
        length => length.next_multiple_of(2),
    }
}

/// Checks for a mix of letters and digits that is unlikely in a name.
fn is_mixed_id(word: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    let places = word.split(|c: char| !c.is_ascii_digit());
    let places = places.filter(|digits| !digits.is_empty()).count();
    let (small, capital) = (has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    let is_mixed =
        (small && capital && places > 0) || ((small || capital) && places >= MIN_DIGIT_GROUPS);
    word.len() >= MIN_ID_CHARS && word.is_ascii() && is_mixed
}

fn uuid(text: &str) -> Option<usize> {
    let mut at = 0;
    for (index, length) in UUID_PARTS.into_iter().enumerate() {
        if index > 0 {
            at += text.get(at..)?.starts_with('-').then_some(1)?;
        }
        let part = word(text.get(at..)?);
        let is_hex = part.bytes().all(|byte| byte.is_ascii_hexdigit());
        at += (part.len() == length && is_hex).then_some(length)?;
    }
    Some(at)
}

fn loopback_port<'t>(text: &'t str, stub: &StubPorts) -> Option<(usize, &'t str)> {
    // Bounded by the length of an address, since the search runs at each word of a text.
    let near = text
        .as_bytes()
        .get(..MAX_HOST_BYTES)
        .unwrap_or(text.as_bytes());
    let end = match near.first() {
        Some(b'[') => near.iter().position(|byte| *byte == b']')? + 1,
        Some(_) | None => near.iter().position(|byte| *byte == b':')?,
    };
    let host = text.get(..end)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_host = host == "localhost" || is_this_host(bare);
    let prefix = text.get(..=host.len())?;
    let port = word(text.get(prefix.len()..)?);
    let is_port = is_host && prefix.ends_with(':') && is_given_port(port.parse().ok()?, stub);
    is_port.then_some((prefix.len() + port.len(), prefix))
}

/// Checks for a loopback address, or the unspecified address, which stands for this host (ip(7)).
pub(super) fn is_this_host(address: &str) -> bool {
    let address = address.parse::<IpAddr>().map(|ip| ip.to_canonical());
    address.is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

/// Checks for an ephemeral port, or a port of the stub.
pub(super) fn is_given_port(port: u16, stub: &StubPorts) -> bool {
    port >= FIRST_GIVEN_PORT || stub.contains(&port)
}

/// Random file name of mktemp(1) or of Python's tempfile.
fn random_name(before: &str, text: &str) -> Option<(usize, &'static str)> {
    if !before.ends_with(TMP) {
        return None;
    }
    let name = text.split(['/', ' ', '"', '\'']).next().unwrap_or(text);
    let is_of = |prefix: &str, length: usize, allowed: fn(u8) -> bool| {
        let random = name.strip_prefix(prefix);
        random.is_some_and(|random| random.len() == length && random.bytes().all(allowed))
    };
    let small = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    if is_of("tmp.", 10, |byte| byte.is_ascii_alphanumeric()) {
        Some((name.len(), "tmp."))
    } else if is_of("tmp", 8, small) {
        Some((name.len(), "tmp"))
    } else {
        None
    }
}
