//! How many objects were made in a tree, whether or not they are still there.
//!
//! A tmpfs numbers the objects that are made in it one after another (mm/shmem.c, since Linux 5.9). So the number
//! of one that is made now tells how many were made before, also of those that no watch has seen.

use std::os::fd::OwnedFd;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use sandbox::plan::Identity;

/// The number that the tree gives next, taken by an object that has no name and is gone at once. `None` where
/// none can be made: the client has used up the tree, and nothing is said of what was made in it.
pub(crate) fn next_number(tree: &OwnedFd, client: Identity) -> Option<u64> {
    let flags = OFlag::O_TMPFILE | OFlag::O_RDWR | OFlag::O_CLOEXEC;
    let nameless = as_client(client, || openat(tree, ".", flags, Mode::S_IRUSR)).ok()?;
    fstat(nameless).ok().map(|status| status.st_ino)
}

/// Root's ids are not mapped in the client's user namespace, and its file systems refuse them (EOVERFLOW): this
/// thread's file system ids are the client's for one call (setfsuid(2)).
fn as_client<T>(client: Identity, call: impl FnOnce() -> T) -> T {
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

/// Objects that were made between the two numbers, of which `present` are there.
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
