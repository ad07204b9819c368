//! The client's files in a bundle: regular files, byte for byte, under names that are safe on every system.
//!
//! Names that the client chose are encoded, no link is created, and each copy is compared with its entry in the
//! report. A file that holds a hidden value is listed but not copied.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;

use model::case::Root;
use model::digest;
use model::evidence::{FileEntry, FileKind};
use model::secret::{HiddenScanner, SecretScanner};
use model::text::printable;
use nix::fcntl::readlinkat;
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::manifest::{Kind, Listed, NotCopied, Original};
use super::name;
use super::output_dir::{create, remove};
use crate::collect::copy::{Bounds, Entry, Target, copy, directory};
use crate::collect::files::shown;

/// Longest path of a directory in its place, in bytes. A deeper directory starts a new path in [`FAR`], so that
/// each path in the bundle fits the system's limit.
const MAX_PATH: usize = 1_000;
/// Directory for those deeper directories.
const FAR: &str = "far";
const PIECE: usize = 64 * 1024;
/// Reason for listing a directory without copied files.
const EMPTY: &str = "no file of this directory was copied";

/// Result of copying the client's files.
#[derive(Debug, Default)]
pub(super) struct Copied {
    pub(super) files: Vec<Listed>,
    pub(super) not_copied: Vec<NotCopied>,
    /// Number of entries in `not_copied` that should have been copied.
    pub(super) left_out: usize,
    /// Number of entries in `not_copied` that hold a value of the user's.
    pub(super) withheld: usize,
    /// Files of the report whose copy is missing or different.
    pub(super) lost: Vec<String>,
    /// Error after which no more files could be written.
    pub(super) broken: Option<io::Error>,
    /// Handle of [`FAR`], once this run has created it.
    far_held: Option<OwnedFd>,
    /// Number of directories created in [`FAR`], and of names that hold a replacement.
    far: u64,
    numbered: u64,
}

/// A directory of the bundle. It holds only one descriptor, because each level of the walk has one of these.
pub(super) struct CopyDirectory {
    held: OwnedFd,
    /// Path relative to the bundle.
    path: String,
    place: Parent,
    /// Number of files copied before the directory was created.
    before: usize,
}

/// Parent in which a directory was created, and its name there.
enum Parent {
    Top,
    /// The directory of the level above.
    Upper(String),
    /// The directory [`FAR`].
    Far(String),
}

/// Result of copying one file.
struct Written<'n> {
    bytes: u64,
    sha256: String,
    /// Variable whose value is in the file; the copy then has at most a part of the content.
    holds: Option<&'n str>,
}

/// Copies one tree to the directory of its name.
pub(super) fn copy_tree(
    (root, tree): (Root, &OwnedFd),
    bundle: &OwnedFd,
    reported: &[FileEntry],
    secrets: &SecretScanner,
    bounds: Bounds,
    copied: &mut Copied,
) {
    let mut copying = Copying {
        root,
        bundle,
        secrets,
        reported: by_path(root, reported),
        copied,
    };
    match make(bundle, root.word(), root.word()) {
        Ok(held) => {
            let into = CopyDirectory {
                held,
                path: root.word().to_owned(),
                place: Parent::Top,
                before: 0,
            };
            copy(tree, &into, bounds, &mut copying);
            // rmdir removes the directories only if they are empty.
            let _ = unlinkat(bundle, root.word(), UnlinkatFlags::RemoveDir);
            let far = &mut copying.copied.far_held;
            if far.is_some() && unlinkat(bundle, FAR, UnlinkatFlags::RemoveDir).is_ok() {
                *far = None;
            }
        }
        Err(error) => copying.copied.broken = Some(error),
    }
    if copying.copied.broken.is_none() {
        copying.count_missing();
    }
}

struct Copying<'a> {
    root: Root,
    bundle: &'a OwnedFd,
    secrets: &'a SecretScanner,
    /// Regular files of the report that were not visited yet, by path.
    reported: BTreeMap<&'a str, OfPath<'a>>,
    copied: &'a mut Copied,
}

/// Entries of one path by their digests; entries that were not read have the empty digest. A client can create
/// very many files that are shown with the same path.
type OfPath<'a> = BTreeMap<&'a str, Vec<&'a FileEntry>>;

fn by_path(root: Root, reported: &[FileEntry]) -> BTreeMap<&str, OfPath<'_>> {
    let mut by_path: BTreeMap<&str, OfPath<'_>> = BTreeMap::new();
    let there = reported
        .iter()
        .filter(|entry| entry.root == root && entry.kind == FileKind::File && !entry.transient);
    for entry in there {
        let digest = entry.sha256.as_deref().unwrap_or_default();
        let of_path = by_path.entry(&entry.path).or_default();
        of_path.entry(digest).or_default().push(entry);
    }
    by_path
}

