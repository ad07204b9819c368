//! Tests of every row of every table, assembled for every architecture and run in the simulator. Tested argument values
//! are the same on all architectures.

mod additions;
mod foreign;
mod lookups;
mod socket_options;

use Architecture::{Aarch64, X86_64};

use super::simulator::{Call, Outcome, run};
use super::system_call::SystemCall::*;
use super::*;

/// Set in the number of an x32 call.
const X32_BIT: u32 = 0x4000_0000;

/// Combines each table with each architecture.
fn programs() -> impl Iterator<Item = (Filter, Architecture)> {
    let both =
        |filter: Filter| Architecture::ALL.map(|architecture| (filter.clone(), architecture));
    [CLIENT, with_lookups(), with_all(), STUB]
        .into_iter()
        .flat_map(both)
}

/// Runs `call` in the program of `filter`; `None` if `architecture` lacks the call.
fn decided(
    filter: &Filter,
    architecture: Architecture,
    call: SystemCall,
    arguments: &[u64],
) -> Option<Outcome> {
    let number = call.number(architecture)?;
    let made = Call::new(architecture.audit(), number, arguments);
    Some(run(&filter.assemble(architecture), &made))
}

fn outcome(action: Action) -> Outcome {
    match action {
        Action::Allow => Outcome::Allowed,
        Action::Refuse(errno) => Outcome::Refused(errno),
        Action::Notify => Outcome::Notified,
        Action::Skip => Outcome::Skipped,
    }
}

fn with_lookups() -> Filter {
    Additions {
        lookups: true,
        ..Additions::default()
    }
    .client_filter()
}

fn with_all() -> Filter {
    Additions {
        no_set_id: true,
        shared: true,
        lookups: true,
    }
    .client_filter()
}

/// Runs a call with the rules of tier `inherited`.
fn sharing(call: SystemCall, arguments: &[u64]) -> Outcome {
    let filter = Additions {
        no_set_id: true,
        shared: true,
        lookups: false,
    };
    everywhere(&filter.client_filter(), call, arguments)
}

/// Runs a call in the client's program on every architecture that has the call, and expects equal results.
fn client(call: SystemCall, arguments: &[u64]) -> Outcome {
    everywhere(&CLIENT, call, arguments)
}

fn everywhere(filter: &Filter, call: SystemCall, arguments: &[u64]) -> Outcome {
    let decided = |architecture| decided(filter, architecture, call, arguments);
    let mut outcomes = Architecture::ALL.into_iter().filter_map(decided);
    let first = outcomes.next().unwrap();
    assert!(outcomes.all(|other| other == first), "{call:?}");
    first
}

#[test]
fn numbers_above_the_last_reviewed_one_do_not_exist() {
    for (filter, architecture) in programs() {
        let program = filter.assemble(architecture);
        for number in [LAST_REVIEWED + 1, X32_BIT - 1, u32::MAX] {
            let call = Call::new(architecture.audit(), number, &[]);
            assert_eq!(run(&program, &call), Outcome::Refused(Errno::ENOSYS));
        }
        let last = Call::new(architecture.audit(), LAST_REVIEWED, &[]);
        let is_last = |rule: &&Rule| rule.call.number(architecture) == Some(LAST_REVIEWED);
        let ruled = filter.rules.iter().find(is_last);
        let action = ruled.map_or(filter.otherwise, |rule| rule.action);
        assert_eq!(run(&program, &last), outcome(action));
    }
}

#[test]
fn numbers_are_unique_and_reviewed() {
    for architecture in Architecture::ALL {
        let numbers = SystemCall::ALL
            .iter()
            .filter_map(|call| call.number(architecture));
        let mut numbers: Vec<u32> = numbers.collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "{architecture:?}");
        assert!(numbers.last().is_some_and(|last| *last <= LAST_REVIEWED));
    }
}

/// Since Linux 5.1 a new call has one number on all architectures.
#[test]
fn calls_from_424_on_have_one_number_everywhere() {
    for call in SystemCall::ALL {
        let numbers = Architecture::ALL.map(|architecture| call.number(architecture));
        if numbers.iter().flatten().any(|number| *number >= 424) {
            assert_eq!(numbers[0], numbers[1], "{call:?}");
        }
    }
}

