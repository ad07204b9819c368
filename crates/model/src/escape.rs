//! Makes text of the client harmless: no character that moves, hides or turns text, and no command to the log
//! of a CI system.
//!
//! Two number signs never stand side by side, because some logs obey `##vso[…]` and `##[…]` anywhere in a line.
//! Text of bytes comes with doubled backslashes (`text::printable`), so that none imitates what is written here.
//! What such logs obey at the start of a line only (`::set-output …`) the reports keep away from there.

use std::fmt::Write as _;

use crate::text::is_invisible;

/// The text with every dangerous character as `\u{…}`; a line feed as `\n`, a tab as `\t`.
pub fn visible(text: &str) -> String {
    shown_but(text, &[])
}

/// Text of several lines for a terminal: the same, with its line feeds and tabs as they are.
pub fn for_terminal(text: &str) -> String {
    shown_but(text, &['\n', '\t'])
}

fn shown_but(text: &str, kept: &[char]) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    for c in text.chars() {
        match c {
            _ if kept.contains(&c) => shown.push(c),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if is_dangerous(before, c) => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            _ => shown.push(c),
        }
        before = Some(c);
    }
    shown
}

/// Whether a character must not stand behind another one as it is.
pub fn is_dangerous(before: Option<char>, c: char) -> bool {
    c.is_control()
        || is_invisible(c)
        || is_combining(c)
        || is_no_character(c)
        || (c == '#' && before == Some('#'))
}

/// What Unicode keeps from being characters, and XML 1.0 (section 2.2) partly from documents.
fn is_no_character(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

/// Marks that are drawn over what stands before them.
fn is_combining(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_as_it_is() {
        assert_eq!(
            visible("POST /v1/messages — grün, 日本語 # 1"),
            "POST /v1/messages — grün, 日本語 # 1"
        );
    }

    #[test]
    fn dangerous_characters_become_visible() {
        assert_eq!(visible("a\u{1b}[31m\r\n\tb"), r"a\u{1b}[31m\r\n\tb");
        assert_eq!(visible("\u{9b}2J\u{7f}"), r"\u{9b}2J\u{7f}");
        assert_eq!(
            visible("\u{202e}txt\u{2066}\u{200b}\u{feff}"),
            r"\u{202e}txt\u{2066}\u{200b}\u{feff}"
        );
        assert_eq!(
            visible("a\u{a0}b\u{3000}c\u{2028}"),
            r"a\u{a0}b\u{3000}c\u{2028}"
        );
        assert_eq!(visible("\u{e0041}e\u{301}"), r"\u{e0041}e\u{301}");
        assert_eq!(visible("a\u{2800}\u{3164}b"), r"a\u{2800}\u{3164}b");
        assert_eq!(
            visible("\u{fffe}\u{ffff}\u{fdd0}\u{1ffff}"),
            r"\u{fffe}\u{ffff}\u{fdd0}\u{1ffff}"
        );
    }

    #[test]
    fn number_signs_never_stand_side_by_side() {
        assert_eq!(
            visible("##vso[task.complete]"),
            r"#\u{23}vso[task.complete]"
        );
        assert_eq!(visible("###"), r"#\u{23}\u{23}");
    }

    #[test]
    fn what_is_escaped_once_is_not_escaped_again() {
        let once = visible("##\u{202e}\n");
        assert_eq!(visible(&once), once);
    }
}
