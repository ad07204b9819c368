//! System calls by name, with their number on each supported architecture.
//!
//! The numbers are reviewed data: `arch/x86/entry/syscalls/syscall_64.tbl` for x86-64, `scripts/syscall.tbl` with the
//! ABIs `common`, `64`, `renameat` and `rlimit` for arm64 (until Linux 6.10 `include/uapi/asm-generic/unistd.h`).
//! Every build compares its own column with libc's. This module knows no rule.

/// A supported architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "a build uses its own architecture, the unit tests use both"
    )
)]
pub(crate) enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    #[cfg(test)]
    pub(super) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Architecture of this build.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const OWN: Self = Self::X86_64;
    #[cfg(target_arch = "aarch64")]
    pub(crate) const OWN: Self = Self::Aarch64;

    /// Returns AUDIT_ARCH_* of linux/audit.h: the ELF machine, 64 bits, little-endian.
    pub(super) const fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xC000_003E,
            Self::Aarch64 => 0xC000_00B7,
        }
    }
}

#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    target_endian = "little"
)))]
compile_error!("no system call numbers were reviewed for this architecture");

/// Highest reviewed number: `file_setattr` of Linux 6.17. Calls from 424 on have the same number on all architectures.
pub(super) const LAST_REVIEWED: u32 = 469;

// A row has the name as libc spells it, the number on x86-64, and the number on arm64; `-` for a missing call.
macro_rules! system_calls {
    (
        named_by_libc { $($name:ident $x86_64:tt $aarch64:tt,)* }
        too_new_for_libc { $($new:ident $new_x86_64:tt $new_aarch64:tt,)* }
    ) => {
        /// A system call that a rule can name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(non_camel_case_types, reason = "libc's spelling")]
        pub enum SystemCall {
            $(
                #[doc = concat!("The call `", stringify!($name), "`.")]
                $name,
            )*
            $(
                #[doc = concat!("The call `", stringify!($new), "`.")]
                $new,
            )*
        }

        impl SystemCall {
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)* $(Self::$new,)*];

            /// Returns the name of the manual page in section 2.
            pub(crate) fn name(self) -> &'static str {
                let name = match self {
                    $(Self::$name => stringify!($name),)*
                    $(Self::$new => stringify!($new),)*
                };
                name.trim_start_matches("SYS_")
            }

            /// Returns the number on `architecture`; `None` if the architecture lacks the call.
            pub(crate) const fn number(self, architecture: Architecture) -> Option<u32> {
                let [x86_64, aarch64] = match self {
                    $(Self::$name => [number!($x86_64), number!($aarch64)],)*
                    $(Self::$new => [number!($new_x86_64), number!($new_aarch64)],)*
                };
                match architecture {
                    Architecture::X86_64 => x86_64,
                    Architecture::Aarch64 => aarch64,
                }
            }
        }

        // A number that differs from libc's does not compile. A cross build checks the other column.
        #[cfg(target_arch = "x86_64")]
        const _: () = { $(compare!($name $x86_64);)* };
        #[cfg(target_arch = "aarch64")]
        const _: () = { $(compare!($name $aarch64);)* };
    };
}

impl SystemCall {
    /// Finds a call by its number on the architecture of this build.
    pub(crate) fn numbered(number: libc::c_long) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        let has_number = |call: &Self| call.number(Architecture::OWN) == Some(number);
        Self::ALL.iter().copied().find(has_number)
    }
}

macro_rules! number {
    (-) => {
        None
    };
    ($number:literal) => {
        Some($number)
    };
}

macro_rules! compare {
    ($name:ident -) => {};
    ($name:ident $number:literal) => {
        assert!(libc::$name == $number, stringify!($name));
    };
}

