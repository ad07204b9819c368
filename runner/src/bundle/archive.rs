//! Writer of `files.tar`, the client's files in the format of GNU tar.
//!
//! Names, modes and times are those of the client, and the owner is nobody. Links are stored, never followed. Hard
//! links are separate files. Each file is compared with its entry in the report and searched for hidden values while
//! it is written.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;

use model::case::{Limits, Root};
use model::digest;
use model::evidence::{FileEntry, FileKind};
use model::secret::{HiddenScanner, SecretScanner};
use model::text::printable;
use nix::errno::Errno;
use nix::fcntl::readlinkat;
use nix::unistd::{Whence, lseek};
use sandbox::root::Trees;
use tar::EntryType;

use super::inventory::{Exception, Inventory, Object};
use crate::collect::copy::{Bounds, Entry, Target, copy};
use crate::collect::files::{PATH_BYTES, shown};

mod header;

pub(super) use header::Headers;

/// Name of the archive.
pub(super) const NAME: &str = "files.tar";
/// Directory in the archive for objects without their own name.
pub(super) const RENAMED: &str = "renamed";
/// User and group id of every entry: if root extracts a set-user-ID file, it gives nobody's rights.
const OWNER: u64 = 65_534;
/// Longest name in bytes, so that tar(1) can extract it (PATH_MAX of linux/limits.h is 4096).
const MAX_NAME: usize = 4_000;
/// Largest number of ranges in the map of a sparse file, whose blocks a reader holds in memory.
const MAX_RANGES: usize = 500_000;
pub(super) const BLOCK: u64 = 512;
const PIECE: usize = 64 * 1024;

/// Evidence that the archive lacks, or has under another name.
#[derive(Debug, Default)]
pub(super) struct Copied {
    pub(super) exceptions: Vec<Exception>,
    /// Number of objects that should be in the archive and are not.
    pub(super) left_out: usize,
    /// Number of files that hold a value of the user's.
    pub(super) withheld: usize,
    /// Files of the report that are missing or different.
    pub(super) lost: Vec<String>,
}

/// Writes the files below `trees` to an empty `file`, and adds what is not in it to `copied`.
///
/// # Errors
/// Returns the first failed write. A file that cannot be read is an exception.
pub(super) fn write(
    file: &File,
    trees: &Trees,
    reported: &[FileEntry],
    limits: &Limits,
    secrets: &SecretScanner,
    copied: &mut Copied,
) -> io::Result<()> {
    let before = copied.exceptions.len();
    let mut writer = Writer {
        file,
        end: 0,
        secrets,
        reported: Inventory::of(reported),
        root: Root::Home,
        stored: 0,
        renamed: 0,
        copied,
        broken: None,
    };
    for (root, tree) in trees.each() {
        writer.root = root;
        // The same bounds as for the evidence.
        let exceptions = writer.copied.exceptions.iter().skip(before);
        let absent = exceptions.filter(|one| one.stored_as.is_none());
        let entries = writer.stored + absent.count();
        let bounds = Bounds {
            bytes: 2 * limits.home_bytes,
            entries: limits.home_files.saturating_sub(entries as u64),
            paths: limits.home_files.saturating_mul(PATH_BYTES),
        };
        copy(tree, &(), bounds, &mut writer);
        if let Some(error) = writer.broken.take() {
            return Err(error);
        }
    }
    writer.list_missing();
    finish(file, writer.end)
}

/// Ends an archive with two blocks of zeros.
pub(super) fn finish(file: &File, end: u64) -> io::Result<()> {
    file.set_len(end + 2 * BLOCK)
}

struct Writer<'a> {
    file: &'a File,
    /// Length of the complete entries.
    end: u64,
    secrets: &'a SecretScanner,
    /// Objects of the report that were not visited yet.
    reported: Inventory,
    root: Root,
    /// Number of entries.
    stored: usize,
    /// Number of entries in [`RENAMED`].
    renamed: u64,
    copied: &'a mut Copied,
    /// Error after which nothing more can be written.
    broken: Option<io::Error>,
}

/// Result of writing the data of one file.
struct Written<'n> {
    bytes: u64,
    sha256: String,
    /// End of the data in the archive.
    end: u64,
    /// Variable whose value is in the file. The archive then has only the data before that value.
    holds: Option<&'n str>,
}

impl<'a> Writer<'a> {
    /// Returns the path as in the report.
    fn path(&self, names: &[Vec<u8>]) -> String {
        let path = shown(&names.join(&b'/'), self.secrets);
        format!("{}/{path}", self.root.word())
    }

