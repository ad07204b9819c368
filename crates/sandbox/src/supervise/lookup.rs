//! Calls that look a path up: they always go on, and what they name is written down.
//!
//! Nothing is decided here. What is reached is up to the mounts and to Landlock; memory may change before the
//! kernel reads it again, and all that this costs is a line of help. So such a call is answered as soon as it has
//! been read: what /proc says of its caller is read only where a path is relative.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use model::evidence::LookupKind;
use nix::errno::Errno;
use sys::notify::{self, Answer, Notification, open_memory, read_directly, read_memory};

use super::call::{LONGEST_PATH, read_string};
use super::ledger::lookups::Wanted;
use super::{Made, Supervision};
use crate::filter::SystemCall::{self, *};

/// What the kernel appends to the link of a directory that was removed (d_path in fs/d_path.c).
const DELETED: &[u8] = b" (deleted)";

/// One path of a call, by its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// The descriptor below which a relative path begins, or AT_FDCWD.
    directory: i32,
    /// Where the path stands.
    at: u64,
    intent: Intent,
}

/// What a call wants of a path, as far as its registers tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Is(LookupKind),
    /// The flags of open(2) stand here in memory: `struct open_how` of openat2(2) begins with them.
    FlagsAt(u64),
}

/// The paths of one call.
pub(super) type Paths = [Option<Named>; 2];

impl Supervision {
    /// Lets a lookup go on, and writes it down. Before the launch it is our own probe that looks.
    pub(super) fn look_up(&mut self, notification: &Notification, paths: Paths, launched: bool) {
        let (read, at_us) = self.read_paths(notification, paths, launched);
        // A caller that is gone made no call, and what was read may be another's.
        if let Made::AsAnswered = self.answer(notification, Answer::Continue) {
            self.write_down(read, at_us);
        }
    }

    /// Writes a lookup down that is judged besides, and answered then.
    pub(super) fn note_lookup(
        &mut self,
        notification: &Notification,
        paths: Paths,
        launched: bool,
    ) {
        let (read, at_us) = self.read_paths(notification, paths, launched);
        if notify::is_valid(&self.listener, notification.id) {
            self.write_down(read, at_us);
        }
    }

    /// Wanted paths, and the time of the look.
    fn read_paths(
        &self,
        notification: &Notification,
        paths: Paths,
        launched: bool,
    ) -> (Vec<Result<Wanted, Errno>>, u64) {
        let at_us = self.clock.elapsed_us();
        let recorded = launched && self.records;
        // Without a pointer there is no path: some runtimes ask in this way whether the kernel has a call.
        let paths = paths.into_iter().flatten().filter(|named| named.at != 0);
        let read = paths
            .filter(|_| recorded)
            .map(|named| read(notification.thread, named))
            .collect();
        (read, at_us)
    }

    fn write_down(&mut self, read: Vec<Result<Wanted, Errno>>, at_us: u64) {
        for read in read {
            match read {
                Ok(wanted) if wanted.path.as_os_str().is_empty() => {}
                Ok(wanted) => self.ledger.lookups.add(wanted, at_us),
                Err(_) => self.ledger.lookups.unreadable += 1,
            }
        }
    }
}

/// The path that `program`, given to execve(2) by `thread` below `directory`, stands for.
pub(super) fn executed(thread: i32, directory: i32, program: &[u8]) -> Wanted {
    Wanted {
        path: resolve(thread, directory, program),
        kind: LookupKind::Execute,
    }
}

/// The paths of a call; `None` where it is no lookup.
#[expect(clippy::wildcard_enum_match_arm, reason = "any other call")]
pub(super) fn paths(call: SystemCall, arguments: &[u64; 6]) -> Option<Paths> {
    use LookupKind::{Read, Write};
    let [first, second, third, fourth, ..] = *arguments;
    let below = |directory: u64, at, kind| Named {
        directory: directory as i32,
        at,
        intent: Intent::Is(kind),
    };
    let here = |at, kind| Named {
        directory: libc::AT_FDCWD,
        at,
        intent: Intent::Is(kind),
    };
    let (one, other) = match call {
        SYS_open => (here(first, opened(second)), None),
        SYS_openat => (below(first, second, opened(third)), None),
        SYS_openat2 => {
            let intent = Intent::FlagsAt(third);
            (
                Named {
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
        // The target of a symbolic link is text: nothing is looked up.
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

/// What the flags of open(2) ask for.
fn opened(flags: u64) -> LookupKind {
    let flags = flags as i32;
    let writes = libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY);
    match () {
        // All other flags but O_DIRECTORY are without meaning then.
        () if flags & libc::O_PATH != 0 => LookupKind::Read,
        () if flags & (libc::O_ACCMODE | writes) != libc::O_RDONLY => LookupKind::Write,
        () if flags & libc::O_DIRECTORY != 0 => LookupKind::List,
        () => LookupKind::Read,
    }
}

fn read(thread: i32, named: Named) -> Result<Wanted, Errno> {
    let path = read_string(
        |at, piece| read_piece(thread, at, piece),
        named.at,
        LONGEST_PATH,
    )?;
    let kind = match named.intent {
        Intent::Is(kind) => kind,
        Intent::FlagsAt(at) => {
            let mut flags = [0; 8];
            read_piece(thread, at, &mut flags)?;
            opened(u64::from_ne_bytes(flags))
        }
    };
    Ok(Wanted {
        path: resolve(thread, named.directory, &path),
        kind,
    })
}

/// Directly, unless a container that the runner is in has no such call.
fn read_piece(thread: i32, at: u64, piece: &mut [u8]) -> Result<(), Errno> {
    match read_directly(thread, at, piece) {
        Err(Errno::EPERM | Errno::ENOSYS) => read_memory(&open_memory(thread)?, at, piece),
        read => read,
    }
}

/// The path without `.` and `..`, absolute where that can be told, and no longer than the kernel takes one. An
/// empty one is about its descriptor, and stays empty.
fn resolve(thread: i32, directory: i32, path: &[u8]) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path));
    let base = if path.is_absolute() || path.as_os_str().is_empty() {
        None
    } else {
        directory_of(thread, directory)
    };
    let normal = normalised(base.as_deref(), path);
    match normal.as_os_str().as_bytes().get(..LONGEST_PATH) {
        Some(cut) => OsStr::from_bytes(cut).into(),
        None => normal,
    }
}

/// Where a relative path begins. The kernel names a directory of another mount namespace by its path in there; what
/// cannot be reached from any root, was removed, or is no directory is not known.
fn directory_of(thread: i32, directory: i32) -> Option<PathBuf> {
    let link = match directory {
        libc::AT_FDCWD => format!("/proc/{thread}/cwd"),
        number => format!("/proc/{thread}/fd/{number}"),
    };
    let path = fs::read_link(link).ok()?;
    let whole = path.is_absolute() && !path.as_os_str().as_bytes().ends_with(DELETED);
    whole.then_some(path)
}

/// By the text alone: `..` takes back a name, also where that is a symbolic link.
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
