//! A classic BPF interpreter for the tests, with the kernel's results.

use nix::errno::Errno;
use sys::seccomp::Instruction;

use super::{
    AND, IF_ANY_BIT, IF_AT_LEAST, IF_EQUAL, IF_GREATER, JUMP, LOAD, LOAD_VALUE, RETURN,
    SHIFT_BY_INDEX, SUBTRACT, TO_INDEX,
};

/// One `struct seccomp_data`.
pub(super) struct Call {
    words: [u32; 16],
}

impl Call {
    pub(super) fn new(architecture: u32, number: u32, arguments: &[u64]) -> Self {
        let mut words = [0; 16];
        words[0] = number;
        words[1] = architecture;
        for (index, argument) in arguments.iter().enumerate() {
            words[4 + 2 * index] = *argument as u32;
            words[5 + 2 * index] = (*argument >> 32) as u32;
        }
        Self { words }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Allowed,
    Refused(Errno),
    /// The call is skipped and returns success.
    Skipped,
    Killed,
    Notified,
}

pub(super) fn run(program: &[Instruction], call: &Call) -> Outcome {
    let (mut at, mut accumulator, mut index) = (0_usize, 0_u32, 0_u32);
    loop {
        let Instruction {
            code,
            jump_true,
            jump_false,
            operand,
        } = program[at];
        at += 1;
        let choose = |holds: bool| usize::from(if holds { jump_true } else { jump_false });
        match code {
            LOAD => accumulator = call.words[operand as usize / 4],
            AND => accumulator &= operand,
            SUBTRACT => accumulator = accumulator.wrapping_sub(operand),
            LOAD_VALUE => accumulator = operand,
            TO_INDEX => index = accumulator,
            SHIFT_BY_INDEX => accumulator >>= index,
            JUMP => at += operand as usize,
            IF_EQUAL => at += choose(accumulator == operand),
            IF_GREATER => at += choose(accumulator > operand),
            IF_AT_LEAST => at += choose(accumulator >= operand),
            IF_ANY_BIT => at += choose(accumulator & operand != 0),
            RETURN => return answer(operand),
            _ => panic!("code {code:#x} is not in the assembler's set"),
        }
    }
}

fn answer(operand: u32) -> Outcome {
    match operand & libc::SECCOMP_RET_ACTION_FULL {
        libc::SECCOMP_RET_ALLOW => Outcome::Allowed,
        libc::SECCOMP_RET_ERRNO if operand & 0xFFFF == 0 => Outcome::Skipped,
        libc::SECCOMP_RET_ERRNO => Outcome::Refused(Errno::from_raw((operand & 0xFFFF) as i32)),
        libc::SECCOMP_RET_KILL_PROCESS => Outcome::Killed,
        libc::SECCOMP_RET_USER_NOTIF => Outcome::Notified,
        other => panic!("action {other:#x} is not in the assembler's set"),
    }
}
