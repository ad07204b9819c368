//! What was in the client's home or temporary directory for a time and is gone at the end: inotify(7), from
//! outside, on the two directories that init handed over.
//!
//! Best effort, and no check rests on it alone: a directory is watched only after it was seen, so what is made
//! in it and removed within that moment is missed; a mode that shuts us out, a full queue and the bounds below
//! leave something out as well; none of it is a gap. What a file held is not known, only its name, and of its
//! kind, mode and size what could be read before it was gone. A watch is on the object, not on its path, so
//! it works across the border of the mount namespace; no link is ever followed, since links are the client's.
//!
//! It begins a moment after the client, since a short run is not worth what it costs to end a watch. How many
//! objects were made and removed is known in any case: [`super::census`].

mod watching;

use std::collections::BTreeMap;
use std::future::pending;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::fstat;
use stub::Needle;

use super::files::{self, Found};
use crate::evidence::{FileEntry, FileKind, Root, Sighting};
use watching::Watching;

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
            Some(watching) => watching.follow().await,
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
                target: None,
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
    fn little(kind: FileKind) -> Self {
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

#[cfg(test)]
mod tests;
