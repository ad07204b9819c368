//! Every row of both tables, in the simulator.

use super::simulator::{Call, Outcome, run};
use super::*;

const FOREIGN: u32 = 0x4000_0003; // AUDIT_ARCH_I386

fn outcome(action: Action) -> Outcome {
    match action {
        Action::Allow => Outcome::Allowed,
        Action::Refuse(errno) => Outcome::Refused(errno),
        Action::Notify => Outcome::Notified,
        Action::Skip => Outcome::Skipped,
    }
}

fn with_lookups() -> Filter {
    Around {
        lookups: true,
        ..Around::default()
    }
    .the_clients_table()
}

fn with_all() -> Filter {
    Around {
        no_unix: true,
        shared: true,
        lookups: true,
    }
    .the_clients_table()
}

/// Where no namespace is the client's own.
fn sharing(number: libc::c_long, arguments: &[u64]) -> Outcome {
    let filter = Around {
        no_unix: true,
        shared: true,
        lookups: false,
    };
    let call = Call::new(AUDIT_ARCH, number as u32, arguments);
    run(&filter.the_clients_table().assemble(), &call)
}

fn client(number: libc::c_long, arguments: &[u64]) -> Outcome {
    run(
        &CLIENT.assemble(),
        &Call::new(AUDIT_ARCH, number as u32, arguments),
    )
}

#[test]
fn a_foreign_architecture_is_killed() {
    for filter in [CLIENT, with_lookups(), with_all(), STUB] {
        let call = Call::new(FOREIGN, libc::SYS_getpid as u32, &[]);
        assert_eq!(run(&filter.assemble(), &call), Outcome::Killed);
    }
}

#[test]
fn x32_numbers_do_not_exist() {
    for number in 0..=table::LAST_REVIEWED as u32 {
        let call = Call::new(AUDIT_ARCH, number | X32_BIT, &[]);
        assert_eq!(
            run(&CLIENT.assemble(), &call),
            Outcome::Refused(Errno::ENOSYS)
        );
    }
}

#[test]
fn numbers_above_the_last_reviewed_one_do_not_exist() {
    let program = CLIENT.assemble();
    for number in [table::LAST_REVIEWED as u32 + 1, 0x3FFF_FFFF, u32::MAX] {
        let call = Call::new(AUDIT_ARCH, number, &[]);
        assert_eq!(run(&program, &call), Outcome::Refused(Errno::ENOSYS));
    }
    let last = Call::new(AUDIT_ARCH, table::LAST_REVIEWED as u32, &[]);
    assert_eq!(run(&program, &last), Outcome::Allowed);
}

#[test]
fn a_rule_without_tests_decides_whatever_the_arguments_are() {
    for filter in [CLIENT, with_lookups(), with_all(), STUB] {
        let program = filter.assemble();
        for rule in filter.rules.iter().filter(|rule| rule.when.is_empty()) {
            let first = filter.rules.iter().find(|other| other.call == rule.call);
            let decides = first.is_some_and(|first| std::ptr::eq(first, rule));
            if !decides {
                continue;
            }
            for fill in [0, u64::MAX, 0xDEAD_BEEF_0000_0001] {
                let call = Call::new(AUDIT_ARCH, rule.call as u32, &[fill; 6]);
                assert_eq!(
                    run(&program, &call),
                    outcome(rule.action),
                    "call {}",
                    rule.call
                );
            }
        }
    }
}

#[test]
fn a_number_without_a_rule_gets_what_the_table_says_otherwise() {
    for filter in [CLIENT, with_lookups(), with_all(), STUB] {
        let program = filter.assemble();
        for number in 0..=table::LAST_REVIEWED {
            if filter.rules.iter().any(|rule| rule.call == number) {
                continue;
            }
            let call = Call::new(AUDIT_ARCH, number as u32, &[]);
            assert_eq!(
                run(&program, &call),
                outcome(filter.otherwise),
                "call {number}"
            );
        }
    }
}

