//! What the client's table lacks where something of the host is shared with the client, as data.

use nix::errno::Errno;

use super::table::{SYS_FCHMODAT2, is, notify, refuse, refuse_if};
use super::{Rule, Test};

/// linux/syscall number that libc does not name yet.
const SYS_REMOVEXATTRAT: libc::c_long = 466;

/// The low four bits of a socket's type are its type (socket(2)).
const fn kind(argument: u8, kind: i32) -> Test {
    Test::Equals {
        argument,
        mask: 0xF,
        value: kind as u32,
    }
}

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

/// Where no unix socket may be made. Of a pair of datagram sockets each can send to any other by its path, as long
/// as the path says, and paths are memory. A raw one is a datagram socket too (unix_create in net/unix/af_unix.c);
/// the others stay connected to each other.
pub(super) const NO_UNIX: &[Rule] = &[
    refuse_if(
        libc::SYS_socketpair,
        &[is(0, libc::AF_UNIX), kind(1, libc::SOCK_DGRAM)],
        Errno::EACCES,
    ),
    refuse_if(
        libc::SYS_socketpair,
        &[is(0, libc::AF_UNIX), kind(1, libc::SOCK_RAW)],
        Errno::EACCES,
    ),
];

/// Where no namespace is the client's own, in front of its table.
pub(super) const FRONT: &[Rule] = &[
    // Landlock sees a connection that connect(2) opens, and not one that a message does.
    refuse_if(
        libc::SYS_sendto,
        &[any_bit(3, libc::MSG_FASTOPEN)],
        Errno::EOPNOTSUPP,
    ),
    refuse_if(
        libc::SYS_sendmsg,
        &[any_bit(2, libc::MSG_FASTOPEN)],
        Errno::EOPNOTSUPP,
    ),
    refuse_if(
        libc::SYS_sendmmsg,
        &[any_bit(3, libc::MSG_FASTOPEN)],
        Errno::EOPNOTSUPP,
    ),
    // Landlock rules what a file holds and not what it is: the container's files are the client's user's own. The
    // supervisor changes mode and times of those in home and temporary directory itself.
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_chmod),
    notify(libc::SYS_fchmod),
    notify(libc::SYS_fchmodat),
    notify(SYS_FCHMODAT2),
    notify(libc::SYS_utimensat),
    #[cfg(target_arch = "x86_64")]
    refuse(libc::SYS_chown, Errno::EPERM),
    #[cfg(target_arch = "x86_64")]
    refuse(libc::SYS_lchown, Errno::EPERM),
    refuse(libc::SYS_fchown, Errno::EPERM),
    refuse(libc::SYS_fchownat, Errno::EPERM),
    #[cfg(target_arch = "x86_64")]
    refuse(libc::SYS_utime, Errno::EPERM),
    #[cfg(target_arch = "x86_64")]
    refuse(libc::SYS_utimes, Errno::EPERM),
    #[cfg(target_arch = "x86_64")]
    refuse(libc::SYS_futimesat, Errno::EPERM),
    refuse(libc::SYS_removexattr, Errno::EPERM),
    refuse(libc::SYS_lremovexattr, Errno::EPERM),
    refuse(libc::SYS_fremovexattr, Errno::EPERM),
    refuse(SYS_REMOVEXATTRAT, Errno::EPERM),
    // The container's memory segments, semaphores and queues.
    refuse(libc::SYS_shmget, Errno::EPERM),
    refuse(libc::SYS_shmat, Errno::EPERM),
    refuse(libc::SYS_shmctl, Errno::EPERM),
    refuse(libc::SYS_semget, Errno::EPERM),
    refuse(libc::SYS_semop, Errno::EPERM),
    refuse(libc::SYS_semtimedop, Errno::EPERM),
    refuse(libc::SYS_semctl, Errno::EPERM),
    refuse(libc::SYS_msgget, Errno::EPERM),
    refuse(libc::SYS_msgsnd, Errno::EPERM),
    refuse(libc::SYS_msgrcv, Errno::EPERM),
    refuse(libc::SYS_msgctl, Errno::EPERM),
    refuse(libc::SYS_mq_open, Errno::EPERM),
    refuse(libc::SYS_mq_unlink, Errno::EPERM),
    // The container's processes are of the client's user: their pace is theirs.
    refuse_if(libc::SYS_setpriority, &[another(1)], Errno::EPERM),
    refuse_if(libc::SYS_sched_setscheduler, &[another(0)], Errno::EPERM),
    refuse_if(libc::SYS_sched_setparam, &[another(0)], Errno::EPERM),
    refuse_if(libc::SYS_sched_setattr, &[another(0)], Errno::EPERM),
    refuse_if(libc::SYS_sched_setaffinity, &[another(0)], Errno::EPERM),
    refuse_if(libc::SYS_ioprio_set, &[another(1)], Errno::EPERM),
];

/// The same, behind its table, which refuses clones with namespaces: the supervisor counts what is made, and lets
/// nothing be made once the client has ended. Without a pid namespace whoever ends processes would otherwise run after
/// new ones.
pub(super) const BEHIND: &[Rule] = &[
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_fork),
    #[cfg(target_arch = "x86_64")]
    notify(libc::SYS_vfork),
    notify(libc::SYS_clone),
];
