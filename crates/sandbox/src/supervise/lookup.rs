//! Calls that look a path up: they always continue, and their paths are recorded.
//!
//! Mounts and Landlock decide on access to files, not the supervisor. Memory that changes before the kernel reads it
//! again only spoils a recorded path. So a call is answered as soon as its path is read, and /proc of the caller is
//! read for relative paths only.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use model::evidence::LookupKind;
use nix::errno::Errno;
use sys::notify::{self, Answer, Memory, Notification};

use super::call::{MAX_PATH_BYTES, read_string};
use super::ledger::lookups::Wanted;
use super::{Delivery, Supervision};
use crate::filter::SystemCall::{self, *};

/// Suffix that the kernel adds to the link of a removed directory (d_path in fs/d_path.c).
const DELETED: &[u8] = b" (deleted)";

/// Path argument of a call, by its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathArgument {
    /// Descriptor of the directory at which a relative path begins, or AT_FDCWD.
    directory: i32,
    /// Address of the path.
    at: u64,
    intent: Intent,
}

/// Access that a call asks for, as far as its registers show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Known(LookupKind),
    /// Address of the open flags, with which `struct open_how` of openat2(2) begins.
    FlagsAt(u64),
}

/// Path arguments of one call.
pub(super) type Paths = [Option<PathArgument>; 2];

impl Supervision {
    /// Lets a lookup continue, then records it. Lookups before the launch are our own probes and not recorded.
    pub(super) fn continue_lookup(
        &mut self,
        notification: &Notification,
        paths: Paths,
        launched: bool,
    ) {
        let (read, at_us) = self.read_paths(notification, paths, launched);
        // If the caller was killed, the call is not made, and the path may have been another process's.
        if let Delivery::Done = self.answer(notification, Answer::Continue) {
            self.add_lookups(read, at_us);
        }
    }

    /// Records a lookup by a call that is decided and answered afterwards.
    pub(super) fn record_lookup(
        &mut self,
        notification: &Notification,
        paths: Paths,
        launched: bool,
    ) {
        let (read, at_us) = self.read_paths(notification, paths, launched);
        if notify::is_valid(&self.listener, notification.id) {
            self.add_lookups(read, at_us);
        }
    }

    /// Reads the paths, and the time.
    fn read_paths(
        &self,
        notification: &Notification,
        paths: Paths,
        launched: bool,
    ) -> (Vec<Result<Wanted, Errno>>, u64) {
        let at_us = self.clock.elapsed_us();
        let recorded = launched && self.records;
        // Some runtimes pass a null pointer to test for support of a call.
        let paths = paths.into_iter().flatten().filter(|named| named.at != 0);
        let read = paths
            .filter(|_| recorded)
            .map(|named| read(notification.thread, named))
            .collect();
        (read, at_us)
    }

    fn add_lookups(&mut self, read: Vec<Result<Wanted, Errno>>, at_us: u64) {
        for read in read {
            match read {
                Ok(wanted) if wanted.path.as_os_str().is_empty() => {}
                Ok(wanted) => self.ledger.lookups.add(wanted, at_us),
                Err(_) => self.ledger.lookups.unreadable += 1,
            }
        }
    }
}

/// Lookup of `program`, a path given to execveat(2) by `thread` with the descriptor `directory`.
pub(super) fn executed(thread: i32, directory: i32, program: &[u8]) -> Wanted {
    Wanted {
        path: resolve(thread, directory, program),
        kind: LookupKind::Execute,
    }
}

