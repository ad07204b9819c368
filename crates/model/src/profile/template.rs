//! Placeholders in profile texts: `{app}`, `{value}`.
//!
//! A placeholder is letters, digits, `_` or `-` in braces. Any other brace is an ordinary character, so JSON needs no
//! escapes. Knows no placeholder by name.

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Ordinary text.
    Text(&'t str),
    /// Name of a placeholder, without its braces.
    Placeholder(&'t str),
}

/// Splits a text into its parts; joined, they give the text.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(open) = rest
        .get(from..)
        .and_then(|tail| tail.find('{'))
        .map(|found| from + found)
    {
        let inside = rest.get(open + 1..).unwrap_or_default();
        let length = inside
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
            .unwrap_or(0);
        if length == 0
            || !inside
                .get(length..)
                .is_some_and(|tail| tail.starts_with('}'))
        {
            from = open + 1;
            continue;
        }
        let (before, _) = rest.split_at(open);
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        let (name, after) = inside.split_at(length);
        pieces.push(Piece::Placeholder(name));
        rest = after.strip_prefix('}').unwrap_or(after);
        from = 0;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// Replaces placeholders by their values. A placeholder without a value stays.
pub fn fill<V: AsRef<str>>(text: &str, value: impl Fn(&str) -> Option<V>) -> String {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Placeholder(name) => match value(name) {
                Some(value) => filled.push_str(value.as_ref()),
                None => filled.extend(["{", name, "}"]),
            },
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn placeholders_stand_anywhere() {
        use Piece::{Placeholder, Text};
        assert_eq!(
            pieces(".{app}/.{app}.json"),
            [
                Text("."),
                Placeholder("app"),
                Text("/."),
                Placeholder("app"),
                Text(".json")
            ]
        );
        assert_eq!(pieces("{a}{b-c}"), [Placeholder("a"), Placeholder("b-c")]);
    }

    #[test]
    fn other_braces_are_plain_characters() {
        for text in [r#"{"a":{"b":1}}"#, "{}", "{", "a}", "{a b}", "{é}", "{a"] {
            assert_eq!(pieces(text), [Piece::Text(text)], "{text}");
        }
        assert_eq!(
            pieces("{{a}}"),
            [Piece::Text("{"), Piece::Placeholder("a"), Piece::Text("}")]
        );
    }

    #[test]
    fn filled_value_is_not_filled_again() {
        let value = |name: &str| match name {
            "a" => Some("{b}"),
            "b" => Some("x"),
            _ => None,
        };
        assert_eq!(fill("{a}-{b}-{c}", value), "{b}-x-{c}");
    }

    proptest! {
        #[test]
        fn the_pieces_are_the_text(text in "[a{}-é ]{0,20}") {
            let joined: String = pieces(&text).into_iter().map(|piece| match piece {
                Piece::Text(text) => text.to_owned(),
                Piece::Placeholder(name) => format!("{{{name}}}"),
            }).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
