//! The seccomp filter: a reviewed table of rules, and an assembler to classic BPF.
//!
//! A rule names a system call, tests of its arguments and an action. The first rule of a call whose tests all hold
//! decides. Each program first kills foreign architectures, and refuses x32 numbers and numbers above the last reviewed
//! one with `ENOSYS`. If the table notifies, outward calls of those interfaces are notified too ([`foreign`]).
//!
//! This module has its own assembler because no crate supports one filter with several actions and a notification. An
//! errno outranks a notification (seccomp(2)), so calls that are evidence are notified and not refused by the filter.
//! The unit tests run each row in a simulator. This module knows neither processes nor the order of the set-up.

mod foreign;
mod lookups;
mod set_id;
mod shared;
mod socket_options;
mod system_call;
mod table;

#[cfg(test)]
mod simulator;

use std::borrow::Cow;

use nix::errno::Errno;
use sys::seccomp::{self, Instruction};

use super::plan::Plan;
use foreign::Interface;
use system_call::{Architecture, LAST_REVIEWED};
use table::CLIENT;

#[cfg(feature = "weaken")]
use super::weaken::Protection;
pub(crate) use foreign::ForeignCall;
pub(crate) use lookups::LOOKUPS;
pub(crate) use socket_options::SocketOption;
pub use system_call::SystemCall;
pub(crate) use table::STUB;

/// Action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Lets the kernel execute the call.
    Allow,
    /// Fails the call with this errno.
    Refuse(Errno),
    /// Suspends the call until the supervisor answers.
    Notify,
    /// Skips the call and returns success.
    Skip,
}

/// Test of an argument, by its index from 0. Only the low 32 bits are compared, except by [`Test::NotNull`].
///
/// The tested arguments are ints or flag words, whose high half the kernel ignores. A test of the high half could be
/// evaded by setting it (CVE-2019-10063).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Holds if `argument & mask == value`.
    Equals {
        /// Index of the argument.
        argument: u8,
        /// Compared bits.
        mask: u32,
        /// Expected value of these bits.
        value: u32,
    },
    /// Holds if `argument & mask != 0`.
    AnyOf {
        /// Index of the argument.
        argument: u8,
        /// Tested bits.
        mask: u32,
    },
    /// Holds if the argument is `from` plus a number below 32 whose bit is set in `bits`.
    Among {
        /// Index of the argument.
        argument: u8,
        /// Value that bit 0 stands for.
        from: u32,
        /// Accepted values, as distances from `from`.
        bits: u32,
    },
    /// Holds if the pointer is not null, by both halves.
    NotNull {
        /// Index of the argument.
        argument: u8,
    },
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// System call of the rule.
    pub call: SystemCall,
    /// Tests that must all hold; an empty list always holds.
    pub when: &'static [Test],
    /// Action if the tests hold.
    pub action: Action,
}

/// Builds the client's filter: its table with the additions that `plan` needs.
pub(crate) fn for_client(plan: &Plan) -> Filter {
    let additions = Additions {
        no_set_id: plan.is_inherited() || plan.writes_on_host(),
        shared: plan.is_inherited(),
        lookups: plan.lookups,
    };
    additions.client_filter().without_weakened(plan)
}

/// Additional rules before and after the client's table. The first rule of a call decides, so rules after the table
/// cannot allow a call that the table refuses.
#[derive(Clone, Copy, Debug, Default)]
struct Additions {
    /// The client's files lie on the host's disk.
    no_set_id: bool,
    /// The client shares the container's namespaces.
    shared: bool,
    /// Looked-up paths are recorded.
    lookups: bool,
}

impl Additions {
    fn client_filter(self) -> Filter {
        let parts = [
            (self.no_set_id, set_id::NO_SET_ID),
            (true, set_id::NO_ATTRIBUTES),
            (self.shared, shared::BEFORE),
            (true, socket_options::RULES),
            (true, &CLIENT.rules),
            (self.shared, shared::AFTER),
            (self.lookups, LOOKUPS),
        ];
        let wanted = parts.into_iter().filter(|(wanted, _)| *wanted);
        Filter {
            rules: wanted.flat_map(|(_, rules)| rules).copied().collect(),
            otherwise: CLIENT.otherwise,
        }
    }
}

/// A table of rules with a default action.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Rules; of two rules for a call the first decides.
    pub rules: Cow<'static, [Rule]>,
    /// Action for a call that no rule decides.
    pub otherwise: Action,
}

impl Filter {
    /// Assembles the classic BPF program for `architecture`. Skips rules for calls that the architecture lacks.
    fn assemble(&self, architecture: Architecture) -> Vec<Instruction> {
        let numbered = |rule: &Rule| Some((rule.call.number(architecture)?, *rule));
        let mut rules: Vec<(u32, Rule)> = self.rules.iter().filter_map(numbered).collect();
        rules.sort_by_key(|(number, _)| *number);
        let calls: Vec<&[(u32, Rule)]> = rules.chunk_by(|one, next| one.0 == next.0).collect();
        let notifies = self.rules.iter().any(|rule| rule.action == Action::Notify);
        let mut program = prologue(architecture, notifies);
        program.extend(search(ranges(&calls, self.otherwise)));
        program
    }

    /// Removes the rules that `plan` switches off: refusals or notifications, in test builds.
    #[cfg(feature = "weaken")]
    fn without_weakened(self, plan: &Plan) -> Self {
        let kept = |rule: &&Rule| match rule.action {
            Action::Refuse(_) | Action::Skip => plan.keeps(Protection::Filter),
            Action::Notify => plan.keeps(Protection::Ledger),
            Action::Allow => true,
        };
        Self {
            rules: self.rules.iter().filter(kept).copied().collect(),
            otherwise: self.otherwise,
        }
    }

