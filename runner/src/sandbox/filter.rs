//! The seccomp filter: a reviewed table of rules, and the assembler that makes a program of it.
//!
//! A rule names a system call, tests of its arguments and an action; the first rule of a call whose tests
//! all hold decides. Every program starts alike: a foreign architecture is killed, x32 numbers and numbers
//! above the last that the table was reviewed against get `ENOSYS`.
//!
//! We assemble it ourselves: one filter needs several actions and a notification, which no crate offers. An
//! errno outranks a notification (seccomp(2)), so what is evidence is notified and nothing else refuses it. The unit tests run the program in a simulator over every row. This module knows neither
//! processes nor the order of set-up.

mod table;

#[cfg(test)]
mod simulator;

use nix::errno::Errno;

use super::plan::Plan;
#[cfg(feature = "weaken")]
use super::weaken::Protection;
use crate::sys::seccomp::{self, Instruction};

pub(crate) use table::{CLIENT, STUB};

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Allow,
    /// The call is not made and fails with this errno.
    Refuse(Errno),
    /// The call waits for the supervisor's answer.
    Notify,
    /// The call is not made and answered as if it had been.
    Skip,
}

/// A test of one argument's low 32 bits. All calls in the table take an int or a flag word there; the
/// kernel ignores the high half, so a test that looked at it could be passed by setting it (CVE-2019-10063).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// `argument & mask == value`
    Equals { argument: u8, mask: u32, value: u32 },
    /// `argument & mask != 0`
    AnyOf { argument: u8, mask: u32 },
    /// The pointer `argument` is not null: the one test that looks at both halves.
    NotNull { argument: u8 },
}

/// One row of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) call: libc::c_long,
    pub(crate) when: &'static [Test],
    pub(crate) action: Action,
}

/// A table and what happens to a call that no rule decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter {
    pub(crate) rules: &'static [Rule],
    pub(crate) otherwise: Action,
}

impl Filter {
    /// The classic BPF program for this table.
    pub(crate) fn assemble(&self) -> Vec<Instruction> {
        let mut rules = self.rules.to_vec();
        rules.sort_by_key(|rule| rule.call);
        let calls: Vec<&[Rule]> = rules.chunk_by(|one, next| one.call == next.call).collect();
        let mut program = prologue();
        program.extend(search(&calls, self.otherwise));
        program
    }

    /// The table as `plan` keeps it; test builds can do without what it refuses, or without what it notifies.
    #[cfg(feature = "weaken")]
    pub(crate) fn kept_by(&self, plan: &Plan) -> Self {
        let kept = |rule: &&Rule| match rule.action {
            Action::Refuse(_) | Action::Skip => plan.keeps(Protection::Filter),
            Action::Notify => plan.keeps(Protection::Ledger),
            Action::Allow => true,
        };
        let rules: Vec<Rule> = self.rules.iter().filter(kept).copied().collect();
        Self {
            rules: rules.leak(),
            otherwise: self.otherwise,
        }
    }

    /// The whole table.
    #[cfg(not(feature = "weaken"))]
    pub(crate) const fn kept_by(&self, _: &Plan) -> Self {
        *self
    }

    /// Installs the filter for this process and everything that it starts.
    ///
    /// # Errors
    /// The errno of seccomp(2).
    pub(crate) fn install(&self) -> Result<(), Errno> {
        seccomp::install(&self.assemble())
    }

    /// The same for a table that notifies: the number of the listener's descriptor in this process's table.
    ///
    /// # Errors
    /// The errno of seccomp(2).
    pub(crate) fn install_with_listener(&self) -> Result<i32, Errno> {
        seccomp::install_with_listener(&self.assemble())
    }
}

#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xC000_00B7;

/// Set in the number of an x32 call.
const X32_BIT: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_GREATER: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

fn step(code: u16, operand: u32) -> Instruction {
    Instruction {
        code,
        jump_true: 0,
        jump_false: 0,
        operand,
    }
}

fn branch(code: u16, operand: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction {
        code,
        jump_true,
        jump_false,
        operand,
    }
}

fn decide(action: Action) -> Instruction {
    step(
        RETURN,
        match action {
            Action::Allow => libc::SECCOMP_RET_ALLOW,
            Action::Refuse(errno) => libc::SECCOMP_RET_ERRNO | errno as u32,
            Action::Notify => libc::SECCOMP_RET_USER_NOTIF,
            // seccomp(2): errno 0 is success.
            Action::Skip => libc::SECCOMP_RET_ERRNO,
        },
    )
}

