//! Words in a line: quoted where their end would not be visible.

use serde_json::Value;

/// Quotes a word, unless its end is visible without quotes. A word that begins with `#` would look like a number of
/// ours.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\\' | '(' | ')');
    if !word.is_empty() && !word.starts_with('#') && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        Value::from(word).to_string()
    }
}

pub(super) fn joined(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

/// Key of the entry with this number, from 1, among those of one key.
pub(super) fn numbered(key: &str, number: usize) -> String {
    match number {
        1 => key.to_owned(),
        more => format!("{key} #{more}"),
    }
}