/// Path arguments of a call. Returns `None` for a call that is no lookup.
#[expect(clippy::wildcard_enum_match_arm, reason = "any other call")]
pub(super) fn paths(call: SystemCall, arguments: &[u64; 6]) -> Option<Paths> {
    use LookupKind::{Read, Write};
    let [first, second, third, fourth, ..] = *arguments;
    let below = |directory: u64, at, kind| PathArgument {
        directory: directory as i32,
        at,
        intent: Intent::Known(kind),
    };
    let here = |at, kind| PathArgument {
        directory: libc::AT_FDCWD,
        at,
        intent: Intent::Known(kind),
    };
    let (one, other) = match call {
        SYS_open => (here(first, opened(second)), None),
        SYS_openat => (below(first, second, opened(third)), None),
        SYS_openat2 => {
            let intent = Intent::FlagsAt(third);
            (
                PathArgument {
                    intent,
                    ..below(first, second, Read)
                },
                None,
            )
        }
        SYS_stat | SYS_lstat | SYS_access | SYS_readlink => (here(first, Read), None),
        SYS_chdir => (here(first, Read), None),
        SYS_newfstatat | SYS_statx | SYS_faccessat | SYS_faccessat2 | SYS_readlinkat => {
            (below(first, second, Read), None)
        }
        SYS_creat | SYS_mkdir | SYS_mknod | SYS_unlink | SYS_rmdir | SYS_chmod | SYS_chown
        | SYS_lchown | SYS_utime | SYS_utimes => (here(first, Write), None),
        SYS_futimesat => (below(first, second, Write), None),
        SYS_truncate => (here(first, Write), None),
        SYS_mkdirat | SYS_mknodat | SYS_unlinkat | SYS_fchmodat | SYS_fchmodat2 | SYS_fchownat
        | SYS_utimensat => (below(first, second, Write), None),
        // The kernel does not look up the target of a new symbolic link.
        SYS_symlink => (here(second, Write), None),
        SYS_symlinkat => (below(second, third, Write), None),
        SYS_link => (here(first, Read), Some(here(second, Write))),
        SYS_linkat => (
            below(first, second, Read),
            Some(below(third, fourth, Write)),
        ),
        SYS_rename => (here(first, Write), Some(here(second, Write))),
        SYS_renameat | SYS_renameat2 => (
            below(first, second, Write),
            Some(below(third, fourth, Write)),
        ),
        _ => return None,
    };
    Some([Some(one), other])
}

/// Access that the flags of open(2) ask for.
fn opened(flags: u64) -> LookupKind {
    let flags = flags as i32;
    let writes = libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY);
    match () {
        // O_PATH makes open(2) ignore all other flags but O_CLOEXEC, O_DIRECTORY and O_NOFOLLOW.
        () if flags & libc::O_PATH != 0 => LookupKind::Read,
        () if flags & (libc::O_ACCMODE | writes) != libc::O_RDONLY => LookupKind::Write,
        () if flags & libc::O_DIRECTORY != 0 => LookupKind::List,
        () => LookupKind::Read,
    }
}

fn read(thread: i32, named: PathArgument) -> Result<Wanted, Errno> {
    let memory = Memory::of(thread);
    let path = read_string(|at, piece| memory.read(at, piece), named.at, MAX_PATH_BYTES)?;
    let kind = match named.intent {
        Intent::Known(kind) => kind,
        Intent::FlagsAt(at) => {
            let mut flags = [0; 8];
            memory.read(at, &mut flags)?;
            opened(u64::from_ne_bytes(flags))
        }
    };
    Ok(Wanted {
        path: resolve(thread, named.directory, &path),
        kind,
    })
}

/// Resolves a path: without `.` and `..`, absolute if its base directory is known, and cut at PATH_MAX. An empty path
/// stands for its descriptor and stays empty.
fn resolve(thread: i32, directory: i32, path: &[u8]) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path));
    let base = if path.is_absolute() || path.as_os_str().is_empty() {
        None
    } else {
        directory_of(thread, directory)
    };
    let normal = normalised(base.as_deref(), path);
    match normal.as_os_str().as_bytes().get(..MAX_PATH_BYTES) {
        Some(cut) => OsStr::from_bytes(cut).into(),
        None => normal,
    }
}

/// Base directory of a relative path. The kernel gives directories of another mount namespace by their paths there.
/// Returns `None` for a removed directory, one outside of every root, or another file.
fn directory_of(thread: i32, directory: i32) -> Option<PathBuf> {
    let link = match directory {
        libc::AT_FDCWD => format!("/proc/{thread}/cwd"),
        number => format!("/proc/{thread}/fd/{number}"),
    };
    let path = fs::read_link(link).ok()?;
    let whole = path.is_absolute() && !path.as_os_str().as_bytes().ends_with(DELETED);
    whole.then_some(path)
}

/// Normalises the text of a path: `..` removes the name before it, even if that is a symbolic link.
fn normalised(base: Option<&Path>, path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    let all = base.into_iter().flat_map(Path::components);
    for component in all.chain(path.components()) {
        match component {
            Component::RootDir => normal.push("/"),
            Component::Normal(name) => normal.push(name),
            Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            Component::ParentDir if normal.has_root() => {}
            Component::ParentDir => normal.push(".."),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}

#[cfg(test)]
mod tests;
