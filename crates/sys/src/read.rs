//! Bounded reads of whole files: regular files only, up to a limit, without waiting for a writer.
//!
//! Knows no file format.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use model::quote::shown_path;
use thiserror::Error;

/// Capacity for a file of the kernel, in bytes; most have less.
pub const KERNEL_FILE: usize = 4096;
/// Largest system file, in bytes: a line for each of about 100,000 users.
const MAX_SYSTEM_BYTES: u64 = 16 << 20;

/// Cause of a failed read. `file` is the escaped path.
#[allow(missing_docs, reason = "the fields are named in each message")]
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file could not be opened.
    #[error("cannot open {file}")]
    Open { file: String, source: io::Error },
    /// The file could not be read.
    #[error("cannot read {file}")]
    Read { file: String, source: io::Error },
    /// The path leads to another type of file, such as a directory.
    #[error("{file} is {found}, not a regular file")]
    NotAFile { file: String, found: &'static str },
    /// The file has more than `limit` bytes.
    #[error("{file} is longer than {limit} bytes")]
    TooLarge { file: String, limit: u64 },
}

impl ReadError {
    /// Returns true if the file does not exist.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads a regular file of at most `limit` bytes. Opening a FIFO without O_NONBLOCK would wait for a writer.
///
/// # Errors
/// The error of the system, a file of another type, or a file longer than `limit`.
pub fn regular(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    read(path, limit, 0)
}

/// Reads a regular file as [`regular`] does, and refuses a symbolic link under its name.
///
/// # Errors
/// Those of [`regular`], and a symbolic link.
pub fn regular_not_link(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    read(path, limit, libc::O_NOFOLLOW)
}

fn read(path: &Path, limit: u64, flags: libc::c_int) -> Result<Vec<u8>, ReadError> {
    let file = shown_path(path);
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | flags)
        .open(path);
    let opened = match opened {
        Ok(opened) => opened,
        // open(2) fails with ELOOP for a link that it may not follow, and for a circle of links.
        Err(error)
            if flags == libc::O_NOFOLLOW
                && error.raw_os_error() == Some(libc::ELOOP)
                && path.is_symlink() =>
        {
            let found = "a symbolic link";
            return Err(ReadError::NotAFile { file, found });
        }
        // open(2) fails with ENXIO for a socket.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
            let found = "a socket or a device";
            return Err(ReadError::NotAFile { file, found });
        }
        Err(source) => return Err(ReadError::Open { file, source }),
    };
    let read = |source| ReadError::Read {
        file: file.clone(),
        source,
    };
    let kind = opened.metadata().map_err(read)?.file_type();
    if !kind.is_file() {
        let found = describe(kind);
        return Err(ReadError::NotAFile { file, found });
    }
    let mut bytes = Vec::with_capacity(KERNEL_FILE);
    let mut bounded = opened.take(limit.saturating_add(1));
    bounded.read_to_end(&mut bytes).map_err(read)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLarge { file, limit });
    }
    Ok(bytes)
}

/// Reads the text of a system file, such as /etc/passwd. Returns an empty text if the file cannot be read.
pub fn system_text(path: impl AsRef<Path>) -> String {
    let bytes = regular(path.as_ref(), MAX_SYSTEM_BYTES).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Reads a file of /proc or /sys, whose size is told as 0: without a capacity, std reads it in pieces from 32 bytes on.
///
/// # Errors
/// The error of open(2) or read(2); `InvalidData` for other text than UTF-8.
pub fn kernel_text(path: impl AsRef<Path>) -> io::Result<String> {
    let mut text = String::with_capacity(KERNEL_FILE);
    File::open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

fn describe(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// Path of an open file without links.
///
/// # Errors
/// An error of reading /proc/self/fd. `InvalidFilename` if the file has no name, or if its path does not begin at the
/// root.
pub fn name_of(file: &File) -> io::Result<PathBuf> {
    let name = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    if name.is_absolute() {
        Ok(name)
    } else {
        Err(io::ErrorKind::InvalidFilename.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), "12345").unwrap();
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(regular(&at("file"), 5).unwrap(), b"12345");
        let said = |name: &str| regular(&at(name), 4).unwrap_err().to_string();
        assert!(said("file").ends_with("file is longer than 4 bytes"));
        assert!(said("fifo").ends_with("fifo is a FIFO, not a regular file"));
        assert!(said("").ends_with("is a directory, not a regular file"));
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        assert_eq!(regular(&at("link"), 5).unwrap(), b"12345");
        assert_eq!(regular_not_link(&at("file"), 5).unwrap(), b"12345");
        let error = regular_not_link(&at("link"), 5).unwrap_err().to_string();
        assert!(error.ends_with("link is a symbolic link, not a regular file"));
        std::os::unix::fs::symlink("loop", at("loop")).unwrap();
        let error = regular_not_link(&at("loop/file"), 5).unwrap_err();
        assert!(matches!(error, ReadError::Open { .. }), "{error}");
        assert_eq!(system_text(at("file")), "12345");
        assert_eq!(system_text(at("fifo")), "");
        assert!(regular(&at("none"), 4).unwrap_err().is_absence());
        assert!(!regular(&at("file/none"), 4).unwrap_err().is_absence());
    }
}
