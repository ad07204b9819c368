//! File form of the rules of files.

use model::case::Count;
use model::case::Root;
use model::case::expect::NOT_REVIEWED;
use model::profile::Files;
use model::profile::template::{Piece, pieces};
use model::quote::quoted;
use model::schema::values::FileMode;
use scenario::closed_set;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{CountFile, times};
use crate::error::Flaw;
use crate::profile_file::ExpectedFileFile;
use crate::profile_file::files::named;
use crate::schema::{Sentence, TreePath};
use crate::values::tree_path;

/// Files that the client leaves: those of the rules and of the profile, and no others.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectFiles")]
pub(super) struct FilesFile {
    /// Path of the application state file, relative to the home; without this key, that of the profile.
    #[schemars(with = "Option<TreePath>")]
    state: Option<Spanned<String>>,
    /// Directory and prefix of the backup, relative to the home; 13 digits of an epoch time in milliseconds follow.
    /// Without this key, those of the profile.
    #[schemars(with = "Option<TreePath>")]
    backup_prefix: Option<Spanned<String>>,
    /// Transcript of the conversation; without this key, it is a file like others.
    transcript: Option<Transcript>,
    /// Files and directories.
    #[serde(default)]
    rule: Vec<RuleFile>,
    /// Files and directories that the client removes before its end.
    #[serde(default)]
    transient: Vec<ExpectedFileFile>,
}

closed_set! {
    /// Transcript of the conversation.
    enum Transcript {
        /// A finding, also one that was removed.
        Forbidden = "forbidden",
    }
}

/// File or directory that the client leaves.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FileRule")]
struct RuleFile {
    /// Directory that contains the file.
    #[serde(rename = "in")]
    root: Root,
    /// Path relative to the directory, with placeholders for parts that differ between runs.
    #[schemars(with = "TreePath")]
    path: Spanned<String>,
    /// Permission bits, four octal digits; without this key, any that only the owner can write to.
    #[schemars(with = "Option<FileMode>")]
    mode: Option<Spanned<String>>,
    /// Number of such files; without this key, any.
    count: Option<CountFile>,
    /// True if such a file may hold the credential; then the reason must be that of a person.
    #[serde(default)]
    #[schemars(with = "Option<bool>")]
    may_hold_credential: Option<Spanned<bool>>,
    /// Reason why the client creates the file.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// Parses the rules, each path once.
pub(super) fn parsed(file: FilesFile) -> Result<Files, Flaw> {
    let mut places = Vec::new();
    let mut limits = Vec::new();
    for rule in file.rule {
        let may_hold_credential = may_hold_credential(&rule)?;
        places.push(ExpectedFileFile {
            root: rule.root,
            path: rule.path,
            reason: rule.reason,
        });
        let mode = rule.mode.as_ref().map(mode).transpose()?;
        limits.push((mode, times(rule.count, Count::ANY)?, may_hold_credential));
    }
    let mut expected = named(places, Ok)?;
    for (file, (mode, count, may_hold_credential)) in expected.iter_mut().zip(limits) {
        (file.mode, file.count) = (mode, count);
        file.may_hold_credential = may_hold_credential;
    }
    Ok(Files {
        state: file.state.map(plain_path).transpose()?,
        backup_prefix: file.backup_prefix.map(plain_path).transpose()?,
        expected,
        transient: named(file.transient, Ok)?,
        no_transcript: file.transcript == Some(Transcript::Forbidden),
    })
}

/// Parses the permission to hold the credential. `init` proposes such rules, so its own reason is not enough.
fn may_hold_credential(rule: &RuleFile) -> Result<bool, Flaw> {
    let value = rule.may_hold_credential.as_ref();
    let value = value.filter(|value| *value.get_ref());
    if value.is_some() && rule.reason.get_ref().trim_end().ends_with(NOT_REVIEWED) {
        let hint = "say in `reason` why the credential may be in the file";
        let expected = "a reason of your own beside may_hold_credential";
        let found = quoted(rule.reason.get_ref());
        return Err(Flaw::new(rule.reason.span(), expected, found, hint));
    }
    Ok(value.is_some())
}

/// Parses a path without placeholders.
fn plain_path(value: Spanned<String>) -> Result<String, Flaw> {
    let pieces = pieces(value.get_ref());
    let mut placeholders = pieces.iter().filter_map(|piece| match piece {
        Piece::Placeholder(name) => Some(format!("{{{name}}}")),
        Piece::Text(_) => None,
    });
    if let Some(found) = placeholders.next() {
        let hint =
            "write the path itself; a path with placeholders belongs to [[expect.files.rule]]";
        let expected = "a path without placeholders";
        return Err(Flaw::new(value.span(), expected, quoted(&found), hint));
    }
    tree_path(value).map(Spanned::into_inner)
}

fn mode(value: &Spanned<String>) -> Result<u32, Flaw> {
    let text = value.get_ref();
    let is_octal = text.len() == 4 && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    let parsed = u32::from_str_radix(text, 8).ok().filter(|_| is_octal);
    parsed.ok_or_else(|| {
        let hint = "write it as \"0600\"";
        Flaw::new(value.span(), "four octal digits", quoted(text), hint)
    })
}
