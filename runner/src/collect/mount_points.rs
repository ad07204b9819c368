//! Mount points in the client's temporary directory, which are the sandbox's own and no evidence.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::unistd::{UnlinkatFlags, unlinkat};
use sandbox::plan::Identity;

use super::inode_count::as_client;

/// Removes the mount points `names` from the temporary directory, before its files are listed.
///
/// The client could not reach the objects under the mounts, so each is an empty directory or file as it was made.
pub(crate) fn remove(tmp: &OwnedFd, names: &[&OsStr], client: Identity) -> Result<(), Errno> {
    as_client(client, || {
        names.iter().try_for_each(
            |name| match unlinkat(tmp, *name, UnlinkatFlags::RemoveDir) {
                Err(Errno::ENOTDIR) => unlinkat(tmp, *name, UnlinkatFlags::NoRemoveDir),
                removed => removed,
            },
        )
    })
}
