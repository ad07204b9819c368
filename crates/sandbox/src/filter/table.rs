//! The tables of the client and of the stub, as data.
//!
//! The client's table is a deny list: other calls up to the last reviewed number are allowed. Namespaces, Landlock and
//! empty capability sets are the boundary. The table refuses calls that have led out of such boundaries, and calls that
//! would make evidence incomplete. The stub's table is an allow list, because the needs of the stub are known.

use std::borrow::Cow;

use nix::errno::Errno;

use super::system_call::SystemCall::{self, *};
use super::{Action, Filter, Rule, Test};

/// Target of ioprio_set(2): all processes of a user (linux/ioprio.h).
const IOPRIO_WHO_USER: i32 = 3;

pub(super) const fn refuse(call: SystemCall, errno: Errno) -> Rule {
    Rule {
        call,
        when: &[],
        action: Action::Refuse(errno),
    }
}

pub(super) const fn refuse_if(call: SystemCall, when: &'static [Test], errno: Errno) -> Rule {
    Rule {
        call,
        when,
        action: Action::Refuse(errno),
    }
}

pub(super) const fn skip_if(call: SystemCall, when: &'static [Test]) -> Rule {
    Rule {
        call,
        when,
        action: Action::Skip,
    }
}

const fn allow(call: SystemCall) -> Rule {
    Rule {
        call,
        when: &[],
        action: Action::Allow,
    }
}

pub(super) const fn allow_if(call: SystemCall, when: &'static [Test]) -> Rule {
    Rule {
        call,
        when,
        action: Action::Allow,
    }
}

pub(super) const fn notify(call: SystemCall) -> Rule {
    Rule {
        call,
        when: &[],
        action: Action::Notify,
    }
}

pub(super) const fn notify_if(call: SystemCall, when: &'static [Test]) -> Rule {
    Rule {
        call,
        when,
        action: Action::Notify,
    }
}

pub(super) const fn is(argument: u8, value: i32) -> Test {
    Test::Equals {
        argument,
        mask: u32::MAX,
        value: value as u32,
    }
}

/// CLONE_NEW* bits of clone(2). CLONE_NEWTIME is left out: clone(2) reads that bit as part of the signal number.
const NEW_NAMESPACE: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// Tests for the mode of a FIFO.
const fn fifo(argument: u8) -> Test {
    Test::Equals {
        argument,
        mask: libc::S_IFMT,
        value: libc::S_IFIFO,
    }
}

