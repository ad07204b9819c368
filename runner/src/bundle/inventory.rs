//! The client's objects in a bundle, as the report lists them, and the exceptions.

use std::collections::{BTreeMap, BTreeSet};

use model::evidence::{FileEntry, FileKind};
use serde::{Deserialize, Serialize};

/// Name of the list of exceptions.
pub(super) const EXCEPTIONS: &str = "exceptions.json";

/// Evidence that the bundle lacks, has in part, or has under another name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Exception {
    /// Object of the client as in the report, such as `home/a`, or a file of the bundle.
    pub(super) path: String,
    /// Reason of the exception.
    pub(super) reason: String,
    /// Name in the archive, if the object is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stored_as: Option<String>,
}

impl Exception {
    /// Returns the exception of evidence that is not in the archive.
    pub(super) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason: reason.into(),
            stored_as: None,
        }
    }
}

/// Properties of an object that the report and the archive have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object {
    pub(super) kind: FileKind,
    /// Size of a regular file, else 0.
    pub(super) bytes: u64,
    /// Digest of a regular file, or target of a link; empty if it was not read.
    pub(super) content: String,
    pub(super) mode: u32,
}

impl Object {
    /// Returns the lowest object of this type.
    pub(super) fn of(kind: FileKind) -> Self {
        Self {
            kind,
            bytes: 0,
            content: String::new(),
            mode: 0,
        }
    }

    pub(super) fn is_file(&self) -> bool {
        self.kind == FileKind::File
    }

    /// Tests for the same content, if `listed` knows it.
    pub(super) fn has_content_of(&self, listed: &Self) -> bool {
        self.bytes == listed.bytes && (listed.content.is_empty() || self.content == listed.content)
    }
}

/// Objects of a report by path. A client can leave many objects that are shown with the same path, so lookups never
/// scan the objects of one path.
#[derive(Debug, Default)]
pub(super) struct Inventory(BTreeMap<(String, Object), u64>);

impl Inventory {
    /// Lists the objects that were there at the end.
    pub(super) fn of(entries: &[FileEntry]) -> Self {
        let mut inventory = Self::default();
        for entry in entries.iter().filter(|entry| !entry.transient) {
            let content = entry.sha256.as_ref().or(entry.target.as_ref());
            let object = Object {
                kind: entry.kind,
                bytes: if entry.kind == FileKind::File {
                    entry.bytes
                } else {
                    0
                },
                content: content.cloned().unwrap_or_default(),
                mode: entry.mode,
            };
            let path = format!("{}/{}", entry.root.word(), entry.path);
            *inventory.0.entry((path, object)).or_default() += 1;
        }
        inventory
    }

    /// Lists the paths of the objects that were not taken.
    pub(super) fn paths(&self) -> BTreeSet<String> {
        self.0.keys().map(|(path, _)| path.clone()).collect()
    }

    /// Tests for a regular file of this path, and of this size if one is given.
    pub(super) fn has_file(&self, path: &str, bytes: Option<u64>) -> bool {
        let lowest = Object {
            bytes: bytes.unwrap_or(0),
            ..Object::of(FileKind::File)
        };
        let found = self.next(path, lowest.clone());
        found.is_some_and(|found| {
            found.kind == lowest.kind && bytes.is_none_or(|bytes| bytes == found.bytes)
        })
    }

    /// Removes the object of this path that is most like `found`: the same content, else unread content, else the
    /// same size, else any object of the kind.
    pub(super) fn take(&mut self, path: &str, found: &Object) -> Option<Object> {
        let any_mode = Object {
            mode: 0,
            ..found.clone()
        };
        let unread = Object {
            content: String::new(),
            ..any_mode.clone()
        };
        let like = |object: &Object| {
            (self.next(path, object.clone())).filter(|next| {
                next.kind == object.kind
                    && next.bytes == object.bytes
                    && next.content == object.content
            })
        };
        let lowest = Object::of(found.kind);
        let taken = like(found)
            .or_else(|| like(&any_mode))
            .or_else(|| (self.next(path, unread)).filter(|next| next.bytes == found.bytes))
            .or_else(|| self.next(path, lowest))
            .filter(|next| next.kind == found.kind)?;
        let key = (path.to_owned(), taken.clone());
        match self.0.get_mut(&key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.0.remove(&key)),
        }
        Some(taken)
    }

    /// Lists the objects that were not taken.
    pub(super) fn into_rest(self) -> impl Iterator<Item = (String, Object)> {
        let repeated = |(key, count)| std::iter::repeat_n(key, usize::try_from(count).unwrap_or(0));
        self.0.into_iter().flat_map(repeated)
    }

    /// Returns the first object of the path that is not below `lowest`.
    fn next(&self, path: &str, lowest: Object) -> Option<Object> {
        let (found, _) = self.0.range((path.to_owned(), lowest)..).next()?;
        (found.0 == path).then(|| found.1.clone())
    }
}
