//! Placeholders in texts: those for the names of a profile (`{app}`, `{vendor}`, …) are filled in on parsing, those for
//! parts that vary between runs make a pattern.

use std::str::FromStr;

use model::profile::template::{self, Piece, pieces};
use model::profile::{Names, PatternError, path_placeholders};
use model::quote::{known_words, quoted};
use toml::Spanned;

use super::error::Flaw;

/// Replaces the placeholders of names. Those in `kept` stay, because the run replaces them.
pub(super) fn fill(
    names: &Names,
    value: Spanned<String>,
    kept: &[&str],
) -> Result<Spanned<String>, Flaw> {
    let value_of = |name: &str| names.value(name).filter(|_| !kept.contains(&name));
    for piece in pieces(value.get_ref()) {
        let Piece::Placeholder(name) = piece else {
            continue;
        };
        if !kept.contains(&name) && value_of(name).is_none() {
            let known = Names::PLACEHOLDERS.into_iter().chain(kept.iter().copied());
            return Err(Flaw::new(
                value.span(),
                "a known placeholder",
                quoted(&format!("{{{name}}}")),
                known_words(name, known),
            ));
        }
    }
    let filled = template::fill(value.get_ref(), value_of);
    Ok(Spanned::new(value.span(), filled))
}

/// Parses a pattern: a text with placeholders for parts that vary between runs. `text` is the value with names filled
/// in, `expected` the expectation in errors.
pub(super) fn pattern<T: FromStr<Err = PatternError>>(
    value: &Spanned<String>,
    text: &str,
    expected: &str,
) -> Result<T, Flaw> {
    checked(value, text.parse(), expected)
}

/// Converts the error of a pattern into a flaw of the value.
pub(super) fn checked<T>(
    value: &Spanned<String>,
    parsed: Result<T, PatternError>,
    expected: &str,
) -> Result<T, Flaw> {
    parsed.map_err(|error| {
        let hint = match &error {
            PatternError::Unknown(name) => known_words(name, path_placeholders()),
            PatternError::Swallowed(_) => {
                "a placeholder takes all characters of its kind; put another character after it"
                    .into()
            }
        };
        let found = format!("{} ({error})", quoted(value.get_ref()));
        Flaw::new(value.span(), expected, found, hint)
    })
}
