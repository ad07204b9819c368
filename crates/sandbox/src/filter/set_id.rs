//! Rules against effects that outlast the run, as data: set-id bits on the host's disk, and inode attributes
//! (FS_IOC_SETFLAGS, file_setattr(2)) in both tiers.
//!
//! A set-user-ID or set-group-ID program on the host runs with the rights of its owner, for any user and long after the
//! run. The mount is nosuid only inside. So the filter refuses such a mode in every call that sets a mode.

use nix::errno::Errno;

use super::system_call::SystemCall::*;
use super::table::{refuse, refuse_if};
use super::{Rule, Test};

/// S_ISUID and S_ISGID of stat(2).
const SET_ID: u32 = 0o6000;
/// Flags of open(2) that use the mode: O_CREAT and O_TMPFILE, which includes O_DIRECTORY.
const MAKES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// Type byte of Btrfs commands, BTRFS_IOCTL_MAGIC of linux/btrfs.h.
const BTRFS: u8 = 0x94;

const fn set_id(argument: u8) -> Test {
    Test::AnyOf {
        argument,
        mask: SET_ID,
    }
}

const fn makes(argument: u8) -> Test {
    Test::AnyOf {
        argument,
        mask: MAKES,
    }
}

/// Tests for ioctl(2) commands of one type, the second byte of the command.
const fn group(kind: u8) -> Test {
    Test::Equals {
        argument: 1,
        mask: 0xFF00,
        value: (kind as u32) << 8,
    }
}

/// Rules before the client's table: no set-id bits.
pub(super) const NO_SET_ID: &[Rule] = &[
    refuse_if(SYS_chmod, &[set_id(1)], Errno::EPERM),
    refuse_if(SYS_fchmod, &[set_id(1)], Errno::EPERM),
    refuse_if(SYS_fchmodat, &[set_id(2)], Errno::EPERM),
    refuse_if(SYS_fchmodat2, &[set_id(2)], Errno::EPERM),
    refuse_if(SYS_open, &[makes(1), set_id(2)], Errno::EPERM),
    refuse_if(SYS_openat, &[makes(2), set_id(3)], Errno::EPERM),
    // openat2 passes the mode in memory, which seccomp cannot read. ENOSYS makes callers fall back, as on old kernels.
    refuse(SYS_openat2, Errno::ENOSYS),
    refuse_if(SYS_creat, &[set_id(1)], Errno::EPERM),
    refuse_if(SYS_mknod, &[set_id(1)], Errno::EPERM),
    refuse_if(SYS_mknodat, &[set_id(2)], Errno::EPERM),
    refuse_if(SYS_mkdir, &[set_id(1)], Errno::EPERM),
    refuse_if(SYS_mkdirat, &[set_id(2)], Errno::EPERM),
];

/// Rules before the client's table: no inode attributes (flags, project, verity, encryption, version, subvolumes).
///
/// A file that is open for reading is enough to set some of them, and Landlock has no right for them.
pub(super) const NO_ATTRIBUTES: &[Rule] = &[
    refuse(SYS_file_setattr, Errno::EPERM),
    refuse_if(SYS_ioctl, &[group(b'f')], Errno::ENOTTY),
    refuse_if(SYS_ioctl, &[group(b'X')], Errno::ENOTTY),
    refuse_if(SYS_ioctl, &[group(b'v')], Errno::ENOTTY),
    refuse_if(SYS_ioctl, &[group(BTRFS)], Errno::ENOTTY),
];
