//! The ledger under `evidence` in schema `runner.report/1`.

use model::evidence::{self, Advice, AttemptKind, LookupKind, Outcome, Reason};
use model::report::{Known, Report};
use model::{expected, labels};
use schemars::JsonSchema;
use serde::Serialize;

use super::Arg;

/// Who refuses what is denied: the kernel's refusals are not in the ledger.
const SUPERVISOR: &str = "supervisor";

/// One kind of call to one destination, as the supervisor saw it before it was made.
#[derive(Serialize, JsonSchema)]
pub(super) struct Attempt<'a> {
    /// Counted from 1, in the order of the first time.
    seq: u64,
    /// The first time.
    at_us: u64,
    /// Whether it is judged.
    #[schemars(with = "evidence::AttemptKind")]
    kind: &'static str,
    /// The calling process, as seen inside.
    pid: i32,
    /// Path of the calling program, as seen inside.
    program: &'a str,
    /// The system call: `connect`.
    syscall: &'static str,
    /// `inet`, `inet6`, `unix`, `netlink`, or the family's number.
    family: Option<&'a str>,
    /// `stream`, `dgram`, `raw`, or the type's number; where the call names it.
    #[serde(rename = "type")]
    socket_type: Option<&'a str>,
    /// Number of the protocol; where the call names it.
    protocol: Option<u32>,
    /// Address or path; an abstract name begins with `@`.
    address: Option<&'a str>,
    /// Port, for the two internet families.
    port: Option<u16>,
    /// What became of it.
    #[schemars(with = "evidence::Outcome")]
    outcome: &'static str,
    /// Who refused it, where it was denied.
    layer: Option<&'static str>,
    /// What the caller was told, where it was denied: `ENETUNREACH`.
    errno: Option<String>,
    /// How often.
    count: u64,
    /// Names asked for, where what was sent is a DNS query.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    names: &'a [String],
    /// Why it is no finding, in the profile's words.
    expected: Option<&'a str>,
}

/// A name that the resolver inside was asked for.
#[derive(Serialize, JsonSchema)]
pub(super) struct Name<'a> {
    /// In small letters, without the final dot.
    name: &'a str,
    /// `A`, `AAAA`, `TYPE65`; `malformed` for datagrams that are no query.
    #[serde(rename = "type")]
    kind: &'a str,
    /// How the datagram differs from an ordinary query, with its length; absent for an ordinary one.
    #[serde(skip_serializing_if = "Option::is_none")]
    odd: Option<&'a str>,
    /// How often.
    count: u64,
    /// Why it is no finding, in the profile's words.
    expected: Option<&'a str>,
}

/// A path that was looked for in vain, or several that one option would show.
#[derive(Serialize, JsonSchema)]
pub(super) struct Lookup<'a> {
    /// What was wanted of it.
    #[schemars(with = "LookupKind")]
    kind: &'static str,
    /// The path, or one of them.
    path: &'a str,
    /// How many paths.
    paths: u64,
    /// How often.
    count: u64,
    /// The first time.
    at_us: u64,
    /// What would let the program have it.
    advice: LookupAdvice<'a>,
}

/// The path that an option would show, or why none would.
#[derive(Serialize, JsonSchema)]
struct LookupAdvice<'a> {
    /// The option.
    #[schemars(with = "Advice")]
    option: &'static str,
    /// What to give to it.
    path: Option<&'a str>,
    /// Why there is no such path.
    #[schemars(with = "Option<Reason>")]
    reason: Option<&'static str>,
}

/// One program that was started, the client included.
#[derive(Serialize, JsonSchema)]
pub(super) struct Process<'a> {
    /// As seen inside.
    pid: i32,
    /// Its parent, as seen inside.
    ppid: i32,
    /// Path given to execve(2).
    program: &'a str,
    /// Its arguments, the program's name first.
    args: Vec<Arg<'a>>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(attempt: &'a evidence::Attempt, report: &'a Report) -> Self {
        let expected = match attempt.kind {
            AttemptKind::Attempt => {
                expected::reason_for_attempt(&report.known.attempts, &report.evidence, attempt)
            }
            AttemptKind::Setup => None,
        };
        let (layer, errno) = match attempt.outcome {
            Outcome::Allowed => (None, None),
            Outcome::Denied(errno) => (Some(SUPERVISOR), Some(format!("{errno:?}"))),
        };
        Attempt {
            seq: attempt.seq,
            at_us: attempt.at_us,
            kind: labels::attempt_kind(attempt.kind),
            pid: attempt.pid,
            program: &attempt.program,
            syscall: attempt.syscall,
            family: attempt.family.as_deref(),
            socket_type: attempt.socket_type.as_deref(),
            protocol: attempt.protocol,
            address: attempt.address.as_deref(),
            port: attempt.port,
            outcome: labels::outcome(attempt.outcome),
            layer,
            errno,
            count: attempt.count,
            names: &attempt.names,
            expected,
        }
    }
}

impl<'a> Name<'a> {
    pub(super) fn new(question: &'a evidence::Question, known: &'a Known) -> Self {
        Name {
            name: &question.name,
            kind: &question.kind,
            odd: question.odd.as_deref(),
            count: question.count,
            expected: expected::reason_for_question(&known.attempts, question),
        }
    }
}

impl<'a> From<&'a evidence::Lookup> for Lookup<'a> {
    fn from(lookup: &'a evidence::Lookup) -> Self {
        let (path, reason) = match &lookup.advice {
            Advice::Read(path) | Advice::Write(path) => (Some(path.as_str()), None),
            Advice::Never(reason) => (None, Some(labels::reason(*reason))),
        };
        Lookup {
            kind: labels::lookup_kind(lookup.kind),
            path: &lookup.path,
            paths: lookup.paths,
            count: lookup.count,
            at_us: lookup.at_us,
            advice: LookupAdvice {
                option: labels::advice(&lookup.advice),
                path,
                reason,
            },
        }
    }
}

impl<'a> From<&'a model::report::Process> for Process<'a> {
    fn from(process: &'a model::report::Process) -> Self {
        Process {
            pid: process.pid,
            ppid: process.ppid,
            program: &process.program,
            args: process.args.iter().map(Arg::from).collect(),
        }
    }
}
