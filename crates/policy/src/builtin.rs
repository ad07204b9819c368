//! Built-in policies: the files of `policies/`, embedded byte for byte, and parsed by the build script.

use std::borrow::Cow;

use model::quote::{known_words, quoted};

use super::value::Value;
use super::{Kind, PolicyError};

/// Policy embedded in the executable.
#[derive(Debug)]
pub(super) struct BuiltIn {
    /// Name of the file, without its ending.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Path in the repository.
    pub(super) file: &'static str,
    pub(super) text: &'static str,
    /// SHA-256 of the text, lower-case hex.
    pub(super) sha256: &'static str,
    /// Content of the text.
    pub(super) values: Value,
    /// Line of each key in the text.
    pub(super) lines: &'static [(Cow<'static, str>, usize)],
}

/// Built-in policies, by kind and name. Names are unique over all kinds.
pub(super) static ALL: &[BuiltIn] = include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// Returns the built-in policy of a name, and of a kind if one is wanted.
///
/// # Errors
/// [`PolicyError::UnknownName`].
pub(super) fn find(name: &str, wanted: Option<Kind>) -> Result<&'static BuiltIn, PolicyError> {
    let is_wanted = |builtin: &&BuiltIn| wanted.is_none_or(|kind| kind == builtin.kind);
    ALL.iter()
        .filter(is_wanted)
        .find(|builtin| builtin.name == name)
        .ok_or_else(|| PolicyError::UnknownName {
            wanted,
            name: quoted(name),
            hint: known_words(
                name,
                ALL.iter().filter(is_wanted).map(|builtin| builtin.name),
            ),
        })
}
