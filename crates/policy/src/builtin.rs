//! The policies that the executable carries, byte for byte as they stand in `policies/`.

use model::quote::{known_words, quoted};

use super::{Kind, PolicyError};

/// A policy that the executable carries.
#[derive(Debug)]
pub(super) struct BuiltIn {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// In the repository.
    pub(super) file: &'static str,
    pub(super) text: &'static str,
}

/// Every built-in policy; names are unique over all kinds.
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

/// The built-in policy of that name, of the wanted kind if one is wanted.
pub(super) fn find(name: &str, wanted: Option<Kind>) -> Result<&'static BuiltIn, PolicyError> {
    let fits = |builtin: &&BuiltIn| wanted.is_none_or(|kind| kind == builtin.kind);
    ALL.iter()
        .filter(fits)
        .find(|builtin| builtin.name == name)
        .ok_or_else(|| PolicyError::UnknownName {
            wanted,
            name: quoted(name),
            hint: known_words(name, ALL.iter().filter(fits).map(|builtin| builtin.name)),
        })
}
