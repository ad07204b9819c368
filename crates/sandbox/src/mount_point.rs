//! Mount points: paths of the new root, resolved within that root.
//!
//! The host's files are still reachable while init fills the new root, and a mounted host directory may hold links.
//! With RESOLVE_IN_ROOT, openat2(2) resolves links as the client will. Missing files and directories are made by
//! descriptor, only in the new root's own file systems, never on the host.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2, readlinkat};
use nix::sys::stat::{Mode, fstat, mkdirat};

use super::plan::BindKind;

/// Maximum number of followed links to missing targets: MAXSYMLINKS of linux/namei.h.
const MAX_LINKS: usize = 40;

/// Maximum number of openat2(2) calls for one path, of which all but the last fail with `EAGAIN`.
const MAX_TRIES: usize = 10_000;

/// Opens `path` below `root`. Makes the object and the directories above it if they are missing, on file systems with
/// the devices `own`.
///
/// # Errors
/// The errno of openat2(2), mkdir(2) or open(2). `EROFS` means that the object is missing in a tree of the host,
/// `ELOOP` a circle of links, and `ENOTDIR` or `EISDIR` an object of another kind.
pub(super) fn open(
    root: impl AsFd,
    path: &Path,
    kind: BindKind,
    own: &[u64],
) -> Result<OwnedFd, Errno> {
    let root = root.as_fd();
    let mut path: PathBuf = path.components().filter(is_below).collect();
    for _ in 0..MAX_LINKS {
        let found = match resolve(&root, &path) {
            Err(Errno::ENOENT) => None,
            found => Some(found?),
        };
        if let Some(found) = found {
            return check_kind(found, kind);
        }
        let (above, name, rest) = first_missing(&root, &path)?;
        let is_last = rest.as_os_str().is_empty();
        let kind = if is_last { kind } else { BindKind::Directory };
        if let Some(link) = read_link(&above.directory, &name)? {
            // The link's target is missing, so make the target.
            path = if link.is_absolute() {
                link.components().filter(is_below).collect()
            } else {
                above.path.join(link)
            }
            .join(rest);
            continue;
        }
        make(own, &above.directory, &name, kind)?;
    }
    Err(Errno::ELOOP)
}

/// The deepest existing directory of a path.
struct Above {
    directory: OwnedFd,
    path: PathBuf,
}

/// Splits `path` into its longest existing part, the first missing name, and the rest.
fn first_missing(root: &impl AsFd, path: &Path) -> Result<(Above, OsString, PathBuf), Errno> {
    let mut existing = PathBuf::new();
    let mut directory = resolve(root, &existing)?;
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        let next = existing.join(part);
        match resolve(root, &next) {
            Ok(found) => (directory, existing) = (found, next),
            Err(Errno::ENOENT) => {
                let name = part.as_os_str().to_owned();
                let above = Above {
                    directory,
                    path: existing,
                };
                return Ok((above, name, parts.as_path().to_owned()));
            }
            Err(errno) => return Err(errno),
        }
    }
    // Another process has made the missing part since the first lookup.
    Err(Errno::ESTALE)
}

fn resolve(root: &impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    // Any rename or mount on this machine during the lookup may cause EAGAIN; openat2(2) advises to retry.
    let mut answers = (0..MAX_TRIES).map(|_| openat2(root.as_fd(), path, how));
    answers
        .find(|answer| !matches!(answer, Err(Errno::EAGAIN)))
        .unwrap_or(Err(Errno::EAGAIN))
}

