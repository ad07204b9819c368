//! Cases, profiles and the policy of audits as files: built in or the user's own, parsed strictly into
//! [`model::case`], [`model::profile`] and [`crate::audit`].
//!
//! Owns the file format, the built-in files and the digest of what was read. A file becomes a value whole or
//! not at all, and an error names the file, the line, the key, what was expected, what was found and what helps.
//! Knows nothing of the run: whether a case can be had on this host is found out elsewhere.
//!
#![doc = include_str!("reference.md")]

mod audit_file;
mod below;
mod builtin;
mod case_file;
mod document;
pub mod elf_deps;
mod error;
pub mod init;
mod limits;
mod placeholders;
mod profile_file;
pub mod quantity;
mod schema;
mod structure;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsStr;
use std::path::PathBuf;

use model::audit::AuditPolicy;
use model::case::Case;
use model::profile::Profile;

use document::Document;

pub use below::below;
pub use error::{Fault, MAX_FILE_BYTES, PolicyError};
pub use limits::TIMEOUT_BOUNDS;
pub use values::{is_variable_name, may_be_shown, never_shown};

/// What a policy file describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What is asked, allowed and expected.
    Case,
    /// How one client is told, and its own names.
    Profile,
    /// What an audited program is shown and allowed.
    Audit,
}

impl Kind {
    /// Every kind there is.
    pub const ALL: [Self; 3] = [Self::Case, Self::Profile, Self::Audit];

    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Case => "case",
            Self::Profile => "profile",
            Self::Audit => "audit",
        }
    }

    /// The value of `schema` in a file of this kind.
    pub fn schema(self) -> &'static str {
        match self {
            Self::Case => "runner.case/1",
            Self::Profile => "runner.profile/1",
            Self::Audit => "runner.audit/1",
        }
    }
}

/// What the user names: a built-in policy or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A name in [`list`].
    BuiltIn(String),
    /// A path, as typed.
    File(PathBuf),
}

impl Reference {
    /// A text with `/` or ending in `.toml` is a file, any other a built-in name.
    pub fn parse(text: &OsStr) -> Self {
        let bytes = text.as_encoded_bytes();
        if bytes.contains(&b'/') || bytes.ends_with(b".toml") {
            Self::File(PathBuf::from(text))
        } else {
            Self::BuiltIn(text.to_string_lossy().into_owned())
        }
    }
}

/// A policy that was found good, for listings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name that the file gives itself.
    pub name: String,
    /// What it describes.
    pub kind: Kind,
    /// SHA-256 of the bytes, lower-case hex.
    pub sha256: String,
    /// One line for people.
    pub summary: String,
}

/// The schema of a file of this kind.
pub fn schema(kind: Kind) -> schemars::Schema {
    match kind {
        Kind::Case => model::schema::of_file::<case_file::CaseFile>(kind.schema()),
        Kind::Audit => model::schema::of_file::<audit_file::AuditFile>(kind.schema()),
        Kind::Profile => model::schema::of_file::<profile_file::ProfileFile>(kind.schema()),
    }
}

/// Reads a case.
pub fn case(reference: &Reference) -> Result<Case, PolicyError> {
    Document::load(reference, Some(Kind::Case))?.case()
}

/// Reads a profile.
pub fn profile(reference: &Reference) -> Result<Profile, PolicyError> {
    Document::load(reference, Some(Kind::Profile))?.profile()
}

/// Checks for the name of a built-in case.
pub fn is_built_in_case(name: &str) -> bool {
    builtin::find(name, Some(Kind::Case)).is_ok()
}

/// The built-in policy of audits.
///
/// # Errors
/// None in a released executable: its tests parse every built-in file.
pub fn audit() -> Result<AuditPolicy, PolicyError> {
    let reference = Reference::BuiltIn("audit".to_owned());
    Document::load(&reference, Some(Kind::Audit))?.audit()
}

/// Reads a policy of any kind, told apart by its `schema`, and reports what it is.
pub fn check(reference: &Reference) -> Result<Entry, PolicyError> {
    Document::load(reference, None)?.entry()
}

/// The built-in policies, in a fixed order.
///
/// # Errors
/// None in a released executable: its tests parse every built-in file.
pub fn list() -> Result<Vec<Entry>, PolicyError> {
    let names = builtin::ALL.iter().map(|builtin| builtin.name);
    names
        .map(|name| check(&Reference::BuiltIn(name.into())))
        .collect()
}

/// The bytes of a built-in policy, comments included.
pub fn text(name: &str) -> Result<&'static str, PolicyError> {
    builtin::find(name, None).map(|builtin| builtin.text)
}
