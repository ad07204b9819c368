//! The inotify(7) source: maps each watch to its directory and handles the events. A watch is on the inode, not on
//! the path, so it works across mount namespaces.

use std::collections::HashMap;
use std::future::pending;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use model::evidence::{FileKind, FileWatch, Root, WatchCut};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use sys::fds::{close_later, watched};
use tokio::io::unix::AsyncFd;

use super::seen::{BOUNDS, Known, Seen, TreePath};

/// Largest number of directories watched at one time.
const MAX_WATCHES: usize = 8192;

/// One inotify instance over the trees.
#[derive(Debug)]
pub(super) struct Watching {
    inotify: Inotify,
    /// A duplicate of the descriptor, for its readiness.
    ready: AsyncFd<OwnedFd>,
    pub(super) seen: Seen,
    watches: HashMap<WatchDescriptor, TreePath>,
    /// Limit on the number of watches.
    pub(super) max_watches: usize,
}

impl Watching {
    pub(super) fn start(roots: &[(Root, &OwnedFd)]) -> std::io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let ready = watched(inotify.as_fd().try_clone_to_owned()?)?;
        let mut watching = Self {
            inotify,
            ready,
            seen: Seen::new(roots, BOUNDS)?,
            watches: HashMap::new(),
            max_watches: MAX_WATCHES,
        };
        watching.scan_all();
        Ok(watching)
    }

    /// Handles pending events; returns after at least one. After an error or at the limit the future is never
    /// ready.
    pub(super) async fn follow(&mut self) {
        while self.seen.remaining.steps > 0 {
            let Ok(mut ready) = self.ready.readable().await else {
                break;
            };
            match self.inotify.read_events() {
                Ok(events) => {
                    drop(ready);
                    return self.take(events);
                }
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(Errno::EINTR) => {}
                Err(_) => {
                    self.seen.cut(WatchCut::Events);
                    break;
                }
            }
        }
        self.seen.remaining.steps = 0;
        self.seen.cut(WatchCut::Steps);
        pending().await
    }

    /// Handles the next pending events.
    pub(super) fn take_events(&mut self) -> Result<(), Errno> {
        if self.seen.remaining.steps == 0 {
            self.seen.cut(WatchCut::Steps);
            return Err(Errno::ENOBUFS);
        }
        let events = self.inotify.read_events()?;
        self.take(events);
        Ok(())
    }

    /// Ends the watch. The descriptor is closed without waiting, because closing can take long.
    pub(super) fn end(self) -> FileWatch {
        // This copy of the descriptor would otherwise be the last one to be closed.
        drop(self.ready);
        close_later(self.inotify.into());
        self.seen.cut.map_or(FileWatch::BestEffort, FileWatch::Cut)
    }

    fn take(&mut self, events: Vec<InotifyEvent>) {
        for event in events {
            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                // A name that was created and removed while the queue was full is in no directory now.
                self.seen.cut(WatchCut::Queue);
                self.scan_all();
            } else if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                self.watches.remove(&event.wd);
            } else if let (Some(parent), Some(name)) = (self.watches.get(&event.wd), event.name) {
                let path = parent.below(name.as_bytes());
                if self
                    .seen
                    .note(&path, Known::kind_only(kind_in_event(event.mask)))
                    == FileKind::Directory
                {
                    self.scan(path);
                }
            }
        }
    }

    /// Scans all trees from their roots: at the start, and after the kernel's queue overflowed.
    fn scan_all(&mut self) {
        for tree in 0..self.seen.trees.len() {
            self.scan(TreePath {
                tree,
                path: Vec::new(),
            });
        }
    }

    /// Watches a directory and all directories below it; its present entries were created before the watch. A
    /// directory that is already watched keeps its watch and gets its present path, which handles renames.
    fn scan(&mut self, path: TreePath) {
        let mut paths = vec![path];
        while let Some(path) = paths.pop() {
            for name in self.watch(&path).unwrap_or_default() {
                let below = path.below(&name);
                if self.seen.note(&below, Known::kind_only(FileKind::File)) == FileKind::Directory {
                    paths.push(below);
                }
            }
        }
    }

    /// Watches one directory. Returns the names in it.
    fn watch(&mut self, path: &TreePath) -> Result<Vec<Vec<u8>>, Errno> {
        if self.watches.len() >= self.max_watches {
            self.seen.cut(WatchCut::Directories(self.max_watches));
            return Ok(Vec::new());
        }
        if self.seen.remaining.steps == 0 {
            self.seen.cut(WatchCut::Steps);
            return Ok(Vec::new());
        }
        let tree = self.seen.trees.get(path.tree).ok_or(Errno::ENOENT)?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NONBLOCK;
        let directory = tree.open(&path.path, flags)?;
        let by_number = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let watch = self.inotify.add_watch(
            by_number.as_str(),
            AddWatchFlags::IN_CREATE
                | AddWatchFlags::IN_MOVED_TO
                | AddWatchFlags::IN_CLOSE_WRITE
                | AddWatchFlags::IN_ONLYDIR,
        );
        if watch == Err(Errno::ENOSPC) {
            self.seen.cut(WatchCut::Watches);
        }
        let watch = watch?;
        self.watches.insert(watch, path.clone());
        let mut listing = Dir::from_fd(directory)?;
        let names = listing.iter().filter_map(|entry| {
            let name = entry.ok()?.file_name().to_bytes().to_vec();
            (name != b"." && name != b"..").then_some(name)
        });
        Ok(names.take(self.seen.remaining.steps).collect())
    }
}

/// Returns the kind of object in an event, since the object may be gone.
fn kind_in_event(mask: AddWatchFlags) -> FileKind {
    if mask.contains(AddWatchFlags::IN_ISDIR) {
        FileKind::Directory
    } else {
        FileKind::File
    }
}
