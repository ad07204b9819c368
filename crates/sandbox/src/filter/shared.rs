//! What the client's table lacks where something of the host is shared with the client, as data.

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

/// Any other process than the caller, which is 0.
const fn another(argument: u8) -> Test {
    Test::AnyOf {
        argument,
        mask: u32::MAX,
    }
}

/// Where no namespace is the client's own, in front of its table.
pub(super) const FRONT: &[Rule] = &[
    // Landlock sees a connection that connect(2) opens, and not one that a message does. The supervisor refuses and
    // records it, also without an address; sendmsg(2) and sendmmsg(2) it is always asked.
    notify_if(SYS_sendto, &[any_bit(3, libc::MSG_FASTOPEN)]),
    // Landlock rules what a file holds and not what it is: the container's files are the client's user's own. The
    // supervisor changes mode and times of those in home and temporary directory itself.
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
    // The container's memory segments, semaphores and queues.
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
    // The container's processes are of the client's user: their pace is theirs.
    refuse_if(SYS_setpriority, &[another(1)], Errno::EPERM),
    refuse_if(SYS_sched_setscheduler, &[another(0)], Errno::EPERM),
    refuse_if(SYS_sched_setparam, &[another(0)], Errno::EPERM),
    refuse_if(SYS_sched_setattr, &[another(0)], Errno::EPERM),
    refuse_if(SYS_sched_setaffinity, &[another(0)], Errno::EPERM),
    refuse_if(SYS_ioprio_set, &[another(1)], Errno::EPERM),
];

/// The same, behind its table, which refuses clones with namespaces: the supervisor counts what is made, and lets
/// nothing be made once the client has ended. Without a pid namespace whoever ends processes would otherwise run after
/// new ones.
pub(super) const BEHIND: &[Rule] = &[
    notify(SYS_fork),
    notify(SYS_vfork),
    notify(SYS_clone),
    // Of ioctl(2) what every program asks of its descriptors and sockets; other commands change what they are called
    // on, also where that was opened for reading. ENOTTY: there is no such command for this file.
    allow_if(SYS_ioctl, &[is(1, libc::FIONREAD as i32)]),
    allow_if(SYS_ioctl, &[is(1, libc::FIONBIO as i32)]),
    allow_if(SYS_ioctl, &[is(1, libc::FIOCLEX as i32)]),
    allow_if(SYS_ioctl, &[is(1, libc::FIONCLEX as i32)]),
    allow_if(SYS_ioctl, &[is(1, libc::FIOASYNC as i32)]),
    allow_if(SYS_ioctl, &[INTERFACES]),
    refuse(SYS_ioctl, Errno::ENOTTY),
];

/// SIOC* of linux/sockios.h, which read of a network; whatever changes one takes a capability.
const INTERFACES: Test = Test::Equals {
    argument: 1,
    mask: 0xFFFF_FF00,
    value: 0x8900,
};