#[test]
fn a_message_is_notified_only_where_it_names_a_destination() {
    let send = |address: u64| client(libc::SYS_sendto, &[3, 0x1000, 5, 0, address, 16]);
    assert_eq!(send(0), Outcome::Allowed);
    for address in [1, 0xFFFF_FFFF, 1 << 32, 0x7FFF_0000_0000, u64::MAX] {
        assert_eq!(send(address), Outcome::Notified, "{address:#x}");
    }
}

#[test]
fn what_is_evidence_is_notified_and_not_refused() {
    for number in [
        libc::SYS_socket,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_listen,
        libc::SYS_sendmsg,
        libc::SYS_sendmmsg,
        libc::SYS_io_uring_setup,
        libc::SYS_execve,
        libc::SYS_execveat,
    ] {
        assert_eq!(client(number, &[0; 6]), Outcome::Notified, "call {number}");
    }
    assert_eq!(
        client(libc::SYS_prctl, &[libc::PR_SET_DUMPABLE as u64, 0]),
        Outcome::Notified
    );
    assert_eq!(
        client(libc::SYS_prctl, &[libc::PR_SET_NAME as u64, 0]),
        Outcome::Allowed
    );
}

#[test]
fn the_high_half_of_an_argument_changes_nothing() {
    let high = 1_u64 << 32;
    assert_eq!(
        client(libc::SYS_socketpair, &[2 | high, 1, 0]),
        Outcome::Refused(Errno::EAFNOSUPPORT)
    );
    assert_eq!(
        client(libc::SYS_socketpair, &[1 | high, 1, 0]),
        Outcome::Allowed
    );
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        assert_eq!(
            client(libc::SYS_ioctl, &[0, request]),
            Outcome::Refused(Errno::EPERM)
        );
        assert_eq!(
            client(libc::SYS_ioctl, &[0, request | high]),
            Outcome::Refused(Errno::EPERM)
        );
    }
    assert_eq!(
        client(libc::SYS_ioctl, &[0, libc::FIONREAD]),
        Outcome::Allowed
    );
}

#[test]
fn limits_are_read_and_set_but_not_of_others_and_not_for_cores() {
    let (core, files) = (libc::RLIMIT_CORE as u64, libc::RLIMIT_NOFILE as u64);
    let prlimit = |arguments: &[u64]| client(libc::SYS_prlimit64, arguments);
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
    assert_eq!(client(libc::SYS_setrlimit, &[core, 1]), Outcome::Skipped);
    assert_eq!(client(libc::SYS_setrlimit, &[files, 1]), Outcome::Allowed);
}

#[test]
fn clone_makes_threads_and_processes_but_no_namespace() {
    let thread = (libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_THREAD) as u64;
    assert_eq!(client(libc::SYS_clone, &[thread]), Outcome::Allowed);
    assert_eq!(
        client(libc::SYS_clone, &[libc::SIGCHLD as u64]),
        Outcome::Allowed
    );
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
        assert_eq!(
            client(libc::SYS_clone, &[flags]),
            Outcome::Refused(Errno::EPERM)
        );
    }
    assert_eq!(
        client(libc::SYS_clone3, &[0, 88]),
        Outcome::Refused(Errno::ENOSYS)
    );
}

#[test]
fn a_jump_over_more_than_255_steps_lands_where_a_short_one_would() {
    let rules: Vec<Rule> = (0..300)
        .map(|call| Rule {
            call,
            when: &[],
            action: Action::Refuse(Errno::from_raw(call as i32 % 34 + 1)),
        })
        .collect();
    let filter = Filter {
        rules: rules.into(),
        otherwise: Action::Allow,
    };
    let program = filter.assemble();
    for call in 0..300_u32 {
        let expected = Outcome::Refused(Errno::from_raw(call as i32 % 34 + 1));
        assert_eq!(run(&program, &Call::new(AUDIT_ARCH, call, &[])), expected);
    }
}