/// Calls that arm64 lacks, each with the call that replaces it there.
const ONLY_ON_X86_64: &[(SystemCall, Option<SystemCall>)] = &[
    (SYS_access, Some(SYS_faccessat)),
    (SYS_chmod, Some(SYS_fchmodat)),
    (SYS_chown, Some(SYS_fchownat)),
    (SYS_creat, Some(SYS_openat)),
    (SYS_epoll_wait, Some(SYS_epoll_pwait)),
    (SYS_fork, Some(SYS_clone)),
    (SYS_futimesat, Some(SYS_utimensat)),
    // arm64 has no I/O ports.
    (SYS_ioperm, None),
    (SYS_iopl, None),
    (SYS_lchown, Some(SYS_fchownat)),
    (SYS_link, Some(SYS_linkat)),
    (SYS_lstat, Some(SYS_newfstatat)),
    (SYS_mkdir, Some(SYS_mkdirat)),
    (SYS_mknod, Some(SYS_mknodat)),
    (SYS_open, Some(SYS_openat)),
    (SYS_pipe, Some(SYS_pipe2)),
    (SYS_poll, Some(SYS_ppoll)),
    (SYS_readlink, Some(SYS_readlinkat)),
    (SYS_rename, Some(SYS_renameat)),
    (SYS_rmdir, Some(SYS_unlinkat)),
    (SYS_stat, Some(SYS_newfstatat)),
    (SYS_symlink, Some(SYS_symlinkat)),
    (SYS_unlink, Some(SYS_unlinkat)),
    (SYS_utime, Some(SYS_utimensat)),
    (SYS_utimes, Some(SYS_utimensat)),
    (SYS_vfork, Some(SYS_clone)),
];

#[test]
fn arm64_replacements_are_decided_as_the_missing_call() {
    // As a mode of mknod(2) the path pointer is no FIFO.
    let path = [3, 0x10_0000, 0, 0, 0, 0];
    for call in SystemCall::ALL {
        assert!(call.number(X86_64).is_some(), "{call:?}");
        let lacking = ONLY_ON_X86_64.iter().find(|(lacking, _)| lacking == call);
        assert_eq!(
            call.number(Aarch64).is_none(),
            lacking.is_some(),
            "{call:?}"
        );
        let Some(&(_, Some(instead))) = lacking else {
            continue;
        };
        for filter in [CLIENT, with_lookups(), with_all(), STUB] {
            assert_eq!(
                decided(&filter, X86_64, *call, &path),
                decided(&filter, Aarch64, instead, &path),
                "{call:?}"
            );
        }
    }
}

#[test]
fn rule_without_tests_ignores_the_arguments() {
    for filter in [CLIENT, with_lookups(), with_all(), STUB] {
        for rule in filter.rules.iter().filter(|rule| rule.when.is_empty()) {
            let first = filter.rules.iter().find(|other| other.call == rule.call);
            let decides = first.is_some_and(|first| std::ptr::eq(first, rule));
            if !decides {
                continue;
            }
            for fill in [0, u64::MAX, 0xDEAD_BEEF_0000_0001] {
                let found = everywhere(&filter, rule.call, &[fill; 6]);
                assert_eq!(found, outcome(rule.action), "{:?}", rule.call);
            }
        }
    }
}

#[test]
fn number_without_rule_gets_the_default_action() {
    for (filter, architecture) in programs() {
        let program = filter.assemble(architecture);
        for number in 0..=LAST_REVIEWED {
            let has_it = |rule: &Rule| rule.call.number(architecture) == Some(number);
            if filter.rules.iter().any(has_it) {
                continue;
            }
            let call = Call::new(architecture.audit(), number, &[]);
            let found = run(&program, &call);
            assert_eq!(
                found,
                outcome(filter.otherwise),
                "{architecture:?} {number}"
            );
        }
    }
}

