//! The /proc that init and the self-check read: the client's, or the container's if no fresh one can be mounted.
//!
//! Container engines cover files of /proc. The kernel then refuses a fresh procfs in a user namespace
//! (mount_too_revealing in fs/namespace.c). The client gets a directory with a few files about the machine, without
//! its processes. Init and the self-check read the container's /proc, by a descriptor that was opened before
//! pivot_root and is closed on exec. That /proc lists a process by its id in the container; `self` is the reader.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, readlinkat};
use nix::sys::stat::Mode;
use sys::read::KERNEL_FILE;

use super::error::AsErrno as _;

/// Files of /proc about processors, memory and time, which do not depend on the reading process.
pub(crate) const HARMLESS: [&str; 7] = [
    "cpuinfo",
    "filesystems",
    "loadavg",
    "meminfo",
    "stat",
    "uptime",
    "version",
];

/// The /proc that init and the self-check read.
pub(super) struct ProcView {
    pub(super) proc: Proc,
    /// The client sees the same /proc.
    pub(super) shows_proc: bool,
}

/// An open /proc.
#[derive(Debug)]
pub(super) struct Proc {
    directory: OwnedFd,
}

impl Proc {
    /// Opens the mounted /proc.
    ///
    /// # Errors
    /// The errno of open(2).
    pub(super) fn open() -> Result<Self, Errno> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = open("/proc", flags, Mode::empty())?;
        Ok(Self { directory })
    }

    /// Returns the descriptor, for a Landlock rule.
    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Reads a file as text, by its path below /proc.
    ///
    /// # Errors
    /// The errno of open(2) or read(2); `ESRCH` for a process that ended during the read.
    pub(super) fn read(&self, path: &str) -> Result<String, Errno> {
        let bytes = self.read_bytes(path)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reads a file as bytes, for paths that are not UTF-8.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub(super) fn read_bytes(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.directory, path, flags, Mode::empty())?);
        let mut bytes = Vec::with_capacity(KERNEL_FILE);
        file.read_to_end(&mut bytes)
            .map_err(|error| error.as_errno())?;
        Ok(bytes)
    }

    /// Writes a setting, by its path below /proc.
    ///
    /// # Errors
    /// The errno of open(2) or write(2).
    pub(super) fn write(&self, path: &str, text: &str) -> Result<(), Errno> {
        let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.directory, path, flags, Mode::empty())?);
        file.write_all(text.as_bytes())
            .map_err(|error| error.as_errno())
    }

    /// Reads a symbolic link.
    ///
    /// # Errors
    /// The errno of readlink(2).
    pub(super) fn link(&self, path: &str) -> Result<OsString, Errno> {
        readlinkat(&self.directory, path)
    }

    /// Lists the numeric names of a directory: processes or descriptors. The path `.` is /proc itself.
    ///
    /// # Errors
    /// The errno of open(2) or getdents(2).
    pub(super) fn numbers(&self, path: &str) -> Result<Vec<i32>, Errno> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut directory = Dir::openat(&self.directory, path, flags, Mode::empty())?;
        let mut numbers = Vec::new();
        for entry in directory.iter() {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            numbers.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_finds_itself() {
        let proc = Proc::open().unwrap();
        let own = std::process::id() as i32;
        assert!(proc.numbers(".").unwrap().contains(&own));
        assert_eq!(proc.link("self").unwrap(), own.to_string().as_str());
        let status = proc.read("self/status").unwrap();
        assert!(status.contains(&format!("Pid:\t{own}\n")));
        assert!(proc.numbers("self/fd").unwrap().contains(&0));
    }

    #[test]
    fn missing_file_is_an_error() {
        let proc = Proc::open().unwrap();
        assert_eq!(proc.read("no-such-file"), Err(Errno::ENOENT));
        assert_eq!(proc.numbers("no-such-file"), Err(Errno::ENOENT));
    }

    #[test]
    fn harmless_files_exist() {
        let proc = Proc::open().unwrap();
        for file in HARMLESS {
            assert!(!proc.read(file).unwrap().is_empty(), "{file}");
        }
    }
}