fn read_link(directory: &impl AsFd, name: &OsStr) -> Result<Option<PathBuf>, Errno> {
    match readlinkat(directory.as_fd(), name) {
        Ok(target) => Ok(Some(target.into())),
        Err(Errno::ENOENT | Errno::EINVAL) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn make(own: &[u64], directory: &impl AsFd, name: &OsStr, kind: BindKind) -> Result<(), Errno> {
    if !own.contains(&fstat(directory.as_fd())?.st_dev) {
        return Err(Errno::EROFS);
    }
    match kind {
        BindKind::Directory => mkdirat(directory, name, Mode::from_bits_truncate(0o755)),
        BindKind::File => {
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
            let mode = Mode::from_bits_truncate(0o644);
            openat(directory, name, flags, mode).map(drop)
        }
    }
}

fn check_kind(found: OwnedFd, kind: BindKind) -> Result<OwnedFd, Errno> {
    let mode = fstat(&found)?.st_mode & libc::S_IFMT;
    match (kind, mode == libc::S_IFDIR) {
        (BindKind::Directory, false) => Err(Errno::ENOTDIR),
        (BindKind::File, true) => Err(Errno::EISDIR),
        (BindKind::Directory, true) | (BindKind::File, false) => Ok(found),
    }
}

/// Checks for a component below the root: not `/` and not `.`.
fn is_below(part: &Component<'_>) -> bool {
    !matches!(part, Component::RootDir | Component::CurDir)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A new root in a temporary directory.
    struct Root(tempfile::TempDir);

    impl Root {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn open(&self, path: &str, kind: BindKind) -> Result<u64, Errno> {
            let root = File::open(self.0.path()).unwrap();
            let own = [fstat(&root).unwrap().st_dev];
            let found = open(root, Path::new(path), kind, &own)?;
            Ok(fstat(&found)?.st_ino)
        }

        fn inode(&self, path: &str) -> u64 {
            fs::symlink_metadata(self.at(path)).unwrap().ino()
        }
    }

    #[test]
    fn missing_object_is_made_with_its_parents() {
        let root = Root::new();
        let file = root.open("/a/b/file", BindKind::File).unwrap();
        assert_eq!(file, root.inode("a/b/file"));
        let directory = root.open("/a/b/c", BindKind::Directory).unwrap();
        assert_eq!(directory, root.inode("a/b/c"));
        assert_eq!(root.open("/a/b/file", BindKind::File), Ok(file));
    }

    #[test]
    fn absolute_link_resolves_in_the_new_root() {
        let (root, host) = (Root::new(), tempfile::tempdir().unwrap());
        let outside = host.path().to_str().unwrap();
        fs::create_dir_all(host.path().join("one")).unwrap();
        symlink(outside, root.at("current")).unwrap();
        root.open("/current/one/conf", BindKind::File).unwrap();
        root.open("/current/two", BindKind::Directory).unwrap();
        let inside = |name: &str| root.at(&outside[1..]).join(name);
        assert!(inside("one/conf").is_file() && inside("two").is_dir());
        assert_eq!(fs::read_dir(host.path()).unwrap().count(), 1);
        assert!(!host.path().join("one/conf").exists());
    }

    #[test]
    fn dotdot_path_resolves_during_renames() {
        let (root, elsewhere) = (Root::new(), tempfile::tempdir().unwrap());
        fs::create_dir_all(root.at("a/b/c")).unwrap();
        let [one, other] = ["one", "other"].map(|name| elsewhere.path().join(name));
        fs::write(&one, "").unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    fs::rename(&one, &other).unwrap();
                    fs::rename(&other, &one).unwrap();
                }
            });
            let climb = Path::new("a/b/c/../../../a/b/c/../../../a/b");
            let top = File::open(root.0.path()).unwrap();
            let found = (0..20_000).map(|_| resolve(&top, climb).map(drop));
            let errors: Vec<_> = found.filter(Result::is_err).collect();
            ended.store(true, Ordering::Relaxed);
            assert_eq!(errors, []);
        });
    }

    #[test]
    fn links_stay_in_the_root_and_loops_are_eloop() {
        let root = Root::new();
        fs::create_dir(root.at("a")).unwrap();
        symlink("../../../../x", root.at("a/up")).unwrap();
        symlink("round", root.at("round")).unwrap();
        root.open("/a/up/file", BindKind::File).unwrap();
        assert!(root.at("x/file").is_file());
        assert_eq!(root.open("/round/x", BindKind::File), Err(Errno::ELOOP));
    }

    #[test]
    fn other_file_system_is_erofs() {
        let root = File::open("/").unwrap();
        // /proc is certainly another file system, and no object is made there.
        let missing = Path::new("/proc/no-such-directory");
        let own = [fstat(&root).unwrap().st_dev];
        assert_eq!(
            open(&root, missing, BindKind::Directory, &own).unwrap_err(),
            Errno::EROFS
        );
    }

    #[test]
    fn object_of_another_kind_is_an_error() {
        let root = Root::new();
        fs::create_dir(root.at("directory")).unwrap();
        fs::write(root.at("file"), "").unwrap();
        let opened = |path, kind| root.open(path, kind).unwrap_err();
        assert_eq!(opened("/directory", BindKind::File), Errno::EISDIR);
        assert_eq!(opened("/file", BindKind::Directory), Errno::ENOTDIR);
        assert_eq!(opened("/file/x", BindKind::File), Errno::ENOTDIR);
    }
}