    /// Returns the whole table: only test builds switch rules off.
    #[cfg(not(feature = "weaken"))]
    fn without_weakened(self, _: &Plan) -> Self {
        self
    }

    /// Installs the filter for this process and its later children.
    ///
    /// # Errors
    /// The errno of seccomp(2).
    pub fn install(&self) -> Result<(), Errno> {
        seccomp::install(&self.assemble(Architecture::OWN))
    }

    /// Installs a filter with notifications, and returns the number of the listener's descriptor.
    ///
    /// # Errors
    /// The errno of seccomp(2).
    pub fn install_with_listener(&self) -> Result<i32, Errno> {
        seccomp::install_with_listener(&self.assemble(Architecture::OWN))
    }
}

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
const SUBTRACT: u16 = (libc::BPF_ALU | libc::BPF_SUB | libc::BPF_K) as u16;
const SHIFT_BY_INDEX: u16 = (libc::BPF_ALU | libc::BPF_RSH | libc::BPF_X) as u16;
const TO_INDEX: u16 = (libc::BPF_MISC | libc::BPF_TAX) as u16;
const LOAD_VALUE: u16 = (libc::BPF_LD | libc::BPF_IMM) as u16;
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

fn prologue(architecture: Architecture, notifies: bool) -> Vec<Instruction> {
    let interfaces = || Interface::beside(architecture).filter(|_| notifies);
    let (own, foreign): (Vec<_>, Vec<_>) =
        interfaces().partition(|interface| interface.audit == architecture.audit());
    let mut other_architectures = Vec::new();
    for interface in foreign {
        let mut calls = vec![step(LOAD, NUMBER)];
        calls.extend(interface.numbers().flat_map(notify));
        other_architectures.push(branch(IF_EQUAL, interface.audit, 0, calls.len() as u8));
        other_architectures.extend(calls);
    }
    other_architectures.push(step(RETURN, libc::SECCOMP_RET_KILL_PROCESS));
    // x32 numbers are above the last reviewed one, because they have bit 30 set.
    let numbers = own.into_iter().flat_map(Interface::numbers);
    let mut beyond = Vec::from_iter(numbers.flat_map(notify));
    beyond.push(decide(Action::Refuse(Errno::ENOSYS)));
    [
        vec![
            step(LOAD, ARCHITECTURE),
            branch(
                IF_EQUAL,
                architecture.audit(),
                other_architectures.len() as u8,
                0,
            ),
        ],
        other_architectures,
        vec![
            step(LOAD, NUMBER),
            branch(IF_GREATER, LAST_REVIEWED, 0, beyond.len() as u8),
        ],
        beyond,
    ]
    .concat()
}

/// Notifies the call with this number. Expects the call's number in the accumulator.
fn notify(number: u32) -> [Instruction; 2] {
    [branch(IF_EQUAL, number, 0, 1), decide(Action::Notify)]
}

/// Numbers from `first` up to the next range, with the program that decides them.
struct Range {
    first: u32,
    program: Vec<Instruction>,
}

/// Splits all numbers into ranges with equal programs; `calls` is sorted. Neighbours with one action are one range, so
/// that the kernel compiles less.
fn ranges(calls: &[&[(u32, Rule)]], otherwise: Action) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    let mut add = |first, program| {
        if ranges.last().is_none_or(|last| last.program != program) {
            ranges.push(Range { first, program });
        }
    };
    let mut next = 0;
    for call in calls {
        let number = call.first().map_or(next, |(number, _)| *number);
        if number > next {
            add(next, vec![decide(otherwise)]);
        }
        add(number, leaf(call, otherwise));
        next = number + 1;
    }
    add(next, vec![decide(otherwise)]);
    ranges
}

/// Assembles a binary search over the ranges. Expects the call's number in the accumulator.
fn search(ranges: Vec<Range>) -> Vec<Instruction> {
    let mut low = ranges;
    let high = low.split_off(low.len() / 2);
    let middle = high.first().map_or(0, |range| range.first);
    if low.is_empty() {
        return high.into_iter().flat_map(|range| range.program).collect();
    }
    let low = search(low);
    let mut program = match u8::try_from(low.len()) {
        Ok(near) => vec![branch(IF_AT_LEAST, middle, near, 0)],
        Err(_) => vec![
            branch(IF_AT_LEAST, middle, 0, 1),
            step(JUMP, low.len() as u32),
        ],
    };
    program.extend(low);
    program.extend(search(high));
    program
}

/// Assembles the rules of one call, up to the first that always holds.
fn leaf(rules: &[(u32, Rule)], otherwise: Action) -> Vec<Instruction> {
    let mut program = Vec::new();
    for (_, one) in rules {
        program.extend(rule(one));
        if one.when.is_empty() {
            return program;
        }
    }
    program.push(decide(otherwise));
    program
}

/// Assembles the tests of a rule and its action. If a test fails, control continues after the rule.
fn rule(rule: &Rule) -> Vec<Instruction> {
    let mut program = vec![decide(rule.action)];
    for test in rule.when.iter().rev() {
        // At most six tests of at most seven instructions each, so the distance fits into a u8.
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
            Test::Among {
                argument,
                from,
                bits,
            } => vec![
                step(LOAD, low_half(argument)),
                step(SUBTRACT, from),
                branch(IF_AT_LEAST, u32::BITS, behind + 4, 0),
                step(TO_INDEX, 0),
                step(LOAD_VALUE, bits),
                step(SHIFT_BY_INDEX, 0),
                branch(IF_ANY_BIT, 1, 0, behind),
            ],
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

/// Returns the offset of the low 32 bits of an argument. All supported architectures are little-endian.
fn low_half(argument: u8) -> u32 {
    ARGUMENTS + 8 * u32::from(argument)
}

#[cfg(test)]
mod tests;
