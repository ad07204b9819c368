//! The inotify instance: which directory each watch stands for, and what its events tell. A watch is on the object,
//! not on its path, so it works across the border of the mount namespace.

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

/// Directories that are watched at one time.
const MOST_WATCHES: usize = 8192;

/// One inotify instance over the trees.
#[derive(Debug)]
pub(super) struct Watching {
    inotify: Inotify,
    /// The same descriptor, for its readiness.
    ready: AsyncFd<OwnedFd>,
    pub(super) seen: Seen,
    watches: HashMap<WatchDescriptor, TreePath>,
    /// Watches that there may be.
    pub(super) most: usize,
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
            most: MOST_WATCHES,
        };
        watching.look_again();
        Ok(watching)
    }

    /// Takes what has happened, once there is something; never where nothing more is to be looked at.
    pub(super) async fn follow(&mut self) {
        while self.seen.left.steps > 0 {
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
        self.seen.left.steps = 0;
        self.seen.cut(WatchCut::Steps);
        pending().await
    }

    /// Takes the next events that wait.
    pub(super) fn take_events(&mut self) -> Result<(), Errno> {
        if self.seen.left.steps == 0 {
            self.seen.cut(WatchCut::Steps);
            return Err(Errno::ENOBUFS);
        }
        let events = self.inotify.read_events()?;
        self.take(events);
        Ok(())
    }

    /// Ends the watch, without a wait for it.
    pub(super) fn end(self) -> FileWatch {
        close_later(&self.inotify);
        self.seen.cut.map_or(FileWatch::BestEffort, FileWatch::Cut)
    }

    fn take(&mut self, events: Vec<InotifyEvent>) {
        for event in events {
            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                // A name that was given and taken away meanwhile is in no directory.
                self.seen.cut(WatchCut::Queue);
                self.look_again();
            } else if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                self.watches.remove(&event.wd);
            } else if let (Some(parent), Some(name)) = (self.watches.get(&event.wd), event.name) {
                let place = parent.below(name.as_bytes());
                if self.seen.note(&place, Known::little(kind_said(event.mask)))
                    == FileKind::Directory
                {
                    self.look_into(place);
                }
            }
        }
    }

    /// All trees from their roots: at the start, and when the kernel's queue was full.
    fn look_again(&mut self) {
        for tree in 0..self.seen.trees.len() {
            self.look_into(TreePath {
                tree,
                path: Vec::new(),
            });
        }
    }

    /// Watches a directory and all below it. What is in it by now was made before the watch. Whoever is
    /// watched already keeps the watch and gets the path that it has now, which is what a rename needs.
    fn look_into(&mut self, place: TreePath) {
        let mut places = vec![place];
        while let Some(place) = places.pop() {
            for name in self.watch(&place).unwrap_or_default() {
                let below = place.below(&name);
                if self.seen.note(&below, Known::little(FileKind::File)) == FileKind::Directory {
                    places.push(below);
                }
            }
        }
    }

    /// Watches one directory; the names in it.
    fn watch(&mut self, place: &TreePath) -> Result<Vec<Vec<u8>>, Errno> {
        if self.watches.len() >= self.most {
            self.seen.cut(WatchCut::Directories(self.most));
            return Ok(Vec::new());
        }
        if self.seen.left.steps == 0 {
            self.seen.cut(WatchCut::Steps);
            return Ok(Vec::new());
        }
        let tree = self.seen.trees.get(place.tree).ok_or(Errno::ENOENT)?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NONBLOCK;
        let directory = tree.open(&place.path, flags)?;
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
        self.watches.insert(watch, place.clone());
        let mut listing = Dir::from_fd(directory)?;
        let names = listing.iter().filter_map(|entry| {
            let name = entry.ok()?.file_name().to_bytes().to_vec();
            (name != b"." && name != b"..").then_some(name)
        });
        Ok(names.take(self.seen.left.steps).collect())
    }
}

/// What an event says of an object that may be gone by now.
fn kind_said(mask: AddWatchFlags) -> FileKind {
    if mask.contains(AddWatchFlags::IN_ISDIR) {
        FileKind::Directory
    } else {
        FileKind::File
    }
}
