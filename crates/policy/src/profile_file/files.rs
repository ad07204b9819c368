//! Files of a client: left behind, and transient.

use std::collections::BTreeSet;

use model::case::Count;
use model::profile::{ExpectedFile, Files, Names, path_placeholders};
use model::quote::quoted;
use toml::Spanned;

use super::{ExpectedFileFile, FilesFile};
use crate::error::Flaw;
use crate::placeholders::{fill, pattern};
use crate::values::{sentence, tree_path};

/// Parses the state file, its backup and the other known files.
pub(super) fn parsed(file: FilesFile, names: &Names) -> Result<Files, Flaw> {
    let path = |value| tree_path(fill(names, value, &[])?).map(Spanned::into_inner);
    let filled = |value| fill(names, value, &path_placeholders());
    Ok(Files {
        state: Some(path(file.state)?),
        backup_prefix: Some(path(file.backup_prefix)?),
        expected: named(file.expected, filled)?,
        transient: named(file.transient, filled)?,
        no_transcript: false,
    })
}

/// Parses known files and directories, each once. `fill` fills in the names of the profile.
pub(crate) fn named(
    file: Vec<ExpectedFileFile>,
    fill: impl Fn(Spanned<String>) -> Result<Spanned<String>, Flaw>,
) -> Result<Vec<ExpectedFile>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for named in file {
        let root = named.root;
        let path = tree_path(fill(named.path)?)?;
        if !seen.insert((root, path.get_ref().clone())) {
            return Err(Flaw::new(
                path.span(),
                "each path once in each tree",
                format!("{} a second time", quoted(path.get_ref())),
                "remove one of the two",
            ));
        }
        parsed.push(ExpectedFile {
            root,
            path: pattern(&path, path.get_ref(), "a path that can be met")?,
            mode: None,
            count: Count::ANY,
            may_hold_credential: false,
            reason: sentence(named.reason)?,
        });
    }
    Ok(parsed)
}
