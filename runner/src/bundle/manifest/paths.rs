//! The paths of a manifest: whether a run writes such, and what lies in which directory.
//!
//! The list may be anybody's. It is read where it lies, since a tree of its names can be hundreds of times larger.

use super::{Listed, ManifestError, NAME, shown};

/// Names in one path; a bundle of ours has a few more than the deepest tree that is walked.
const MOST_NAMES: usize = 120;
/// NAME_MAX of linux/limits.h.
const LONGEST_NAME: usize = 255;

/// Whether the paths are such as a run writes, and in their order.
///
/// # Errors
/// The first that leads out of the bundle, or nowhere, or stands in a wrong place.
pub(super) fn check(files: &[Listed]) -> Result<(), ManifestError> {
    // Files whose whole path the current one begins with. What lies between them in the order begins with it as well,
    // so none is left behind.
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
            Some(before) if before == path => return Err(refused("stands there twice")),
            Some(before) if before > path => return Err(refused("is not in its order")),
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

/// What is wrong with a path, by itself. Nothing is kept of its names: they may be very many.
fn flaw(path: &str) -> Option<&'static str> {
    for name in path.split('/') {
        match name {
            "" if path.starts_with('/') => return Some("is absolute"),
            "" => return Some("has an empty name in it"),
            "." | ".." => return Some("has a `.` or `..` in it"),
            _ if name.contains('\0') => return Some("has a NUL in it"),
            _ if name.len() > LONGEST_NAME => return Some("has a name of over 255 bytes"),
            _ => {}
        }
    }
    match path {
        NAME => Some("is the manifest itself"),
        _ if path.split('/').count() > MOST_NAMES => Some("is too deep"),
        _ => None,
    }
}

/// A directory of a bundle, as the manifest has it: the files of the sorted list whose paths begin with its own.
/// Nothing is built of them, so that deep paths cost no more than their bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directory<'m> {
    files: &'m [Listed],
    /// Bytes of its own path and of the slash behind it.
    skipped: usize,
}

/// What a name in a directory is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node<'m> {
    File(&'m Listed),
    Directory(Directory<'m>),
}

impl<'m> Directory<'m> {
    /// Of files that are sorted.
    pub(super) fn uppermost(files: &'m [Listed]) -> Self {
        Self { files, skipped: 0 }
    }

    /// Everything below it.
    pub(crate) fn files(self) -> &'m [Listed] {
        self.files
    }

    /// What this name is to be.
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

    /// Each name that is to be in it, in the order of the list.
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

    /// The path of one of its files, from it on.
    fn rest(self, file: &'m Listed) -> &'m str {
        file.path.get(self.skipped..).unwrap_or_default()
    }
}
