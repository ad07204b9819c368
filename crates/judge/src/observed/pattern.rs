//! Patterns of texts that differ between runs, by the placeholders of paths.

use std::collections::{BTreeMap, BTreeSet};

use model::case::Count;

/// Fewest digits of a number that is a time.
const MIN_TIME: usize = 10;
/// Fewest characters of a hexadecimal or alphanumeric token that a placeholder replaces.
const MIN_TOKEN: usize = 6;
/// Lengths of the groups of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// A pattern, and how often its texts occur in a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Text with placeholders.
    pub(super) text: String,
    /// Smallest and largest number in a run.
    pub(super) count: Count,
    level: Level,
}

/// Parts of a text that placeholders replace; each level includes those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Nothing,
    /// UUIDs, dates and times, which differ on another day although two runs of one second may agree.
    Unique,
    Digits,
    Hex,
    Alnum,
}

/// Levels in the order in which they are tried.
const LEVELS: [Level; 4] = [Level::Unique, Level::Digits, Level::Hex, Level::Alnum];

impl Pattern {
    /// Checks for a text of the pattern.
    pub(super) fn covers(&self, text: &str) -> bool {
        masked(text, self.level) == self.text
    }
}

/// Finds a pattern for each text: the text itself if each run has it, or else the one with the fewest placeholders
/// that each run meets. A text that stays in some runs only is optional. UUIDs, dates and times always become
/// placeholders.
pub(super) fn patterns(runs: impl IntoIterator<Item = Vec<String>>) -> Vec<Pattern> {
    let runs: Vec<Vec<String>> = runs.into_iter().collect();
    let texts: BTreeSet<&String> = runs.iter().flatten().collect();
    let in_each = |pattern: &str, level| {
        let mut runs = runs.iter();
        runs.all(|run| run.iter().any(|text| masked(text, level) == pattern))
    };
    let mut found: BTreeMap<String, Level> = BTreeMap::new();
    for text in texts {
        let levels = LEVELS.into_iter();
        let levels = levels.map(|level| (masked(text, level), level));
        let mut levels = levels.filter(|(pattern, level)| in_each(pattern, *level));
        let (pattern, level) = levels.next().unwrap_or((text.clone(), Level::Nothing));
        found.insert(pattern, level);
    }
    let exact: BTreeSet<String> = found
        .iter()
        .filter(|(text, level)| **level <= Level::Unique && !text.contains('{'))
        .map(|(text, _)| text.clone())
        .collect();
    let counted = found.into_iter().map(|(text, level)| {
        let is_of = |one: &&String| {
            masked(one, level) == text && (level <= Level::Unique || !exact.contains(*one))
        };
        let counts = runs
            .iter()
            .map(|run| run.iter().filter(is_of).count() as u64);
        let counts: Vec<u64> = counts.collect();
        let count = Count {
            from: counts.iter().copied().min().unwrap_or(0),
            to: counts.iter().copied().max(),
        };
        Pattern { text, count, level }
    });
    counted.collect()
}

/// Finds the name that all texts have, or a pattern of them with one placeholder. More placeholders would be a guess,
/// as in a date.
pub(super) fn of_names<'t>(
    texts: impl Iterator<Item = &'t str> + Clone,
    is_name: fn(&str) -> bool,
) -> Option<String> {
    if texts.clone().any(|text| text.contains('{')) {
        return None;
    }
    let mut levels = LEVELS.into_iter().map(|level| {
        let patterns = texts.clone().map(|text| masked(text, level));
        let patterns: BTreeSet<String> = patterns.collect();
        let mut patterns = patterns.into_iter();
        patterns.next().filter(|_| patterns.next().is_none())
    });
    let pattern = levels.find_map(|pattern| pattern)?;
    let Some((before, placeholder)) = pattern.split_once('{') else {
        return is_name(&pattern).then(|| of_versions(&pattern));
    };
    let is_last = placeholder.find('}') == Some(placeholder.len() - 1);
    let is_plain = before.is_empty() || is_name(before);
    (is_plain && is_last && !placeholder.contains('{')).then_some(pattern)
}

