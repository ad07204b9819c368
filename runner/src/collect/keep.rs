//! `--keep-home`: a copy of the client's home for whoever wants to look at it.
//!
//! By descriptors, each entry made new in a fresh directory of ours: a name cannot lead out of it and a link
//! is never followed, only made again. FIFOs, sockets and devices are left out; the report lists them.

use std::ffi::CStr;
use std::fs::{File, Permissions};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{Mode, SFlag, fstatat, mkdirat};
use nix::unistd::symlinkat;

use crate::text::printable;

/// Directories below the root, as for the walk.
const DEEPEST: usize = 100;

/// Objects that are named where they could not be copied; beyond them they are counted.
const MOST_NAMED: usize = 20;

/// A copy, perhaps not of everything.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    pub(crate) left_out: LeftOut,
}

/// What could not be copied.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    /// `a/b: Permission denied`, without control characters.
    pub(crate) named: Vec<String>,
    /// Objects beyond those.
    pub(crate) further: u64,
}

/// Copies the tree below `home`, of which at most `bytes` are content, into a fresh temporary directory: whatever can
/// be copied.
///
/// # Errors
/// Why there is no such directory.
pub(crate) fn keep(home: &OwnedFd, bytes: u64) -> io::Result<Kept> {
    // The client may have opened its files to others; its home was not theirs to read.
    let copy = tempfile::Builder::new()
        .prefix("runner-home-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()?;
    let target = OwnedFd::from(File::open(copy.path())?);
    let mut copying = Copying {
        left: bytes,
        path: Vec::new(),
        left_out: LeftOut::default(),
    };
    copying.directory(home, &target);
    Ok(Kept {
        path: copy.keep(),
        left_out: copying.left_out,
    })
}

struct Copying {
    /// Bytes of content that may still be copied.
    left: u64,
    /// Names of the directories on the way to the current one.
    path: Vec<Vec<u8>>,
    left_out: LeftOut,
}

impl Copying {
    fn directory(&mut self, from: &OwnedFd, to: &OwnedFd) {
        let listing = from.try_clone().and_then(|from| {
            let mut listing = Dir::from_fd(from)?;
            listing
                .iter()
                .collect::<Result<Vec<_>, _>>()
                .map_err(io::Error::from)
        });
        let entries = match listing {
            Ok(entries) => entries,
            Err(error) => return self.lacks(None, &error),
        };
        for entry in entries {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if let Err(error) = self.entry(from, to, name) {
                self.lacks(Some(name), &error);
            }
        }
    }

    fn entry(&mut self, from: &OwnedFd, to: &OwnedFd, name: &CStr) -> io::Result<()> {
        let status = fstatat(from, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        let mode = Mode::from_bits_truncate(status.st_mode) & Mode::from_bits_truncate(0o777);
        match SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFDIR => {
                if self.path.len() >= DEEPEST {
                    let why = format!("more than {DEEPEST} directories deep");
                    return Err(io::Error::other(why));
                }
                let below = directory(from, name)?;
                mkdirat(to, name, mode | Mode::S_IRWXU)?;
                let copy = directory(to, name)?;
                self.path.push(name.to_bytes().to_vec());
                self.directory(&below, &copy);
                self.path.pop();
            }
            SFlag::S_IFREG => {
                let size = u64::try_from(status.st_size).unwrap_or(0);
                let read = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                let make = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
                let source = File::from(openat(from, name, read, Mode::empty())?);
                let Some(left) = self.left.checked_sub(size) else {
                    let why = format!("{size} bytes, and {} may still be copied", self.left);
                    return Err(io::Error::other(why));
                };
                let mut target = File::from(openat(to, name, make, mode)?);
                self.left = left;
                io::copy(&mut source.take(size), &mut target)?;
            }
            SFlag::S_IFLNK => symlinkat(readlinkat(from, name)?.as_os_str(), to, name)?,
            _ => {}
        }
        Ok(())
    }

    /// Notes that what has this `name` in the current directory, or the directory itself, could not be copied.
    fn lacks(&mut self, name: Option<&CStr>, error: &io::Error) {
        if self.left_out.named.len() == MOST_NAMED {
            self.left_out.further += 1;
            return;
        }
        let mut names: Vec<&[u8]> = self.path.iter().map(Vec::as_slice).collect();
        names.extend(name.map(CStr::to_bytes));
        let path = printable(&names.join(&b'/'));
        let path = if path.is_empty() { "." } else { &path };
        self.left_out
            .named
            .push(format!("{}: {error}", path.escape_debug()));
    }
}

fn directory(at: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
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
        let kept = keep(&OwnedFd::from(File::open(home.path()).unwrap()), 100).unwrap();
        assert_eq!(kept.left_out.named, [""; 0]);
        let copy = kept.path;
        assert_eq!(fs::read(copy.join("d/f")).unwrap(), b"abc");
        assert_eq!(
            fs::read_link(copy.join("link")).unwrap().to_str(),
            Some("/etc/passwd")
        );
        assert!(!copy.join("fifo").exists());
        fs::remove_dir_all(copy).unwrap();
    }

    #[test]
    fn what_cannot_be_copied_is_named_and_everything_else_is_copied() {
        let home = tempfile::tempdir().unwrap();
        let sparse = home.path().join("a\nsparse");
        File::create(sparse).unwrap().set_len(1 << 40).unwrap();
        fs::write(home.path().join("z"), "small").unwrap();
        let mut deep = home.path().join("d");
        for _ in 0..DEEPEST {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        let kept = keep(&OwnedFd::from(File::open(home.path()).unwrap()), 1 << 20).unwrap();
        let mut named = kept.left_out.named;
        named.sort_unstable();
        assert_eq!(named.len(), 2, "{named:?}");
        let expected = "a\\nsparse: 1099511627776 bytes, and ";
        assert!(named[0].starts_with(expected), "{named:?}");
        assert!(named[1].starts_with("d/d/d/d/"), "{named:?}");
        assert!(
            named[1].ends_with("d: more than 100 directories deep"),
            "{named:?}"
        );
        assert_eq!(fs::read(kept.path.join("z")).unwrap(), b"small");
        assert!(kept.path.join("d/d/d").is_dir());
        fs::remove_dir_all(kept.path).unwrap();
    }

    #[test]
    fn of_many_that_cannot_be_copied_some_are_named_and_all_are_counted() {
        let home = tempfile::tempdir().unwrap();
        for number in 0..MOST_NAMED + 5 {
            fs::write(home.path().join(number.to_string()), "content").unwrap();
        }
        let kept = keep(&OwnedFd::from(File::open(home.path()).unwrap()), 6).unwrap();
        assert_eq!(
            (kept.left_out.named.len(), kept.left_out.further),
            (MOST_NAMED, 5)
        );
        fs::remove_dir_all(kept.path).unwrap();
    }
}
