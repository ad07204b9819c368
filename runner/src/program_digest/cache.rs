//! Cache of the SHA-256 digests of programs that earlier runs have read, in the caller's cache directory.
//!
//! Owns the place of the cache, the form of its entries and its limit. An entry is trusted as the runner's own
//! executable is: only its user can write both. SECURITY.md says what the cache relies on.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use model::case::Access;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use sandbox::plan::Bind;
use sys::random;
use sys::read::kernel_text;

use super::identity::Identity;

/// Most entries. A new one replaces the oldest.
const MAX_ENTRIES: usize = 256;
/// Longest entry, in bytes.
const MAX_ENTRY_BYTES: u64 = 512;
/// Most links that a way to the cache follows, as the kernel does (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// First word of an entry.
const SCHEMA: &str = "runner.digest/1";
/// First characters of an entry that is being written. Names of entries are hexadecimal.
const UNFINISHED: &str = "new-";
/// Rights of the group and of others. Neither the directory nor an entry has any.
const OF_OTHERS: u32 = 0o077;
/// Flags of each open call.
const FLAGS: OFlag = OFlag::O_CLOEXEC.union(OFlag::O_NOCTTY);

/// Directory of the cache, by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CachePlace {
    /// Directory that exists: HOME or XDG_CACHE_HOME.
    base: PathBuf,
    /// Directory below HOME, which a user may have replaced by a link.
    between: Option<&'static str>,
}

/// Name of the directory.
const NAME: &str = "runner";

/// Use of the cache that the shown paths permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Permitted {
    /// The client sees no directory of the cache.
    Use(CachePlace),
    /// The client could read the cache, or there is none.
    Avoid,
    /// The client could write entries that later runs would trust, by the rule with this path.
    Refuse(PathBuf),
}

/// Places of the cache for this user and environment.
#[derive(Debug)]
struct Places {
    used: Option<CachePlace>,
    /// Ways to the place in use and to the one without XDG_CACHE_HOME, which later runs may use. They count even where
    /// nothing exists yet, or where the directories are another user's.
    ways: Vec<Way>,
}

impl Places {
    /// `$XDG_CACHE_HOME/runner`, or `$HOME/.cache/runner` (XDG Base Directory Specification). A directory of another
    /// user is none: `sudo` may keep HOME.
    fn of(home: Option<&OsStr>, cache_home: Option<&OsStr>) -> Self {
        let is_absolute = |path: &&OsStr| Path::new(path).is_absolute();
        let place = |base: &OsStr, between| CachePlace {
            base: base.into(),
            between,
        };
        let usual = home
            .filter(is_absolute)
            .map(|home| place(home, Some(".cache")));
        let named = cache_home.filter(is_absolute).map(|base| place(base, None));
        let ways = named
            .iter()
            .chain(&usual)
            .map(|place| Way::to(&place.path()));
        Self {
            ways: ways.collect(),
            used: named.or(usual).filter(CachePlace::is_own),
        }
    }

    fn permitted(self, binds: &[Bind]) -> Permitted {
        let mut objects = Objects::default();
        let mut overlaps = |bind: &&Bind| {
            let shown = Path::new(&bind.source);
            (self.ways.iter()).any(|way| way.overlaps(shown, &mut objects))
        };
        let overlapping: Vec<&Bind> = binds.iter().filter(|bind| overlaps(bind)).collect();
        let mut written = overlapping
            .iter()
            .filter(|bind| bind.access == Access::Write);
        match (written.next(), &self.used) {
            (Some(bind), _) => Permitted::Refuse(PathBuf::from(&bind.source)),
            (None, Some(place)) if overlapping.is_empty() => Permitted::Use(place.clone()),
            (None, Some(_) | None) => Permitted::Avoid,
        }
    }
}

/// Device and inode of an object.
type Object = (u64, u64);

fn object(path: &Path) -> Option<Object> {
    let status = fs::metadata(path).ok()?;
    Some((status.dev(), status.ino()))
}

