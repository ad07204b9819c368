//! Transient files: names that were given in the client's own directories and are gone at the end, watched from
//! outside since before the client's first instruction.
//!
//! Two sources. A fanotify(7) group over both file systems, made by init where the kernel lets the owner of a user
//! namespace do so, names everything that is made or renamed ([`marked`]). Elsewhere inotify(7), best effort: a
//! directory is watched only after it was seen, so what is made in it and removed within that moment is missed; a
//! mode that shuts us out, a full queue and the bounds below leave something out as well ([`watching`]).
//!
//! What a file held is not known, only its name, and of its kind, mode and size what could be read before it was
//! gone. No link is ever followed, since links are the client's. How many objects were made and removed is known in
//! any case where the trees are the run's own: [`super::census`].

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

/// The watch over the trees; nothing at all before it is started, or where the kernel offers none.
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
    /// Starts to watch the trees, for what happens from now on: by init's fanotify group, else by inotify.
    pub(super) fn start(&mut self, group: Option<OwnedFd>, roots: &[(Root, &OwnedFd)]) {
        let marked = group.and_then(|group| Marked::start(group, roots).ok());
        self.source = match marked {
            Some(marked) => Some(Source::Marked(marked)),
            None => Watching::start(roots).ok().map(Source::Watching),
        };
    }

    /// Takes what has happened; returns once there was something.
    pub(super) async fn follow(&mut self) {
        match &mut self.source {
            None => pending().await,
            Some(Source::Marked(marked)) => marked.follow().await,
            Some(Source::Watching(watching)) => watching.follow().await,
        }
    }

    /// What has been there and is not any more.
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

/// Paths that have been there, raw, and what was known of them.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    paths: Vec<(Root, Vec<u8>, Known)>,
    /// Completeness of the list.
    pub(crate) watch: FileWatch,
}

impl Gone {
    /// Adds them to what a walk found, in the order of their paths.
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
            });
        }
        found.files.sort_by(|one, other| one.path.cmp(&other.path));
    }
}

#[cfg(test)]
mod tests;