    /// Returns the name in the archive. A name that holds a credential or a hidden value, or is too long for tar(1),
    /// is replaced by a number.
    fn name(&mut self, names: &[Vec<u8>], path: &str) -> (Vec<u8>, Option<Exception>) {
        let name = [self.root.word().as_bytes(), &names.join(&b'/')].join(&b'/');
        let is_shown = printable(&name) == path && self.secrets.redact_bytes(&name) == name;
        let reason = match name.len() {
            0..=MAX_NAME if is_shown => return (name, None),
            0..=MAX_NAME => "its name has the credential or a value that no report shows",
            _ => "its name is too long for tar(1)",
        };
        self.renamed += 1;
        let stored_as = format!("{RENAMED}/{}", self.renamed);
        let name = stored_as.clone().into_bytes();
        let mut exception = Exception::new(path, reason);
        exception.stored_as = Some(stored_as);
        (name, Some(exception))
    }

    fn except(&mut self, path: String, reason: impl Into<String>) {
        self.copied.exceptions.push(Exception::new(path, reason));
    }

    /// Lists the objects of the report that were not visited.
    fn list_missing(&mut self) {
        let explained = self.copied.exceptions.iter();
        let explained: BTreeSet<String> = explained.map(|one| one.path.clone()).collect();
        for (path, object) in std::mem::take(&mut self.reported).into_rest() {
            if !explained.contains(&path) {
                self.copied.left_out += 1;
                self.except(path.clone(), "it no longer existed");
            }
            if object.is_file() && !object.content.is_empty() {
                self.copied.lost.push(path);
            }
        }
    }

    /// Stores an object without data.
    fn object(
        &mut self,
        entry: &Entry<'_>,
        kind: EntryType,
        (target, content): (&[u8], String),
    ) -> io::Result<()> {
        let path = self.path(entry.path);
        let found = Object {
            content,
            ..Object::of(entry.kind)
        };
        let listed = self.reported.take(&path, &found);
        let listed = listed.ok_or_else(|| io::Error::other("the report does not list it"))?;
        if !found.has_content_of(&listed) {
            return Err(io::Error::other("it changed while it was copied"));
        }
        let (name, renamed) = self.name(entry.path, &path);
        let headers = Headers {
            kind,
            name: &name,
            target,
            mode: listed.mode,
            mtime: mtime(entry),
            size: 0,
            ranges: &[],
        };
        let blocks = headers.blocks();
        self.write(&blocks, self.end)?;
        self.add(self.end + blocks.len() as u64, renamed);
        Ok(())
    }

    /// Stores a regular file, or ignores what it wrote after [`Writer::end`].
    fn content(&mut self, entry: &Entry<'_>, content: File) -> io::Result<()> {
        let (path, size) = (self.path(entry.path), entry.size());
        if !self.reported.has_file(&path, None) {
            return Err(io::Error::other("the report does not list it"));
        }
        let (name, renamed) = self.name(entry.path, &path);
        let ranges = data_ranges(&content, size)?;
        let mut headers = Headers {
            kind: EntryType::Regular,
            name: &name,
            target: &[],
            mode: 0,
            mtime: mtime(entry),
            size,
            ranges: &ranges,
        };
        let data_at = self.end + headers.blocks().len() as u64;
        let written = self.data(content, size, &ranges, data_at)?;
        if written.bytes != size {
            return Err(io::Error::other("it changed while it was copied"));
        }
        let found = Object {
            bytes: size,
            content: written.sha256,
            ..Object::of(FileKind::File)
        };
        let listed = self.reported.take(&path, &found);
        let listed = listed.ok_or_else(|| io::Error::other("the report does not list it"))?;
        if !found.has_content_of(&listed) {
            let (found, reported) = (found.content, listed.content);
            self.copied.lost.push(path);
            let why = format!("its SHA-256 is {found}, but the report has {reported}");
            return Err(io::Error::other(why));
        }
        if let Some(variable) = written.holds {
            self.copied.withheld += 1;
            let reason = format!("the value of {variable} is in it, which no report shows");
            self.except(path, reason);
            return Ok(());
        }
        // The walk has widened modes; the mode in the report is the client's.
        headers.mode = listed.mode;
        self.write(&headers.blocks(), self.end)?;
        self.add(written.end.next_multiple_of(BLOCK), renamed);
        Ok(())
    }

