//! Paths seen in the trees, with the known facts of each.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use model::evidence::{FileKind, Root, WatchCut};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::fstat;

use crate::collect::files;

/// Bounds larger than a tree can hold at one time.
pub(super) const BOUNDS: Bounds = Bounds {
    paths: 65_536,
    path_bytes: 8 * 1024 * 1024,
    steps: 1_000_000,
};

/// Limits on the paths kept and the events handled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) paths: usize,
    /// Bytes of all paths together.
    pub(super) path_bytes: usize,
    /// Number of events and directory entries.
    pub(super) steps: usize,
}

/// All paths seen in the trees.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) trees: Vec<Tree>,
    /// Remainder of the limits.
    pub(super) remaining: Bounds,
    /// First reason for an omission.
    pub(super) cut: Option<WatchCut>,
}

impl Seen {
    pub(super) fn new(roots: &[(Root, &OwnedFd)], remaining: Bounds) -> std::io::Result<Self> {
        let trees = roots.iter().map(|(root, directory)| {
            Ok::<_, std::io::Error>(Tree {
                root: *root,
                directory: directory.try_clone()?,
                seen: BTreeMap::new(),
            })
        });
        Ok(Self {
            trees: trees.collect::<Result<_, _>>()?,
            remaining,
            cut: None,
        })
    }

    /// Records an omission; the first reason stays.
    pub(super) fn cut(&mut self, reason: WatchCut) {
        self.cut.get_or_insert(reason);
    }

    /// Records a path with its status if it can be read, else with earlier facts or those of the event. Returns
    /// its kind.
    pub(super) fn note(&mut self, path: &TreePath, reported: Known) -> FileKind {
        let Some(steps) = self.remaining.steps.checked_sub(1) else {
            // Beyond the limit, directories are not entered either.
            self.cut(WatchCut::Steps);
            return FileKind::File;
        };
        self.remaining.steps = steps;
        let Some(tree) = self.trees.get_mut(path.tree) else {
            return reported.kind;
        };
        let read = tree.known(&path.path);
        if let Some(known) = tree.seen.get_mut(&path.path) {
            *known = read.unwrap_or(*known);
            return known.kind;
        }
        let known = read.unwrap_or(reported);
        let bytes = self.remaining.path_bytes.checked_sub(path.path.len());
        match (self.remaining.paths.checked_sub(1), bytes) {
            (Some(paths), Some(path_bytes)) => {
                self.remaining.paths = paths;
                self.remaining.path_bytes = path_bytes;
                tree.seen.insert(path.path.clone(), known);
            }
            (None, _) | (_, None) => self.cut(WatchCut::Names),
        }
        known.kind
    }
}

/// Path in one of the trees.
#[derive(Clone, Debug)]
pub(super) struct TreePath {
    pub(super) tree: usize,
    pub(super) path: Vec<u8>,
}

impl TreePath {
    pub(super) fn below(&self, name: &[u8]) -> Self {
        let mut path = self.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend(name);
        Self {
            tree: self.tree,
            path,
        }
    }
}

/// Known facts of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) kind: FileKind,
    pub(super) mode: u32,
    pub(super) bytes: u64,
}

impl Known {
    /// Returns the facts of an object that was gone before its status could be read.
    pub(super) fn kind_only(kind: FileKind) -> Self {
        Self {
            kind,
            mode: 0,
            bytes: 0,
        }
    }
}

/// One of the trees.
#[derive(Debug)]
pub(super) struct Tree {
    root: Root,
    directory: OwnedFd,
    seen: BTreeMap<Vec<u8>, Known>,
}

impl Tree {
    /// Opens the object at a path below the tree. No link is followed, not even in the middle of the path, and no mount
    /// is entered: files of the host that are shown below /tmp are not the client's.
    pub(super) fn open(&self, path: &[u8], flags: OFlag) -> Result<OwnedFd, Errno> {
        let how = OpenHow::new()
            .flags(flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
            .resolve(
                ResolveFlag::RESOLVE_BENEATH
                    | ResolveFlag::RESOLVE_NO_SYMLINKS
                    | ResolveFlag::RESOLVE_NO_XDEV,
            );
        let path = if path.is_empty() { b"." } else { path };
        openat2(&self.directory, path, how)
    }

    fn known(&self, path: &[u8]) -> Result<Known, Errno> {
        let status = fstat(self.open(path, OFlag::O_PATH)?)?;
        Ok(Known {
            kind: files::kind(&status),
            mode: status.st_mode & 0o7777,
            bytes: u64::try_from(status.st_size).unwrap_or(0),
        })
    }

    pub(super) fn gone(&self) -> impl Iterator<Item = (Root, Vec<u8>, Known)> {
        let is_gone = |path: &[u8]| {
            let there = self.open(path, OFlag::O_PATH);
            // A link in the middle of the path means that the former object is no longer there.
            matches!(there, Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP))
        };
        self.seen
            .iter()
            .filter(move |(path, _)| is_gone(path))
            .map(|(path, known)| (self.root, path.clone(), *known))
    }
}
