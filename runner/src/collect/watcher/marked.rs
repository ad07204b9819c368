//! The fanotify(7) group over the file systems of the trees, created by init with [`sys::marks::group`].
//!
//! An event names the parent directory by its file handle. The event of a directory's own creation has its handle.
//! So the events alone determine each path, even after every part of it was removed.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;

use model::evidence::{FileKind, FileWatch, Root, WatchCut};
use nix::errno::Errno;
use nix::unistd::read;
use sys::fds::{close_later, watched};
use sys::marks::{self, Event, Handle};
use tokio::io::unix::AsyncFd;

use super::seen::{BOUNDS, Known, Seen, TreePath};

/// Largest number of directories on a path: more than the longest path has.
const MAX_PARENTS: usize = 4096;
/// Buffer size of one read, in bytes; the queue has at most 16,384 events.
const PIECE: usize = 16 * 1024;

/// The group, and the directories known from its events.
#[derive(Debug)]
pub(super) struct Marked {
    group: AsyncFd<OwnedFd>,
    directories: HashMap<Handle, Directory>,
    pub(super) seen: Seen,
}

#[derive(Debug)]
enum Directory {
    Root { tree: usize },
    Below { parent: Handle, name: Vec<u8> },
}

impl Marked {
    /// Takes over a group. Earlier events are dropped.
    pub(super) fn start(group: OwnedFd, roots: &[(Root, &OwnedFd)]) -> io::Result<Self> {
        let mut directories = HashMap::new();
        for (tree, (_, directory)) in roots.iter().enumerate() {
            let handle = marks::handle(directory)?;
            directories.insert(handle, Directory::Root { tree });
        }
        let mut marked = Self {
            group: watched(group)?,
            directories,
            seen: Seen::new(roots, BOUNDS)?,
        };
        // These events are about files of the canary.
        while marked.take_events().is_ok() {}
        marked.seen = Seen::new(roots, BOUNDS)?;
        Ok(marked)
    }

    /// Handles pending events; returns after at least one. After an error the future is never ready.
    pub(super) async fn follow(&mut self) {
        loop {
            let Ok(mut ready) = self.group.readable().await else {
                return pending().await;
            };
            let mut buffer = vec![0; PIECE];
            match read(ready.get_inner(), &mut buffer) {
                Ok(length) => {
                    drop(ready);
                    return self.take(buffer.get(..length).unwrap_or_default());
                }
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(Errno::EINTR) => {}
                Err(_) => {
                    self.seen.cut(WatchCut::Events);
                    return pending().await;
                }
            }
        }
    }

    /// Handles the next pending events.
    pub(super) fn take_events(&mut self) -> Result<(), Errno> {
        let mut buffer = vec![0; PIECE];
        let length = read(self.group.get_ref(), &mut buffer)?;
        self.take(buffer.get(..length).unwrap_or_default());
        Ok(())
    }

    /// Ends the watch. The descriptor is closed without waiting, because closing can take long.
    pub(super) fn end(self) -> FileWatch {
        close_later(self.group.into_inner());
        self.seen.cut.map_or(FileWatch::Whole, FileWatch::Cut)
    }

    fn take(&mut self, bytes: &[u8]) {
        for event in marks::events(bytes) {
            let Some(Event {
                parent,
                name,
                object,
                is_directory,
            }) = event
            else {
                self.seen.cut(WatchCut::Queue);
                continue;
            };
            let path = self.path(&parent).map(|path| path.below(&name));
            let Some(path) = path else {
                self.seen.cut(WatchCut::Events);
                continue;
            };
            let kind = if is_directory {
                FileKind::Directory
            } else {
                FileKind::File
            };
            self.seen.note(&path, Known::kind_only(kind));
            if is_directory && self.seen.cut.is_none() {
                let below = Directory::Below { parent, name };
                self.directories.insert(object, below);
            }
        }
    }

    /// Returns the present path of a directory.
    fn path(&self, handle: &Handle) -> Option<TreePath> {
        let mut names = Vec::new();
        let mut handle = handle;
        for _ in 0..MAX_PARENTS {
            match self.directories.get(handle)? {
                Directory::Below { parent, name } => {
                    names.push(name.as_slice());
                    handle = parent;
                }
                Directory::Root { tree } => {
                    names.reverse();
                    return Some(TreePath {
                        tree: *tree,
                        path: names.join(&b'/'),
                    });
                }
            }
        }
        None
    }
}
