//! Where a reader of a report finds a policy file, and a key in it.
//!
//! Knows nothing of TOML: the lines come from whoever parsed the bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Asked for where a file has neither a key nor anything that it lies in.
const NAME: &str = "name";

/// A policy file as its readers have it: a path that holds nothing of this machine, and the line of each key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    path: PathBuf,
    lines: BTreeMap<String, usize>,
}

impl Outline {
    /// `path` is relative and leads downwards; `lines`, from 1, are by the dotted path of their key.
    pub fn new(path: PathBuf, lines: BTreeMap<String, usize>) -> Self {
        Self { path, lines }
    }

    /// Relative, without `..`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The line of the key, else of the innermost table around it that the file has, else of its name.
    pub fn line(&self, key: &str) -> usize {
        let around = std::iter::successors(Some(key), |inner| Some(inner.rsplit_once('.')?.0));
        let mut known = around
            .chain([NAME])
            .filter_map(|key| self.lines.get(key).copied());
        known.next().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(lines: &[(&str, usize)]) -> Outline {
        let lines = lines.iter().map(|(key, line)| ((*key).to_owned(), *line));
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
    fn without_such_a_table_it_is_the_name_and_without_a_name_the_first_line() {
        assert_eq!(outline(&[("name", 7)]).line("x.y"), 7);
        assert_eq!(outline(&[]).line("x.y"), 1);
    }
}
