//! `--keep-home`: a copy of the client's home for the user.
//!
//! The copy uses descriptors and creates each entry new in a fresh directory. So a name cannot lead out of that
//! directory, and links are recreated, never followed. FIFOs, sockets and devices are left out; the report
//! lists them.

use std::fs::{File, Permissions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use model::evidence::FileKind;
use model::text::printable;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::symlinkat;
use tempfile::TempDir;

use super::copy::{Bounds, Entry, Target, copy, directory};

/// Largest number of objects named as not copied; further objects are only counted.
const MAX_NAMED: usize = 20;

/// A copy, which may be incomplete.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    pub(crate) left_out: LeftOut,
}

/// Objects that could not be copied.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    /// Lines such as `a/b: Permission denied`, without control characters.
    pub(crate) named: Vec<String>,
    /// Number of further objects.
    pub(crate) further: u64,
}

/// Copies the tree below `home` into a fresh temporary directory, with at most `bytes` of content. Objects that
/// cannot be copied are left out.
///
/// # Errors
/// Returns the error of creating or opening the directory.
pub(crate) fn keep(home: &OwnedFd, bytes: u64) -> io::Result<Kept> {
    let made = fresh()?;
    let into = OwnedFd::from(File::open(made.path())?);
    let bounds = Bounds {
        bytes,
        entries: u64::MAX,
        paths: u64::MAX,
    };
    let mut left_out = LeftOut::default();
    copy(home, &into, bounds, &mut left_out);
    Ok(Kept {
        path: made.keep(),
        left_out,
    })
}

/// Creates and removes such a directory, as a check before the run.
///
/// # Errors
/// Returns the error that a copy would meet.
pub(crate) fn try_out() -> io::Result<()> {
    fresh()?.close()
}

/// Creates a directory for its owner alone: the client may have opened its files to others, but its home was
/// private.
fn fresh() -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix("runner-home-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
}

/// Recreates each entry under its own name.
impl Target for LeftOut {
    type Directory = OwnedFd;

    fn enter(&mut self, into: &OwnedFd, entry: &Entry<'_>) -> io::Result<OwnedFd> {
        mkdirat(into, entry.name, permissions(entry) | Mode::S_IRWXU)?;
        Ok(directory(into, entry.name)?)
    }

    fn file(&mut self, into: &OwnedFd, entry: &Entry<'_>, content: File) -> io::Result<()> {
        let make = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mut target = File::from(openat(into, entry.name, make, permissions(entry))?);
        io::copy(&mut content.take(entry.size()), &mut target)?;
        Ok(())
    }

    fn other(&mut self, into: &OwnedFd, entry: &Entry<'_>) -> io::Result<()> {
        if entry.kind == FileKind::Symlink {
            let leads_to = readlinkat(entry.from, entry.name)?;
            symlinkat(leads_to.as_os_str(), into, entry.name)?;
        }
        Ok(())
    }

    fn skip(&mut self, path: &[Vec<u8>], _: Option<FileKind>, error: &io::Error) {
        if self.named.len() == MAX_NAMED {
            self.further += 1;
            return;
        }
        let path = printable(&path.join(&b'/'));
        let path = if path.is_empty() { "." } else { &path };
        self.named.push(format!("{}: {error}", path.escape_debug()));
    }

    fn has_failed(&self) -> bool {
        false
    }
}

fn permissions(entry: &Entry<'_>) -> Mode {
    Mode::from_bits_truncate(entry.status.st_mode) & Mode::from_bits_truncate(0o777)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::collect::copy::MAX_DEPTH;

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
        for _ in 0..MAX_DEPTH {
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
        for number in 0..MAX_NAMED + 5 {
            fs::write(home.path().join(number.to_string()), "content").unwrap();
        }
        let kept = keep(&OwnedFd::from(File::open(home.path()).unwrap()), 6).unwrap();
        assert_eq!(
            (kept.left_out.named.len(), kept.left_out.further),
            (MAX_NAMED, 5)
        );
        fs::remove_dir_all(kept.path).unwrap();
    }
}
