//! Rules against what outlasts the run, as data: set-id bits, where files that it makes lie on the
//! host's disk, and attributes of inodes (FS_IOC_SETFLAGS, file_setattr(2)), in both tiers.
//!
//! A set-user-ID or set-group-ID program on the host runs with the rights of its owner, whoever starts it and however
//! long after the run. The mount is nosuid inside only. So no file gets such a mode, in whatever call a mode is given.

use nix::errno::Errno;

use super::system_call::SystemCall::*;
use super::table::{refuse, refuse_if};
use super::{Rule, Test};

/// S_ISUID and S_ISGID of stat(2).
const SET_ID: u32 = 0o6000;
/// open(2) looks at a mode with O_CREAT and with O_TMPFILE, which holds O_DIRECTORY as well.
const MAKES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// BTRFS_IOCTL_MAGIC of linux/btrfs.h.
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

/// The ioctl(2) commands of one kind, which the second byte tells.
const fn group(kind: u8) -> Test {
    Test::Equals {
        argument: 1,
        mask: 0xFF00,
        value: (kind as u32) << 8,
    }
}

/// In front of the client's table.
pub(super) const NO_SET_ID: &[Rule] = &[
    refuse_if(SYS_chmod, &[set_id(1)], Errno::EPERM),
    refuse_if(SYS_fchmod, &[set_id(1)], Errno::EPERM),
    refuse_if(SYS_fchmodat, &[set_id(2)], Errno::EPERM),
    refuse_if(SYS_fchmodat2, &[set_id(2)], Errno::EPERM),
    refuse_if(SYS_open, &[makes(1), set_id(2)], Errno::EPERM),
    refuse_if(SYS_openat, &[makes(2), set_id(3)], Errno::EPERM),
    // Its mode is in memory, where a filter cannot read. Whoever calls it lives with kernels that lack it.
    refuse(SYS_openat2, Errno::ENOSYS),
    refuse_if(SYS_creat, &[set_id(1)], Errno::EPERM),
    refuse_if(SYS_mknod, &[set_id(1)], Errno::EPERM),
    refuse_if(SYS_mknodat, &[set_id(2)], Errno::EPERM),
    refuse_if(SYS_mkdir, &[set_id(1)], Errno::EPERM),
    refuse_if(SYS_mkdirat, &[set_id(2)], Errno::EPERM),
];

/// In front of the client's table as well: attributes that outlast the run, as flags, project, verity, encryption,
/// version and subvolumes. Who has a file open for reading may set some of them, and Landlock rules none.
pub(super) const NO_ATTRIBUTES: &[Rule] = &[
    refuse(SYS_file_setattr, Errno::EPERM),
    refuse_if(SYS_ioctl, &[group(b'f')], Errno::ENOTTY),
    refuse_if(SYS_ioctl, &[group(b'X')], Errno::ENOTTY),
    refuse_if(SYS_ioctl, &[group(b'v')], Errno::ENOTTY),
    refuse_if(SYS_ioctl, &[group(BTRFS)], Errno::ENOTTY),
];
