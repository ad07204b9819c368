//! The inotify instance: which directory each watch stands for, and what its events tell.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio::io::unix::AsyncFd;

use super::{Known, Tree};
use crate::evidence::{FileKind, Root};
use crate::sys::fds::watched;

/// Directories that are watched.
const MOST_WATCHES: usize = 1024;
/// Paths that are remembered, and their bytes together.
const MOST_PATHS: usize = 4096;
const PATH_BYTES: usize = 1024 * 1024;
/// Events and directory entries that are looked at; nothing is watched beyond them.
const MOST_STEPS: usize = 50_000;

/// A place in one of the trees.
#[derive(Clone, Debug)]
struct Place {
    tree: usize,
    path: Vec<u8>,
}

impl Place {
    fn below(&self, name: &[u8]) -> Self {
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

/// One inotify instance over both trees.
#[derive(Debug)]
pub(super) struct Watching {
    inotify: Inotify,
    /// The same descriptor, for its readiness.
    ready: AsyncFd<OwnedFd>,
    pub(super) trees: [Tree; 2],
    watches: HashMap<WatchDescriptor, Place>,
    /// What may still be looked at and remembered.
    pub(super) steps: usize,
    path_bytes: usize,
}

impl Watching {
    pub(super) fn start(roots: [(Root, &OwnedFd); 2]) -> std::io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let ready = watched(inotify.as_fd().try_clone_to_owned()?)?;
        let [home, tmp] = roots.map(|(root, directory)| {
            Ok::<_, std::io::Error>(Tree {
                root,
                directory: directory.try_clone()?,
                seen: BTreeMap::new(),
            })
        });
        let mut watching = Self {
            inotify,
            ready,
            trees: [home?, tmp?],
            watches: HashMap::new(),
            steps: MOST_STEPS,
            path_bytes: PATH_BYTES,
        };
        watching.look_again();
        Ok(watching)
    }

    /// Takes what has happened, once there is something; never where nothing more is to be looked at.
    pub(super) async fn follow(&mut self) {
        while self.steps > 0 {
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
                Err(_) => break,
            }
        }
        self.steps = 0;
        pending().await
    }

    /// Takes the next events that wait.
    pub(super) fn take_events(&mut self) -> Result<(), Errno> {
        if self.steps == 0 {
            return Err(Errno::ENOBUFS);
        }
        let events = self.inotify.read_events()?;
        self.take(events);
        Ok(())
    }

    fn take(&mut self, events: Vec<InotifyEvent>) {
        for event in events {
            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                self.look_again();
            } else if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                self.watches.remove(&event.wd);
            } else if let (Some(parent), Some(name)) = (self.watches.get(&event.wd), event.name) {
                let place = parent.below(name.as_bytes());
                if self.note(&place, Known::little(kind_said(event.mask))) == FileKind::Directory {
                    self.look_into(place);
                }
            }
        }
    }

    /// Both trees from their roots: at the start, and when the kernel's queue was full.
    fn look_again(&mut self) {
        for tree in 0..self.trees.len() {
            self.look_into(Place {
                tree,
                path: Vec::new(),
            });
        }
    }

    /// Watches a directory and all below it. What is in it by now was made before the watch. Whoever is
    /// watched already keeps the watch and gets the path that it has now, which is what a rename needs.
    fn look_into(&mut self, place: Place) {
        let mut places = vec![place];
        while let Some(place) = places.pop() {
            for name in self.watch(&place).unwrap_or_default() {
                let below = place.below(&name);
                if self.note(&below, Known::little(FileKind::File)) == FileKind::Directory {
                    places.push(below);
                }
            }
        }
    }

    /// Watches one directory; the names in it.
    fn watch(&mut self, place: &Place) -> Result<Vec<Vec<u8>>, Errno> {
        if self.watches.len() >= MOST_WATCHES || self.steps == 0 {
            return Ok(Vec::new());
        }
        let tree = self.trees.get(place.tree).ok_or(Errno::ENOENT)?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NONBLOCK;
        let directory = tree.open(&place.path, flags)?;
        let by_number = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let watch = self.inotify.add_watch(
            by_number.as_str(),
            AddWatchFlags::IN_CREATE
                | AddWatchFlags::IN_MOVED_TO
                | AddWatchFlags::IN_CLOSE_WRITE
                | AddWatchFlags::IN_ONLYDIR,
        )?;
        self.watches.insert(watch, place.clone());
        let mut listing = Dir::from_fd(directory)?;
        let names = listing.iter().filter_map(|entry| {
            let name = entry.ok()?.file_name().to_bytes().to_vec();
            (name != b"." && name != b"..").then_some(name)
        });
        Ok(names.take(self.steps).collect())
    }

    /// Remembers a path with what can be read of it, else with what was known or is said; its kind.
    fn note(&mut self, place: &Place, said: Known) -> FileKind {
        let Some(steps) = self.steps.checked_sub(1) else {
            // Nothing more is looked at, directories neither.
            return FileKind::File;
        };
        self.steps = steps;
        let Some(tree) = self.trees.get_mut(place.tree) else {
            return said.kind;
        };
        let read = tree.known(&place.path);
        if let Some(known) = tree.seen.get_mut(&place.path) {
            *known = read.unwrap_or(*known);
            return known.kind;
        }
        let known = read.unwrap_or(said);
        if let Some(left) = self.path_bytes.checked_sub(place.path.len())
            && tree.seen.len() < MOST_PATHS
        {
            self.path_bytes = left;
            tree.seen.insert(place.path.clone(), known);
        }
        known.kind
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