system_calls! {
    named_by_libc {
        SYS_accept4            288  242,
        SYS_access              21    -,
        SYS_acct               163   89,
        SYS_add_key            248  217,
        SYS_bind                49  200,
        SYS_bpf                321  280,
        SYS_brk                 12  214,
        SYS_chdir               80   49,
        SYS_chmod               90    -,
        SYS_chown               92    -,
        SYS_chroot             161   51,
        SYS_clock_gettime      228  113,
        SYS_clock_nanosleep    230  115,
        SYS_clone               56  220,
        SYS_clone3             435  435,
        SYS_close                3   57,
        SYS_connect             42  203,
        SYS_creat               85    -,
        SYS_delete_module      176  106,
        SYS_epoll_ctl          233   21,
        SYS_epoll_pwait        281   22,
        SYS_epoll_wait         232    -,
        SYS_execve              59  221,
        SYS_execveat           322  281,
        SYS_exit                60   93,
        SYS_exit_group         231   94,
        SYS_faccessat          269   48,
        SYS_faccessat2         439  439,
        SYS_fanotify_init      300  262,
        SYS_fchmod              91   52,
        SYS_fchmodat           268   53,
        SYS_fchown              93   55,
        SYS_fchownat           260   54,
        SYS_fcntl               72   25,
        SYS_finit_module       313  273,
        SYS_fork                57    -,
        SYS_fremovexattr       199   16,
        SYS_fsconfig           431  431,
        SYS_fsetxattr          190    7,
        SYS_fsmount            432  432,
        SYS_fsopen             430  430,
        SYS_fspick             433  433,
        SYS_futex              202   98,
        SYS_futimesat          261    -,
        SYS_getpeername         52  205,
        SYS_getpid              39  172,
        SYS_getrandom          318  278,
        SYS_getsockname         51  204,
        SYS_getsockopt          55  209,
        SYS_gettid             186  178,
        SYS_gettimeofday        96  169,
        SYS_init_module        175  105,
        SYS_io_uring_enter     426  426,
        SYS_io_uring_register  427  427,
        SYS_io_uring_setup     425  425,
        SYS_ioctl               16   29,
        SYS_ioperm             173    -,
        SYS_iopl               172    -,
        SYS_ioprio_set         251   30,
        SYS_kcmp               312  272,
        SYS_kexec_file_load    320  294,
        SYS_kexec_load         246  104,
        SYS_keyctl             250  219,
        SYS_kill                62  129,
        SYS_landlock_add_rule  445  445,
        SYS_landlock_restrict_self 446 446,
        SYS_lchown              94    -,
        SYS_link                86    -,
        SYS_linkat             265   37,
        SYS_listen              50  201,
        SYS_lremovexattr       198   15,
        SYS_lsetxattr          189    6,
        SYS_lstat                6    -,
        SYS_madvise             28  233,
        SYS_memfd_create       319  279,
        SYS_memfd_secret       447  447,
        SYS_mkdir               83    -,
        SYS_mkdirat            258   34,
        SYS_mknod              133    -,
        SYS_mknodat            259   33,
        SYS_mmap                 9  222,
        SYS_mount              165   40,
        SYS_mount_setattr      442  442,
        SYS_move_mount         429  429,
        SYS_mprotect            10  226,
        SYS_mq_open            240  180,
        SYS_mq_unlink          241  181,
        SYS_mremap              25  216,
        SYS_msgctl              71  187,
        SYS_msgget              68  186,
        SYS_msgrcv              70  188,
        SYS_msgsnd              69  189,
        SYS_munmap              11  215,
        SYS_name_to_handle_at  303  264,
        SYS_nanosleep           35  101,
        SYS_newfstatat         262   79,
        SYS_open                 2    -,
        SYS_open_by_handle_at  304  265,
        SYS_open_tree          428  428,
        SYS_openat             257   56,
        SYS_openat2            437  437,
        SYS_perf_event_open    298  241,
        SYS_pidfd_getfd        438  438,
        SYS_pipe                22    -,
        SYS_pipe2              293   59,
        SYS_pivot_root         155   41,
        SYS_poll                 7    -,
        SYS_ppoll              271   73,
        SYS_prctl              157  167,
        SYS_prlimit64          302  261,
        SYS_process_vm_readv   310  270,
        SYS_process_vm_writev  311  271,
        SYS_pread64             17   67,
        SYS_ptrace             101  117,
        SYS_quotactl           179   60,
        SYS_quotactl_fd        443  443,
        SYS_read                 0   63,
        SYS_readlink            89    -,
        SYS_readlinkat         267   78,
        SYS_readv               19   65,
        SYS_reboot             169  142,
        SYS_recvfrom            45  207,
        SYS_recvmsg             47  212,
        SYS_removexattr        197   14,
        SYS_rename              82    -,
        SYS_renameat           264   38,
        SYS_renameat2          316  276,
        SYS_request_key        249  218,
        SYS_restart_syscall    219  128,
        SYS_rmdir               84    -,
        SYS_rt_sigaction        13  134,
        SYS_rt_sigprocmask      14  135,
        SYS_rt_sigreturn        15  139,
        SYS_sched_getaffinity  204  123,
        SYS_sched_setaffinity  203  122,
        SYS_sched_setattr      314  274,
        SYS_sched_setparam     142  118,
        SYS_sched_setscheduler 144  119,
        SYS_sched_yield         24  124,
        SYS_seccomp            317  277,
        SYS_semctl              66  191,
        SYS_semget              64  190,
        SYS_semop               65  193,
        SYS_semtimedop         220  192,
        SYS_sendmmsg           307  269,
        SYS_sendmsg             46  211,
        SYS_sendto              44  206,
        SYS_setns              308  268,
        SYS_setpriority        141  140,
        SYS_setrlimit          160  164,
        SYS_setsockopt          54  208,
        SYS_setxattr           188    5,
        SYS_shmat               30  196,
        SYS_shmctl              31  195,
        SYS_shmget              29  194,
        SYS_shutdown            48  210,
        SYS_sigaltstack        131  132,
        SYS_socket              41  198,
        SYS_socketpair          53  199,
        SYS_stat                 4    -,
        SYS_statx              332  291,
        SYS_swapoff            168  225,
        SYS_swapon             167  224,
        SYS_symlink             88    -,
        SYS_symlinkat          266   36,
        SYS_syslog             103  116,
        SYS_truncate            76   45,
        SYS_umount2            166   39,
        SYS_unlink              87    -,
        SYS_unlinkat           263   35,
        SYS_unshare            272   97,
        SYS_userfaultfd        323  282,
        SYS_utime              132    -,
        SYS_utimensat          280   88,
        SYS_utimes             235    -,
        SYS_vfork               58    -,
        SYS_vmsplice           278   75,
        SYS_write                1   64,
        SYS_writev              20   66,
    }
    too_new_for_libc {
        SYS_fchmodat2          452  452,
        SYS_file_setattr       469  469,
        SYS_open_tree_attr     467  467,
        SYS_removexattrat      466  466,
        SYS_setxattrat         463  463,
    }
}
