//! Client text with placeholders for values that differ from run to run.
//!
//! A placeholder replaces whole words, runs of letters and digits. The masks of [`super::rules`] find times, ids and
//! ports; random tokens are found by how often they change between kinds of characters. A text of the client that
//! looks like a placeholder, or like the value `*` of a lock file, gets a further brace.
//!
//! A mask looks at one run, because a lock file has masked texts only. So some names look random, and some random
//! texts look like names. A random text that stays makes a client differ from itself. A name that is replaced can hide a
//! real difference. In doubt, a text is replaced, except for words: of random names of 6 small letters, the few listed
//! words are one in four million. A name that is the same in both runs needs no evidence: masked or not, it is no
//! difference.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::LazyLock;

use regex_lite::{Captures, Regex};

use super::Applied;
use super::rules::{RULES, STATE};

/// First ephemeral port of a new network namespace (`ip_local_port_range` of ip(7)).
const FIRST_GIVEN_PORT: u16 = 32768;
/// Fewest characters of a random token.
const MIN_TOKEN: usize = 16;
/// Most characters for one change between kinds of characters in a random token. Names have fewer changes. Of random
/// tokens of 22 letters and digits, one in 5,000 has fewer.
const CHARS_PER_CHANGE: usize = 8;
/// Most letters for one capital letter in a random token without digits. Names have fewer capital letters.
const LETTERS_PER_CAPITAL: usize = 4;
/// Fewest letters and digits in a row of a random token. Names such as `gpt4o-mini-8b` have shorter parts.
const MIN_RUN: usize = 8;
/// Fewest digits of a number that is an id in the path of a file.
const MIN_NUMBER_IN_PATH: usize = 5;
/// Most characters that decide on a token or a name, since each word of a text is looked at.
const MAX_NEAR: usize = 128;
/// Directory whose random names are replaced.
const TMP: &str = "/tmp/";

/// Prefix, length and form of a random name.
type RandomName = (&'static str, usize, fn(&str) -> bool);

/// Random names that programs make in the temporary directory. Without a prefix, the client's own one ends with `-`,
/// `.` or `_`.
const RANDOM_NAMES: [RandomName; 6] = [
    // mktemp(1).
    ("tmp.", 10, is_of_mkstemp),
    // tempfile and multiprocessing of Python.
    ("tmp", 8, is_of_python),
    ("pymp-", 8, is_of_python),
    ("", 8, is_of_python_and_no_name),
    // tempfile of Rust, and mkstemp(3).
    ("tmp", 6, is_of_mkstemp),
    ("", 6, is_of_mkstemp),
];

/// Words of 6 and of 10 letters that end names of temporary files and directories, and are not random.
const COMMON_WORDS: &str = "\
    access action agents answer assets backup binary branch buffer bundle client commit config cookie daemon device \
    docker editor engine errors events export folder global header images import inputs latest linter logger master \
    memory models module native object output parser plugin prompt public python record remote report result router \
    runner schema screen script search secret server shared skills socket source stable static status stderr stdout \
    stream string styles system target thread tokens traces update upload vendor viewer volume window worker \
    attachment attributes background completion components connection containers controller \
    dependency downloader evaluation extensions javascript migrations parameters playground \
    processing properties repository screenshot typescript transcript validation workspaces";

/// Kind of a text, which decides on the masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// Value of a header: a token may contain `/`.
    Header,
    /// Path of a file below the home.
    Path,
    /// Path of a file below the temporary directory.
    Tmp,
}

/// Values of one run that masks depend on.
#[derive(Clone, Debug, Default)]
pub(super) struct Masks {
    /// Ports of the stub, which can be lower than [`FIRST_GIVEN_PORT`] in a container's network.
    pub stub: BTreeSet<u16>,
    /// Paths of the client's own program.
    pub own: Vec<String>,
    /// Date of the run, eight digits.
    pub date: String,
}

/// Masks of all rules, each with the name of its rule and its placeholder.
static MASKS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let masks = RULES.iter().flat_map(|rule| {
        let masks = rule.masks.iter();
        masks.map(|(placeholder, _)| (rule.name, *placeholder))
    });
    masks.collect()
});

/// Expression with one group for each mask. A match ends before a word, or before `_`.
static EXPRESSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let patterns = RULES.iter().flat_map(|rule| rule.masks);
    let groups: Vec<String> = patterns
        .map(|(_, pattern)| format!("({pattern})"))
        .collect();
    Regex::new(&format!(r"^(?:{})(?:\b{{end-half}}|_)", groups.join("|"))).ok()
});

