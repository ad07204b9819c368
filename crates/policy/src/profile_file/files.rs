//! Files of a client: left behind, and transient.

use std::collections::BTreeSet;

use model::case::Count;
use model::case::Root;
use model::profile::{ExpectedFile, Files, Names, PathPattern, PatternError, path_placeholders};
use model::quote::{known_words, quoted};
use toml::Spanned;

use super::{ExpectedFileFile, FilesFile};
use crate::error::Flaw;
use crate::values::{one_of, sentence, tree_path};

/// Parses the state file, its backup and the other known files.
pub(super) fn parsed(file: FilesFile, names: &Names) -> Result<Files, Flaw> {
    let path =
        |value| tree_path(crate::placeholders::fill(names, value, &[])?).map(Spanned::into_inner);
    let fill = |value| crate::placeholders::fill(names, value, &path_placeholders());
    Ok(Files {
        state: Some(path(file.state)?),
        backup_prefix: Some(path(file.backup_prefix)?),
        expected: named(file.expected, fill)?,
        transient: named(file.transient, fill)?,
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
        let root = one_of(&named.root, &Root::ALL, Root::word)?;
        let path = tree_path(fill(named.path)?)?;
        if !seen.insert((root.word(), path.get_ref().clone())) {
            return Err(Flaw::new(
                path.span(),
                "each path once in each tree",
                format!("{} a second time", quoted(path.get_ref())),
                "remove one of the two",
            ));
        }
        parsed.push(ExpectedFile {
            root,
            path: pattern(&path)?,
            mode: None,
            count: Count::ANY,
            reason: sentence(named.reason)?,
        });
    }
    Ok(parsed)
}

fn pattern(path: &Spanned<String>) -> Result<PathPattern, Flaw> {
    path.get_ref().parse().map_err(|error: PatternError| {
        let hint = match &error {
            PatternError::Unknown(name) => known_words(name, path_placeholders()),
            PatternError::Swallowed(_) => {
                "a placeholder takes all characters of its kind; put another character after it"
                    .into()
            }
        };
        let found = format!("{} ({error})", quoted(path.get_ref()));
        Flaw::new(path.span(), "a path that can be met", found, hint)
    })
}
