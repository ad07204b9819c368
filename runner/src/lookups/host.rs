//! Probe of the host at a path that the program chose.
//!
//! The probe follows no link and opens no file: O_PATH (open(2)) triggers no automount at the last name. A
//! directory is probed before the paths below it. If another machine or program serves a file system's names,
//! probing would send the name there, out of the sandbox. Such a directory is closed, and no path below it is
//! probed. The file server of a network mount still learns names, as from every program of the user who mounted
//! it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::readlinkat;
use nix::sys::statfs::{FsType, fstatfs};

use super::HostObject;

/// Magic numbers of linux/magic.h: a server for each name (autofs, AFS), or a program that handles names
/// (FUSE).
const SERVED: [FsType; 4] = [
    FsType(0x0187),
    FsType(0x5346_414F),
    FsType(0x6B41_4653),
    FsType(0x6573_5546),
];

/// Returns the object at `path`, whose parents were probed before; `None` also for a path without access.
pub(crate) fn probe(path: &Path) -> Option<HostObject> {
    let handle = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_NOFOLLOW)
        .open(path)
        .ok()?;
    let status = handle.metadata().ok()?;
    let kind = status.file_type();
    Some(match () {
        () if kind.is_symlink() => HostObject::Link(readlinkat(&handle, "").ok()?.into()),
        () if kind.is_file() => HostObject::File,
        () if kind.is_dir() && !is_served(&handle, status.dev()) => HostObject::Directory,
        () => HostObject::Closed,
    })
}

/// Checks for a served file system. A served root file system does not count: the whole system runs on it.
fn is_served(handle: &fs::File, device: u64) -> bool {
    let is_root = || fs::metadata("/").is_ok_and(|root| root.dev() == device);
    fstatfs(handle).map_or(true, |found| SERVED.contains(&found.filesystem_type())) && !is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_at_a_path_is_told_and_a_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert_eq!(probe(directory.path()), Some(HostObject::Directory));
        assert_eq!(probe(&at("file")), Some(HostObject::File));
        assert_eq!(probe(&at("link")), Some(HostObject::Link("file".into())));
        assert_eq!(
            probe(&at("dangling")),
            Some(HostObject::Link("nowhere".into()))
        );
        assert_eq!(probe(&at("socket")), Some(HostObject::Closed));
        assert_eq!(probe(Path::new("/dev/null")), Some(HostObject::Closed));
        assert_eq!(probe(&at("absent")), None);
    }
}
