//! Built-in policies: the files of `policies/`, embedded byte for byte.

use model::quote::{known_words, quoted};

use super::{Kind, PolicyError};

/// Policy embedded in the executable.
#[derive(Debug)]
pub(super) struct BuiltIn {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Path in the repository.
    pub(super) file: &'static str,
    pub(super) text: &'static str,
}

/// Built-in policies. Names are unique over all kinds.
pub(super) static ALL: [BuiltIn; 5] = [
    BuiltIn {
        name: "case-a",
        kind: Kind::Case,
        file: "policies/case-a.toml",
        text: include_str!("../../../policies/case-a.toml"),
    },
    BuiltIn {
        name: "case-b",
        kind: Kind::Case,
        file: "policies/case-b.toml",
        text: include_str!("../../../policies/case-b.toml"),
    },
    BuiltIn {
        name: "claude-code",
        kind: Kind::Profile,
        file: "policies/profiles/claude-code.toml",
        text: include_str!("../../../policies/profiles/claude-code.toml"),
    },
    BuiltIn {
        name: "reference",
        kind: Kind::Profile,
        file: "policies/profiles/reference.toml",
        text: include_str!("../../../policies/profiles/reference.toml"),
    },
    BuiltIn {
        name: "audit",
        kind: Kind::Audit,
        file: "policies/audit.toml",
        text: include_str!("../../../policies/audit.toml"),
    },
];

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