/// Replaces the tokens of a level.
fn masked(text: &str, level: Level) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        if level >= Level::Unique
            && let Some(after) = after_uuid(rest)
        {
            out.push_str("{uuid}");
            rest = after;
            continue;
        }
        let is_inside = out.ends_with(|c: char| c.is_ascii_alphanumeric());
        if level >= Level::Unique
            && !is_inside
            && let Some(after) = after_date(rest)
        {
            push_digits(&mut out, rest.strip_suffix(after).unwrap_or(rest));
            rest = after;
            continue;
        }
        let length = rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let (token, after) =
            rest.split_at(length.max(first_length(rest) * usize::from(length == 0)));
        out.push_str(placeholder(token, level).unwrap_or(token));
        rest = after;
    }
    out
}

fn first_length(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Placeholder of a token, a run of letters and digits.
fn placeholder(token: &str, level: Level) -> Option<&'static str> {
    let has_digit = token.bytes().any(|byte| byte.is_ascii_digit());
    let all = |fits: fn(&u8) -> bool| token.as_bytes().iter().all(fits);
    let is_token = token.len() >= MIN_TOKEN && all(u8::is_ascii_alphanumeric);
    let is_day = token.len() == 8 && (token.starts_with("19") || token.starts_with("20"));
    let is_time = (token.len() >= MIN_TIME || is_day) && all(u8::is_ascii_digit);
    match () {
        () if level >= Level::Unique && is_time => Some("{digits}"),
        () if level >= Level::Digits && has_digit && all(u8::is_ascii_digit) => Some("{digits}"),
        () if level >= Level::Hex && is_token && all(is_hex) => Some("{hex}"),
        () if level >= Level::Alnum && is_token => Some("{alnum}"),
        () => None,
    }
}

fn is_hex(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Text after a date at its beginning, and after the time behind the date: `2026-11-30T21-15-09Z`, `2026/11/30`.
fn after_date(text: &str) -> Option<&str> {
    let number = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    if number(text) != 4 || !(text.starts_with("19") || text.starts_with("20")) {
        return None;
    }
    let mut rest = text.get(4..)?;
    let mut groups = 0;
    while let Some(after) = rest.strip_prefix(['-', '_', '/', '.', ':', 'T', 't', ' ', ','])
        && (number(after) == 2 || groups >= 2 && number(after) > 0)
    {
        rest = after.get(number(after)..)?;
        groups += 1;
    }
    let after = rest.strip_prefix(['Z', 'z']).unwrap_or(rest);
    let is_whole = !after.starts_with(|c: char| c.is_ascii_alphanumeric());
    (groups >= 2 && is_whole).then_some(after)
}

/// Appends a date with a placeholder for each number.
fn push_digits(out: &mut String, date: &str) {
    for (place, group) in date
        .split_inclusive(|c: char| !c.is_ascii_digit())
        .enumerate()
    {
        let separator = group.trim_start_matches(|c: char| c.is_ascii_digit());
        if place == 0 || group.len() > separator.len() {
            out.push_str("{digits}");
        }
        out.push_str(separator);
    }
}

/// Text after a UUID at its beginning.
fn after_uuid(text: &str) -> Option<&str> {
    let mut rest = text;
    for (index, length) in UUID.into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-')?;
        }
        let (group, after) = rest.split_at_checked(length)?;
        if !group.as_bytes().iter().all(is_hex) {
            return None;
        }
        rest = after;
    }
    let goes_on = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
    (!goes_on).then_some(rest)
}

/// Replaces versions, such as `2.1.177` after a slash or a space, by a placeholder.
pub(super) fn of_versions(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(['/', ' ', '(', ')', ';', ',']) {
        let word = part.trim_end_matches(['/', ' ', '(', ')', ';', ',']);
        let end = part.get(word.len()..).unwrap_or_default();
        let takes = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
        let number = word.strip_prefix('v').unwrap_or(word);
        let is_version = number.starts_with(|c: char| c.is_ascii_digit())
            && number.contains('.')
            && number.chars().all(takes);
        out.push_str(if is_version { "{version}" } else { word });
        out.push_str(end);
    }
    out
}
