//! Escapes for client text: no character can move, hide or reorder text, and no text is a command to the log of a CI
//! system.
//!
//! Two number signs are never adjacent, because some logs obey `##vso[…]` and `##[…]` anywhere in a line. Text made
//! from bytes already has doubled backslashes (`text::printable`), so no client text can imitate an escape of this
//! module. Some logs obey `::set-output …` at the start of a line; the reports never put client text there.

use std::fmt::Write as _;

use crate::text::is_invisible;

/// Escapes every dangerous character as `\u{…}`, a line feed as `\n` and a tab as `\t`.
pub fn visible(text: &str) -> String {
    escaped_except(text, &[])
}

/// Escapes text of several lines for a terminal; line feeds and tabs stay.
pub fn for_terminal(text: &str) -> String {
    escaped_except(text, &['\n', '\t'])
}

fn escaped_except(text: &str, kept: &[char]) -> String {
    // Nearly every text of a report.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !text.contains("##") {
        return text.to_owned();
    }
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

/// Returns true if `c` must be escaped when it follows `before`.
pub fn is_dangerous(before: Option<char>, c: char) -> bool {
    c.is_control()
        || is_invisible(c)
        || is_combining(c)
        || is_noncharacter(c)
        || (c == '#' && before == Some('#'))
}

/// Returns true for noncharacters of Unicode, some of which XML 1.0 forbids in documents (section 2.2).
fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

/// Returns true for combining marks, which are drawn over the character before them.
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
    fn adjacent_number_signs_are_escaped() {
        assert_eq!(
            visible("##vso[task.complete]"),
            r"#\u{23}vso[task.complete]"
        );
        assert_eq!(visible("###"), r"#\u{23}\u{23}");
    }

    #[test]
    fn escaped_text_is_not_escaped_again() {
        let once = visible("##\u{202e}\n");
        assert_eq!(visible(&once), once);
    }
}