#[test]
fn the_stub_may_neither_open_connect_nor_execute() {
    let program = STUB.assemble();
    for number in [
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_socket,
        libc::SYS_connect,
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_clone,
        libc::SYS_clone3,
        libc::SYS_ptrace,
        libc::SYS_kill,
    ] {
        let call = Call::new(AUDIT_ARCH, number as u32, &[]);
        assert_eq!(
            run(&program, &call),
            Outcome::Refused(Errno::EPERM),
            "call {number}"
        );
    }
}

#[test]
fn calls_that_reach_init_are_refused_and_the_same_on_others_are_not() {
    for (call, arguments) in [
        (libc::SYS_setpriority, [0, 1]),
        (libc::SYS_sched_setscheduler, [1, 0]),
        (libc::SYS_sched_setparam, [1, 0]),
        (libc::SYS_sched_setattr, [1, 0]),
        (libc::SYS_sched_setaffinity, [1, 0]),
        (libc::SYS_ioprio_set, [1, 1]),
    ] {
        assert_eq!(
            client(call, &arguments),
            Outcome::Refused(Errno::EPERM),
            "call {call}"
        );
        let other = arguments.map(|argument| if argument == 1 { 7 } else { argument });
        assert_eq!(client(call, &other), Outcome::Allowed, "call {call}");
    }
    // All processes of the user, init among them.
    assert_eq!(
        client(libc::SYS_setpriority, &[2, 0]),
        Outcome::Refused(Errno::EPERM)
    );
    assert_eq!(
        client(libc::SYS_ioprio_set, &[3, 0]),
        Outcome::Refused(Errno::EPERM)
    );
}

#[test]
fn options_that_lead_packets_elsewhere_are_refused() {
    let option =
        |level: i32, name: i32| client(libc::SYS_setsockopt, &[3, level as u64, name as u64]);
    for (level, name) in [(0, 4), (41, 57), (41, 6)] {
        assert_eq!(
            option(level, name),
            Outcome::Refused(Errno::EPERM),
            "{level} {name}"
        );
    }
    assert_eq!(
        option(libc::SOL_SOCKET, libc::SO_KEEPALIVE),
        Outcome::Allowed
    );
    assert_eq!(option(libc::IPPROTO_TCP, 4), Outcome::Allowed);
}

#[test]
fn a_client_may_have_a_filter_of_its_own_but_no_listener() {
    let filter = |flags: u64| client(libc::SYS_seccomp, &[1, flags]);
    assert_eq!(filter(0), Outcome::Allowed);
    assert_eq!(filter(8), Outcome::Refused(Errno::EBUSY));
    assert_eq!(filter(8 | 32), Outcome::Refused(Errno::EBUSY));
}

/// Values that make the tests of each rule hold and fail.
const FILLS: [u64; 4] = [0, 1, libc::AT_EMPTY_PATH as u64, u64::MAX];

#[test]
fn lookups_are_notified_where_they_are_asked_for_and_change_nothing_else() {
    let (without, with) = (CLIENT.assemble(), with_lookups().assemble());
    for number in 0..=table::LAST_REVIEWED + 1 {
        let is_lookup = LOOKUPS.iter().any(|rule| rule.call == number);
        for fill in FILLS {
            let call = || Call::new(AUDIT_ARCH, number as u32, &[fill; 6]);
            match (run(&without, &call()), run(&with, &call())) {
                (Outcome::Allowed, Outcome::Notified) if is_lookup => {}
                (before, after) => assert_eq!(before, after, "call {number}, {fill:#x}"),
            }
        }
    }
}

#[test]
fn each_lookup_is_notified_with_a_path_and_no_flag() {
    let program = with_lookups().assemble();
    for rule in LOOKUPS {
        let call = Call::new(AUDIT_ARCH, rule.call as u32, &[3, 0x1000, 0, 0, 0, 0]);
        assert_eq!(
            run(&program, &call),
            Outcome::Notified,
            "call {}",
            rule.call
        );
    }
}

#[test]
fn no_call_is_both_in_the_clients_table_and_a_lookup() {
    for rule in LOOKUPS {
        let twice = CLIENT.rules.iter().any(|other| other.call == rule.call);
        assert!(!twice, "call {}", rule.call);
    }
}

