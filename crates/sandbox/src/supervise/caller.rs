//! Caller of a system call: its process and program, as seen inside.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use model::text::printable;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::{Mode, fstat};
use nix::sys::statvfs::{FsFlags, fstatvfs};
use nix::unistd::Pid;
use sys::process::{has_ended, open_thread_pidfd};
use sys::read::kernel_text;

/// Suffix that the kernel adds to the link of an unlinked file (d_path in fs/d_path.c).
const DELETED: &[u8] = b" (deleted)";

/// Beginning of the link of a memory file (memfd_create(2)).
const MEMORY: &[u8] = b"/memfd:";

/// The calling process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// Id of the calling thread in the runner's pid namespace. A thread may have directories and descriptors of its
    /// own (clone(2) without CLONE_FS and CLONE_FILES).
    pub(super) thread: i32,
    /// Process id in the runner's pid namespace.
    pub(super) process: Pid,
    /// Process id in the client's pid namespace.
    pub(super) pid: i32,
    /// Process id of the parent in the client's pid namespace; 0 if unknown or not read.
    pub(super) parent: i32,
    /// Path of the program inside.
    pub(super) program: String,
}

impl Default for Caller {
    /// Unknown caller.
    fn default() -> Self {
        Self {
            thread: 0,
            process: Pid::from_raw(0),
            pid: 0,
            parent: 0,
            program: String::new(),
        }
    }
}

/// Reads callers. Keeps the ids of the last one, because the kernel formats a whole page of /proc for them.
#[derive(Debug, Default)]
pub(super) struct Callers {
    last: Option<Known>,
}

/// Process ids of a thread, right for as long as the thread lives.
#[derive(Debug)]
struct Known {
    thread: i32,
    process: Pid,
    pid: i32,
    pidfd: OwnedFd,
}

impl Callers {
    /// Reads /proc of `thread`. If the thread has ended, the fields are 0 or empty; its call is not made either.
    pub(super) fn read(&mut self, thread: i32) -> Caller {
        // An ended thread's id may be in use again.
        let is_known = |known: &&Known| known.thread == thread && !has_ended(&known.pidfd);
        let (process, pid) = match self.last.as_ref().filter(is_known) {
            Some(known) => (known.process, known.pid),
            None => self.read_ids(thread).0,
        };
        // Not kept: execve(2) changes the program.
        let program = fs::read_link(format!("/proc/{thread}/exe"));
        Caller {
            thread,
            process,
            pid,
            parent: 0,
            program: program
                .map(|path| printable(path.as_os_str().as_encoded_bytes()))
                .unwrap_or_default(),
        }
    }

    /// Returns the ids and the text that contains them.
    fn read_ids(&mut self, thread: i32) -> ((Pid, i32), String) {
        // Opened first, so that the ids are those of the same thread.
        let pidfd = open_thread_pidfd(thread);
        let status = kernel_text(format!("/proc/{thread}/status")).unwrap_or_default();
        let process = Pid::from_raw(first(&status, "Tgid:").unwrap_or(thread));
        let pid = last(&status, "NStgid:").unwrap_or(0);
        self.last = pidfd.ok().map(|pidfd| Known {
            thread,
            process,
            pid,
            pidfd,
        });
        ((process, pid), status)
    }

    /// Reads the parent as well.
    pub(super) fn read_with_parent(&mut self, thread: i32) -> Caller {
        let (_, status) = self.read_ids(thread);
        let parent = first(&status, "PPid:").unwrap_or(0);
        Caller {
            parent: pid_inside(parent),
            ..self.read(thread)
        }
    }
}

impl Caller {
    /// Name of `program`, a path given to execveat(2) with the directory descriptor `at`. For a descriptor, the name is
    /// the path of its file, or `/memfd:name` for a memory file.
    pub(super) fn program_name(&self, at: i32, program: &[u8]) -> Vec<u8> {
        let of_descriptor = |number: i32| {
            let link = fs::read_link(format!("/proc/{}/fd/{number}", self.thread)).ok()?;
            let link = link.into_os_string().into_encoded_bytes();
            Some(
                link.strip_suffix(DELETED)
                    .map_or(link.clone(), <[u8]>::to_vec),
            )
        };
        let spelt = descriptor_in(program, self.pid);
        let named = match (program, spelt) {
            ([], _) => of_descriptor(at),
            (_, Some(number)) => of_descriptor(number),
            ([b'/', ..], None) => None,
            (_, None) if at == libc::AT_FDCWD => None,
            (_, None) => of_descriptor(at).map(|directory| [&directory, program].join(&b'/')),
        };
        let unknown = || match program {
            [] => format!("descriptor {at}").into_bytes(),
            _ => program.to_vec(),
        };
        named.unwrap_or_else(unknown)
    }

