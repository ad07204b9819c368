//! Policy files: cases, profiles and the audit policy, parsed strictly into [`model::case`], [`model::profile`] and
//! [`model::audit`].
//!
//! Owns the file format, the built-in files and their digests. A file is accepted whole or rejected. An error has the
//! file, the line, the key, the expected and the found value, and a hint. The runner checks later if the host can run
//! a case. Only [`elf_deps`] reads the host: a program and its libraries.
//!
#![doc = include_str!("reference.md")]

mod audit_file;
mod below;
mod builtin;
mod case_file;
mod document;
pub mod elf_deps;
mod error;
mod folder;
pub mod init;
mod limits;
mod lines;
mod placeholders;
mod profile_file;
pub mod quantity;
mod schema;
mod structure;
#[cfg(test)]
mod tests;
mod value;
mod values;
pub mod write;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use model::audit::AuditPolicy;
use model::case::{Case, Source};
use model::closed_set;
use model::profile::Profile;
use model::quote::shown_path;

use document::Document;
use limits::LimitsFile;

pub use below::below;
pub use error::{Fault, MAX_FILE_BYTES, PolicyError};
pub use folder::{Folder, folder};
pub use limits::{LimitError, LimitName, TIMEOUT_BOUNDS, raise_cpu_time, set_limit};
pub use values::{is_private_name, is_variable_name, may_be_shown, never_shown};

closed_set! {
    /// Kind of a policy file.
    pub enum Kind {
        /// Request to the client, permissions of the sandbox, and expectations.
        Case = "case",
        /// Command line, names and known behaviour of one client.
        Profile = "profile",
        /// Paths, limits and environment of every audited program.
        Audit = "audit",
    }
}

impl Kind {
    /// Value of the key `schema` in a file of this kind.
    pub fn schema(self) -> &'static str {
        match self {
            Self::Case => "runner.case/1",
            Self::Profile => "runner.profile/1",
            Self::Audit => "runner.audit/1",
        }
    }
}

/// Reference to a policy on the command line: a built-in one or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Name of a policy in [`list`].
    BuiltIn(String),
    /// Path, as typed.
    File(PathBuf),
}

impl Reference {
    /// Parses a text: with `/` or ending in `.toml` it is a file, otherwise a built-in name.
    pub fn parse(text: &OsStr) -> Self {
        let bytes = text.as_encoded_bytes();
        if bytes.contains(&b'/') || bytes.ends_with(b".toml") {
            Self::File(PathBuf::from(text))
        } else {
            Self::BuiltIn(text.to_string_lossy().into_owned())
        }
    }
}

/// Entry of a valid policy in listings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name in the file.
    pub name: String,
    /// Kind of the policy.
    pub kind: Kind,
    /// SHA-256 of the file, in lower-case hex.
    pub sha256: String,
    /// Summary, one line.
    pub summary: String,
    /// Number of unreviewed rules of a case.
    pub not_reviewed: usize,
}

/// Returns the schema of a file of this kind.
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

/// Returns true for the name of a built-in case.
pub fn is_built_in_case(name: &str) -> bool {
    builtin::find(name, Some(Kind::Case)).is_ok()
}

/// Reads the built-in audit policy, once for each process.
///
/// # Errors
/// Not expected in a release, because a test parses every built-in file.
pub fn audit() -> Result<AuditPolicy, PolicyError> {
    static READ: OnceLock<AuditPolicy> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(read.clone());
    }
    let reference = Reference::BuiltIn("audit".to_owned());
    let read = Document::load(&reference, Some(Kind::Audit))?.audit()?;
    Ok(READ.get_or_init(|| read).clone())
}

/// Reads a policy of any kind, detected by its key `schema`, and returns its entry.
pub fn check(reference: &Reference) -> Result<Entry, PolicyError> {
    Document::load(reference, None)?.entry()
}

/// Parses the text of a case whose file does not exist yet.
pub fn case_of_text(file: &Path, text: String) -> Result<Case, PolicyError> {
    let source = Source::File(file.to_owned());
    Document::from_bytes(shown_path(file), source, text.into_bytes())?.case()
}

/// Returns the entries of the built-in policies, in a fixed order.
///
/// # Errors
/// Not expected in a release, because a test parses every built-in file.
pub fn list() -> Result<Vec<Entry>, PolicyError> {
    let names = builtin::ALL.iter().map(|builtin| builtin.name);
    names
        .map(|name| check(&Reference::BuiltIn(name.into())))
        .collect()
}

/// Returns the text of a policy, comments included. After a case file, comments list the limits that it leaves out.
pub fn show(reference: &Reference) -> Result<String, PolicyError> {
    let document = Document::load(reference, None)?;
    let entry = document.entry()?;
    let text = document.text();
    let Reference::File(_) = reference else {
        return Ok(text.to_owned());
    };
    let given = toml::from_str::<toml::Table>(text).unwrap_or_default();
    let given = given.get("sandbox").and_then(|table| table.get("limits"));
    let spelt = LimitsFile::default().spelt().into_iter();
    let absent = spelt.filter(|(key, _)| given.and_then(|limits| limits.get(*key)).is_none());
    let absent: String = absent
        .map(|(key, value)| format!("#   {key} = {value}\n"))
        .collect();
    Ok(match (entry.kind, absent.is_empty()) {
        (Kind::Case, false) => {
            format!(
                "{text}\n# Limits of case-b, in force because this file leaves them out:\n{absent}"
            )
        }
        (Kind::Case | Kind::Profile | Kind::Audit, _) => text.to_owned(),
    })
}

/// Returns the text of a built-in policy, comments included.
pub fn text(name: &str) -> Result<&'static str, PolicyError> {
    builtin::find(name, None).map(|builtin| builtin.text)
}
