//! Walk over the client's home, temporary and working directory, after every process in the sandbox has ended.
//!
//! The walk starts from the descriptors that init sent, follows no link and opens no FIFO. Modes that the client
//! set do not stop the walk. Depth and bytes are bounded; beyond the bounds is a gap.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use model::digest::of_pieces;
use model::evidence::{FileEntry, FileKind, Gap, GapKind, Root, Sighting};
use model::secret::{Form, Scanner, SecretScanner};
use model::text::printable;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, SFlag, fchmod, fchmodat, fstat, fstatat};

/// Largest depth of directories below the root; the walk holds one open descriptor for each level.
const MAX_DEPTH: usize = 100;
/// Bytes of paths for each permitted entry: a path can be hundreds of times longer than its last name.
pub(crate) const PATH_BYTES: u64 = 256;
/// Largest number of gaps that name their object; further gaps are only counted.
const MAX_GAPS: u64 = 100;
/// Kept part of a link's target, in bytes; Linux permits no longer target (PATH_MAX of linux/limits.h).
const TARGET_BYTES: usize = 4096;
const PIECE: usize = 64 * 1024;

/// Result of a walk.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) files: Vec<FileEntry>,
    pub(crate) sightings: Vec<Sighting>,
    pub(crate) gaps: Vec<Gap>,
    /// Inode numbers: one object may have several names.
    pub(crate) objects: BTreeSet<u64>,
}

/// Bounds of one walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Bytes of content that are read, over all files. Holes count, so a few sparse files can reach the bound.
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
}

/// Walks everything below `root` and adds it to `found`, sorted by path.
pub(crate) fn walk(
    root: Root,
    directory: OwnedFd,
    secrets: &SecretScanner,
    bounds: Bounds,
    found: &mut Found,
) {
    let mut walk = Walk {
        root,
        secrets,
        bounds,
        found,
        paths: bounds.entries.saturating_mul(PATH_BYTES),
        full: false,
        gaps: 0,
    };
    // The client may have removed its own access to its home, and with it ours. If fchmod fails, the walk
    // reports it.
    let _ = fchmod(&directory, Mode::S_IRWXU);
    walk.below(directory, &mut Vec::new());
    walk.count_further_gaps();
    walk.found
        .files
        .sort_by(|one, other| one.path.cmp(&other.path));
}

struct Walk<'a> {
    root: Root,
    secrets: &'a SecretScanner,
    bounds: Bounds,
    found: &'a mut Found,
    /// Bytes of paths that may still be listed.
    paths: u64,
    /// A bound was reached; reported once.
    full: bool,
    gaps: u64,
}

/// Open directory of the walk, with its remaining names.
struct Level {
    directory: OwnedFd,
    names: Vec<Vec<u8>>,
}