/// Text in the form of a placeholder.
static PLACEHOLDER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\{+[a-z]+[:}]").ok());

/// Replacement at the beginning of a text: its length, its placeholder and the name of its rule.
type Found = (usize, String, &'static str);

impl Masks {
    /// Replaces the values that vary by placeholders, and counts them.
    pub(super) fn apply(&self, text: &str, kind: Kind, applied: &mut Applied) -> String {
        let mut out = String::with_capacity(text.len());
        if text.trim_start_matches('{') == "*" {
            out.push('{');
        }
        let mut scan = Scan::of(text, kind);
        while let Some(first) = scan.rest.chars().next() {
            let taken = if let Some((length, placeholder, rule)) = self.found(&scan) {
                applied.count(rule);
                out.push_str(&placeholder);
                length
            } else {
                if first == '{' && matches(&PLACEHOLDER, scan.rest) {
                    out.push('{');
                }
                let braces = scan.rest.bytes().take_while(|byte| *byte == b'{').count();
                let length = word(scan.rest).len().max(braces).max(first.len_utf8());
                out.push_str(scan.rest.get(..length).unwrap_or_default());
                length
            };
            scan.advance(taken);
        }
        out
    }

    /// Path of a program, or an argument; `{client}` for the path of the client's own program.
    pub(super) fn program(&self, path: &str, applied: &mut Applied) -> String {
        if self.own.iter().any(|own| own == path) {
            applied.count("own-path");
            return "{client}".to_owned();
        }
        self.apply(path, Kind::Text, applied)
    }

    /// Checks for an ephemeral port, or a port of the stub.
    pub(super) fn is_given_port(&self, port: u64) -> bool {
        let port = u16::try_from(port).ok();
        port.is_some_and(|port| port >= FIRST_GIVEN_PORT || self.stub.contains(&port))
    }

    fn found(&self, scan: &Scan<'_>) -> Option<Found> {
        let first = scan.rest.chars().next()?;
        if !first.is_alphanumeric() && first != '[' {
            return None;
        }
        if let Some((length, prefix)) = scan.random_name() {
            return Some((length, format!("{prefix}{{random}}"), "names-of-files"));
        }
        let word = word(scan.rest);
        if may_match(word, first, scan.rest)
            && let Some(found) = self.masked(scan.rest, word)
        {
            return Some(found);
        }
        if scan.is_number(word) {
            return Some((word.len(), "{digits}".to_owned(), "names-of-files"));
        }
        let length = random_token(scan.rest, word, scan.kind)?;
        Some((length, format!("{{id:{length}}}"), "ids"))
    }

    fn masked(&self, rest: &str, word: &str) -> Option<Found> {
        let near = rest.floor_char_boundary(word.len() + MAX_NEAR);
        let found = EXPRESSION.as_ref()?.captures(rest.get(..near)?)?;
        let (rule, placeholder, value) = group(&found)?;
        // The expression knows the letters of ASCII only.
        if rest.get(value.len()..)?.starts_with(char::is_alphanumeric) {
            return None;
        }
        let placeholder = match placeholder {
            "{port}" => {
                let (host, port) = value.rsplit_once(':')?;
                let is_given = self.is_given_port(port.parse().ok()?);
                is_given.then(|| format!("{host}:{{port}}"))?
            }
            "{date}" => self.is_today(value).then(|| placeholder.to_owned())?,
            "{hex}" if self.is_today(word) => {
                return Some((value.len(), "{date}".to_owned(), "times"));
            }
            "{hex}" => hex(word)?,
            "{digits}" if value == word => digits(word.len()),
            other => other.to_owned(),
        };
        Some((value.len(), placeholder, rule))
    }

    fn is_today(&self, date: &str) -> bool {
        let digits = date.bytes().filter(u8::is_ascii_digit);
        !self.date.is_empty() && digits.eq(self.date.bytes())
    }
}

/// Place in a text.
struct Scan<'t> {
    rest: &'t str,
    kind: Kind,
    /// Character before the place.
    before: Option<char>,
    /// The place is in a name directly below the temporary directory.
    is_temporary: bool,
    /// Number of characters since the last `/`.
    in_name: usize,
    whole: &'t str,
    /// Place of the last name of a path.
    last_name: usize,
    /// The path is of a file in which programs keep changing state.
    is_state: bool,
}