/// Rules of the client.
pub(crate) const CLIENT: Filter = Filter {
    otherwise: Action::Allow,
    rules: Cow::Borrowed(&[
        // The supervisor records and answers connections, messages and exec. A message without an address goes to the
        // connected address, which was recorded by connect(2).
        notify(SYS_socket),
        notify(SYS_connect),
        notify(SYS_bind),
        notify(SYS_listen),
        notify_if(SYS_sendto, &[Test::NotNull { argument: 4 }]),
        // The position of an urgent byte carries information to the receiver, in addition to the bytes (tcp(7)).
        notify_if(
            SYS_sendto,
            &[Test::AnyOf {
                argument: 3,
                mask: libc::MSG_OOB as u32,
            }],
        ),
        notify(SYS_sendmsg),
        notify(SYS_sendmmsg),
        notify(SYS_execve),
        notify(SYS_execveat),
        // The supervisor cannot read a process that is not dumpable, so it skips a call that clears the flag and
        // returns success.
        notify_if(SYS_prctl, &[is(0, libc::PR_SET_DUMPABLE)]),
        notify(SYS_socketpair),
        // The supervisor bounds System V objects, whose memory counts for no process.
        notify(SYS_shmget),
        notify(SYS_semget),
        notify(SYS_msgget),
        // The supervisor bounds the number of pipes, and of FIFOs, which are pipes while open.
        notify(SYS_pipe),
        notify(SYS_pipe2),
        notify_if(SYS_mknod, &[fifo(1)]),
        notify_if(SYS_mknodat, &[fifo(2)]),
        // No limit bounds them: a mapping that grows downwards counts as stack, and secret memory is not counted.
        refuse_if(
            SYS_mmap,
            &[Test::AnyOf {
                argument: 3,
                mask: libc::MAP_GROWSDOWN as u32,
            }],
            Errno::EINVAL,
        ),
        refuse(SYS_memfd_secret, Errno::ENOSYS),
        // The supervisor bounds memory files and shared mappings, whose memory counts for no process.
        notify(SYS_memfd_create),
        notify_if(
            SYS_mmap,
            &[Test::Equals {
                argument: 3,
                mask: (libc::MAP_TYPE | libc::MAP_ANONYMOUS) as u32,
                value: (libc::MAP_SHARED | libc::MAP_ANONYMOUS) as u32,
            }],
        ),
        // The supervisor bounds Landlock rules and domains: a ruleset may have a rule for each port, and each domain
        // copies them.
        notify(SYS_landlock_add_rule),
        notify(SYS_landlock_restrict_self),
        // vmsplice can pin a whole huge page by one byte in a pipe, even after an unmap. ENOSYS makes programs fall
        // back to write(2).
        refuse(SYS_vmsplice, Errno::ENOSYS),
        // io_uring makes calls that seccomp does not see. ENOSYS makes runtimes fall back; EPERM would end some.
        notify(SYS_io_uring_setup),
        refuse(SYS_io_uring_enter, Errno::ENOSYS),
        refuse(SYS_io_uring_register, Errno::ENOSYS),
        // A new user namespace grants all capabilities inside it. The call clone3 passes its flags in memory, which
        // seccomp cannot read; ENOSYS makes every libc fall back to clone.
        refuse_if(
            SYS_clone,
            &[Test::AnyOf {
                argument: 0,
                mask: NEW_NAMESPACE,
            }],
            Errno::EPERM,
        ),
        refuse(SYS_clone3, Errno::ENOSYS),
        refuse(SYS_unshare, Errno::EPERM),
        refuse(SYS_setns, Errno::EPERM),
        // Mounts, by the old and the new interface.
        refuse(SYS_mount, Errno::EPERM),
        refuse(SYS_umount2, Errno::EPERM),
        refuse(SYS_pivot_root, Errno::EPERM),
        refuse(SYS_chroot, Errno::EPERM),
        refuse(SYS_open_tree, Errno::EPERM),
        refuse(SYS_open_tree_attr, Errno::EPERM),
        refuse(SYS_move_mount, Errno::EPERM),
        refuse(SYS_fsopen, Errno::EPERM),
        refuse(SYS_fsconfig, Errno::EPERM),
        refuse(SYS_fsmount, Errno::EPERM),
        refuse(SYS_fspick, Errno::EPERM),
        refuse(SYS_mount_setattr, Errno::EPERM),
        // Other processes' memory and descriptors.
        refuse(SYS_ptrace, Errno::EPERM),
        refuse(SYS_process_vm_readv, Errno::EPERM),
        refuse(SYS_process_vm_writev, Errno::EPERM),
        refuse(SYS_pidfd_getfd, Errno::EPERM),
        refuse(SYS_kcmp, Errno::EPERM),
        // A lowered limit could blind or end init, for example without descriptors for the list of survivors. The
        // kernel only requires equal ids for that. A process names itself by 0, as every libc does.
        refuse_if(
            SYS_prlimit64,
            &[Test::AnyOf {
                argument: 0,
                mask: u32::MAX,
            }],
            Errno::EPERM,
        ),
        // RLIMIT_CORE must not change: at 0 a crash would start the host's core program. The call returns success,
        // because many programs disable their core dumps and end if that fails.
        skip_if(
            SYS_prlimit64,
            &[
                is(1, libc::RLIMIT_CORE as i32),
                Test::NotNull { argument: 2 },
            ],
        ),
        skip_if(SYS_setrlimit, &[is(0, libc::RLIMIT_CORE as i32)]),
        // Large parts of the kernel with many known faults, which clients do not need.
        refuse(SYS_bpf, Errno::EPERM),
        refuse(SYS_perf_event_open, Errno::EPERM),
        refuse(SYS_userfaultfd, Errno::EPERM),
        refuse(SYS_fanotify_init, Errno::EPERM),
        refuse(SYS_quotactl, Errno::EPERM),
        refuse(SYS_quotactl_fd, Errno::EPERM),
        // Keyrings of the user and session, which the sandbox does not isolate.
        refuse(SYS_add_key, Errno::EPERM),
        refuse(SYS_request_key, Errno::EPERM),
        refuse(SYS_keyctl, Errno::EPERM),
        // File handles bypass paths and mounts.
        refuse(SYS_name_to_handle_at, Errno::EPERM),
        refuse(SYS_open_by_handle_at, Errno::EPERM),
        // Extended attributes could hold data that the walk of the left files does not read.
        refuse(SYS_setxattr, Errno::EOPNOTSUPP),
        refuse(SYS_lsetxattr, Errno::EOPNOTSUPP),
        refuse(SYS_fsetxattr, Errno::EOPNOTSUPP),
        refuse(SYS_setxattrat, Errno::EOPNOTSUPP),
        // Init has the client's ids. A lowered priority of init could look like a lost init at a time-out.
        refuse_if(
            SYS_setpriority,
            &[is(0, libc::PRIO_USER as i32)],
            Errno::EPERM,
        ),
        refuse_if(SYS_setpriority, &[is(1, 1)], Errno::EPERM),
        refuse_if(SYS_sched_setscheduler, &[is(0, 1)], Errno::EPERM),
        refuse_if(SYS_sched_setparam, &[is(0, 1)], Errno::EPERM),
        refuse_if(SYS_sched_setattr, &[is(0, 1)], Errno::EPERM),
        refuse_if(SYS_sched_setaffinity, &[is(0, 1)], Errno::EPERM),
        refuse_if(SYS_ioprio_set, &[is(0, IOPRIO_WHO_USER)], Errno::EPERM),
        refuse_if(SYS_ioprio_set, &[is(1, 1)], Errno::EPERM),
        // A second listener could answer calls in place of the supervisor. Current kernels refuse one with EBUSY too.
        refuse_if(
            SYS_seccomp,
            &[Test::AnyOf {
                argument: 1,
                mask: libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as u32,
            }],
            Errno::EBUSY,
        ),
        // A lease makes other processes wait at open(2), also outside of the sandbox.
        refuse_if(SYS_fcntl, &[is(1, libc::F_SETLEASE)], Errno::EACCES),
        // TIOCSTI injects input that the terminal's owner would execute (CVE-2017-5226).
        refuse_if(SYS_ioctl, &[is(1, libc::TIOCSTI as i32)], Errno::EPERM),
        refuse_if(SYS_ioctl, &[is(1, libc::TIOCLINUX as i32)], Errno::EPERM),
        // The machine itself. All these calls also need a capability.
        refuse(SYS_syslog, Errno::EPERM),
        refuse(SYS_acct, Errno::EPERM),
        refuse(SYS_reboot, Errno::EPERM),
        refuse(SYS_swapon, Errno::EPERM),
        refuse(SYS_swapoff, Errno::EPERM),
        refuse(SYS_init_module, Errno::EPERM),
        refuse(SYS_finit_module, Errno::EPERM),
        refuse(SYS_delete_module, Errno::EPERM),
        refuse(SYS_kexec_load, Errno::EPERM),
        refuse(SYS_kexec_file_load, Errno::EPERM),
        refuse(SYS_iopl, Errno::EPERM),
        refuse(SYS_ioperm, Errno::EPERM),
    ]),
};

