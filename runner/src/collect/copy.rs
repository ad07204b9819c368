//! Walk over a tree that the client left, for a copy of it.
//!
//! The walk uses descriptors, follows no link and opens no FIFO; depth, content and entries are bounded. Owns the
//! order of the entries; a [`Target`] decides what becomes of each. [`super::home_copy`] recreates them, a bundle
//! of evidence stores them in an archive.

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

/// Largest depth of directories below the root, as in the walk for the evidence. The walk holds one descriptor for
/// each level, in addition to the target's.
pub(crate) const MAX_DEPTH: usize = 100;

/// Limits on one copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Bytes of content; holes count, as they do in the walk for the evidence.
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// Bytes of paths.
    pub(crate) paths: u64,
}

/// Object at a path below the root.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    /// Directory that holds the object.
    pub(crate) from: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    /// Names from the root to this object, inclusive.
    pub(crate) path: &'a [Vec<u8>],
    pub(crate) kind: FileKind,
    pub(crate) status: &'a FileStat,
}

impl Entry<'_> {
    pub(crate) fn size(&self) -> u64 {
        u64::try_from(self.status.st_size).unwrap_or(0)
    }
}

/// Receiver of a tree. Every error goes to [`Target::skip`], and the walk continues.
pub(crate) trait Target {
    /// Handle of a directory in the copy.
    type Directory;

    /// Creates the directory that receives the entries of `entry`.
    fn enter(&mut self, into: &Self::Directory, entry: &Entry<'_>) -> io::Result<Self::Directory>;

    /// Receives a regular file; at most [`Entry::size`] bytes of it may be read.
    fn file(&mut self, into: &Self::Directory, entry: &Entry<'_>, content: File) -> io::Result<()>;

    /// Receives an object that is neither a directory nor a regular file.
    fn other(&mut self, into: &Self::Directory, entry: &Entry<'_>) -> io::Result<()>;

    /// Records an object that could not be copied. The path is empty for the root itself. The kind is `None` if it
    /// could not be read, or if the directory could not be listed.
    fn skip(&mut self, path: &[Vec<u8>], kind: Option<FileKind>, error: &io::Error);

    /// Checks whether the target has failed for good; the walk then ends.
    fn has_failed(&self) -> bool;
}

/// Walks everything below `tree` and hands it to `target`.
pub(crate) fn copy<T: Target>(tree: &OwnedFd, into: &T::Directory, bounds: Bounds, target: &mut T) {
    let mut walk = Walk {
        target,
        remaining: bounds,
        bounds,
        path: Vec::new(),
        full: false,
    };
    walk.directory(tree, into);
}

struct Walk<'t, T> {
    target: &'t mut T,
    remaining: Bounds,
    bounds: Bounds,
    /// Names of the directories on the way to the current entry.
    path: Vec<Vec<u8>>,
    /// A bound on entries or paths was reached; reported once.
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
            Err(errno) => return self.target.skip(&self.path, None, &errno.into()),
        };
        // In the order of the walk for the evidence, so that in a tree that is too large both have the same
        // part.
        for entry in entries.iter().rev() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.path.push(name.to_bytes().to_vec());
            self.visit(from, into, name);
            self.path.pop();
            if self.full || self.target.has_failed() {
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
            self.target.skip(&self.path, kind, &error);
        }
    }

    /// Counts the entry at the current path.
    fn count(&mut self) -> io::Result<()> {
        let length: usize = self.path.iter().map(|name| name.len() + 1).sum();
        let remaining = (
            self.remaining.entries.checked_sub(1),
            self.remaining.paths.checked_sub(length as u64),
        );
        let (Some(entries), Some(paths)) = remaining else {
            self.full = true;
            let Bounds { entries, paths, .. } = self.bounds;
            return Err(io::Error::other(format!(
                "and all later entries: over {entries} entries, or {paths} bytes of paths"
            )));
        };
        (self.remaining.entries, self.remaining.paths) = (entries, paths);
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
        // A copy, because the walk changes `self.path` while the target borrows it.
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
                if self.path.len() > MAX_DEPTH {
                    let why = format!("more than {MAX_DEPTH} directories deep");
                    return Err(io::Error::other(why));
                }
                let below = directory(from, name)?;
                let made = self.target.enter(into, &entry)?;
                self.directory(&below, &made);
                Ok(())
            }
            FileKind::File => {
                let size = entry.size();
                let Some(remaining) = self.remaining.bytes.checked_sub(size) else {
                    let why = format!(
                        "{size} bytes, and {} may still be copied",
                        self.remaining.bytes
                    );
                    return Err(io::Error::other(why));
                };
                let content = regular(from, name, &status)?;
                self.remaining.bytes = remaining;
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

/// Opens the regular file that had this status.
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