impl<'a> Copying<'a> {
    /// Returns the name in the bundle. A name with a redacted credential gets a number, since another may look
    /// the same.
    fn name(&mut self, name: &[u8]) -> String {
        let harmless = self.secrets.redact_bytes(name);
        if harmless == name {
            return name::encoded(name);
        }
        self.copied.numbered += 1;
        name::numbered(&harmless, self.copied.numbered)
    }

    /// Returns the name of an entry in a directory. If the whole path contains a hidden value, which may have
    /// slashes, the name is replaced.
    fn name_within(&mut self, within: &CopyDirectory, name: &[u8]) -> String {
        let name = self.name(name);
        let path = format!("{}/{name}", within.path);
        if self.secrets.redact(&path) == path {
            return name;
        }
        self.copied.numbered += 1;
        name::numbered(b"hidden", self.copied.numbered)
    }

    /// Creates a directory of this name, or a numbered one in [`FAR`] if the path would become too long.
    fn directory(&mut self, within: &CopyDirectory, name: String) -> io::Result<CopyDirectory> {
        let before = self.copied.files.len();
        if within.path.len() + name.len() < MAX_PATH {
            let path = format!("{}/{name}", within.path);
            return Ok(CopyDirectory {
                held: make(&within.held, &name, &path)?,
                path,
                place: Parent::Upper(name),
                before,
            });
        }
        let far = match self.copied.far_held.take() {
            Some(far) => far,
            None => make(self.bundle, FAR, FAR)?,
        };
        let far = self.copied.far_held.insert(far);
        self.copied.far += 1;
        let name = self.copied.far.to_string();
        let path = format!("{FAR}/{name}");
        Ok(CopyDirectory {
            held: make(far, &name, &path)?,
            path,
            place: Parent::Far(name),
            before,
        })
    }

    fn shown(&self, path: &[Vec<u8>]) -> String {
        shown(&path.join(&b'/'), self.secrets)
    }

    fn list_not_copied(&mut self, path: String, kind: Option<Kind>, reason: String) {
        self.copied.not_copied.push(NotCopied {
            root: self.root.into(),
            path,
            kind,
            target: None,
            reason,
        });
    }

    /// Takes the report's entry with this path and digest, or else any entry of the path.
    fn entry_of(&mut self, path: &str, sha256: &str) -> Option<&FileEntry> {
        let entries = self.reported.get_mut(path)?;
        let any = entries.keys().next().copied()?;
        let digest = if entries.contains_key(sha256) {
            sha256
        } else {
            any
        };
        let entry = entries.get_mut(digest)?.pop();
        if entries.get(digest).is_some_and(Vec::is_empty) {
            entries.remove(digest);
        }
        entry
    }

    /// Lists the files of the report that were not visited.
    fn count_missing(&mut self) {
        let unvisited: Vec<&FileEntry> = {
            let entries = self.reported.values().flat_map(BTreeMap::values);
            entries.flatten().copied().collect()
        };
        let of_root = |one: &&NotCopied| one.root == self.root.into();
        let explained = self.copied.not_copied.iter().filter(of_root);
        let explained: BTreeSet<String> = explained.map(|one| one.path.clone()).collect();
        for entry in unvisited.into_iter().filter(|entry| entry.sha256.is_some()) {
            if !explained.contains(&entry.path) {
                let reason = "it no longer existed".to_owned();
                self.copied.left_out += 1;
                self.list_not_copied(entry.path.clone(), Some(Kind::File), reason);
            }
            let lost = format!("{}/{}", self.root.word(), entry.path);
            self.copied.lost.push(lost);
        }
    }

    /// Records the error that ends the bundle.
    fn fail(&mut self, error: io::Error) -> io::Error {
        let reported = io::Error::from(error.kind());
        self.copied.broken.get_or_insert(error);
        reported
    }

    /// Writes the content, up to a hidden value. Holes stay holes, because a sparse file costs the client nothing
    /// and must not fill the disk.
    fn write(&mut self, content: File, size: u64, mut to: File) -> io::Result<Written<'a>> {
        let buffer_size = PIECE.max(self.secrets.longest());
        let mut buffer = vec![0; buffer_size.min(usize::try_from(size).unwrap_or(buffer_size))];
        let mut scanner = HiddenScanner::new(self.secrets);
        let (mut bytes, mut holds) = (0, None);
        let sha256 = digest::of_pieces(content.take(size), &mut buffer, |piece| {
            bytes += piece.len() as u64;
            let is_hole = piece.iter().all(|byte| *byte == 0);
            if is_hole {
                scanner.skip_zeros();
            } else {
                holds = scanner.push(piece);
            }
            let written = match holds {
                Some(_) => Ok(()),
                None if is_hole => to.seek(SeekFrom::Start(bytes)).map(drop),
                None => to.write_all(piece),
            };
            written.map_err(|error| self.fail(error))
        })?;
        if holds.is_none() {
            to.set_len(bytes).map_err(|error| self.fail(error))?;
        }
        Ok(Written {
            bytes,
            sha256,
            holds,
        })
    }

    /// Lists a file that is withheld because it holds the value of `variable`.
    fn withhold(&mut self, path: String, variable: &str) {
        self.copied.withheld += 1;
        let reason = format!("the value of {variable} is in it, which no report shows");
        self.list_not_copied(path, Some(Kind::File), reason);
    }
}

