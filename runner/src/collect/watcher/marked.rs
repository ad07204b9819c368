//! The fanotify(7) group over the file systems of the trees, made by init with [`group`].
//!
//! An event names the directory by its handle, and the event of a directory's own making tells the handle that it has.
//! So each path follows from the events alone, also where nothing of it is there any more.

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

/// Directories on a path: more than the longest path has.
const MOST_PARENTS: usize = 4096;
/// Read at one time, from a queue of at most 16,384 events.
const PIECE: usize = 64 * 1024;

/// The group, and the directories that it has told of.
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
    /// Takes over a group for what happens from now on.
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
        // The canaries' own files.
        while marked.take_events().is_ok() {}
        marked.seen = Seen::new(roots, BOUNDS)?;
        Ok(marked)
    }

    /// Takes what has happened, once there is something; never where nothing more is to be looked at.
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

    /// Takes the next events that wait.
    pub(super) fn take_events(&mut self) -> Result<(), Errno> {
        let mut buffer = vec![0; PIECE];
        let length = read(self.group.get_ref(), &mut buffer)?;
        self.take(buffer.get(..length).unwrap_or_default());
        Ok(())
    }

    /// Ends the watch, without a wait for it.
    pub(super) fn end(self) -> FileWatch {
        close_later(self.group.get_ref());
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
            let place = self.place(&parent).map(|place| place.below(&name));
            let Some(place) = place else {
                self.seen.cut(WatchCut::Events);
                continue;
            };
            let kind = if is_directory {
                FileKind::Directory
            } else {
                FileKind::File
            };
            self.seen.note(&place, Known::little(kind));
            if is_directory && self.seen.cut.is_none() {
                let below = Directory::Below { parent, name };
                self.directories.insert(object, below);
            }
        }
    }

    /// Present place of a directory.
    fn place(&self, handle: &Handle) -> Option<TreePath> {
        let mut names = Vec::new();
        let mut handle = handle;
        for _ in 0..MOST_PARENTS {
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
