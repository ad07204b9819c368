//! The two tables, as data: one for the client, one for the stub.
//!
//! The client's table refuses: what it does not name is allowed, up to the last number reviewed. The
//! boundary is made of namespaces, Landlock and empty capability sets; the table takes away the calls that
//! have led out of such boundaries, and the ones that would make evidence incomplete. The stub's table
//! allows: what it does not name is refused, since the stub's needs are known.

use std::borrow::Cow;

use nix::errno::Errno;

use super::{Action, Filter, Rule, Test};

/// `file_setattr`, Linux 6.17: every call up to this number was looked at.
pub(super) const LAST_REVIEWED: libc::c_long = 469;

/// linux/syscall numbers that libc does not name yet; alike on every architecture.
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;
const SYS_SETXATTRAT: libc::c_long = 463;
pub(crate) const SYS_FCHMODAT2: libc::c_long = 452;

/// linux/ioprio.h and linux/in6.h.
const IOPRIO_WHO_USER: i32 = 3;
const IPV6_2292PKTOPTIONS: i32 = 6;

pub(super) const fn refuse(call: libc::c_long, errno: Errno) -> Rule {
    Rule {
        call,
        when: &[],
        action: Action::Refuse(errno),
    }
}

pub(super) const fn refuse_if(call: libc::c_long, when: &'static [Test], errno: Errno) -> Rule {
    Rule {
        call,
        when,
        action: Action::Refuse(errno),
    }
}

const fn skip_if(call: libc::c_long, when: &'static [Test]) -> Rule {
    Rule {
        call,
        when,
        action: Action::Skip,
    }
}

const fn allow(call: libc::c_long) -> Rule {
    Rule {
        call,
        when: &[],
        action: Action::Allow,
    }
}

const fn allow_if(call: libc::c_long, when: &'static [Test]) -> Rule {
    Rule {
        call,
        when,
        action: Action::Allow,
    }
}

pub(super) const fn notify(call: libc::c_long) -> Rule {
    Rule {
        call,
        when: &[],
        action: Action::Notify,
    }
}

