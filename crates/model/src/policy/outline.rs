//! Outline of a policy file: its path and the lines of its keys, for reports.
//!
//! Knows no TOML: the parser of the file provides the lines.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Fallback key for a key without a line and without an enclosing table.
const NAME: &str = "name";

/// Path of a policy file, free of machine-specific parts, and the line of each key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    path: PathBuf,
    lines: Lines,
}

/// Lines by dotted key, from 1: a constant of a built-in policy, or computed from a file.
pub type Lines = Cow<'static, [(Cow<'static, str>, usize)]>;

impl Outline {
    /// Builds an outline. `path` is relative and has no `..`; each key of `lines` is there once.
    pub fn new(path: PathBuf, lines: Lines) -> Self {
        Self { path, lines }
    }

    /// Returns the path, which is relative and has no `..`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the line of the key, of its innermost enclosing table in the file, or of the key `name`.
    pub fn line(&self, key: &str) -> usize {
        let enclosing = std::iter::successors(Some(key), |inner| Some(inner.rsplit_once('.')?.0));
        let line = |key| self.lines.iter().find(|(known, _)| known == key);
        let mut known = enclosing.chain([NAME]).filter_map(line);
        known.next().map_or(1, |(_, line)| *line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(lines: &[(&str, usize)]) -> Outline {
        let lines = lines
            .iter()
            .map(|(key, line)| (Cow::Owned((*key).to_owned()), *line));
        Outline::new(PathBuf::from("case.toml"), lines.collect())
    }

    #[test]
    fn a_key_that_is_not_there_is_found_at_the_table_around_it() {
        let outline = outline(&[("a.b", 3), ("a", 2), ("name", 1)]);
        assert_eq!(outline.line("a.b"), 3);
        assert_eq!(outline.line("a.b.c.d"), 3);
        assert_eq!(outline.line("a.x"), 2);
    }

    #[test]
    fn a_key_without_table_is_at_the_name_or_the_first_line() {
        assert_eq!(outline(&[("name", 7)]).line("x.y"), 7);
        assert_eq!(outline(&[]).line("x.y"), 1);
    }
}
