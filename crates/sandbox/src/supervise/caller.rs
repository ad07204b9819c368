//! Who made a call: process and program, as seen inside.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use model::text::printable;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::unistd::Pid;

/// What the kernel appends to the link of a file that has no name any more (d_path in fs/d_path.c).
const DELETED: &[u8] = b" (deleted)";

/// The calling process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// The calling thread: its directories and descriptors may be its own (clone(2) without CLONE_FS and CLONE_FILES).
    pub(super) thread: i32,
    /// In the runner's pid namespace.
    pub(super) process: Pid,
    /// In the client's.
    pub(super) pid: i32,
    /// In the client's; 0 where it is not known.
    pub(super) parent: i32,
    /// Path of its program inside.
    pub(super) program: String,
}

impl Default for Caller {
    /// Nobody.
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

impl Caller {
    /// Reads /proc of `thread`. A thread that is gone leaves zeroes; its call is gone as well.
    pub(super) fn read(thread: i32) -> Self {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let process = first(&status, "Tgid:").unwrap_or(thread);
        let parent = first(&status, "PPid:").unwrap_or(0);
        let program = fs::read_link(format!("/proc/{thread}/exe"));
        Self {
            thread,
            process: Pid::from_raw(process),
            pid: last(&status, "NStgid:").unwrap_or(0),
            parent: pid_inside(parent),
            program: program
                .map(|path| printable(path.as_os_str().as_encoded_bytes()))
                .unwrap_or_default(),
        }
    }

    /// What `program`, given to execve(2) by this process below the descriptor `at`, is called: where a descriptor says
    /// which file it is, that file, `/memfd:name` for one that is in memory only.
    pub(super) fn named(&self, at: i32, program: &[u8]) -> Vec<u8> {
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

    /// Errno of execve(2) for a `program` that is surely absent: execvp(3) tries a path after another. Returns `None`
    /// for whatever could be there, through a link, /proc/self, `..` or a directory that we may not search.
    pub(super) fn absence(&self, at: i32, program: &[u8]) -> Option<Errno> {
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
}

/// The descriptor that a path below /proc or /dev leads to, as fexecve(3) spells it where the kernel lacks execveat(2).
fn descriptor_in(path: &[u8], pid: i32) -> Option<i32> {
    let path = std::str::from_utf8(path).ok()?;
    let own = format!("/proc/{pid}/fd/");
    ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/", &own]
        .into_iter()
        .find_map(|directory| path.strip_prefix(directory)?.parse().ok())
}

fn pid_inside(process: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
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

/// NStgid lists a pid for each nested namespace, the innermost last.
fn last(status: &str, key: &str) -> Option<i32> {
    values(status, key)?.last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_process_is_named_by_its_own_pid_and_program() {
        let own = Caller::read(std::process::id() as i32);
        assert_eq!(own.process, Pid::this());
        assert_eq!(Path::new(&own.program), std::env::current_exe().unwrap());
        let absence = |path: &[u8]| own.absence(libc::AT_FDCWD, path);
        for path in [&b"/no/such/file"[..], b"no/such/file", b"/no/\xFF", b""] {
            assert_eq!(absence(path), Some(Errno::ENOENT), "{path:?}");
        }
        for path in ["/etc/passwd/x", "/etc/passwd/"] {
            assert_eq!(absence(path.as_bytes()), Some(Errno::ENOTDIR), "{path}");
        }
        // A link, a link of the kernel, `..`, and a file: each may be there.
        for path in ["/proc/self/exe", "/etc/../etc", "../x", "/etc/passwd"] {
            assert_eq!(absence(path.as_bytes()), None, "{path}");
        }
        assert_eq!(own.absence(3, b"no/such/file"), None, "below a descriptor");
    }

    #[test]
    fn a_program_that_is_given_by_its_descriptor_is_called_what_that_says() {
        use std::os::fd::AsRawFd as _;
        let own = Caller::read(std::process::id() as i32);
        let here = libc::AT_FDCWD;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        let file = fs::File::create(&path).unwrap();
        let number = file.as_raw_fd();
        let path = path.as_os_str().as_bytes();
        assert_eq!(own.named(number, b""), path);
        for spelt in ["/proc/self/fd/", "/dev/fd/"] {
            assert_eq!(own.named(here, format!("{spelt}{number}").as_bytes()), path);
        }
        let open = fs::File::open(directory.path()).unwrap();
        assert_eq!(own.named(open.as_raw_fd(), b"program"), path);
        let memory = nix::sys::memfd::memfd_create(c"made", nix::sys::memfd::MFdFlags::empty());
        assert_eq!(own.named(memory.unwrap().as_raw_fd(), b""), b"/memfd:made");
        // As it was given, where nothing more is known.
        assert_eq!(own.named(here, b"x/y"), b"x/y");
        assert_eq!(own.named(number, b"/bin/true"), b"/bin/true");
        assert_eq!(own.named(-7, b""), b"descriptor -7");
        assert_eq!(
            own.named(here, b"/proc/self/fd/99999"),
            b"/proc/self/fd/99999"
        );
    }

    /// Directory and descriptors of a thread may differ from those of the thread that leads its process.
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
        let caller = Caller::read(id);
        let absence = |caller: &Caller| caller.absence(libc::AT_FDCWD, b"program");
        assert_eq!(absence(&caller), None);
        assert_eq!(caller.named(number, b""), path.as_os_str().as_bytes());
        let leader = Caller::read(std::process::id() as i32);
        assert_eq!(absence(&leader), Some(Errno::ENOENT));
        drop(done);
        thread.join().unwrap();
    }

    #[test]
    fn the_innermost_pid_is_the_one_inside() {
        assert_eq!(last("Tgid:\t77\nNStgid:\t77\t5\n", "NStgid:"), Some(5));
        assert_eq!(last("Tgid:\t77\n", "NStgid:"), None);
    }
}
