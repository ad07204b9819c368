//! Identity of a file's content: the kernel changes it at each write.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::digest::BUFFER_BYTES;
use nix::sys::statfs::{BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, XFS_SUPER_MAGIC, fstatfs};

/// Age that a change must have before the file is read. A second change within one tick of the file system's clock
/// would leave the times as they are; file systems with a time of creation have ticks below 20 ms.
const GRANULARITY: Duration = Duration::from_secs(2);

/// File systems (statfs(2)) on local disks with a time of creation, whose times this kernel sets at each change. ext2 and
/// ext3 have the number of ext4. Another machine sets the times of network file systems, a process those of FUSE. tmpfs
/// leaves them as they are at a write through mmap(2), and so does overlayfs where it lies on such a file system.
const LOCAL: [FsType; 4] = [
    EXT4_SUPER_MAGIC,
    XFS_SUPER_MAGIC,
    BTRFS_SUPER_MAGIC,
    F2FS_SUPER_MAGIC,
];
/// F2FS_SUPER_MAGIC of linux/magic.h.
const F2FS_SUPER_MAGIC: FsType = FsType(0xF2F5_2010);

/// Identity of an opened file and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    /// Times in nanoseconds since 1970.
    pub(super) modified: i128,
    pub(super) changed: i128,
    pub(super) born: i128,
}

impl Identity {
    /// Returns the identity of an opened file; `None` for a file that is not worth an entry, or whose file system does
    /// not promise a new identity for new content.
    pub(super) fn of(file: &File) -> Option<Self> {
        let status = file.metadata().ok()?;
        let is_local =
            || fstatfs(file).is_ok_and(|system| LOCAL.contains(&system.filesystem_type()));
        // A small file is read as fast as its entry.
        let is_worth = status.is_file() && status.len() > BUFFER_BYTES as u64;
        if !is_worth || !is_local() {
            return None;
        }
        let nanos =
            |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let born = status.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Self {
            device: status.dev(),
            inode: status.ino(),
            size: status.len(),
            modified: nanos(status.mtime(), status.mtime_nsec()),
            changed: nanos(status.ctime(), status.ctime_nsec()),
            born: i128::try_from(born.as_nanos()).ok()?,
        })
    }

    /// Tests whether both changes are older than the file system's clock can tell from one at `begun`.
    pub(super) fn is_settled(&self, begun: SystemTime) -> bool {
        let latest = begun.duration_since(UNIX_EPOCH).ok();
        let latest = latest.and_then(|begun| begun.checked_sub(GRANULARITY));
        let latest = latest.and_then(|latest| i128::try_from(latest.as_nanos()).ok());
        latest.is_some_and(|latest| self.modified < latest && self.changed < latest)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            device,
            inode,
            size,
            modified,
            changed,
            born,
        } = self;
        write!(out, "{device} {inode} {size} {modified} {changed} {born}")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    const LARGE: usize = BUFFER_BYTES + 1;

    /// Directory on a local file system, unlike /tmp on some machines.
    fn directory() -> TempDir {
        tempfile::tempdir_in("/var/tmp").unwrap()
    }

    #[test]
    fn changed_or_replaced_file_has_another_identity() {
        let directory = directory();
        let path = directory.path().join("program");
        let identity = || Identity::of(&File::open(&path).unwrap()).unwrap();
        fs::write(&path, vec![0; LARGE]).unwrap();
        let first = identity();
        assert_eq!(identity(), first);
        // The clock of the kernel's time stamps ticks every few milliseconds.
        while identity() == first {
            fs::write(&path, vec![1; LARGE]).unwrap();
        }
        // The time of the last write can be set back, that of the change cannot.
        let changed = identity();
        let file = File::open(&path).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        while identity() == changed {
            fs::write(&path, vec![2; LARGE]).unwrap();
            file.set_modified(modified).unwrap();
        }
        let before = identity();
        assert_eq!(
            (before.modified, before.size),
            (changed.modified, changed.size)
        );
        fs::write(directory.path().join("other"), vec![2; LARGE]).unwrap();
        fs::rename(directory.path().join("other"), &path).unwrap();
        assert_ne!(identity().inode, before.inode);
    }

    #[test]
    fn change_within_the_granularity_is_not_settled() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let nanos = |seconds: i128| seconds * 1_000_000_000;
        let file = Identity {
            device: 1,
            inode: 2,
            size: 3,
            modified: nanos(100),
            changed: nanos(100),
            born: 0,
        };
        assert!(file.is_settled(at(103)));
        for begun in [0, 1, 99, 100, 101, 102] {
            assert!(!file.is_settled(at(begun)), "{begun}");
        }
        for (modified, changed) in [(nanos(200), nanos(100)), (nanos(100), nanos(200))] {
            let other = Identity {
                modified,
                changed,
                ..file.clone()
            };
            assert!(!other.is_settled(at(103)));
        }
    }

    #[test]
    fn only_large_files_of_local_file_systems_have_an_identity() {
        let directory = directory();
        let made = |bytes: usize| {
            let path = directory.path().join("file");
            fs::write(&path, vec![0; bytes]).unwrap();
            File::open(path).unwrap()
        };
        assert!(Identity::of(&made(LARGE)).is_some());
        assert_eq!(Identity::of(&made(BUFFER_BYTES)), None);
        assert_eq!(Identity::of(&File::open(directory.path()).unwrap()), None);
        let memory = nix::sys::memfd::memfd_create(c"program", nix::sys::memfd::MFdFlags::empty());
        let memory = File::from(memory.unwrap());
        memory.set_len(LARGE as u64).unwrap();
        assert_eq!(Identity::of(&memory), None);
    }
}
