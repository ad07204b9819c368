//! Rules for tier `inherited`, where the client shares the container's namespaces, as data.

use nix::errno::Errno;

use super::system_call::SystemCall::*;
use super::table::{allow_if, is, notify, notify_if, refuse, refuse_if};
use super::{Rule, Test};

const fn any_bit(argument: u8, bits: i32) -> Test {
    Test::AnyOf {
        argument,
        mask: bits as u32,
    }
}

/// Tests for a process id other than 0, the caller.
const fn other_process(argument: u8) -> Test {
    Test::AnyOf {
        argument,
        mask: u32::MAX,
    }
}

/// Rules before the client's table.
pub(super) const BEFORE: &[Rule] = &[
    // Landlock checks connect(2), but not a connection by TCP Fast Open. The supervisor refuses and records that, even
    // without an address. sendmsg(2) and sendmmsg(2) are always notified.
    notify_if(SYS_sendto, &[any_bit(3, libc::MSG_FASTOPEN)]),
    // Landlock has no right for mode, owner and times, and the client's user owns files of the container. The
    // supervisor itself changes mode and times of files in the client's writable directories.
    notify(SYS_chmod),
    notify(SYS_fchmod),
    notify(SYS_fchmodat),
    notify(SYS_fchmodat2),
    notify(SYS_utimensat),
    notify(SYS_futimesat),
    notify(SYS_utimes),
    notify(SYS_utime),
    notify(SYS_chown),
    notify(SYS_lchown),
    notify(SYS_fchown),
    notify(SYS_fchownat),
    refuse(SYS_removexattr, Errno::EPERM),
    refuse(SYS_lremovexattr, Errno::EPERM),
    refuse(SYS_fremovexattr, Errno::EPERM),
    refuse(SYS_removexattrat, Errno::EPERM),
    // System V and POSIX IPC objects of the container.
    refuse(SYS_shmget, Errno::EPERM),
    refuse(SYS_shmat, Errno::EPERM),
    refuse(SYS_shmctl, Errno::EPERM),
    refuse(SYS_semget, Errno::EPERM),
    refuse(SYS_semop, Errno::EPERM),
    refuse(SYS_semtimedop, Errno::EPERM),
    refuse(SYS_semctl, Errno::EPERM),
    refuse(SYS_msgget, Errno::EPERM),
    refuse(SYS_msgsnd, Errno::EPERM),
    refuse(SYS_msgrcv, Errno::EPERM),
    refuse(SYS_msgctl, Errno::EPERM),
    refuse(SYS_mq_open, Errno::EPERM),
    refuse(SYS_mq_unlink, Errno::EPERM),
    // Priorities of the container's processes, which have the client's user.
    refuse_if(SYS_setpriority, &[other_process(1)], Errno::EPERM),
    refuse_if(SYS_sched_setscheduler, &[other_process(0)], Errno::EPERM),
    refuse_if(SYS_sched_setparam, &[other_process(0)], Errno::EPERM),
    refuse_if(SYS_sched_setattr, &[other_process(0)], Errno::EPERM),
    refuse_if(SYS_sched_setaffinity, &[other_process(0)], Errno::EPERM),
    refuse_if(SYS_ioprio_set, &[other_process(1)], Errno::EPERM),
];

/// Rules after the client's table, which refuses clones with namespaces.
///
/// The supervisor counts processes, and refuses new ones once the client has ended. Without a pid namespace the final
/// kill would otherwise race with fork.
pub(super) const AFTER: &[Rule] = &[
    notify(SYS_fork),
    notify(SYS_vfork),
    notify(SYS_clone),
    // Only common ioctl(2) commands are allowed: others can change a file that is open for reading only. ENOTTY means
    // that the file does not support the command.
    allow_if(SYS_ioctl, &[is(1, libc::FIONREAD as i32)]),
    allow_if(SYS_ioctl, &[is(1, libc::FIONBIO as i32)]),
    allow_if(SYS_ioctl, &[is(1, libc::FIOCLEX as i32)]),
    allow_if(SYS_ioctl, &[is(1, libc::FIONCLEX as i32)]),
    allow_if(SYS_ioctl, &[is(1, libc::FIOASYNC as i32)]),
    allow_if(SYS_ioctl, &[INTERFACES]),
    refuse(SYS_ioctl, Errno::ENOTTY),
];

/// SIOC* commands of linux/sockios.h, which read network settings; changing a setting needs a capability.
const INTERFACES: Test = Test::Equals {
    argument: 1,
    mask: 0xFFFF_FF00,
    value: 0x8900,
};
