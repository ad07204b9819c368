//! Placeholders for the names of a profile: `{app}`, `{vendor}`, …, filled in on parsing.

use model::profile::Names;
use model::profile::template::{Piece, pieces};
use model::quote::{known_words, quoted};
use toml::Spanned;

use super::error::Flaw;

/// Placeholders of the names of a profile.
pub(super) const NAMES: [&str; 5] = ["app", "vendor", "cli_name", "runtime", "program"];

/// Replaces the placeholders of names. Those in `kept` stay, because the run replaces them.
pub(super) fn fill(
    names: &Names,
    value: Spanned<String>,
    kept: &[&str],
) -> Result<Spanned<String>, Flaw> {
    let mut filled = String::new();
    for piece in pieces(value.get_ref()) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Placeholder(name) if kept.contains(&name) => {
                filled.push_str(&format!("{{{name}}}"));
            }
            Piece::Placeholder(name) => {
                let known = names.placeholders().into_iter();
                let replacement = known.clone().find(|(key, _)| *key == name);
                let (_, replacement) = replacement.ok_or_else(|| {
                    let known = known.map(|(key, _)| key).chain(kept.iter().copied());
                    Flaw::new(
                        value.span(),
                        "a known placeholder",
                        quoted(&format!("{{{name}}}")),
                        known_words(name, known),
                    )
                })?;
                filled.push_str(replacement);
            }
        }
    }
    Ok(Spanned::new(value.span(), filled))
}