impl Target for Copying<'_> {
    type Directory = CopyDirectory;

    fn enter(&mut self, into: &CopyDirectory, entry: &Entry<'_>) -> io::Result<CopyDirectory> {
        let name = self.name_within(into, entry.name.to_bytes());
        self.directory(into, name).map_err(|error| self.fail(error))
    }

    fn leave(&mut self, into: &CopyDirectory, left: CopyDirectory, entry: &Entry<'_>) {
        // Empty directories are removed, because many archives and uploads lose them and the bundle would then
        // differ.
        let (holding, name) = match &left.place {
            Parent::Top => return,
            Parent::Upper(name) => (Some(&into.held), name),
            Parent::Far(name) => (self.copied.far_held.as_ref(), name),
        };
        if let Some(holding) = holding {
            let _ = unlinkat(holding, name.as_str(), UnlinkatFlags::RemoveDir);
        }
        if left.before == self.copied.files.len() {
            let path = self.shown(entry.path);
            self.list_not_copied(path, Some(Kind::Directory), EMPTY.to_owned());
        }
    }

    fn file(&mut self, into: &CopyDirectory, entry: &Entry<'_>, content: File) -> io::Result<()> {
        let path = self.shown(entry.path);
        let is_left = |entries: &OfPath<'_>| !entries.is_empty();
        if !self.reported.get(path.as_str()).is_some_and(is_left) {
            return Err(io::Error::other("the report does not list it"));
        }
        let name = self.name_within(into, entry.name.to_bytes());
        let in_bundle = format!("{}/{name}", into.path);
        let file = create(&into.held, &name)
            .map_err(|error| named(error, &in_bundle))
            .map_err(|error| self.fail(error))?;
        let written = self.write(content, entry.size(), file);
        let written = written.inspect_err(|_| drop(remove(&into.held, &name)))?;
        let sha256 = written.sha256;
        let (mut mode, mut other) = (entry.status.st_mode & 0o7777, None);
        if let Some(reported) = self.entry_of(&path, &sha256) {
            // The mode in the report is the client's; the walk has widened modes since.
            mode = reported.mode;
            other = reported.sha256.clone().filter(|other| *other != sha256);
        }
        if other.is_some() || written.holds.is_some() {
            remove(&into.held, &name).map_err(|error| self.fail(error))?;
        }
        if let Some(other) = other {
            let why = format!("its SHA-256 is {sha256}, but the report has {other}");
            let lost = format!("{}/{path}", self.root.word());
            self.copied.lost.push(lost);
            return Err(io::Error::other(why));
        }
        if let Some(variable) = written.holds {
            self.withhold(path, variable);
            return Ok(());
        }
        self.copied.files.push(Listed {
            path: in_bundle,
            bytes: written.bytes,
            sha256,
            original: Some(Original {
                root: self.root.word().to_owned(),
                path,
                mode: format!("{mode:04o}"),
            }),
        });
        Ok(())
    }

    fn other(&mut self, _: &CopyDirectory, entry: &Entry<'_>) -> io::Result<()> {
        let target = match entry.kind {
            FileKind::Symlink => {
                let target = readlinkat(entry.from, entry.name)?;
                let target = printable(target.as_encoded_bytes());
                Some(self.secrets.redact(&target))
            }
            FileKind::File
            | FileKind::Directory
            | FileKind::Fifo
            | FileKind::Socket
            | FileKind::Device => None,
        };
        self.copied.not_copied.push(NotCopied {
            root: self.root.into(),
            path: self.shown(entry.path),
            kind: Some(entry.kind.into()),
            target,
            reason: "only regular files are copied".to_owned(),
        });
        Ok(())
    }

    fn skip(&mut self, path: &[Vec<u8>], kind: Option<FileKind>, error: &io::Error) {
        let path = self.shown(path);
        self.copied.left_out += 1;
        self.list_not_copied(path, kind.map(Kind::from), error.to_string());
    }

    fn has_failed(&self) -> bool {
        self.copied.broken.is_some()
    }
}

/// Creates a directory that must not exist. `path` is the path for messages.
fn make(at: &OwnedFd, name: &str, path: &str) -> io::Result<OwnedFd> {
    mkdirat(at, name, Mode::from_bits_truncate(0o755))
        .map_err(|errno| named(errno.into(), path))?;
    open(at, name)
}

/// Adds the path to an error about an existing object: other users may have created it, if they can write
/// there.
fn named(error: io::Error, path: &str) -> io::Error {
    if error.kind() != io::ErrorKind::AlreadyExists {
        return error;
    }
    let why = format!("{path} already exists, and this run did not make it");
    io::Error::new(error.kind(), why)
}

fn open(at: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let name = std::ffi::CString::new(name)?;
    Ok(directory(at, &name)?)
}

#[cfg(test)]
mod tests;