/// Rules of the stub: an event loop over existing sockets, memory, time, and exit.
pub(crate) const STUB: Filter = Filter {
    otherwise: Action::Refuse(Errno::EPERM),
    rules: Cow::Borrowed(&[
        // Connections and the journal.
        allow(SYS_accept4),
        allow(SYS_read),
        allow(SYS_readv),
        allow(SYS_recvfrom),
        allow(SYS_recvmsg),
        allow(SYS_write),
        allow(SYS_writev),
        allow(SYS_sendto),
        allow(SYS_sendmsg),
        allow(SYS_shutdown),
        // The number of sockets, from a file that is open already.
        allow(SYS_pread64),
        allow(SYS_close),
        allow(SYS_getsockname),
        allow(SYS_getpeername),
        allow(SYS_getsockopt),
        allow(SYS_setsockopt),
        allow(SYS_fcntl),
        allow_if(SYS_ioctl, &[is(1, libc::FIONREAD as i32)]),
        allow_if(SYS_ioctl, &[is(1, libc::FIONBIO as i32)]),
        // Event loop.
        allow(SYS_epoll_ctl),
        allow(SYS_epoll_wait),
        allow(SYS_epoll_pwait),
        allow(SYS_poll),
        allow(SYS_ppoll),
        allow(SYS_futex),
        // Time and random numbers.
        allow(SYS_clock_gettime),
        allow(SYS_clock_nanosleep),
        allow(SYS_nanosleep),
        allow(SYS_gettimeofday),
        allow(SYS_getrandom),
        // Memory.
        allow(SYS_brk),
        allow(SYS_mmap),
        allow(SYS_munmap),
        allow(SYS_mremap),
        allow(SYS_mprotect),
        allow(SYS_madvise),
        // The process itself.
        allow(SYS_getpid),
        allow(SYS_gettid),
        allow(SYS_sched_yield),
        allow(SYS_sched_getaffinity),
        allow(SYS_sigaltstack),
        allow(SYS_rt_sigaction),
        allow(SYS_rt_sigprocmask),
        allow(SYS_rt_sigreturn),
        allow(SYS_restart_syscall),
        allow(SYS_exit),
        allow(SYS_exit_group),
    ]),
};