    /// Errno of execve(2) for a missing `program`: execvp(3) tries each directory of PATH. Returns `None` if the file
    /// may exist: behind a link, /proc/self, `..` or a directory that we may not search.
    pub(super) fn missing_program(&self, at: i32, program: &[u8]) -> Option<Errno> {
        let path = Path::new(OsStr::from_bytes(program));
        let plain = |one| matches!(one, Component::Normal(_) | Component::CurDir);
        let base = if path.is_absolute() {
            "root"
        } else if at == libc::AT_FDCWD && path.components().all(plain) {
            "cwd"
        } else {
            return None;
        };
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_SYMLINKS);
        let base = fs::File::open(format!("/proc/{}/{base}", self.thread)).ok()?;
        let errno = openat2(base, path, how).err()?;
        matches!(errno, Errno::ENOENT | Errno::ENOTDIR).then_some(errno)
    }

    /// Returns the path of a program that execve(2) refuses with `EACCES`: on a noexec mount, without execute
    /// permission, or not covered by `may_execute`. Returns `None` if the kernel has to decide.
    pub(super) fn unexecutable(
        &self,
        at: i32,
        program: &[u8],
        may_execute: impl Fn(&Path) -> bool,
    ) -> Option<PathBuf> {
        let file = open_program(self.thread, self.pid, at, program)?;
        let is_program = fstat(&file).is_ok_and(|status| {
            status.st_mode & libc::S_IFMT == libc::S_IFREG && status.st_mode & 0o111 != 0
        });
        let is_noexec =
            fstatvfs(&file).is_ok_and(|mount| mount.flags().contains(FsFlags::ST_NOEXEC));
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        // A memory file has no path that a rule could cover.
        let is_memory = path.as_os_str().as_bytes().starts_with(MEMORY);
        let is_covered = !path.is_absolute() || is_memory || may_execute(&path);
        (!is_program || is_noexec || !is_covered).then_some(path)
    }
}

/// Opens the file that execve(2) would execute, with O_PATH, in the root of `thread`.
fn open_program(thread: i32, pid: i32, at: i32, program: &[u8]) -> Option<OwnedFd> {
    let handle = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let path = Path::new(OsStr::from_bytes(program));
    let number = match (program, descriptor_in(program, pid)) {
        ([], _) => Some(at),
        (_, number) => number,
    };
    if let Some(number) = number {
        return open(
            format!("/proc/{thread}/fd/{number}").as_str(),
            handle,
            Mode::empty(),
        )
        .ok();
    }
    let directory = match at {
        libc::AT_FDCWD => format!("/proc/{thread}/cwd"),
        number => format!("/proc/{thread}/fd/{number}"),
    };
    let whole = if path.is_absolute() {
        path.to_owned()
    } else {
        fs::read_link(directory).ok()?.join(path)
    };
    let root = fs::File::open(format!("/proc/{thread}/root")).ok()?;
    let how = OpenHow::new()
        .flags(handle)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT);
    openat2(root, whole.strip_prefix("/").unwrap_or(&whole), how).ok()
}

/// Descriptor that a path below /proc or /dev names. fexecve(3) uses such paths on kernels without execveat(2).
fn descriptor_in(path: &[u8], pid: i32) -> Option<i32> {
    let path = std::str::from_utf8(path).ok()?;
    let own = format!("/proc/{pid}/fd/");
    ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/", &own]
        .into_iter()
        .find_map(|directory| path.strip_prefix(directory)?.parse().ok())
}

fn pid_inside(process: i32) -> i32 {
    let status = kernel_text(format!("/proc/{process}/status")).unwrap_or_default();
    last(&status, "NStgid:").unwrap_or(0)
}

fn values<'a>(status: &'a str, key: &str) -> Option<impl Iterator<Item = &'a str>> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .map(str::split_whitespace)
}

fn first(status: &str, key: &str) -> Option<i32> {
    values(status, key)?.next()?.parse().ok()
}