/// Objects by path. Binds have many directories above them in common.
#[derive(Debug, Default)]
struct Objects(HashMap<PathBuf, Option<Object>>);

impl Objects {
    fn at(&mut self, path: &Path) -> Option<Object> {
        if let Some(known) = self.0.get(path) {
            return *known;
        }
        let found = object(path);
        self.0.insert(path.to_owned(), found);
        found
    }
}

/// Every name that leads to the cache, each in a directory without links. Who may replace one of them, or make a missing
/// one, decides which directory later runs trust.
#[derive(Debug)]
struct Way {
    names: Vec<PathBuf>,
    /// Directories on the way, by which another name of one is recognised, as a bind mount makes it.
    directories: HashSet<Object>,
    /// The cache, or where it would be.
    end: PathBuf,
}

impl Way {
    fn to(path: &Path) -> Self {
        let mut names = Vec::new();
        let mut directory = PathBuf::from("/");
        let mut links = 0;
        let parts = |path: &Path| path.iter().rev().map(OsStr::to_owned).collect::<Vec<_>>();
        let mut rest = parts(path);
        while let Some(part) = rest.pop() {
            let next = match part.as_bytes() {
                b"/" => PathBuf::from("/"),
                b"." => continue,
                b".." => directory.parent().unwrap_or(Path::new("/")).to_owned(),
                _ => directory.join(&part),
            };
            match fs::read_link(&next) {
                Ok(target) if links < MAX_LINKS => {
                    links += 1;
                    rest.extend(parts(&target));
                }
                Ok(_) | Err(_) => directory.clone_from(&next),
            }
            names.push(next);
        }
        let ancestors = names.iter().flat_map(|name| name.ancestors());
        Self {
            directories: ancestors.filter_map(object).collect(),
            end: directory,
            names,
        }
    }

    /// Checks whether a shown object holds a part of the way, or lies in the cache.
    fn overlaps(&self, shown: &Path, objects: &mut Objects) -> bool {
        let holds_name = self.names.iter().any(|name| name.starts_with(shown));
        let is_directory = (objects.at(shown)).is_some_and(|it| self.directories.contains(&it));
        let end = objects.at(&self.end);
        let mut is_end =
            |above: &Path| above == self.end || end.is_some() && objects.at(above) == end;
        holds_name || is_directory || shown.ancestors().any(&mut is_end)
    }
}

/// Returns the use of the cache that is safe with these binds.
pub(crate) fn permitted(binds: &[Bind]) -> Permitted {
    let [home, cache_home] = ["HOME", "XDG_CACHE_HOME"].map(env::var_os);
    Places::of(home.as_deref(), cache_home.as_deref()).permitted(binds)
}

impl CachePlace {
    /// Place below this home.
    #[cfg(test)]
    pub(super) fn below(home: &Path) -> Self {
        Self {
            base: home.to_owned(),
            between: Some(".cache"),
        }
    }

    /// Path of the cache, as named by the variables.
    fn path(&self) -> PathBuf {
        let parent = match self.between {
            Some(name) => self.base.join(name),
            None => self.base.clone(),
        };
        parent.join(NAME)
    }

    fn is_own(&self) -> bool {
        fs::metadata(&self.base).is_ok_and(|status| status.uid() == geteuid().as_raw())
    }

    /// Returns the SHA-256 of the file with this identity, if the cache has it.
    pub(super) fn known(&self, file: &Identity) -> Option<String> {
        let cache = self.open(Absent::Leave).ok()?;
        let entry = own_file(&cache, &name_of(file)).ok()?;
        let mut text = String::new();
        entry.take(MAX_ENTRY_BYTES).read_to_string(&mut text).ok()?;
        let sha256 = text
            .strip_prefix(&line(file, "").ok()?)?
            .strip_suffix('\n')?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (sha256.len() == 64 && sha256.bytes().all(is_digit)).then(|| sha256.to_owned())
    }

