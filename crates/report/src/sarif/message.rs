//! Escapes for text in SARIF messages.
//!
//! In `message.text`, `[text](target)` is a link and `{0}` stands for an argument (SARIF 2.1.0, 3.11.5 and 3.11.6).
//! Client text must become neither.

use model::escape;

/// Escapes a text for people, then for SARIF, so that a viewer shows it literally.
pub(super) fn literal(text: &str) -> String {
    let visible = escape::visible(text);
    let mut escaped = String::with_capacity(visible.len());
    for c in visible.chars() {
        match c {
            '\\' | '[' | ']' => escaped.extend(['\\', c]),
            '{' | '}' => escaped.extend([c, c]),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// Parses a message as a viewer does. Returns `None` if it has a link or an argument.
#[cfg(test)]
pub(in super::super) fn shown(text: &str) -> Option<String> {
    let mut shown = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => shown.push(characters.next().filter(|next| "\\[]".contains(*next))?),
            '{' | '}' => shown.push(characters.next().filter(|next| *next == c)?),
            '[' | ']' => return None,
            _ => shown.push(c),
        }
    }
    Some(shown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_link_and_an_argument_are_text() {
        assert_eq!(
            literal(r"[click](https://x) {0} \[a](1)"),
            r"\[click\](https://x) {{0}} \\\[a\](1)"
        );
    }

    #[test]
    fn the_reader_of_these_tests_finds_a_link_and_an_argument() {
        for text in ["[a](1)", "{0}", r"\\[a](1)", "{{{0}", "}"] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_reads_back_as_it_is_shown_to_people(
            text in "(\\PC|\\pC|\\[a\\]\\(1\\)|\\{0\\}|\\\\|\\[|\\]|\\{|\\}){0,40}"
        ) {
            prop_assert_eq!(shown(&literal(&text)), Some(escape::visible(&text)));
        }
    }
}
