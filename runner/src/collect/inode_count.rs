//! Count of the objects created in a tree, whether or not they still exist.
//!
//! A tmpfs numbers its inodes consecutively (mm/shmem.c, since Linux 5.9). So the inode number of a new object
//! counts the objects created before, including those that no watch saw.

use std::os::fd::OwnedFd;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use sandbox::plan::Identity;

/// Returns the next inode number of the tree, by creating an unnamed file (O_TMPFILE) that ends with its
/// descriptor. `None` means that no file could be created, because the client has used up the tree; the count is
/// unknown then.
pub(crate) fn next_number(tree: &OwnedFd, client: Identity) -> Option<u64> {
    let flags = OFlag::O_TMPFILE | OFlag::O_RDWR | OFlag::O_CLOEXEC;
    let nameless = as_client(client, || openat(tree, ".", flags, Mode::S_IRUSR)).ok()?;
    fstat(nameless).ok().map(|status| status.st_ino)
}

/// Makes `call` with the client's file system ids. Root's ids are not mapped in the client's user namespace, so
/// its file systems reject them with EOVERFLOW (setfsuid(2), which affects only the calling thread).
pub(crate) fn as_client<T>(client: Identity, call: impl FnOnce() -> T) -> T {
    let Identity::Mapped { host_id } = client else {
        return call();
    };
    let (gid, uid) = (
        setfsgid(Gid::from_raw(host_id)),
        setfsuid(Uid::from_raw(host_id)),
    );
    let result = call();
    setfsuid(uid);
    setfsgid(gid);
    result
}

/// Returns the number of objects created between the two inode numbers and since removed; `present` objects
/// still exist.
pub(crate) fn made_and_gone(before: Option<u64>, after: Option<u64>, present: u64) -> Option<u64> {
    let made = after?.checked_sub(before?)?.checked_sub(1)?;
    made.checked_sub(present)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_what_was_made_and_is_not_there() {
        assert_eq!(made_and_gone(Some(3), Some(4), 0), Some(0));
        assert_eq!(made_and_gone(Some(3), Some(9), 2), Some(3));
    }

    #[test]
    fn without_one_of_the_numbers_nothing_is_said() {
        assert_eq!(made_and_gone(None, Some(4), 0), None);
        assert_eq!(made_and_gone(Some(3), None, 0), None);
        assert_eq!(made_and_gone(Some(3), Some(4), 1), None);
    }
}
