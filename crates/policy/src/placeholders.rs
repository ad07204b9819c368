//! Placeholders for the names of a profile: `{app}`, `{vendor}`, …, filled in on parsing.

use model::profile::Names;
use model::profile::template::{Piece, pieces};
use model::quote::{known_words, quoted};
use toml::Spanned;

use super::error::Flaw;

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
                let known = placeholders(names).into_iter();
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

fn placeholders(names: &Names) -> [(&'static str, &str); 5] {
    [
        ("app", &names.app),
        ("vendor", &names.vendor),
        ("cli_name", &names.cli_name),
        ("runtime", &names.runtime),
        ("program", &names.program),
    ]
}