impl<'t> Scan<'t> {
    fn of(text: &'t str, kind: Kind) -> Self {
        Self {
            rest: text,
            kind,
            before: None,
            is_temporary: kind == Kind::Tmp,
            in_name: 0,
            whole: text,
            last_name: text.rfind('/').map_or(0, |at| at + 1),
            is_state: is_state_name(text),
        }
    }

    fn advance(&mut self, length: usize) {
        let taken = self.rest.get(..length).unwrap_or(self.rest);
        self.rest = self.rest.get(length..).unwrap_or_default();
        self.before = taken.chars().next_back();
        let at = self.whole.len() - self.rest.len();
        let before = self.whole.get(..at).unwrap_or_default();
        if self.before == Some('/') {
            self.is_temporary = self.kind != Kind::Tmp && before.ends_with(TMP);
            self.in_name = 0;
        } else {
            self.is_temporary &= !self.before.is_some_and(is_end_of_name);
            self.in_name += 1;
        }
    }

    /// Random name in the temporary directory: its length and prefix.
    fn random_name(&self) -> Option<(usize, &'static str)> {
        if !self.is_temporary {
            return None;
        }
        let near = self.rest.char_indices().nth(MAX_NEAR);
        let near = self.rest.get(..near.map_or(self.rest.len(), |(at, _)| at));
        let name = near?.split(is_end_of_name).next()?;
        let is_first = self.in_name == 0 || self.in_name == 1 && self.before == Some('.');
        let is_behind = self.in_name > 0 && matches!(self.before, Some('-' | '.' | '_'));
        let prefix = RANDOM_NAMES.iter().find_map(|(prefix, length, is_random)| {
            let random = name.strip_prefix(prefix)?;
            let is_place = if prefix.is_empty() {
                is_behind
            } else {
                is_first
            };
            (is_place && random.len() == *length && is_random(random)).then_some(*prefix)
        });
        prefix.map(|prefix| (name.len(), prefix))
    }

    /// Checks for a number that is an id, because it is part of a file's name.
    fn is_number(&self, word: &str) -> bool {
        let is_path = matches!(self.kind, Kind::Path | Kind::Tmp);
        if !is_path || !is_decimal(word) {
            return false;
        }
        let at = self.whole.len() - self.rest.len();
        let is_state = || self.is_state && at >= self.last_name;
        matches!(word.len(), MIN_NUMBER_IN_PATH..8) || is_state() && word.len() < 8
    }
}

/// Checks for the path of a file in which programs keep changing state.
pub(super) fn is_state(path: &str) -> bool {
    let mut directories = path.split('/').rev().skip(1);
    is_state_name(path) || directories.any(is_state_directory)
}

fn is_state_name(path: &str) -> bool {
    STATE.split(' ').any(|end| path.ends_with(end))
}

fn is_state_directory(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("cache") || matches!(name.as_str(), "log" | "logs" | "tmp" | "temp")
}

/// Checks for a loopback address, or the unspecified address, which stands for this host (ip(7)).
pub(super) fn is_this_host(address: &str) -> bool {
    let address = address.parse::<IpAddr>().map(|ip| ip.to_canonical());
    address.is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

fn is_end_of_name(c: char) -> bool {
    matches!(c, '/' | ' ' | '"' | '\'')
}

fn matches(expression: &LazyLock<Option<Regex>>, text: &str) -> bool {
    expression.as_ref().is_some_and(|one| one.is_match(text))
}

fn is_decimal(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Leading letters and digits of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric());
    text.get(..end.unwrap_or(text.len())).unwrap_or(text)
}

/// Filter before the expression, which is slow: checks for the first word of a match.
fn may_match(word: &str, first: char, rest: &str) -> bool {
    let follows = rest.get(word.len()..).unwrap_or_default();
    let is_joined = follows.starts_with(['-', '/', '_', '.', ':', 'µ']);
    match first {
        '0'..='9' => is_joined || word.len() >= 8 || word.ends_with('s'),
        'a'..='f' | 'A'..='F' if word.len() >= 8 => true,
        'W' if word.len() > MIN_TOKEN => true,
        'S' | 'M' | 'T' | 'W' | 'F' => word.len() == 3 && follows.starts_with([',', ' ']),
        'l' => word == "localhost",
        _ => first == '[',
    }
}