    /// Stores the SHA-256 of the file with this identity. The entry replaces an earlier one whole: a concurrent run
    /// reads the old one or the new one.
    ///
    /// # Errors
    /// The error of the system, or `PermissionDenied` if another user could write to the directory.
    pub(super) fn keep(&self, file: &Identity, sha256: &str) -> io::Result<()> {
        let cache = self.open(Absent::Create)?;
        let line = line(file, sha256)?;
        let unfinished = format!("{UNFINISHED}{}", random::token());
        let flags = FLAGS | OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
        let made = openat(&cache, &*unfinished, flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let written = File::from(made)
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| Ok(renameat(&cache, &*unfinished, &cache, &*name_of(file))?));
        if written.is_err() {
            let _ = unlinkat(&cache, &*unfinished, UnlinkatFlags::NoRemoveDir);
        }
        written.and_then(|()| remove_oldest(cache))
    }

    /// Opens the directory of the cache.
    fn open(&self, absent: Absent) -> io::Result<OwnedFd> {
        // O_DIRECTORY: opening a FIFO would wait.
        let flags = FLAGS | OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        let base = open(&self.base, flags, Mode::empty())?;
        // A user may keep `.cache` on another disk, by a link.
        let parent = match self.between {
            Some(name) => own_directory(&base, name, absent, OFlag::empty())?,
            None => base,
        };
        let cache = own_directory(&parent, NAME, absent, OFlag::O_NOFOLLOW)?;
        check_owner(&cache, OF_OTHERS)?;
        Ok(cache)
    }
}

/// Treatment of an absent directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absent {
    Leave,
    Create,
}

/// Opens a directory of the effective user.
fn own_directory(
    parent: &OwnedFd,
    name: &str,
    absent: Absent,
    further: OFlag,
) -> io::Result<OwnedFd> {
    check_owner(parent, 0)?;
    if absent == Absent::Create {
        match mkdirat(parent, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    let flags = FLAGS | OFlag::O_RDONLY | OFlag::O_DIRECTORY | further;
    let opened = openat(parent, name, flags, Mode::empty())?;
    check_owner(&opened, 0)?;
    Ok(opened)
}

/// Opens an entry of the effective user.
fn own_file(cache: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = FLAGS | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let opened = openat(cache, name, flags, Mode::empty())?;
    check_owner(&opened, OF_OTHERS)?;
    Ok(opened.into())
}

/// Refuses an object of another user, and one with a right of `refused`.
fn check_owner(opened: &OwnedFd, refused: u32) -> io::Result<()> {
    let status = fstat(opened)?;
    if status.st_uid == geteuid().as_raw() && status.st_mode & refused == 0 {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Removes the oldest entries above the limit. An unfinished entry that a run has left behind counts too.
fn remove_oldest(cache: OwnedFd) -> io::Result<()> {
    let directory = cache.try_clone()?;
    let mut entries: Vec<(i64, i64, CString)> = Vec::new();
    for entry in Dir::from_fd(cache)? {
        let name = entry?.file_name().to_owned();
        if [b".".as_slice(), b".."].contains(&name.to_bytes()) {
            continue;
        }
        // Another run may have removed the entry.
        if let Ok(status) = fstatat(&directory, &*name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            entries.push((status.st_mtime, status.st_mtime_nsec, name));
        }
    }
    entries.sort();
    for (_, _, name) in entries
        .iter()
        .take(entries.len().saturating_sub(MAX_ENTRIES))
    {
        let _ = unlinkat(&directory, &**name, UnlinkatFlags::NoRemoveDir);
    }
    Ok(())
}

/// Name of a file's entry. A changed file gets the same name, so that its old entry is replaced.
fn name_of(file: &Identity) -> String {
    format!("{:x}-{:x}", file.device, file.inode)
}

/// Text of an entry without its line feed. It names the start of the machine (random(4)): after a crash a file may have
/// new content and old times.
fn line(file: &Identity, sha256: &str) -> io::Result<String> {
    let boot = kernel_text("/proc/sys/kernel/random/boot_id")?;
    Ok(format!("{SCHEMA} {} {file} {sha256}", boot.trim_end()))
}

#[cfg(test)]
mod tests;