#[test]
fn message_is_notified_only_with_a_destination() {
    let send = |address: u64| client(SYS_sendto, &[3, 0x1000, 5, 0, address, 16]);
    assert_eq!(send(0), Outcome::Allowed);
    for address in [1, 0xFFFF_FFFF, 1 << 32, 0x7FFF_0000_0000, u64::MAX] {
        assert_eq!(send(address), Outcome::Notified, "{address:#x}");
    }
}

#[test]
fn urgent_data_is_notified_with_and_without_a_destination() {
    let send = |flags: u64| [3, 0x1000, 5, flags, 0, 0];
    let urgent = libc::MSG_OOB as u64;
    let ordinary = (libc::MSG_NOSIGNAL | libc::MSG_MORE | libc::MSG_EOR) as u64;
    for outcome in [client, sharing] {
        for flags in [urgent, urgent | ordinary, urgent | 1 << 32, u64::MAX] {
            assert_eq!(outcome(SYS_sendto, &send(flags)), Outcome::Notified);
        }
        for flags in [0, ordinary, urgent << 32] {
            assert_eq!(outcome(SYS_sendto, &send(flags)), Outcome::Allowed);
        }
    }
}

#[test]
fn calls_that_are_evidence_are_notified() {
    for number in [
        SYS_socket,
        SYS_connect,
        SYS_bind,
        SYS_listen,
        SYS_sendmsg,
        SYS_sendmmsg,
        SYS_io_uring_setup,
        SYS_pipe2,
        SYS_execve,
        SYS_execveat,
    ] {
        assert_eq!(client(number, &[0; 6]), Outcome::Notified, "{number:?}");
    }
    assert_eq!(
        client(SYS_prctl, &[libc::PR_SET_DUMPABLE as u64, 0]),
        Outcome::Notified
    );
    assert_eq!(
        client(SYS_prctl, &[libc::PR_SET_NAME as u64, 0]),
        Outcome::Allowed
    );
}

#[test]
fn mknod_is_notified_only_for_fifos() {
    for (call, mode_at) in [(SYS_mknod, 1), (SYS_mknodat, 2)] {
        let with = |mode: u32, high: u64| {
            let mut arguments = [0x1000; 4];
            arguments[mode_at] = u64::from(mode) | high << 32;
            client(call, &arguments)
        };
        for high in [0, 1] {
            assert_eq!(with(libc::S_IFIFO | 0o600, high), Outcome::Notified);
            for kind in [0, libc::S_IFREG, libc::S_IFSOCK, libc::S_IFCHR] {
                assert_eq!(with(kind | 0o600, high), Outcome::Allowed);
            }
        }
    }
}

#[test]
fn the_high_half_of_an_argument_changes_nothing() {
    let high = 1_u64 << 32;
    assert_eq!(client(SYS_socketpair, &[2 | high, 1, 0]), Outcome::Notified);
    assert_eq!(client(SYS_socketpair, &[1 | high, 1, 0]), Outcome::Notified);
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        assert_eq!(
            client(SYS_ioctl, &[0, request]),
            Outcome::Refused(Errno::EPERM)
        );
        assert_eq!(
            client(SYS_ioctl, &[0, request | high]),
            Outcome::Refused(Errno::EPERM)
        );
    }
    assert_eq!(client(SYS_ioctl, &[0, libc::FIONREAD]), Outcome::Allowed);
}

#[test]
fn only_own_limits_but_cores_are_set() {
    let (core, files) = (libc::RLIMIT_CORE as u64, libc::RLIMIT_NOFILE as u64);
    let prlimit = |arguments: &[u64]| client(SYS_prlimit64, arguments);
    for new in [1, 1 << 32, u64::MAX] {
        assert_eq!(prlimit(&[0, core, new, 0]), Outcome::Skipped, "{new:#x}");
        assert_eq!(prlimit(&[0, files, new, 0]), Outcome::Allowed, "{new:#x}");
    }
    assert_eq!(prlimit(&[0, core, 0, 1]), Outcome::Allowed);
    for pid in [1, 2, 1 << 32 | 1, u64::MAX] {
        for new in [0, 1] {
            assert_eq!(
                prlimit(&[pid, core, new, 0]),
                Outcome::Refused(Errno::EPERM),
                "{pid:#x}"
            );
        }
    }
    assert_eq!(client(SYS_setrlimit, &[core, 1]), Outcome::Skipped);
    assert_eq!(client(SYS_setrlimit, &[files, 1]), Outcome::Allowed);
}

