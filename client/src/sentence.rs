//! Error messages in one sentence, for standard error and for the `result` record.
//!
//! Errors may contain text of the provider, which is hostile: it could forge lines, control a terminal, or echo the
//! key. So a sentence is one line of bounded length, without control or direction characters, and without the key.
//!
//! Knows no error types.

use std::{error::Error, fmt::Write as _};

use crate::key::ApiKey;

/// Largest length of a sentence, in characters.
const MAX_SENTENCE_CHARS: usize = 600;

/// Formats the error and its causes as one line, with `key` redacted.
pub(crate) fn sentence(error: &dyn Error, key: Option<&ApiKey>) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    let text = key.map_or_else(|| text.clone(), |key| key.redact(&text));
    one_line(&text)
}

fn one_line(text: &str) -> String {
    let mut line = String::new();
    for (position, character) in text.chars().enumerate() {
        if position == MAX_SENTENCE_CHARS {
            line.push('…');
            break;
        }
        match character {
            '\n' | '\r' | '\t' => line.push(' '),
            hidden if is_hidden(hidden) => line.extend(hidden.escape_unicode()),
            shown => line.push(shown),
        }
    }
    line
}

/// Returns true for control characters, and for characters that are invisible or change the text direction.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use std::{io, num::ParseIntError};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot count")]
    struct Outer(#[source] ParseIntError);

    #[test]
    fn causes_follow_the_error_on_one_line() {
        let error = Outer("x".parse::<u32>().unwrap_err());
        assert_eq!(
            sentence(&error, None),
            "cannot count: invalid digit found in string"
        );
    }

    #[test]
    fn hostile_text_cannot_forge_a_line_or_steer_a_terminal() {
        let error = io::Error::other("a\nb\u{1b}[2J\u{9b}\u{202e}\0");
        assert_eq!(
            sentence(&error, None),
            "a b\\u{1b}[2J\\u{9b}\\u{202e}\\u{0}"
        );
    }

    #[test]
    fn every_occurrence_of_the_key_is_removed() {
        let key = ApiKey::parse("sk-1").unwrap();
        let error = io::Error::other("no such key: sk-1");
        assert_eq!(sentence(&error, Some(&key)), "no such key: [key]");
    }

    #[test]
    fn a_sentence_has_a_bounded_length() {
        let error = io::Error::other("ä".repeat(100_000));
        assert_eq!(
            sentence(&error, None).chars().count(),
            MAX_SENTENCE_CHARS + 1
        );
    }
}