/// Rule, placeholder and value of the group that matched.
fn group<'t>(found: &Captures<'t>) -> Option<(&'static str, &'static str, &'t str)> {
    let mut groups = MASKS.iter().zip(found.iter().skip(1));
    groups.find_map(|((rule, placeholder), value)| Some((*rule, *placeholder, value?.as_str())))
}

/// Placeholder of a number by its length: that of an id where the number could be a hexadecimal id without letters.
/// Random decimal numbers of 64 and 128 bits differ in length.
fn digits(length: usize) -> String {
    match length {
        12 | 14..=20 => "{hex:16}".to_owned(),
        21..=39 => "{hex:32}".to_owned(),
        _ => "{digits}".to_owned(),
    }
}

/// Placeholder of a hexadecimal id. Eight digits in the form of a date are none.
fn hex(word: &str) -> Option<String> {
    let part = |from, to| word.get(from..to).and_then(|part: &str| part.parse().ok());
    let is_date = word.len() == 8
        && matches!(part(0, 4), Some(1900..=2099))
        && matches!(part(4, 6), Some(1..=12))
        && matches!(part(6, 8), Some(1..=31));
    (!is_date).then(|| format!("{{hex:{}}}", word.len().next_power_of_two()))
}

/// Length of the random token at the beginning of a text. A word at its beginning or end stays out of it.
fn random_token(text: &str, word: &str, kind: Kind) -> Option<usize> {
    if is_name(word) {
        return None;
    }
    let is_part = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'+')
            || *byte == b'/' && kind == Kind::Header
    };
    let of_token = || text.bytes().take_while(is_part);
    let mut token = text.get(..of_token().take(MAX_NEAR).count())?;
    let is_long = token.len() == MAX_NEAR;
    while !is_long
        && let Some((before, last)) = token.rsplit_once(['-', '_', '/', '+'])
        && (last.is_empty() || last.len() > 3 && is_name(last))
    {
        token = before;
    }
    let is_run = |part: &str| part.len() >= MIN_RUN && !is_name(part);
    let has_run = token.split(['-', '_', '/', '+']).any(is_run);
    if token.len() < MIN_TOKEN || !has_run || !is_random(token) {
        return None;
    }
    let length = if is_long {
        of_token().count()
    } else {
        token.len()
    };
    let behind = text.get(length..)?;
    let padding = behind.bytes().take_while(|byte| *byte == b'=').count();
    // A long token ends anywhere: read again from its next word, it would cost the square of its length.
    let is_whole = is_long || !behind.starts_with(char::is_alphanumeric);
    is_whole.then_some(length + padding)
}

/// Checks how often a token changes between small letters, capital letters and digits. Without a digit it could be a
/// name such as `isThinkingEnabled`, which has fewer capital letters than random text.
fn is_random(token: &str) -> bool {
    let count = |is_of: fn(&u8) -> bool| token.bytes().filter(is_of).count();
    let pairs = token.bytes().zip(token.bytes().skip(1));
    let changes = pairs.filter(|(one, next)| {
        one.is_ascii_lowercase() && next.is_ascii_uppercase()
            || one.is_ascii_alphabetic() && next.is_ascii_digit()
            || one.is_ascii_digit() && next.is_ascii_alphabetic()
    });
    let changes = changes.count();
    if count(u8::is_ascii_digit) > 0 {
        return changes * CHARS_PER_CHANGE >= token.len();
    }
    let (capitals, letters) = (
        count(u8::is_ascii_uppercase),
        count(u8::is_ascii_alphabetic),
    );
    changes > 1 && capitals * LETTERS_PER_CAPITAL >= letters
}

/// Checks for letters and digits that are no common word.
fn is_of_mkstemp(random: &str) -> bool {
    random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !COMMON_WORDS.split_whitespace().any(|word| word == random)
}

fn is_of_python(random: &str) -> bool {
    let is_part = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    random.bytes().all(is_part)
}

/// Checks for a name of Python that is neither made of words with numbers behind them, as one in 8 is, nor a
/// hexadecimal id.
fn is_of_python_and_no_name(random: &str) -> bool {
    let is_word = |part: &str| {
        let number = part.trim_start_matches(|c: char| c.is_ascii_lowercase());
        !part.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_of_python(random)
        && !random.split('_').all(is_word)
        && !random.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Checks for a word of a language, or a number.
fn is_name(word: &str) -> bool {
    let small = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase());
    let behind_first = word.get(1..).unwrap_or_default();
    is_decimal(word) || word.len() >= 3 && small(word) || word.len() >= 4 && small(behind_first)
}
