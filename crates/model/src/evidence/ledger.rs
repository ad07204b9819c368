//! The ledger of the client: its attempts, resolver questions and started programs.
//!
//! Types only. The supervisor fills them, and the checks judge them.

use std::borrow::Cow;

use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::form;
use crate::digest;
use crate::schema::values::Sha256;

/// One kind of call to one destination, recorded by the supervisor before the call was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Number from 1, in the order of first occurrence.
    pub seq: u64,
    /// Time of the first call.
    pub at_us: u64,
    /// Rule of the checks for the call.
    pub kind: AttemptKind,
    /// Process id inside the sandbox.
    pub pid: i32,
    /// Path of the calling program inside the sandbox; hostile.
    pub program: String,
    /// Name of the system call: `connect`, `sendto`, …
    pub syscall: Cow<'static, str>,
    /// `inet`, `inet6`, `unix`, `netlink`, or the number of the family.
    pub family: Option<String>,
    /// `stream`, `dgram`, `raw`, …, or the number of the type; `None` if the call has no type.
    #[serde(rename = "type")]
    pub socket_type: Option<String>,
    /// Number of the protocol; `None` if the call has none.
    pub protocol: Option<u32>,
    /// Address or path; an abstract name begins with `@`. Hostile.
    pub address: Option<String>,
    /// Port, for the families `inet` and `inet6`.
    pub port: Option<u16>,
    /// Outcome of the call.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Number of calls.
    pub count: u64,
    /// Names in the sent data, if it was a DNS query.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Reason in the profile for accepting the call; null for a finding, for setup, and before the report is built.
    pub expected: Option<String>,
}

/// Counts of calls and questions beyond the largest kept number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlisted {
    /// Calls of [`AttemptKind::Attempt`] that the supervisor refused.
    pub denied: u64,
    /// Calls of [`AttemptKind::Attempt`] that were let through.
    pub let_through: u64,
    /// Calls of [`AttemptKind::Setup`].
    pub setup: u64,
    /// The calls among `let_through` and `setup` for which [`Attempt::leaves_loopback`] holds.
    pub away: u64,
    /// Questions to the resolver.
    pub questions: u64,
}

impl Unlisted {
    /// Counts one call.
    pub fn count(&mut self, attempt: &Attempt) {
        let counter = match (attempt.kind, attempt.outcome) {
            (AttemptKind::Setup | AttemptKind::Question, _) => &mut self.setup,
            (AttemptKind::Attempt, Outcome::Denied(_)) => &mut self.denied,
            (AttemptKind::Attempt, Outcome::Allowed) => &mut self.let_through,
        };
        *counter = counter.saturating_add(attempt.count);
        if attempt.leaves_loopback() {
            self.away = self.away.saturating_add(attempt.count);
        }
    }

    /// Returns the number of judged calls.
    pub fn attempts(&self) -> u64 {
        self.denied.saturating_add(self.let_through)
    }
}

closed_set! {
    /// Rule of the checks for an entry of the ledger.
    pub enum AttemptKind {
        /// Judged: a call to another destination than the stub, or one that could lead there.
        Attempt = "attempt",
        /// Not judged: a part of connecting to the stub or of finding it, or a probe of libc's own.
        Setup = "setup",
        /// Judged by its name, in `names`: a call to the resolver of the run, which received a question.
        Question = "question",
    }
}

/// Outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "form::OutcomeForm", into = "form::OutcomeForm")]
pub enum Outcome {
    /// The call was let through to the kernel, where the network namespace decides.
    Allowed,
    /// The supervisor answered the call with this errno; the kernel did not make it.
    Denied(nix::errno::Errno),
}

/// Hashes the number of the errno, because `Errno` does not implement `Hash`.
impl std::hash::Hash for Outcome {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Allowed => state.write_i32(0),
            Self::Denied(errno) => state.write_i32(*errno as i32),
        }
    }
}

/// A question to the resolver inside the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// Name in lower case without the final dot; `.` for the root. A byte that is not visible ASCII is `\DDD`. Hostile.
    pub name: String,
    /// Record type: `A`, `AAAA`, …, or `TYPE65`; `malformed`, with an empty name, for a datagram that is not a query.
    #[serde(rename = "type")]
    pub kind: String,
    /// Difference from an ordinary query: `1300 bytes after the question, 1327 bytes`. `None` for an ordinary one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub odd: Option<String>,
    /// Number of questions.
    pub count: u64,
    /// Reason in the profile for accepting the question; null for a finding, and before the report is built.
    pub expected: Option<String>,
}

impl Question {
    /// Returns the type and the difference from an ordinary query: `A`, or `A, class 3, 33 bytes`.
    pub fn kind_and_odd(&self) -> String {
        match &self.odd {
            Some(odd) => format!("{}, {odd}", self.kind),
            None => self.kind.clone(),
        }
    }
}

/// One program that the client started or was refused, including the client itself, as the supervisor saw it.
///
/// [`Process`](super::Process) is its form in the evidence, without prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Process id inside the sandbox.
    pub pid: i32,
    /// Process id of the parent, inside the sandbox.
    pub ppid: i32,
    /// Path passed to execve(2); hostile.
    pub program: String,
    /// Arguments from index 0, at most [`MAX_ARGUMENTS`].
    pub args: Vec<StartedArg>,
    /// Number of arguments that are not kept.
    pub further_args: u64,
    /// Answer of the supervisor to execve(2), if it refused the program.
    pub refused: Option<nix::errno::Errno>,
}

/// An argument of a started program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedArg {
    /// At most the first [`MAX_ARGUMENT_BYTES`]; hostile.
    pub text: String,
    /// The whole argument, if `text` is a part of it.
    pub whole: Option<Whole>,
}

/// Length and digest of an argument that is not kept as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Whole {
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256, lower-case hex.
    #[schemars(with = "Sha256")]
    pub sha256: String,
}

impl Whole {
    /// Measures the bytes of an argument.
    pub fn of(argument: &[u8]) -> Self {
        Self {
            bytes: argument.len() as u64,
            sha256: digest::of_bytes(argument),
        }
    }
}

/// Largest number of kept arguments of one process.
pub const MAX_ARGUMENTS: usize = 64;
/// Largest kept length of one argument, in bytes.
pub const MAX_ARGUMENT_BYTES: usize = 256;
/// Largest number of kept ledger entries; a gap reports more.
pub const MAX_ATTEMPTS: usize = 1000;
/// Largest number of kept resolver questions; a gap reports more.
pub const MAX_QUESTIONS: usize = 1000;
/// Largest number of kept processes; a gap reports more.
pub const MAX_PROCESSES: usize = 1000;