impl Walk<'_> {
    fn below(&mut self, directory: OwnedFd, path: &mut Vec<Vec<u8>>) {
        let mut levels = Vec::new();
        levels.extend(self.level(directory, path));
        while let Some(level) = levels.last_mut() {
            let Some(name) = level.names.pop() else {
                levels.pop();
                path.pop();
                continue;
            };
            path.push(name);
            let entered = self.visit(levels.last(), path);
            match entered.and_then(|directory| self.level(directory, path)) {
                Some(level) => levels.push(level),
                None => drop(path.pop()),
            }
            if self.full {
                return;
            }
        }
    }

    /// Lists a directory.
    fn level(&mut self, directory: OwnedFd, path: &[Vec<u8>]) -> Option<Level> {
        if path.len() > MAX_DEPTH {
            self.gap(
                path,
                format_args!("not read: more than {MAX_DEPTH} directories deep"),
            );
            return None;
        }
        let listed = directory
            .try_clone()
            .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)));
        let listed = listed.and_then(Dir::from_fd).and_then(|mut listing| {
            listing
                .iter()
                .map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()))
                .collect()
        });
        match listed {
            Ok(names) => {
                let names: Vec<Vec<u8>> = names;
                let names = names
                    .into_iter()
                    .filter(|name| name != b"." && name != b"..")
                    .collect();
                Some(Level { directory, names })
            }
            Err(errno) => {
                self.gap(path, format_args!("cannot be listed: {errno}"));
                None
            }
        }
    }

    /// Records one entry. Returns the opened directory if the entry is one.
    fn visit(&mut self, level: Option<&Level>, path: &[Vec<u8>]) -> Option<OwnedFd> {
        let (level, name) = (level?, path.last()?);
        if self.found.files.len() as u64 >= self.bounds.entries {
            self.full = true;
            let limit = self.bounds.entries;
            self.gap(path, format_args!("and more: over {limit} entries"));
            return None;
        }
        let length: usize = path.iter().map(|name| name.len() + 1).sum();
        let Some(remaining) = self.paths.checked_sub(length as u64) else {
            self.full = true;
            let limit = self.bounds.entries.saturating_mul(PATH_BYTES);
            self.gap(
                &[],
                format_args!(
                    "paths of more than {limit} bytes together: the others are not listed"
                ),
            );
            return None;
        };
        self.paths = remaining;
        let status = match fstatat(
            &level.directory,
            name.as_slice(),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        ) {
            Ok(status) => status,
            Err(errno) => {
                self.gap(path, format_args!("cannot be examined: {errno}"));
                return None;
            }
        };
        self.found.objects.insert(status.st_ino);
        let kind = kind(&status);
        let shown = self.shown(path);
        let mut entry = FileEntry {
            root: self.root,
            path: shown,
            kind,
            mode: status.st_mode & 0o7777,
            bytes: u64::try_from(status.st_size).unwrap_or(0),
            sha256: None,
            target: None,
            transient: false,
            expected: None,
        };
        self.look_for_credential_in_name(path, &entry.path);
        let mut entered = None;
        match kind {
            FileKind::File => entry.sha256 = self.content(level, name, &status, path),
            FileKind::Directory => {
                entered = reopen(level, name, &status, OFlag::O_DIRECTORY, Mode::S_IRWXU)
                    .map_err(|errno| self.gap(path, format_args!("cannot be opened: {errno}")))
                    .ok();
            }
            FileKind::Symlink => entry.target = self.link(level, name, path),
            FileKind::Fifo | FileKind::Socket | FileKind::Device => {}
        }
        self.found.files.push(entry);
        entered
    }

    fn content(
        &mut self,
        level: &Level,
        name: &[u8],
        status: &FileStat,
        path: &[Vec<u8>],
    ) -> Option<String> {
        let size = u64::try_from(status.st_size).unwrap_or(0);
        let Some(remaining) = self.bounds.bytes.checked_sub(size) else {
            self.gap(
                path,
                format_args!("not read: {size} bytes are more than the walk may read"),
            );
            return None;
        };
        self.bounds.bytes = remaining;
        let read = reopen(
            level,
            name,
            status,
            OFlag::O_NONBLOCK,
            Mode::S_IRUSR | Mode::S_IWUSR,
        )
        .and_then(|file| digest(file, self.secrets));
        match read {
            Ok((sha256, form)) => {
                if let Some(form) = form {
                    let sighting = Sighting::in_file(self.root, &self.shown(path), form);
                    self.found.sightings.push(sighting);
                }
                Some(sha256)
            }
            Err(errno) => {
                self.gap(path, format_args!("cannot be read: {errno}"));
                None
            }
        }
    }

    /// Returns the target of a link, which counts towards the bound on paths.
    fn link(&mut self, level: &Level, name: &[u8], path: &[Vec<u8>]) -> Option<String> {
        let target = match readlinkat(&level.directory, name) {
            Ok(target) => target,
            Err(errno) => {
                self.gap(path, format_args!("link target cannot be read: {errno}"));
                return None;
            }
        };
        let target = target.as_bytes();
        self.paths = self.paths.saturating_sub(target.len() as u64);
        if let Some(form) = self.secrets.find(target) {
            let place = format!("target of the link {}", self.shown(path));
            self.found.sightings.push(Sighting {
                place,
                form: form.to_string(),
            });
        }
        let kept = target.get(..TARGET_BYTES).unwrap_or(target);
        Some(shown(kept, self.secrets))
    }

    fn look_for_credential_in_name(&mut self, path: &[Vec<u8>], shown: &str) {
        if let Some(form) = form_in_name(&path.join(&b'/'), self.secrets) {
            let place = format!("name of the file {shown}");
            self.found.sightings.push(Sighting {
                place,
                form: form.to_string(),
            });
        }
    }

    fn gap(&mut self, path: &[Vec<u8>], what: std::fmt::Arguments<'_>) {
        self.gaps += 1;
        if self.gaps > MAX_GAPS {
            return;
        }
        let detail = format!("{} {what}", self.shown(path));
        self.found.gaps.push(Gap {
            what: GapKind::Files,
            detail,
        });
    }

    fn count_further_gaps(&mut self) {
        let further = self.gaps.saturating_sub(MAX_GAPS);
        if further > 0 {
            self.found.gaps.push(Gap {
                what: GapKind::Files,
                detail: format!("and {further} more that could not be read"),
            });
        }
    }

    fn shown(&self, path: &[Vec<u8>]) -> String {
        shown(&path.join(&b'/'), self.secrets)
    }
}