/// Last id of a line: NStgid lists one for each nested pid namespace, the innermost last (proc_pid_status(5)).
fn last(status: &str, key: &str) -> Option<i32> {
    values(status, key)?.last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_process_is_named_by_its_own_pid_and_program() {
        let own = Callers::default().read(std::process::id() as i32);
        assert_eq!(own.process, Pid::this());
        assert_eq!(Path::new(&own.program), std::env::current_exe().unwrap());
        let missing = |path: &[u8]| own.missing_program(libc::AT_FDCWD, path);
        for path in [&b"/no/such/file"[..], b"no/such/file", b"/no/\xFF", b""] {
            assert_eq!(missing(path), Some(Errno::ENOENT), "{path:?}");
        }
        for path in ["/etc/passwd/x", "/etc/passwd/"] {
            assert_eq!(missing(path.as_bytes()), Some(Errno::ENOTDIR), "{path}");
        }
        // A magic link, `..` and existing files.
        for path in ["/proc/self/exe", "/etc/../etc", "../x", "/etc/passwd"] {
            assert_eq!(missing(path.as_bytes()), None, "{path}");
        }
        assert_eq!(
            own.missing_program(3, b"no/such/file"),
            None,
            "below a descriptor"
        );
    }

    #[test]
    fn a_program_that_is_given_by_its_descriptor_is_called_what_that_says() {
        use std::os::fd::AsRawFd as _;
        let own = Callers::default().read(std::process::id() as i32);
        let here = libc::AT_FDCWD;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        let file = fs::File::create(&path).unwrap();
        let number = file.as_raw_fd();
        let path = path.as_os_str().as_bytes();
        assert_eq!(own.program_name(number, b""), path);
        for spelt in ["/proc/self/fd/", "/dev/fd/"] {
            assert_eq!(
                own.program_name(here, format!("{spelt}{number}").as_bytes()),
                path
            );
        }
        let open = fs::File::open(directory.path()).unwrap();
        assert_eq!(own.program_name(open.as_raw_fd(), b"program"), path);
        let memory = nix::sys::memfd::memfd_create(c"made", nix::sys::memfd::MFdFlags::empty());
        assert_eq!(
            own.program_name(memory.unwrap().as_raw_fd(), b""),
            b"/memfd:made"
        );
        // A path without a known descriptor stays as it was given.
        assert_eq!(own.program_name(here, b"x/y"), b"x/y");
        assert_eq!(own.program_name(number, b"/bin/true"), b"/bin/true");
        assert_eq!(own.program_name(-7, b""), b"descriptor -7");
        assert_eq!(
            own.program_name(here, b"/proc/self/fd/99999"),
            b"/proc/self/fd/99999"
        );
    }

    /// Directory and descriptors of a thread may differ from those of the thread group's leader.
    #[test]
    fn a_thread_is_looked_at_by_its_own_directory_and_descriptors() {
        use std::os::fd::AsRawFd as _;
        use std::sync::mpsc::channel;

        use nix::sched::{CloneFlags, unshare};
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("program");
        fs::File::create(&path).unwrap();
        let ((ready, told), (done, end)) = (channel(), channel::<()>());
        let (place, file) = (directory.path().to_owned(), path.clone());
        let thread = std::thread::spawn(move || {
            unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_FILES).unwrap();
            std::env::set_current_dir(place).unwrap();
            let own = fs::File::open(file).unwrap();
            ready
                .send((nix::unistd::gettid().as_raw(), own.as_raw_fd()))
                .unwrap();
            let _ = end.recv();
        });
        let (id, number) = told.recv().unwrap();
        let caller = Callers::default().read(id);
        let missing = |caller: &Caller| caller.missing_program(libc::AT_FDCWD, b"program");
        assert_eq!(missing(&caller), None);
        assert_eq!(
            caller.program_name(number, b""),
            path.as_os_str().as_bytes()
        );
        let leader = Callers::default().read(std::process::id() as i32);
        assert_eq!(missing(&leader), Some(Errno::ENOENT));
        drop(done);
        thread.join().unwrap();
    }

    #[test]
    fn the_innermost_pid_is_the_one_inside() {
        assert_eq!(last("Tgid:\t77\nNStgid:\t77\t5\n", "NStgid:"), Some(5));
        assert_eq!(last("Tgid:\t77\n", "NStgid:"), None);
    }
}
