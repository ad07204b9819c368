//! `--keep-home`: a copy of the client's home for whoever wants to look at it.
//!
//! By descriptors, each entry made new in a fresh directory of ours: a name cannot lead out of it and a link
//! is never followed, only made again. FIFOs, sockets and devices are left out; the report lists them.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{Mode, SFlag, fstatat, mkdirat};
use nix::unistd::symlinkat;

/// Directories below the root, as for the walk.
const DEEPEST: usize = 100;

/// Copies the tree below `home`, of which at most `bytes` are content, into a fresh temporary directory.
///
/// # Errors
/// The first entry that could not be copied; nothing of the copy stays.
pub(crate) fn keep(home: &OwnedFd, bytes: u64) -> io::Result<PathBuf> {
    // The client may have opened its files to others; its home was not theirs to read.
    let copy = tempfile::Builder::new()
        .prefix("runner-home-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()?;
    let target = OwnedFd::from(File::open(copy.path())?);
    let mut left = bytes;
    // A copy that is not whole goes away with its directory.
    copy_level(home, &target, &mut left, 0)?;
    Ok(copy.keep())
}

fn copy_level(from: &OwnedFd, to: &OwnedFd, left: &mut u64, depth: usize) -> io::Result<()> {
    if depth > DEEPEST {
        return Err(io::Error::other(format!(
            "more than {DEEPEST} directories deep"
        )));
    }
    let mut listing = Dir::from_fd(from.try_clone()?)?;
    for entry in listing.iter() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let status = fstatat(from, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        let mode = Mode::from_bits_truncate(status.st_mode) & Mode::from_bits_truncate(0o777);
        match SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFDIR => {
                mkdirat(to, name, mode | Mode::S_IRWXU)?;
                copy_level(
                    &directory(from, name)?,
                    &directory(to, name)?,
                    left,
                    depth + 1,
                )?;
            }
            SFlag::S_IFREG => {
                let size = u64::try_from(status.st_size).unwrap_or(0);
                *left = left.checked_sub(size).ok_or(io::ErrorKind::FileTooLarge)?;
                let read = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                let make = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
                let mut source = File::from(openat(from, name, read, Mode::empty())?);
                let mut target = File::from(openat(to, name, make, mode)?);
                io::copy(&mut source, &mut target)?;
            }
            SFlag::S_IFLNK => symlinkat(readlinkat(from, name)?.as_os_str(), to, name)?,
            _ => {}
        }
    }
    Ok(())
}

fn directory(at: impl AsFd, name: &std::ffi::CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_copy_is_like_the_original_and_links_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("d")).unwrap();
        fs::write(home.path().join("d/f"), "abc").unwrap();
        symlink("/etc/passwd", home.path().join("link")).unwrap();
        nix::unistd::mkfifo(&home.path().join("fifo"), Mode::S_IRWXU).unwrap();
        let copy = keep(&OwnedFd::from(File::open(home.path()).unwrap()), 100).unwrap();
        assert_eq!(fs::read(copy.join("d/f")).unwrap(), b"abc");
        assert_eq!(
            fs::read_link(copy.join("link")).unwrap().to_str(),
            Some("/etc/passwd")
        );
        assert!(!copy.join("fifo").exists());
        fs::remove_dir_all(copy).unwrap();
    }

    #[test]
    fn a_sparse_file_cannot_fill_the_disk() {
        let home = tempfile::tempdir().unwrap();
        File::create(home.path().join("sparse"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        let error = keep(&OwnedFd::from(File::open(home.path()).unwrap()), 1 << 20).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