pub(super) const fn notify_if(call: libc::c_long, when: &'static [Test]) -> Rule {
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

/// CLONE_NEW* bits of clone(2); CLONE_NEWTIME is a signal number there and only means anything to clone3.
const NEW_NAMESPACE: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// What the client may not call.
pub(crate) const CLIENT: Filter = Filter {
    otherwise: Action::Allow,
    rules: Cow::Borrowed(&[
        // Where the client goes, and what it starts: the supervisor records it, and answers. A message without
        // an address goes where its socket is connected to, which was recorded then.
        notify(libc::SYS_socket),
        notify(libc::SYS_connect),
        notify(libc::SYS_bind),
        notify(libc::SYS_listen),
        notify_if(libc::SYS_sendto, &[Test::NotNull { argument: 4 }]),
        notify(libc::SYS_sendmsg),
        notify(libc::SYS_sendmmsg),
        notify(libc::SYS_execve),
        notify(libc::SYS_execveat),
        // A process that is not dumpable cannot be read: the supervisor only says that it was done.
        notify_if(libc::SYS_prctl, &[is(0, libc::PR_SET_DUMPABLE)]),
        allow_if(libc::SYS_socketpair, &[is(0, libc::AF_UNIX)]),
        refuse(libc::SYS_socketpair, Errno::EAFNOSUPPORT),
        // A ring makes calls that no filter sees. ENOSYS: runtimes fall back, EPERM kills some.
        notify(libc::SYS_io_uring_setup),
        refuse(libc::SYS_io_uring_enter, Errno::ENOSYS),
        refuse(libc::SYS_io_uring_register, Errno::ENOSYS),
        // A namespace of one's own gives back every capability inside it. clone3 passes its flags in
        // memory, where a filter cannot read; ENOSYS makes every libc fall back to clone.
        refuse_if(
            libc::SYS_clone,
            &[Test::AnyOf {
                argument: 0,
                mask: NEW_NAMESPACE,
            }],
            Errno::EPERM,
        ),
        refuse(libc::SYS_clone3, Errno::ENOSYS),
        refuse(libc::SYS_unshare, Errno::EPERM),
        refuse(libc::SYS_setns, Errno::EPERM),
        // Mounts, old and new interface.
        refuse(libc::SYS_mount, Errno::EPERM),
        refuse(libc::SYS_umount2, Errno::EPERM),
        refuse(libc::SYS_pivot_root, Errno::EPERM),
        refuse(libc::SYS_chroot, Errno::EPERM),
        refuse(libc::SYS_open_tree, Errno::EPERM),
        refuse(SYS_OPEN_TREE_ATTR, Errno::EPERM),
        refuse(libc::SYS_move_mount, Errno::EPERM),
        refuse(libc::SYS_fsopen, Errno::EPERM),
        refuse(libc::SYS_fsconfig, Errno::EPERM),
        refuse(libc::SYS_fsmount, Errno::EPERM),
        refuse(libc::SYS_fspick, Errno::EPERM),
        refuse(libc::SYS_mount_setattr, Errno::EPERM),
        // Other processes' memory and descriptors.
        refuse(libc::SYS_ptrace, Errno::EPERM),
        refuse(libc::SYS_process_vm_readv, Errno::EPERM),
        refuse(libc::SYS_process_vm_writev, Errno::EPERM),
        refuse(libc::SYS_pidfd_getfd, Errno::EPERM),
        refuse(libc::SYS_kcmp, Errno::EPERM),
        // A limit of init's would blind it or end it, and the kernel asks for no more than the same ids:
        // without descriptors init listed no survivor. Own limits are named by 0, as every libc does.
        refuse_if(
            libc::SYS_prlimit64,
            &[Test::AnyOf {
                argument: 0,
                mask: u32::MAX,
            }],
            Errno::EPERM,
        ),
        // The limit for cores stays as it was set: at 0 a crash would start the host's program for cores.
        // Success, because many programs forbid their own cores and end where they cannot.
        skip_if(
            libc::SYS_prlimit64,
            &[
                is(1, libc::RLIMIT_CORE as i32),
                Test::NotNull { argument: 2 },
            ],
        ),
        skip_if(libc::SYS_setrlimit, &[is(0, libc::RLIMIT_CORE as i32)]),
        // Large parts of the kernel that no client needs and many faults were found in.
        refuse(libc::SYS_bpf, Errno::EPERM),
        refuse(libc::SYS_perf_event_open, Errno::EPERM),
        refuse(libc::SYS_userfaultfd, Errno::EPERM),
        refuse(libc::SYS_fanotify_init, Errno::EPERM),
        refuse(libc::SYS_quotactl, Errno::EPERM),
        refuse(libc::SYS_quotactl_fd, Errno::EPERM),
        // Keyrings are bound to no namespace of ours.
        refuse(libc::SYS_add_key, Errno::EPERM),
        refuse(libc::SYS_request_key, Errno::EPERM),
        refuse(libc::SYS_keyctl, Errno::EPERM),
        // Files by handle go round paths, and so round mounts.
        refuse(libc::SYS_name_to_handle_at, Errno::EPERM),
        refuse(libc::SYS_open_by_handle_at, Errno::EPERM),
        // A source route leads a packet on from the address that the supervisor has seen.
        refuse_if(
            libc::SYS_setsockopt,
            &[is(1, libc::IPPROTO_IP), is(2, libc::IP_OPTIONS)],
            Errno::EPERM,
        ),
        refuse_if(
            libc::SYS_setsockopt,
            &[is(1, libc::IPPROTO_IPV6), is(2, libc::IPV6_RTHDR)],
            Errno::EPERM,
        ),
        // Attributes beside a file's content: nobody would look there for what the client left.
        refuse(libc::SYS_setxattr, Errno::EOPNOTSUPP),
        refuse(libc::SYS_lsetxattr, Errno::EOPNOTSUPP),
        refuse(libc::SYS_fsetxattr, Errno::EOPNOTSUPP),
        refuse(SYS_SETXATTRAT, Errno::EOPNOTSUPP),
        refuse_if(
            libc::SYS_setsockopt,
            &[is(1, libc::IPPROTO_IPV6), is(2, IPV6_2292PKTOPTIONS)],
            Errno::EPERM,
        ),
        // Init has the client's ids: what could slow it down could make a time-out look like a lost init.
        refuse_if(
            libc::SYS_setpriority,
            &[is(0, libc::PRIO_USER as i32)],
            Errno::EPERM,
        ),
        refuse_if(libc::SYS_setpriority, &[is(1, 1)], Errno::EPERM),
        refuse_if(libc::SYS_sched_setscheduler, &[is(0, 1)], Errno::EPERM),
        refuse_if(libc::SYS_sched_setparam, &[is(0, 1)], Errno::EPERM),
        refuse_if(libc::SYS_sched_setattr, &[is(0, 1)], Errno::EPERM),
        refuse_if(libc::SYS_sched_setaffinity, &[is(0, 1)], Errno::EPERM),
        refuse_if(
            libc::SYS_ioprio_set,
            &[is(0, IOPRIO_WHO_USER)],
            Errno::EPERM,
        ),
        refuse_if(libc::SYS_ioprio_set, &[is(1, 1)], Errno::EPERM),
        // A listener of the client's own would answer its calls in place of the supervisor. The kernel refuses a
        // second one today, with this errno.
        refuse_if(
            libc::SYS_seccomp,
            &[Test::AnyOf {
                argument: 1,
                mask: libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as u32,
            }],
            Errno::EBUSY,
        ),
        // Input pushed into a terminal is typed by whoever owns it (CVE-2017-5226).
        refuse_if(
            libc::SYS_ioctl,
            &[is(1, libc::TIOCSTI as i32)],
            Errno::EPERM,
        ),
        refuse_if(
            libc::SYS_ioctl,
            &[is(1, libc::TIOCLINUX as i32)],
            Errno::EPERM,
        ),
        // The machine itself; all of it needs a capability as well.
        refuse(libc::SYS_syslog, Errno::EPERM),
        refuse(libc::SYS_acct, Errno::EPERM),
        refuse(libc::SYS_reboot, Errno::EPERM),
        refuse(libc::SYS_swapon, Errno::EPERM),
        refuse(libc::SYS_swapoff, Errno::EPERM),
        refuse(libc::SYS_init_module, Errno::EPERM),
        refuse(libc::SYS_finit_module, Errno::EPERM),
        refuse(libc::SYS_delete_module, Errno::EPERM),
        refuse(libc::SYS_kexec_load, Errno::EPERM),
        #[cfg(target_arch = "x86_64")]
        refuse(libc::SYS_kexec_file_load, Errno::EPERM),
        #[cfg(target_arch = "x86_64")]
        refuse(libc::SYS_iopl, Errno::EPERM),
        #[cfg(target_arch = "x86_64")]
        refuse(libc::SYS_ioperm, Errno::EPERM),
    ]),
};

/// What the stub may call: an event loop over sockets that it holds already, memory, time, its own end.
pub(crate) const STUB: Filter = Filter {
    otherwise: Action::Refuse(Errno::EPERM),
    rules: Cow::Borrowed(&[
        // Its connections and its journal.
        allow(libc::SYS_accept4),
        allow(libc::SYS_read),
        allow(libc::SYS_readv),
        allow(libc::SYS_recvfrom),
        allow(libc::SYS_recvmsg),
        allow(libc::SYS_write),
        allow(libc::SYS_writev),
        allow(libc::SYS_sendto),
        allow(libc::SYS_sendmsg),
        allow(libc::SYS_shutdown),
        allow(libc::SYS_close),
        allow(libc::SYS_getsockname),
        allow(libc::SYS_getpeername),
        allow(libc::SYS_getsockopt),
        allow(libc::SYS_setsockopt),
        allow(libc::SYS_fcntl),
        allow_if(libc::SYS_ioctl, &[is(1, libc::FIONREAD as i32)]),
        allow_if(libc::SYS_ioctl, &[is(1, libc::FIONBIO as i32)]),
        // Its event loop.
        allow(libc::SYS_epoll_ctl),
        #[cfg(target_arch = "x86_64")]
        allow(libc::SYS_epoll_wait),
        allow(libc::SYS_epoll_pwait),
        #[cfg(target_arch = "x86_64")]
        allow(libc::SYS_poll),
        allow(libc::SYS_ppoll),
        allow(libc::SYS_futex),
        // Time and chance.
        allow(libc::SYS_clock_gettime),
        allow(libc::SYS_clock_nanosleep),
        allow(libc::SYS_nanosleep),
        allow(libc::SYS_gettimeofday),
        allow(libc::SYS_getrandom),
        // Memory.
        allow(libc::SYS_brk),
        allow(libc::SYS_mmap),
        allow(libc::SYS_munmap),
        allow(libc::SYS_mremap),
        allow(libc::SYS_mprotect),
        allow(libc::SYS_madvise),
        // Itself.
        allow(libc::SYS_getpid),
        allow(libc::SYS_gettid),
        allow(libc::SYS_sched_yield),
        allow(libc::SYS_sched_getaffinity),
        allow(libc::SYS_sigaltstack),
        allow(libc::SYS_rt_sigaction),
        allow(libc::SYS_rt_sigprocmask),
        allow(libc::SYS_rt_sigreturn),
        allow(libc::SYS_restart_syscall),
        allow(libc::SYS_exit),
        allow(libc::SYS_exit_group),
    ]),
};
