//! The walk of a tree that the client left, for a copy of it.
//!
//! By descriptors, no link followed and no FIFO opened; depth, content and entries are bounded. Owns what is visited
//! and in which order; what becomes of each entry is the target's: [`super::keep`] makes it again, a bundle of
//! evidence stores it under names of its own.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use model::evidence::FileKind;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};

use super::files::kind;

/// Directories below the root, as for the walk of the evidence. A descriptor is held for each, and whatever the target
/// holds.
pub(crate) const DEEPEST: usize = 100;

/// What a copy takes of a tree at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Bytes of content. Holes count, as they do where files are read.
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// Bytes of paths.
    pub(crate) paths: u64,
}

/// What lies at a path below the root.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    /// The directory that holds it.
    pub(crate) from: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    /// The names from the root, this one too.
    pub(crate) path: &'a [Vec<u8>],
    pub(crate) kind: FileKind,
    pub(crate) status: &'a FileStat,
}

impl Entry<'_> {
    pub(crate) fn size(&self) -> u64 {
        u64::try_from(self.status.st_size).unwrap_or(0)
    }
}

/// What is made of a tree. Every error is told to [`Target::lacks`], and the walk goes on.
pub(crate) trait Target {
    /// A directory of the copy.
    type Directory;

    /// Makes what is to hold the entries of a directory.
    fn enter(&mut self, into: &Self::Directory, entry: &Entry<'_>) -> io::Result<Self::Directory>;

    /// After the last entry of a directory that was entered.
    fn leave(&mut self, into: &Self::Directory, left: Self::Directory, entry: &Entry<'_>);

    /// Takes a regular file, of which no more than its size is read.
    fn file(&mut self, into: &Self::Directory, entry: &Entry<'_>, content: File) -> io::Result<()>;

    /// Takes what is neither a directory nor a regular file.
    fn other(&mut self, into: &Self::Directory, entry: &Entry<'_>) -> io::Result<()>;

    /// Notes what could not be copied; the path is empty for the root itself, the kind unknown where it could not be
    /// asked for, and for what lies in a directory that could not be listed.
    fn lacks(&mut self, path: &[Vec<u8>], kind: Option<FileKind>, error: &io::Error);

    /// Whether nothing more can be taken: the walk ends.
    fn is_lost(&self) -> bool;
}

/// Hands everything below `tree` to `target`.
pub(crate) fn copy<T: Target>(tree: &OwnedFd, into: &T::Directory, bounds: Bounds, target: &mut T) {
    let mut walk = Walk {
        target,
        left: bounds,
        most: bounds,
        path: Vec::new(),
        full: false,
    };
    walk.directory(tree, into);
}

struct Walk<'t, T> {
    target: &'t mut T,
    left: Bounds,
    most: Bounds,
    /// Names of the directories on the way to the current entry.
    path: Vec<Vec<u8>>,
    /// A bound on entries was met; said once.
    full: bool,
}

impl<T: Target> Walk<'_, T> {
    fn directory(&mut self, from: &OwnedFd, into: &T::Directory) {
        let listing = directory(from, c".").and_then(|from| {
            let mut listing = Dir::from_fd(from)?;
            listing.iter().collect::<Result<Vec<_>, _>>()
        });
        let entries = match listing {
            Ok(entries) => entries,
            Err(errno) => return self.target.lacks(&self.path, None, &errno.into()),
        };
        // As the evidence was read: where there is too much, both have the same part of it.
        for entry in entries.iter().rev() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.path.push(name.to_bytes().to_vec());
            self.visit(from, into, name);
            self.path.pop();
            if self.full || self.target.is_lost() {
                return;
            }
        }
    }

    fn visit(&mut self, from: &OwnedFd, into: &T::Directory, name: &CStr) {
        let mut kind = None;
        let taken = self
            .count()
            .and_then(|()| self.entry(from, into, name, &mut kind));
        if let Err(error) = taken {
            self.target.lacks(&self.path, kind, &error);
        }
    }

    /// Counts the entry at the current path.
    fn count(&mut self) -> io::Result<()> {
        let length: usize = self.path.iter().map(|name| name.len() + 1).sum();
        let left = (
            self.left.entries.checked_sub(1),
            self.left.paths.checked_sub(length as u64),
        );
        let (Some(entries), Some(paths)) = left else {
            self.full = true;
            let Bounds { entries, paths, .. } = self.most;
            return Err(io::Error::other(format!(
                "and whatever follows: over {entries} entries, or {paths} bytes of paths"
            )));
        };
        (self.left.entries, self.left.paths) = (entries, paths);
        Ok(())
    }

    fn entry(
        &mut self,
        from: &OwnedFd,
        into: &T::Directory,
        name: &CStr,
        known: &mut Option<FileKind>,
    ) -> io::Result<()> {
        let status = fstatat(from, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        let kind = kind(&status);
        *known = Some(kind);
        // The target sees the path while the walk goes on to change it.
        let path = self.path.clone();
        let entry = Entry {
            from: from.as_fd(),
            name,
            path: &path,
            kind,
            status: &status,
        };
        match kind {
            FileKind::Directory => {
                if self.path.len() > DEEPEST {
                    let why = format!("more than {DEEPEST} directories deep");
                    return Err(io::Error::other(why));
                }
                let below = directory(from, name)?;
                let made = self.target.enter(into, &entry)?;
                self.directory(&below, &made);
                self.target.leave(into, made, &entry);
                Ok(())
            }
            FileKind::File => {
                let size = entry.size();
                let Some(left) = self.left.bytes.checked_sub(size) else {
                    let why = format!("{size} bytes, and {} may still be copied", self.left.bytes);
                    return Err(io::Error::other(why));
                };
                let content = regular(from, name, &status)?;
                self.left.bytes = left;
                self.target.file(into, &entry, content)
            }
            FileKind::Symlink | FileKind::Fifo | FileKind::Socket | FileKind::Device => {
                self.target.other(into, &entry)
            }
        }
    }
}

pub(crate) fn directory(at: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

/// Opens the file that had this status.
fn regular(at: impl AsFd, name: &CStr, status: &FileStat) -> Result<File, Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let opened = openat(at, name, flags, Mode::empty())?;
    let same = fstat(&opened)?;
    if (same.st_dev, same.st_ino) == (status.st_dev, status.st_ino) {
        Ok(opened.into())
    } else {
        Err(Errno::ESTALE)
    }
}
