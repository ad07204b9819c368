//! The placeholders that a profile's own names fill on parsing: `{app}`, `{vendor}`, …

use toml::Spanned;

use super::error::{Flaw, known_words, quoted};
use crate::profile::Names;
use crate::profile::template::{Piece, pieces};

impl Names {
    /// Replaces the placeholders that stand for names; those in `kept` stay for the run to replace.
    pub(super) fn fill(
        &self,
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
                    let known = self.placeholders().into_iter();
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

    fn placeholders(&self) -> [(&'static str, &str); 5] {
        [
            ("app", &self.app),
            ("vendor", &self.vendor),
            ("cli_name", &self.cli_name),
            ("runtime", &self.runtime),
            ("program", &self.program),
        ]
    }
}
