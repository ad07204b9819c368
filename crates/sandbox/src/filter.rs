//! The seccomp filter: a reviewed table of rules, and the assembler that makes a program of it.
//!
//! A rule names a system call, tests of its arguments and an action; the first rule of a call whose tests
//! all hold decides. Every program starts alike: a foreign architecture is killed, x32 numbers and numbers
//! above the last that the table was reviewed against get `ENOSYS`. Where the table notifies, so are the calls of those
//! interfaces that lead outwards ([`foreign`]).
//!
//! We assemble it ourselves: one filter needs several actions and a notification, which no crate offers. An errno
//! outranks a notification (seccomp(2)), so what is evidence is notified and nothing else refuses it. The unit
//! tests run the program in a simulator over every row. This module knows neither processes nor the order of
//! set-up.

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

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
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
pub enum Test {
    /// `argument & mask == value`
    Equals { argument: u8, mask: u32, value: u32 },
    /// `argument & mask != 0`
    AnyOf { argument: u8, mask: u32 },
    /// `argument` is `from` plus a number below 32 whose bit is set in `bits`.
    Among { argument: u8, from: u32, bits: u32 },
    /// The pointer `argument` is not null: the one test that looks at both halves.
    NotNull { argument: u8 },
}

/// One row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub call: SystemCall,
    pub when: &'static [Test],
    pub action: Action,
}

/// The client's table and what `plan` puts around it.
pub(crate) fn for_client(plan: &Plan) -> Filter {
    let around = Around {
        no_set_id: plan.is_inherited() || plan.writes_on_host(),
        shared: plan.is_inherited(),
        lookups: plan.lookups,
    };
    around.the_clients_table().kept_by(plan)
}

/// What stands around the client's table. Of two rules for a call the first decides, so nothing that the table
/// refuses is let through by what stands behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Around {
    /// What the client makes lies on the host's disk.
    no_set_id: bool,
    /// No namespace is the client's own.
    shared: bool,
    /// The paths that are looked up are evidence.
    lookups: bool,
}

impl Around {
    fn the_clients_table(self) -> Filter {
        let parts = [
            (self.no_set_id, set_id::NO_SET_ID),
            (true, set_id::NO_ATTRIBUTES),
            (self.shared, shared::FRONT),
            (true, socket_options::RULES),
            (true, &CLIENT.rules),
            (self.shared, shared::BEHIND),
            (self.lookups, LOOKUPS),
        ];
        let wanted = parts.into_iter().filter(|(wanted, _)| *wanted);
        Filter {
            rules: wanted.flat_map(|(_, rules)| rules).copied().collect(),
            otherwise: CLIENT.otherwise,
        }
    }
}

/// A table and what happens to a call that no rule decides.
#[derive(Clone, Debug)]
pub struct Filter {
    pub rules: Cow<'static, [Rule]>,
    pub otherwise: Action,
}

impl Filter {
    /// The classic BPF program for this table on `architecture`. What a rule says of a call that it does not have
    /// is left out.
    fn assemble(&self, architecture: Architecture) -> Vec<Instruction> {
        let numbered = |rule: &Rule| Some((rule.call.number(architecture)?, *rule));
        let mut rules: Vec<(u32, Rule)> = self.rules.iter().filter_map(numbered).collect();
        rules.sort_by_key(|(number, _)| *number);
        let calls: Vec<&[(u32, Rule)]> = rules.chunk_by(|one, next| one.0 == next.0).collect();
        let notifies = self.rules.iter().any(|rule| rule.action == Action::Notify);
        let mut program = prologue(architecture, notifies);
        program.extend(search(&calls, self.otherwise));
        program
    }

    /// The table as `plan` keeps it; test builds can do without what it refuses, or without what it notifies.
    #[cfg(feature = "weaken")]
    fn kept_by(self, plan: &Plan) -> Self {
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

    /// The whole table.
    #[cfg(not(feature = "weaken"))]
    fn kept_by(self, _: &Plan) -> Self {
        self
    }

    /// Installs the filter for this process and everything that it starts.
    ///
    /// # Errors
    /// The errno of seccomp(2).
    pub fn install(&self) -> Result<(), Errno> {
        seccomp::install(&self.assemble(Architecture::OWN))
    }

    /// The same for a table that notifies: the number of the listener's descriptor in this process's table.
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
    let mut elsewhere = Vec::new();
    for interface in foreign {
        let mut calls = vec![step(LOAD, NUMBER)];
        calls.extend(interface.numbers().flat_map(notify));
        elsewhere.push(branch(IF_EQUAL, interface.audit, 0, calls.len() as u8));
        elsewhere.extend(calls);
    }
    elsewhere.push(step(RETURN, libc::SECCOMP_RET_KILL_PROCESS));
    // An x32 number is one of these: it has bit 30 set.
    let numbers = own.into_iter().flat_map(Interface::numbers);
    let mut beyond = Vec::from_iter(numbers.flat_map(notify));
    beyond.push(decide(Action::Refuse(Errno::ENOSYS)));
    [
        vec![
            step(LOAD, ARCHITECTURE),
            branch(IF_EQUAL, architecture.audit(), elsewhere.len() as u8, 0),
        ],
        elsewhere,
        vec![
            step(LOAD, NUMBER),
            branch(IF_GREATER, LAST_REVIEWED, 0, beyond.len() as u8),
        ],
        beyond,
    ]
    .concat()
}

/// Notifies the call with this number. The number is in the accumulator.
fn notify(number: u32) -> [Instruction; 2] {
    [branch(IF_EQUAL, number, 0, 1), decide(Action::Notify)]
}

/// A binary search by number over `calls`, which are sorted, with the rules of each call at its leaf. The
/// number is in the accumulator.
fn search(calls: &[&[(u32, Rule)]], otherwise: Action) -> Vec<Instruction> {
    match calls {
        [] => vec![decide(otherwise)],
        [call] => leaf(call, otherwise),
        _ => {
            let (low, high) = calls.split_at(calls.len() / 2);
            let middle = high
                .first()
                .and_then(|call| call.first())
                .map_or(0, |(number, _)| *number);
            let low = search(low, otherwise);
            let mut program = match u8::try_from(low.len()) {
                Ok(near) => vec![branch(IF_AT_LEAST, middle, near, 0)],
                Err(_) => vec![
                    branch(IF_AT_LEAST, middle, 0, 1),
                    step(JUMP, low.len() as u32),
                ],
            };
            program.extend(low);
            program.extend(search(high, otherwise));
            program
        }
    }
}

fn leaf(rules: &[(u32, Rule)], otherwise: Action) -> Vec<Instruction> {
    let body: Vec<Instruction> = rules.iter().flat_map(|(_, one)| rule(one)).collect();
    let number = rules.first().map_or(0, |(number, _)| *number);
    let mut program = vec![branch(IF_EQUAL, number, 1, 0), decide(otherwise)];
    program.extend(body);
    program.push(decide(otherwise));
    program
}

/// The tests of one rule; where one fails, control goes on behind the rule.
fn rule(rule: &Rule) -> Vec<Instruction> {
    let mut program = vec![decide(rule.action)];
    for test in rule.when.iter().rev() {
        // At most six arguments are tested, seven steps each: the distance always fits.
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

/// Offset of the low 32 bits of an argument on a little-endian machine, which all that we build for are.
fn low_half(argument: u8) -> u32 {
    ARGUMENTS + 8 * u32::from(argument)
}

#[cfg(test)]
mod tests;