fn prologue() -> Vec<Instruction> {
    vec![
        step(LOAD, ARCHITECTURE),
        branch(IF_EQUAL, AUDIT_ARCH, 1, 0),
        step(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
        step(LOAD, NUMBER),
        branch(IF_AT_LEAST, X32_BIT, 1, 0),
        branch(IF_GREATER, table::LAST_REVIEWED as u32, 0, 1),
        decide(Action::Refuse(Errno::ENOSYS)),
    ]
}

/// A binary search by number over `calls`, which are sorted, with the rules of each call at its leaf. The
/// number is in the accumulator.
fn search(calls: &[&[Rule]], otherwise: Action) -> Vec<Instruction> {
    match calls {
        [] => vec![decide(otherwise)],
        [call] => leaf(call, otherwise),
        _ => {
            let (low, high) = calls.split_at(calls.len() / 2);
            let middle = high
                .first()
                .and_then(|call| call.first())
                .map_or(0, |rule| rule.call);
            let low = search(low, otherwise);
            let mut program = match u8::try_from(low.len()) {
                Ok(near) => vec![branch(IF_AT_LEAST, middle as u32, near, 0)],
                Err(_) => vec![
                    branch(IF_AT_LEAST, middle as u32, 0, 1),
                    step(JUMP, low.len() as u32),
                ],
            };
            program.extend(low);
            program.extend(search(high, otherwise));
            program
        }
    }
}

fn leaf(rules: &[Rule], otherwise: Action) -> Vec<Instruction> {
    let body: Vec<Instruction> = rules.iter().flat_map(rule).collect();
    let number = rules.first().map_or(0, |rule| rule.call);
    let mut program = vec![branch(IF_EQUAL, number as u32, 1, 0), decide(otherwise)];
    program.extend(body);
    program.push(decide(otherwise));
    program
}

/// The tests of one rule; where one fails, control goes on behind the rule.
fn rule(rule: &Rule) -> Vec<Instruction> {
    let mut program = vec![decide(rule.action)];
    for test in rule.when.iter().rev() {
        // At most six arguments are tested, four steps each: the distance always fits.
        let behind = program.len() as u8;
        let mut steps = match *test {
            Test::Equals {
                argument,
                mask,
                value,
            } => {
                let mut steps = vec![step(LOAD, low_half(argument))];
                if mask != u32::MAX {
                    steps.push(step(AND, mask));
                }
                steps.push(branch(IF_EQUAL, value, 0, behind));
                steps
            }
            Test::AnyOf { argument, mask } => {
                vec![
                    step(LOAD, low_half(argument)),
                    branch(IF_ANY_BIT, mask, 0, behind),
                ]
            }
            Test::NotNull { argument } => vec![
                step(LOAD, low_half(argument)),
                branch(IF_ANY_BIT, u32::MAX, 2, 0),
                step(LOAD, low_half(argument) + 4),
                branch(IF_ANY_BIT, u32::MAX, 0, behind),
            ],
        };
        steps.append(&mut program);
        program = steps;
    }
    program
}

/// Offset of the low 32 bits of an argument on a little-endian machine, which all that we build for are.
fn low_half(argument: u8) -> u32 {
    ARGUMENTS + 8 * u32::from(argument)
}

#[cfg(test)]
mod tests {
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

    fn client(number: libc::c_long, arguments: &[u64]) -> Outcome {
        run(
            &CLIENT.assemble(),
            &Call::new(AUDIT_ARCH, number as u32, arguments),
        )
    }

    #[test]
    fn a_foreign_architecture_is_killed() {
        for filter in [CLIENT, STUB] {
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
        for filter in [CLIENT, STUB] {
            let program = filter.assemble();
            for rule in filter.rules.iter().filter(|rule| rule.when.is_empty()) {
                let earlier = filter
                    .rules
                    .iter()
                    .any(|r| r.call == rule.call && !r.when.is_empty());
                if earlier {
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
        for filter in [CLIENT, STUB] {
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
        let thread =
            (libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_THREAD) as u64;
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
            rules: rules.leak(),
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
}
