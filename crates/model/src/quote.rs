//! Foreign text in messages: quoted, truncated, and located by its position in a file.

use std::fmt;
use std::path::Path;

use crate::escape::visible;
use crate::text::{printable, truncated};

/// Longest quotation from a file, in characters.
const MAX_QUOTED_CHARS: usize = 60;

/// A position in a file; both numbers count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Number of the line; lines end at a line feed.
    pub line: usize,
    /// Number of the column, in characters.
    pub column: usize,
}

impl Position {
    /// Returns the position of a byte; an offset past the end gives the end.
    pub fn of(text: &[u8], offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = String::from_utf8_lossy(before.get(line_start..).unwrap_or_default())
            .chars()
            .count()
            + 1;
        Self { line, column }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.line, self.column)
    }
}

/// Quotes foreign text in backticks, escaped and truncated.
pub fn quoted(text: &str) -> String {
    format!("`{}`", visible(&truncated(text, MAX_QUOTED_CHARS)))
}

/// Formats a path for messages: a byte that is not UTF-8 is `\xNN`, and a backslash is `\\`.
pub fn shown_path(path: &Path) -> String {
    visible(&printable(path.as_os_str().as_encoded_bytes()))
}

/// Formats printable text as one word of a shell, in single quotes where it needs them.
pub fn shell_text(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:,@%=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    in_single_quotes(text)
}

fn in_single_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Formats a path as one word of any shell: quoted unless plain ASCII, with escapes for bytes that a terminal would not
/// show.
pub fn shell_word(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    if let Ok(text) = str::from_utf8(bytes)
        && visible(&printable(bytes)) == text
    {
        return if text.is_ascii() {
            shell_text(text)
        } else {
            in_single_quotes(text)
        };
    }
    let escaped = |byte: &u8| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
        0x20..=0x7e => char::from(*byte).to_string(),
        other => format!("\\{other:03o}"),
    };
    format!("$'{}'", bytes.iter().map(escaped).collect::<String>())
}

/// Returns `did you mean …?` if a known word is similar, and the list of known words.
pub fn known_words<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let list: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    let all = format!("known here: {}", list.join(", "));
    with_nearest(found, known, &all)
}

/// Returns `did you mean …?` if a known word is similar, and the text `all`, which names the source of all words.
pub fn with_nearest<'a>(
    found: &str,
    known: impl IntoIterator<Item = &'a str>,
    all: &str,
) -> String {
    let scored = known
        .into_iter()
        .map(|word| (strsim::jaro_winkler(found, word), word));
    let nearest = scored
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((_, word)) => format!("did you mean `{word}`? {all}"),
        None => all.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn path_is_quoted_for_a_shell_where_needed() {
        for (path, word) in [
            (&b"/a/b-1.toml"[..], "/a/b-1.toml"),
            (b"/a b/c", "'/a b/c'"),
            (b"/it's", "'/it'\\''s'"),
            (b"/$(x)", "'/$(x)'"),
            ("/ü".as_bytes(), "'/ü'"),
            (b"/a\\b", "$'/a\\\\b'"),
            (b"/\x1b'\xff", "$'/\\033\\'\\377'"),
            (b"", "''"),
        ] {
            assert_eq!(shell_word(Path::new(OsStr::from_bytes(path))), word);
        }
    }

    #[test]
    fn a_path_is_quoted_where_a_shell_would_read_more_than_one_word_in_it() {
        for (path, word) in [
            ("/usr/lib/python3.11", "/usr/lib/python3.11"),
            ("/srv/grün", "/srv/grün"),
            ("/srv/a b", "'/srv/a b'"),
            ("/srv/$(id)", "'/srv/$(id)'"),
            ("/srv/it's", r"'/srv/it'\''s'"),
            ("/srv/x   --read /root", "'/srv/x   --read /root'"),
            ("~", "'~'"),
            ("", "''"),
        ] {
            assert_eq!(shell_text(path), word);
        }
    }

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "a\nžlutý = 1\n".as_bytes();
        assert_eq!(Position::of(text, 0), Position { line: 1, column: 1 });
        assert_eq!(Position::of(text, 2), Position { line: 2, column: 1 });
        assert_eq!(Position::of(text, 4), Position { line: 2, column: 2 });
        assert_eq!(Position::of(text, 1000), Position { line: 3, column: 1 });
    }

    #[test]
    fn quotations_cannot_move_the_cursor_or_reorder_a_line() {
        assert_eq!(
            quoted("a\u{1b}[31m\nb\u{202e}"),
            r"`a\u{1b}[31m\nb\u{202e}`"
        );
    }

    #[test]
    fn long_quotations_are_cut() {
        assert_eq!(quoted(&"x".repeat(100)), format!("`{}…`", "x".repeat(60)));
    }

    #[test]
    fn path_with_text_of_an_escape_differs_from_its_byte() {
        assert_eq!(shown_path(Path::new(r"a\xffb")), r"a\\xffb");
    }

    #[test]
    fn paths_show_bytes_that_are_no_text() {
        assert_eq!(
            shown_path(Path::new(OsStr::from_bytes(b"a\xffb\n"))),
            r"a\xffb\n"
        );
    }

    #[test]
    fn the_nearest_known_word_comes_first() {
        assert_eq!(
            known_words("timout", ["memory", "timeout"]),
            "did you mean `timeout`? known here: `memory`, `timeout`"
        );
        assert_eq!(known_words("xyz", ["memory"]), "known here: `memory`");
    }
}
