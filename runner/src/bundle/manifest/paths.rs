//! Paths of a manifest: their validity, and the content of each directory.
//!
//! The list is untrusted. It is read in place, since a tree of its names could be hundreds of times larger.

use super::{Listed, ManifestError, NAME, shown};

/// Largest number of names in one path; a run's bundle has a few more than the deepest tree that is walked.
const MAX_NAMES: usize = 120;
/// Largest length of a name, in bytes (NAME_MAX of linux/limits.h).
const MAX_NAME: usize = 255;

/// Checks that the paths are valid and in order.
///
/// # Errors
/// Returns the first path that leads out of the bundle, is invalid, or is out of order.
pub(super) fn check(files: &[Listed]) -> Result<(), ManifestError> {
    // Files whose whole path is a prefix of the current path. Paths between them in the order have the same
    // prefix, so no such file is missed.
    let mut begun: Vec<&str> = Vec::new();
    for file in files {
        let path = file.path.as_str();
        let refused = |what| ManifestError::Path {
            path: shown(path),
            what,
        };
        flaw(path).map_or(Ok(()), |what| Err(refused(what)))?;
        let before = begun.last().copied();
        while begun.last().is_some_and(|begun| !path.starts_with(begun)) {
            begun.pop();
        }
        match before {
            Some(before) if before == path => return Err(refused("appears twice")),
            Some(before) if before > path => return Err(refused("is out of order")),
            Some(_) | None => {}
        }
        let is_within = |file: &&str| path.as_bytes().get(file.len()) == Some(&b'/');
        if begun.iter().any(is_within) {
            return Err(refused("leads through a file"));
        }
        begun.push(path);
    }
    Ok(())
}

/// Returns the fault of a path by itself. Its names are not stored, because they may be very many.
fn flaw(path: &str) -> Option<&'static str> {
    for name in path.split('/') {
        match name {
            "" if path.starts_with('/') => return Some("is absolute"),
            "" => return Some("has an empty name in it"),
            "." | ".." => return Some("has a `.` or `..` in it"),
            _ if name.contains('\0') => return Some("has a NUL in it"),
            _ if name.len() > MAX_NAME => return Some("has a name of over 255 bytes"),
            _ => {}
        }
    }
    match path {
        NAME => Some("is the manifest itself"),
        _ if path.split('/').count() > MAX_NAMES => Some("is too deep"),
        _ => None,
    }
}

/// A directory of a bundle in the manifest: the files of the sorted list whose paths begin with its own. The
/// directory is a slice of the list, so that deep paths cost no more than their bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directory<'m> {
    files: &'m [Listed],
    /// Length of its own path and the slash after it, in bytes.
    skipped: usize,
}

/// Expected object for a name in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node<'m> {
    File(&'m Listed),
    Directory(Directory<'m>),
}

impl<'m> Directory<'m> {
    /// Returns the top directory of sorted files.
    pub(super) fn top(files: &'m [Listed]) -> Self {
        Self { files, skipped: 0 }
    }

    /// Returns all files below the directory.
    pub(crate) fn files(self) -> &'m [Listed] {
        self.files
    }

    /// Returns the expected object for a name.
    pub(crate) fn get(self, name: &str) -> Option<Node<'m>> {
        let at = self.files.partition_point(|file| self.rest(file) < name);
        match self.files.get(at) {
            Some(file) if self.rest(file) == name => Some(Node::File(file)),
            Some(_) | None => self.below(name).map(Node::Directory),
        }
    }

    fn below(self, name: &str) -> Option<Self> {
        let path = format!("{name}/");
        let before = self
            .files
            .partition_point(|file| self.rest(file) < path.as_str());
        let files = self.files.get(before..)?;
        let count = files.partition_point(|file| self.rest(file).starts_with(&path));
        let files = files.get(..count)?;
        (!files.is_empty()).then_some(Self {
            files,
            skipped: self.skipped + path.len(),
        })
    }

    /// Returns each expected name of the directory, in the order of the list.
    pub(crate) fn nodes(self) -> impl Iterator<Item = (&'m str, Node<'m>)> {
        let mut left = self.files;
        std::iter::from_fn(move || {
            let first = left.first()?;
            let rest = self.rest(first);
            let Some((name, _)) = rest.split_once('/') else {
                left = left.get(1..)?;
                return Some((rest, Node::File(first)));
            };
            let path = rest.get(..=name.len())?;
            let count = left.partition_point(|file| self.rest(file).starts_with(path));
            let (files, others) = left.split_at_checked(count)?;
            left = others;
            let skipped = self.skipped + path.len();
            Some((name, Node::Directory(Self { files, skipped })))
        })
    }

    /// Returns the path of one of its files, relative to the directory.
    fn rest(self, file: &'m Listed) -> &'m str {
        file.path.get(self.skipped..).unwrap_or_default()
    }
}
