//! Owners of objects below /tmp, where every user may make names: a run shows only those of its caller.
//!
//! Reads each owner by descriptor, name by name, so that no name is resolved twice.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use model::layout::TMP;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstat};
use nix::unistd::Uid;

/// Write permission of group and others.
const SHARED: u32 = 0o022;

/// Owner of a path below /tmp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The path is not below /tmp.
    Elsewhere,
    /// The caller owns each name; device and inode of the last one.
    Caller(u64, u64),
    /// Another user owns a name, or may replace one.
    Other,
}

/// Finds the owner of `path`. A link counts as a name, and is not followed.
pub(crate) fn owner(path: &Path) -> Result<Owner, Errno> {
    owner_below(Path::new(TMP), path)
}

fn owner_below(shared: &Path, path: &Path) -> Result<Owner, Errno> {
    let Ok(below) = path.strip_prefix(shared) else {
        return Ok(Owner::Elsewhere);
    };
    let shared = fs::canonicalize(shared).map_err(|error| errno_of(&error))?;
    let mut directory = open(AT_FDCWD, shared.as_os_str())?;
    let mut status = fstat(&directory)?;
    let is_sticky = status.st_mode & libc::S_ISVTX != 0;
    if status.st_mode & SHARED != 0 && !is_sticky {
        return Ok(Owner::Other);
    }
    for name in below.components() {
        let is_sticky = status.st_mode & libc::S_ISVTX != 0;
        if status.st_mode & libc::S_IWOTH != 0 && !is_sticky {
            return Ok(Owner::Other);
        }
        let Component::Normal(name) = name else {
            return Ok(Owner::Other);
        };
        directory = open(&directory, name)?;
        status = fstat(&directory)?;
        if status.st_uid != Uid::effective().as_raw() {
            return Ok(Owner::Other);
        }
        if is_link(&status) {
            break;
        }
    }
    Ok(Owner::Caller(status.st_dev, status.st_ino))
}

/// Errno of an error of the system.
fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

fn open(directory: impl AsFd, name: &(impl nix::NixPath + ?Sized)) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(directory, name, flags, Mode::empty())
}

fn is_link(status: &FileStat) -> bool {
    status.st_mode & libc::S_IFMT == libc::S_IFLNK
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

    use super::*;

    /// A shared directory, with a directory of the caller in it.
    fn shared(mode: u32) -> tempfile::TempDir {
        let shared = tempfile::tempdir().unwrap();
        fs::create_dir_all(shared.path().join("mine/deep")).unwrap();
        symlink("/etc", shared.path().join("mine/link")).unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(mode)).unwrap();
        shared
    }

    fn of(shared: &tempfile::TempDir, path: &str) -> Result<Owner, Errno> {
        owner_below(shared.path(), &shared.path().join(path))
    }

    #[test]
    fn object_of_the_caller_is_known_by_its_inode() {
        let shared = shared(0o1777);
        for path in ["mine", "mine/deep", "mine/link"] {
            let found = fs::symlink_metadata(shared.path().join(path)).unwrap();
            let expected = Owner::Caller(found.dev(), found.ino());
            assert_eq!(of(&shared, path), Ok(expected), "{path}");
        }
        assert_eq!(owner(Path::new("/usr/bin")), Ok(Owner::Elsewhere));
        assert_eq!(of(&shared, "missing"), Err(Errno::ENOENT));
        // Names behind a link are those of its target.
        let link = fs::symlink_metadata(shared.path().join("mine/link")).unwrap();
        let expected = Owner::Caller(link.dev(), link.ino());
        assert_eq!(of(&shared, "mine/link/passwd"), Ok(expected));
    }

    #[test]
    fn directory_that_others_can_change_has_another_owner() {
        for (mode, is_caller) in [(0o777, false), (0o1777, true), (0o755, true)] {
            let shared = shared(mode);
            let found = of(&shared, "mine/deep").unwrap();
            assert_eq!(matches!(found, Owner::Caller(..)), is_caller, "{mode:o}");
        }
        let below = shared(0o1777);
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(below.path().join("mine"), open).unwrap();
        assert_eq!(of(&below, "mine/deep"), Ok(Owner::Other));
        assert_eq!(of(&shared(0o1777), "mine/../mine"), Ok(Owner::Other));
    }

    #[test]
    fn object_of_another_user_has_another_owner() {
        if !Uid::effective().is_root() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        let shared = shared(0o1777);
        chown(shared.path().join("mine"), Some(1000), Some(1000)).unwrap();
        for path in ["mine", "mine/deep"] {
            assert_eq!(of(&shared, path), Ok(Owner::Other), "{path}");
        }
    }
}
