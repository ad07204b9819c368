//! What was in the client's home or temporary directory for a time and is gone at the end: inotify(7), from
//! outside, on the two directories that init handed over.
//!
//! Best effort, and no check rests on it alone: a directory is watched only after it was seen, so what is made
//! in it and removed within that moment is missed; a mode that shuts us out, a full queue and the bounds below
//! leave something out as well; none of it is a gap. What a file held is not known, only its name, and of its
//! kind, mode and size what could be read before it was gone. A watch is on the object, not on its path, so
//! it works across the border of the mount namespace; no link is ever followed, since links are the client's.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use nix::sys::stat::fstat;
use stub::Needle;
use tokio::io::unix::AsyncFd;

use super::files::{self, Found};
use crate::evidence::{FileEntry, FileKind, Root, Sighting};
use crate::sys::fds::watched;

/// Directories that are watched.
const MOST_WATCHES: usize = 1024;
/// Paths that are remembered, and their bytes together.
const MOST_PATHS: usize = 4096;
const PATH_BYTES: usize = 1024 * 1024;
/// Events and directory entries that are looked at; nothing is watched beyond them.
const MOST_STEPS: usize = 50_000;

/// The watch over both trees; nothing at all before it is started, or where the kernel offers none.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    watching: Option<Watching>,
}

impl Watcher {
    /// Starts to watch both trees, for what happens from now on.
    pub(super) fn start(&mut self, home: &OwnedFd, tmp: &OwnedFd) {
        self.watching = Watching::start([(Root::Home, home), (Root::Tmp, tmp)]).ok();
    }

    /// Takes what has happened; returns once there was something.
    pub(super) async fn follow(&mut self) {
        match &mut self.watching {
            None => pending().await,
            Some(watching) => {
                if watching.follow().await.is_err() {
                    self.watching = None;
                }
            }
        }
    }

    /// What has been there and is not any more.
    pub(super) fn finish(self) -> Gone {
        let mut gone = Gone::default();
        if let Some(mut watching) = self.watching {
            while watching.take_events().is_ok() {}
            for tree in &watching.trees {
                gone.0.extend(tree.gone());
            }
        }
        gone
    }
}

/// Paths that have been there, raw, and what was known of them.
#[derive(Debug, Default)]
pub(crate) struct Gone(Vec<(Root, Vec<u8>, Known)>);

impl Gone {
    /// Adds them to what a walk found, in the order of their paths.
    pub(crate) fn add_to(self, found: &mut Found, needle: &Needle) {
        for (root, path, known) in self.0 {
            let shown = files::shown(&path, needle);
            if let Some(form) = files::form_in_name(&path, needle) {
                found.sightings.push(Sighting {
                    place: format!("name of the file {shown}, which is gone"),
                    form: form.to_string(),
                });
            }
            found.files.push(FileEntry {
                root,
                path: shown,
                kind: known.kind,
                mode: known.mode,
                bytes: known.bytes,
                sha256: None,
                transient: true,
            });
        }
        found.files.sort_by(|one, other| one.path.cmp(&other.path));
    }
}

/// What is known of a path.
#[derive(Clone, Copy, Debug)]
struct Known {
    kind: FileKind,
    mode: u32,
    bytes: u64,
}

impl Known {
    /// Of an object that was gone before it could be looked at.
    fn little(is: AddWatchFlags) -> Self {
        let kind = if is.contains(AddWatchFlags::IN_ISDIR) {
            FileKind::Directory
        } else {
            FileKind::File
        };
        Self {
            kind,
            mode: 0,
            bytes: 0,
        }
    }
}

/// One of the two trees.
#[derive(Debug)]
struct Tree {
    root: Root,
    directory: OwnedFd,
    seen: BTreeMap<Vec<u8>, Known>,
}

impl Tree {
    /// The object at a path below the tree, links not followed, not even on the way.
    fn open(&self, path: &[u8], flags: OFlag) -> Result<OwnedFd, Errno> {
        let how = OpenHow::new()
            .flags(flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
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

    fn gone(&self) -> impl Iterator<Item = (Root, Vec<u8>, Known)> {
        let is_gone = |path: &[u8]| {
            let there = self.open(path, OFlag::O_PATH);
            // A link on the way is another path than the one that was.
            matches!(there, Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP))
        };
        self.seen
            .iter()
            .filter(move |(path, _)| is_gone(path))
            .map(|(path, known)| (self.root, path.clone(), *known))
    }
}

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

#[derive(Debug)]
struct Watching {
    inotify: Inotify,
    /// The same descriptor, for its readiness.
    ready: AsyncFd<OwnedFd>,
    trees: [Tree; 2],
    watches: HashMap<WatchDescriptor, Place>,
    /// What may still be looked at and remembered.
    steps: usize,
    path_bytes: usize,
}

impl Watching {
    fn start(roots: [(Root, &OwnedFd); 2]) -> std::io::Result<Self> {
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

    async fn follow(&mut self) -> Result<(), Errno> {
        let ready = self.ready.readable().await;
        let mut ready = ready.map_err(|_| Errno::EIO)?;
        match self.inotify.read_events() {
            Err(Errno::EAGAIN) => ready.clear_ready(),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(events) => {
                drop(ready);
                self.take(events);
            }
        }
        Ok(())
    }

    /// Takes the next events that wait.
    fn take_events(&mut self) -> Result<(), Errno> {
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
                if self.note(&place, Known::little(event.mask)) == FileKind::Directory {
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
                if self.note(&below, Known::little(AddWatchFlags::empty())) == FileKind::Directory {
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
