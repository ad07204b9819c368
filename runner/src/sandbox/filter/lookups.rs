//! The calls that look a path up, as data: what a client's filter notifies beside the table where lookups are asked
//! for.
//!
//! In it are the calls that name an object by its path in order to open, describe, enter, make, remove, rename or
//! change it. Not in it: calls on a descriptor alone; statfs(2) and the readers of extended attributes, which ask
//! about what another call here has found; inotify_add_watch(2), which watches what was listed; execve(2), which
//! the table notifies always. Lookups are help for a reader and no boundary: mounts and Landlock decide what is
//! reached, and a client that wants to look something up unseen has ways to.

use super::table::{SYS_FCHMODAT2, notify, notify_if};
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
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_open),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_creat),
    notify(libc::SYS_openat),
    notify(libc::SYS_openat2),
    // What is asked about: most programs ask whether a file is there before they open it.
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_stat),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_lstat),
    notify_if(libc::SYS_newfstatat, &[named(3)]),
    notify_if(libc::SYS_statx, &[named(2)]),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_access),
    notify(libc::SYS_faccessat),
    notify_if(libc::SYS_faccessat2, &[named(3)]),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_readlink),
    notify(libc::SYS_readlinkat),
    notify(libc::SYS_chdir),
    // What is made.
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_mkdir),
    notify(libc::SYS_mkdirat),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_mknod),
    notify(libc::SYS_mknodat),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_symlink),
    notify(libc::SYS_symlinkat),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_link),
    notify(libc::SYS_linkat),
    // What is removed or renamed.
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_unlink),
    notify(libc::SYS_unlinkat),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_rmdir),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_rename),
    notify(libc::SYS_renameat),
    notify(libc::SYS_renameat2),
    // What is changed in place.
    notify(libc::SYS_truncate),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_chmod),
    notify(libc::SYS_fchmodat),
    notify_if(SYS_FCHMODAT2, &[named(3)]),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_chown),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_lchown),
    notify_if(libc::SYS_fchownat, &[named(4)]),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_utime),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_utimes),
    #[cfg(target_arch = "x86_64")]
    notify_if(libc::SYS_futimesat, &[PATH_OF_TIMES]),
    notify_if(libc::SYS_utimensat, &[PATH_OF_TIMES]),
];