/// Returns a path for a report: printable, with the credential redacted.
pub(crate) fn shown(path: &[u8], secrets: &SecretScanner) -> String {
    secrets.redact(&printable(path))
}

/// Finds the credential in a path, in any form. Names are searched joined as well, because a directory and its
/// entry may each hold a part.
pub(super) fn form_in_name(path: &[u8], secrets: &SecretScanner) -> Option<Form> {
    let joined: Vec<u8> = path.iter().copied().filter(|byte| *byte != b'/').collect();
    secrets.find(path).or_else(|| secrets.find(&joined))
}

/// Returns the kind of an object by its status.
pub(crate) fn kind(status: &FileStat) -> FileKind {
    match SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => FileKind::File,
        SFlag::S_IFDIR => FileKind::Directory,
        SFlag::S_IFLNK => FileKind::Symlink,
        SFlag::S_IFIFO => FileKind::Fifo,
        SFlag::S_IFSOCK => FileKind::Socket,
        _ => FileKind::Device,
    }
}

/// Opens an entry for reading. The runner owns the entry, so a mode without access is widened first; the mode in
/// the evidence was read before.
fn reopen(
    level: &Level,
    name: &[u8],
    status: &FileStat,
    flags: OFlag,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    // O_NONBLOCK: if a FIFO has replaced the entry, opening it must not wait.
    let flags = flags | OFlag::O_NONBLOCK;
    let opened = match openat(&level.directory, name, flags, Mode::empty()) {
        Err(Errno::EACCES) => {
            let path = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let entry = openat(&level.directory, name, path, Mode::empty())?;
            let by_number = format!("/proc/self/fd/{}", entry.as_fd().as_raw_fd());
            fchmodat(
                nix::fcntl::AT_FDCWD,
                by_number.as_str(),
                mode,
                FchmodatFlags::FollowSymlink,
            )?;
            openat(&level.directory, name, flags, Mode::empty())?
        }
        opened => opened?,
    };
    let same = fstat(&opened)?;
    if (same.st_dev, same.st_ino) == (status.st_dev, status.st_ino) {
        Ok(opened)
    } else {
        Err(Errno::ESTALE)
    }
}

fn digest(file: OwnedFd, secrets: &SecretScanner) -> Result<(String, Option<String>), Errno> {
    let mut scanner = Scanner::new(secrets);
    let read = of_pieces(File::from(file), &mut vec![0; PIECE], |piece| {
        scanner.push(piece);
        Ok(())
    });
    let sha256 = read.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))?;
    Ok((sha256, scanner.found().map(|form| form.to_string())))
}

#[cfg(test)]
mod tests;
