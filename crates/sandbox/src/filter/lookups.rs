//! Calls that look up a path, as data. A client's filter notifies them after its table if lookups are recorded.
//!
//! The list has the calls that open, describe, enter, make, remove, rename or change an object by its path. It leaves
//! out:
//!
//! - calls on a descriptor alone
//! - statfs(2) and the readers of extended attributes, which follow another call of the list
//! - inotify_add_watch(2), which watches listed objects
//! - execve(2), which the table always notifies
//!
//! Lookups help the reader of a report and are no boundary. Mounts and Landlock restrict the paths, and a client can
//! look up a path without a record.

use super::system_call::SystemCall::*;
use super::table::{notify, notify_if};
use super::{Rule, Test};

/// Tests that the flags in `argument` lack AT_EMPTY_PATH. With that flag a call is about its descriptor: several libcs
/// implement fstat(2) so, once for each opened file.
const fn named(argument: u8) -> Test {
    Test::Equals {
        argument,
        mask: libc::AT_EMPTY_PATH as u32,
        value: 0,
    }
}

/// Tests for a path: with a null path utimensat(2) and futimesat(2) are about their descriptor.
const PATH_OF_TIMES: Test = Test::NotNull { argument: 1 };

/// Notified lookups, grouped by purpose.
pub(crate) const LOOKUPS: &[Rule] = &[
    // Open. The flags distinguish reading from writing.
    notify(SYS_open),
    notify(SYS_creat),
    notify(SYS_openat),
    notify(SYS_openat2),
    // Describe or enter. Most programs check that a file exists before they open it.
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
    // Make.
    notify(SYS_mkdir),
    notify(SYS_mkdirat),
    notify(SYS_mknod),
    notify(SYS_mknodat),
    notify(SYS_symlink),
    notify(SYS_symlinkat),
    notify(SYS_link),
    notify(SYS_linkat),
    // Remove or rename.
    notify(SYS_unlink),
    notify(SYS_unlinkat),
    notify(SYS_rmdir),
    notify(SYS_rename),
    notify(SYS_renameat),
    notify(SYS_renameat2),
    // Change in place.
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