#[test]
fn what_is_asked_of_a_descriptor_is_no_lookup() {
    let program = with_lookups().assemble();
    let empty = libc::AT_EMPTY_PATH as u64;
    for (call, arguments) in [
        (libc::SYS_newfstatat, [3, 0x1000, 0x2000, empty, 0]),
        (libc::SYS_statx, [3, 0x1000, empty, 0xFFF, 0x2000]),
        (libc::SYS_faccessat2, [3, 0x1000, 4, empty, 0]),
        (libc::SYS_fchownat, [3, 0x1000, 1, 1, empty]),
        (libc::SYS_utimensat, [3, 0, 0, 0, 0]),
    ] {
        let call_of = |arguments| Call::new(AUDIT_ARCH, call as u32, arguments);
        assert_eq!(
            run(&program, &call_of(&arguments)),
            Outcome::Allowed,
            "call {call}"
        );
        let path = arguments.map(|one| if one == empty { 0x100 } else { one.max(1) });
        assert_eq!(
            run(&program, &call_of(&path)),
            Outcome::Notified,
            "call {call}"
        );
    }
}

#[test]
fn where_no_unix_socket_is_made_a_pair_stays_connected_to_itself() {
    let pair = |kind: i32| sharing(libc::SYS_socketpair, &[1, kind as u64, 0, 0x1000]);
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        assert_eq!(pair(kind), Outcome::Refused(Errno::EACCES));
        assert_eq!(pair(kind | flags), Outcome::Refused(Errno::EACCES));
    }
    for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET | flags] {
        assert_eq!(pair(kind), Outcome::Allowed);
    }
    let alone = client(
        libc::SYS_socketpair,
        &[1, libc::SOCK_DGRAM as u64, 0, 0x1000],
    );
    assert_eq!(alone, Outcome::Allowed, "where they lead nowhere");
}

#[test]
fn where_nothing_is_its_own_no_message_opens_a_connection() {
    let fast = libc::MSG_FASTOPEN as u64;
    let refused = Outcome::Refused(Errno::EOPNOTSUPP);
    for (call, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        let with = |value: u64| {
            let mut arguments = [0, 0x1000, 1, 0, 0x2000, 16];
            arguments[flags] = value;
            sharing(call, &arguments)
        };
        assert_eq!(with(fast), refused);
        assert_eq!(with(fast | libc::MSG_NOSIGNAL as u64), refused);
        assert_eq!(with(libc::MSG_NOSIGNAL as u64), Outcome::Notified);
    }
}

#[test]
fn where_nothing_is_its_own_processes_and_threads_wait_for_the_supervisor() {
    let clone = |flags: i32| sharing(libc::SYS_clone, &[flags as u64]);
    assert_eq!(clone(libc::SIGCHLD), Outcome::Notified);
    assert_eq!(clone(libc::CLONE_VM | libc::CLONE_VFORK), Outcome::Notified);
    assert_eq!(clone(libc::CLONE_THREAD), Outcome::Notified);
    let refused = Outcome::Refused(Errno::EPERM);
    assert_eq!(clone(libc::CLONE_NEWUSER | libc::CLONE_THREAD), refused);
    assert_eq!(client(libc::SYS_clone, &[0]), Outcome::Allowed);
}

#[test]
fn where_nothing_is_its_own_every_rule_of_the_clients_table_holds_as_well() {
    let (alone, shared) = (CLIENT.assemble(), with_all().assemble());
    for rule in CLIENT.rules.iter() {
        for fill in FILLS {
            let call = || Call::new(AUDIT_ARCH, rule.call as u32, &[fill; 6]);
            let (before, after) = (run(&alone, &call()), run(&shared, &call()));
            let tighter = matches!(
                (before, after),
                (Outcome::Allowed | Outcome::Notified, Outcome::Refused(_))
                    | (Outcome::Allowed, Outcome::Notified)
            );
            assert!(before == after || tighter, "call {}, {fill:#x}", rule.call);
        }
    }
}