    /// Writes the data in `ranges`, up to a hidden value.
    fn data(
        &mut self,
        content: File,
        size: u64,
        ranges: &[Range<u64>],
        mut end: u64,
    ) -> io::Result<Written<'a>> {
        let longest = PIECE.max(self.secrets.longest());
        let mut buffer = vec![0; longest.min(usize::try_from(size).unwrap_or(longest))];
        let mut scanner = HiddenScanner::new(self.secrets);
        let (mut bytes, mut holds) = (0, None);
        let mut ranges = ranges.iter().peekable();
        let sha256 = digest::of_pieces(content.take(size), &mut buffer, |piece| {
            let read = bytes..bytes + piece.len() as u64;
            bytes = read.end;
            if piece.iter().all(|byte| *byte == 0) {
                scanner.skip_zeros();
            } else {
                holds = scanner.push(piece);
            }
            while let (None, Some(range)) = (holds, ranges.peek()) {
                let from = range.start.clamp(read.start, read.end) - read.start;
                let to = range.end.clamp(read.start, read.end) - read.start;
                let part = piece.get(from as usize..to as usize).unwrap_or_default();
                self.write(part, end)?;
                end += part.len() as u64;
                if range.end > read.end {
                    break;
                }
                ranges.next();
            }
            Ok(())
        })?;
        Ok(Written {
            bytes,
            sha256,
            end,
            holds,
        })
    }

    fn add(&mut self, end: u64, renamed: Option<Exception>) {
        self.end = end;
        self.stored += 1;
        self.copied.exceptions.extend(renamed);
    }

    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|error| self.fail(error))
    }

    /// Records the error that ends the bundle.
    fn fail(&mut self, error: io::Error) -> io::Error {
        let reported = io::Error::from(error.kind());
        self.broken.get_or_insert(error);
        reported
    }
}

impl Target for Writer<'_> {
    type Directory = ();

    fn enter(&mut self, (): &(), entry: &Entry<'_>) -> io::Result<()> {
        self.object(entry, EntryType::Directory, (&[], String::new()))
    }

    fn file(&mut self, (): &(), entry: &Entry<'_>, content: File) -> io::Result<()> {
        let stored = self.content(entry, content);
        let ended = self.file.set_len(self.end);
        stored.and(ended.map_err(|error| self.fail(error)))
    }

    fn other(&mut self, (): &(), entry: &Entry<'_>) -> io::Result<()> {
        match entry.kind {
            FileKind::Fifo => self.object(entry, EntryType::Fifo, (&[], String::new())),
            FileKind::Symlink => {
                let target = readlinkat(entry.from, entry.name)?.into_encoded_bytes();
                let content = shown(&target, self.secrets);
                let is_shown = self.secrets.redact_bytes(&target) == target;
                if is_shown && content == printable(&target) {
                    return self.object(entry, EntryType::Symlink, (&target, content));
                }
                let path = self.path(entry.path);
                self.except(path, "its target has a value that no report shows");
                Ok(())
            }
            FileKind::File | FileKind::Directory | FileKind::Socket | FileKind::Device => {
                let path = self.path(entry.path);
                self.except(path, format!("it is {}", entry.kind.with_article()));
                Ok(())
            }
        }
    }

    fn skip(&mut self, path: &[Vec<u8>], _: Option<FileKind>, error: &io::Error) {
        self.copied.left_out += 1;
        let path = self.path(path);
        self.except(path, error.to_string());
    }

    fn has_failed(&self) -> bool {
        self.broken.is_some()
    }
}

fn mtime(entry: &Entry<'_>) -> u64 {
    u64::try_from(entry.status.st_mtime).unwrap_or(0)
}

/// Lists the ranges of a file that are not holes, aligned to blocks. A file on a file system without SEEK_HOLE
/// (lseek(2)) has one range.
fn data_ranges(file: &File, size: u64) -> io::Result<Vec<Range<u64>>> {
    let seek = |at: u64, whence| {
        let at = i64::try_from(at).unwrap_or(i64::MAX);
        lseek(file.as_fd(), at, whence).map(|at| u64::try_from(at).unwrap_or(0).min(size))
    };
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < size {
        let start = match seek(at, Whence::SeekData) {
            // The rest of the file is a hole.
            Err(Errno::ENXIO) => break,
            start => start.unwrap_or(at),
        };
        if start == size {
            break;
        }
        let end = seek(start, Whence::SeekHole).unwrap_or(size);
        let end = end.max(start + 1).next_multiple_of(BLOCK).min(size);
        ranges.push((start - start % BLOCK).max(at)..end);
        at = end;
        if ranges.len() > MAX_RANGES {
            ranges = vec![Range {
                start: 0,
                end: size,
            }];
            break;
        }
    }
    seek(0, Whence::SeekSet)?;
    Ok(ranges)
}

#[cfg(test)]
mod tests;
