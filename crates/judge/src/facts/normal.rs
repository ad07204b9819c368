//! Text of the client with what is different in each run replaced by a placeholder.
//!
//! A placeholder stands for a whole word, from one character that is neither letter nor digit to the next: parts of
//! longer words stay, and so do versions, dates and short numbers.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::{Applied, LITERALLY, Rule, times};

/// From here on the kernel gives ports by itself (ip(7), `ip_local_port_range`; a new network namespace has these).
const FIRST_GIVEN_PORT: u16 = 32768;
/// Fewest hexadecimal digits of an id.
const HEX: usize = 16;
/// Most decimal digits of a number of 64 bits, and of 128.
const MOST_OF_64_BITS: usize = 20;
const MOST_OF_128_BITS: usize = 39;
/// Fewest characters of an id behind its prefix.
const ID: usize = 16;
/// In how many places digits stand at least in an id of one case: a name may hold a number, or end in a date.
const PLACES: usize = 2;
/// Longest address with its brackets, in bytes (INET6_ADDRSTRLEN of ip(7)), and what ends it.
const HOST: usize = 48;
/// Where names of temporary files are looked for.
const TMP: &str = "/tmp/";
/// What may stand in a text instead of what varies.
const PLACEHOLDERS: [&str; 8] = [
    "time", "uuid", "port", "random", "id", "digits", "hex", "client",
];
/// Lengths of the parts of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// Ports of the stub, which a namespace of others may give from below as well.
pub(super) type StubPorts = BTreeSet<u16>;

/// The text with its placeholders; what was replaced is counted.
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

/// Whether a client wrote one itself.
fn is_placeholder(rest: &str) -> bool {
    rest.strip_prefix('{').is_some_and(|inner| {
        let name = inner.trim_start_matches(LITERALLY);
        let mut known = PLACEHOLDERS.into_iter();
        known.any(|one| matches!(name.strip_prefix(one), Some(end) if end.starts_with(['}', ':'])))
    })
}

/// How much of the beginning of `rest` is replaced, by what, and by which rule. `rest` begins where a word does.
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

/// Letters and digits up to anything else.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric());
    text.get(..end.unwrap_or(text.len())).unwrap_or(text)
}

fn is_hex_id(word: &str) -> bool {
    word.len() >= HEX
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Hexadecimal digits of the bytes that an id of this spelling has: numbers written without leading zeros, in
/// hexadecimal or decimal, differ in length from run to run.
fn digits_of(word: &str) -> usize {
    let is_decimal = word.bytes().all(|byte| byte.is_ascii_digit());
    match word.len() {
        HEX..=MOST_OF_64_BITS if is_decimal => HEX,
        HEX..=MOST_OF_128_BITS if is_decimal => 2 * HEX,
        length => length.next_multiple_of(2),
    }
}

/// Letters and digits that no name is likely to mix like this.
fn is_mixed_id(word: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    let places = word.split(|c: char| !c.is_ascii_digit());
    let places = places.filter(|digits| !digits.is_empty()).count();
    let (small, capital) = (has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    let is_mixed = (small && capital && places > 0) || ((small || capital) && places >= PLACES);
    word.len() >= ID && word.is_ascii() && is_mixed
}

fn uuid(text: &str) -> Option<usize> {
    let mut at = 0;
    for (index, length) in UUID.into_iter().enumerate() {
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
    // No further than an address can be long: this is asked at each word of a text.
    let near = text.as_bytes().get(..HOST).unwrap_or(text.as_bytes());
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

/// An address of loopback, or the one that stands for every one of this host's, which is loopback alone (ip(7)).
pub(super) fn is_this_host(address: &str) -> bool {
    let address = address.parse::<IpAddr>().map(|ip| ip.to_canonical());
    address.is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

/// Whether the kernel gives this port to whoever asks for none, or gave it to the stub.
pub(super) fn is_given_port(port: u16, stub: &StubPorts) -> bool {
    port >= FIRST_GIVEN_PORT || stub.contains(&port)
}

/// As mktemp(1) and Python's tempfile name them.
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