#[test]
fn clone_makes_threads_and_processes_but_no_namespace() {
    let thread = (libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_THREAD) as u64;
    assert_eq!(client(SYS_clone, &[thread]), Outcome::Allowed);
    assert_eq!(client(SYS_clone, &[libc::SIGCHLD as u64]), Outcome::Allowed);
    for flag in [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ] {
        let flags = flag as u32 as u64 | libc::SIGCHLD as u64;
        assert_eq!(client(SYS_clone, &[flags]), Outcome::Refused(Errno::EPERM));
    }
    assert_eq!(
        client(SYS_clone3, &[0, 88]),
        Outcome::Refused(Errno::ENOSYS)
    );
}

#[test]
fn jump_over_255_instructions_lands_correctly() {
    let refused = |index: usize| Errno::from_raw(index as i32 % 34 + 1);
    let rules: Vec<Rule> = SystemCall::ALL
        .iter()
        .enumerate()
        .map(|(index, call)| Rule {
            call: *call,
            // Holds always, and makes the program longer.
            when: &[Test::Equals {
                argument: 0,
                mask: 0,
                value: 0,
            }],
            action: Action::Refuse(refused(index)),
        })
        .collect();
    let filter = Filter {
        rules: rules.into(),
        otherwise: Action::Allow,
    };
    for architecture in Architecture::ALL {
        assert!(filter.assemble(architecture).len() > 2 * 255);
    }
    for (index, call) in SystemCall::ALL.iter().enumerate() {
        let found = everywhere(&filter, *call, &[]);
        assert_eq!(found, Outcome::Refused(refused(index)), "{call:?}");
    }
}

#[test]
fn the_stub_may_neither_open_connect_nor_execute() {
    for call in [
        SYS_open,
        SYS_openat,
        SYS_openat2,
        SYS_socket,
        SYS_connect,
        SYS_execve,
        SYS_execveat,
        SYS_clone,
        SYS_clone3,
        SYS_ptrace,
        SYS_kill,
    ] {
        let found = everywhere(&STUB, call, &[]);
        assert_eq!(found, Outcome::Refused(Errno::EPERM), "{call:?}");
    }
}

#[test]
fn priority_calls_on_init_only_are_refused() {
    for (call, arguments) in [
        (SYS_setpriority, [0, 1]),
        (SYS_sched_setscheduler, [1, 0]),
        (SYS_sched_setparam, [1, 0]),
        (SYS_sched_setattr, [1, 0]),
        (SYS_sched_setaffinity, [1, 0]),
        (SYS_ioprio_set, [1, 1]),
    ] {
        assert_eq!(
            client(call, &arguments),
            Outcome::Refused(Errno::EPERM),
            "{call:?}"
        );
        let other = arguments.map(|argument| if argument == 1 { 7 } else { argument });
        assert_eq!(client(call, &other), Outcome::Allowed, "{call:?}");
    }
    // All processes of the user, including init.
    assert_eq!(
        client(SYS_setpriority, &[2, 0]),
        Outcome::Refused(Errno::EPERM)
    );
    assert_eq!(
        client(SYS_ioprio_set, &[3, 0]),
        Outcome::Refused(Errno::EPERM)
    );
}

#[test]
fn a_client_may_have_a_filter_of_its_own_but_no_listener() {
    let filter = |flags: u64| client(SYS_seccomp, &[1, flags]);
    assert_eq!(filter(0), Outcome::Allowed);
    assert_eq!(filter(8), Outcome::Refused(Errno::EBUSY));
    assert_eq!(filter(8 | 32), Outcome::Refused(Errno::EBUSY));
}

/// Values that make the tests of each rule hold and fail.
const FILLS: [u64; 4] = [0, 1, libc::AT_EMPTY_PATH as u64, u64::MAX];
