//! Transient files: names that were created in the client's directories and are gone at the end. They are watched
//! from outside, starting before the client's first instruction.
//!
//! There are two sources. The first is a fanotify(7) group over the trees' file systems ([`marked`]). Init creates
//! it if the kernel permits that to the owner of a user namespace. The group reports every created or renamed
//! name. The second source is inotify(7), best effort ([`watching`]). A directory is watched only after it was
//! seen, so objects created and removed in it before that are missed. Modes without access, a full queue and the
//! bounds below cause further omissions.
//!
//! The content of a transient file is unknown. Its kind, mode and size are known as far as they could be read
//! before its removal. No link is followed, since links are the client's. If the trees are the run's own, the
//! number of created and removed objects is known in any case: see [`super::inode_count`].

mod marked;
mod seen;
mod watching;

use std::future::pending;
use std::os::fd::OwnedFd;

use model::evidence::{FileEntry, FileWatch, Root, Sighting};
use model::secret::SecretScanner;
use nix::errno::Errno;

use super::files::{self, Found};
use marked::Marked;
use seen::{Known, Seen};
use watching::Watching;

/// Watch over the trees; empty before its start, or if the kernel offers no source.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    source: Option<Source>,
}

#[derive(Debug)]
enum Source {
    Marked(Marked),
    Watching(Watching),
}

impl Source {
    fn seen(&self) -> &Seen {
        match self {
            Self::Marked(marked) => &marked.seen,
            Self::Watching(watching) => &watching.seen,
        }
    }

    fn take_events(&mut self) -> Result<(), Errno> {
        match self {
            Self::Marked(marked) => marked.take_events(),
            Self::Watching(watching) => watching.take_events(),
        }
    }
}

impl Watcher {
    /// Starts watching the trees, by init's fanotify group or else by inotify. Earlier events are ignored.
    pub(super) fn start(&mut self, group: Option<OwnedFd>, roots: &[(Root, &OwnedFd)]) {
        let marked = group.and_then(|group| Marked::start(group, roots).ok());
        self.source = match marked {
            Some(marked) => Some(Source::Marked(marked)),
            None => Watching::start(roots).ok().map(Source::Watching),
        };
    }

    /// Handles pending events; returns after at least one.
    pub(super) async fn follow(&mut self) {
        match &mut self.source {
            None => pending().await,
            Some(Source::Marked(marked)) => marked.follow().await,
            Some(Source::Watching(watching)) => watching.follow().await,
        }
    }

    /// Returns the paths that existed and are gone now.
    pub(super) fn finish(self) -> Gone {
        let Some(mut source) = self.source else {
            return Gone::default();
        };
        while source.take_events().is_ok() {}
        let paths = source.seen().trees.iter().flat_map(seen::Tree::gone);
        let paths = paths.collect();
        let watch = match source {
            Source::Marked(marked) => marked.end(),
            Source::Watching(watching) => watching.end(),
        };
        Gone { paths, watch }
    }
}

/// Paths that existed once, as raw bytes, with the known facts of each.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    paths: Vec<(Root, Vec<u8>, Known)>,
    /// Completeness of the list.
    pub(crate) watch: FileWatch,
}

impl Gone {
    /// Adds the paths to the result of a walk, sorted by path.
    pub(crate) fn add_to(self, found: &mut Found, secrets: &SecretScanner) {
        for (root, path, known) in self.paths {
            let shown = files::shown(&path, secrets);
            if let Some(form) = files::form_in_name(&path, secrets) {
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
                expected: None,
            });
        }
        found.files.sort_by(|one, other| one.path.cmp(&other.path));
    }
}

#[cfg(test)]
mod tests;
