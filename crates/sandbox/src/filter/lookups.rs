//! The calls that look a path up, as data: what a client's filter notifies beside the table where lookups are asked
//! for.
//!
//! In it are the calls that name an object by its path in order to open, describe, enter, make, remove, rename or
//! change it. Not in it: calls on a descriptor alone; statfs(2) and the readers of extended attributes, which ask
//! about what another call here has found; inotify_add_watch(2), which watches what was listed; execve(2), which
//! the table notifies always. Lookups are help for a reader and no boundary: mounts and Landlock decide what is
//! reached, and a client that wants to look something up unseen has ways to.

use super::system_call::SystemCall::*;
use super::table::{notify, notify_if};
use super::{Rule, Test};

/// The flags in `argument` do not say that the path is empty. With AT_EMPTY_PATH a call is about its descriptor:
/// that is how several libcs spell fstat(2), once for each file that they open.
const fn named(argument: u8) -> Test {
    Test::Equals {
        argument,
        mask: libc::AT_EMPTY_PATH as u32,
        value: 0,
    }
}

/// Without a path utimensat(2) and futimesat(2) are about their descriptor.
const PATH_OF_TIMES: Test = Test::NotNull { argument: 1 };

/// In the order of what they want.
pub(crate) const LOOKUPS: &[Rule] = &[
    // What is opened; the flags tell reading from writing.
    notify(SYS_open),
    notify(SYS_creat),
    notify(SYS_openat),
    notify(SYS_openat2),
    // What is asked about: most programs ask whether a file is there before they open it.
    notify(SYS_stat),
    notify(SYS_lstat),
    notify_if(SYS_newfstatat, &[named(3)]),
    notify_if(SYS_statx, &[named(2)]),
    notify(SYS_access),
    notify(SYS_faccessat),
    notify_if(SYS_faccessat2, &[named(3)]),
    notify(SYS_readlink),
    notify(SYS_readlinkat),
    notify(SYS_chdir),
    // What is made.
    notify(SYS_mkdir),
    notify(SYS_mkdirat),
    notify(SYS_mknod),
    notify(SYS_mknodat),
    notify(SYS_symlink),
    notify(SYS_symlinkat),
    notify(SYS_link),
    notify(SYS_linkat),
    // What is removed or renamed.
    notify(SYS_unlink),
    notify(SYS_unlinkat),
    notify(SYS_rmdir),
    notify(SYS_rename),
    notify(SYS_renameat),
    notify(SYS_renameat2),
    // What is changed in place.
    notify(SYS_truncate),
    notify(SYS_chmod),
    notify(SYS_fchmodat),
    notify_if(SYS_fchmodat2, &[named(3)]),
    notify(SYS_chown),
    notify(SYS_lchown),
    notify_if(SYS_fchownat, &[named(4)]),
    notify(SYS_utime),
    notify(SYS_utimes),
    notify_if(SYS_futimesat, &[PATH_OF_TIMES]),
    notify_if(SYS_utimensat, &[PATH_OF_TIMES]),
];
