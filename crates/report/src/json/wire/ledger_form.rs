//! Form of the ledger under `evidence` in schema `runner.report/1`.

use model::evidence::{self, Advice, AttemptKind, LookupKind, Outcome, Reason};
use model::report::{Known, Report};
use model::{expected, labels};
use schemars::JsonSchema;
use serde::Serialize;

use super::Arg;

/// Layer of every denied attempt. The ledger does not contain refusals of the kernel.
const SUPERVISOR: &str = "supervisor";

/// One kind of call to one destination, as the supervisor saw it before the call was made.
#[derive(Serialize, JsonSchema)]
pub(super) struct Attempt<'a> {
    /// Number, from 1, in the order of the first calls.
    seq: u64,
    /// Time of the first call.
    at_us: u64,
    /// Kind of the call; setup calls are not judged.
    #[schemars(with = "evidence::AttemptKind")]
    kind: &'static str,
    /// Process id of the caller, inside the sandbox.
    pid: i32,
    /// Path of the calling program, inside the sandbox.
    program: &'a str,
    /// The system call: `connect`.
    syscall: &'static str,
    /// Address family: `inet`, `inet6`, `unix`, `netlink`, or the number of another one.
    family: Option<&'a str>,
    /// Socket type: `stream`, `dgram`, `raw`, or the number of another one; null if the call has no type.
    #[serde(rename = "type")]
    socket_type: Option<&'a str>,
    /// Protocol number; null if the call has no protocol.
    protocol: Option<u32>,
    /// Address or path; an abstract name begins with `@`.
    address: Option<&'a str>,
    /// Port, for the two internet families.
    port: Option<u16>,
    /// Decision on the call.
    #[schemars(with = "evidence::Outcome")]
    outcome: &'static str,
    /// Layer that denied the call; null if it was allowed.
    layer: Option<&'static str>,
    /// errno of a denied call: `ENETUNREACH`.
    errno: Option<String>,
    /// Number of calls.
    count: u64,
    /// Queried names, if the call sent a DNS query.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    names: &'a [String],
    /// Reason in the profile for accepting it; null for a finding.
    expected: Option<&'a str>,
}

/// A name queried at the resolver inside the sandbox.
#[derive(Serialize, JsonSchema)]
pub(super) struct Name<'a> {
    /// Name in lower case, without the final dot.
    name: &'a str,
    /// Query type: `A`, `AAAA`, `TYPE65`; `malformed` for datagrams that are no query.
    #[serde(rename = "type")]
    kind: &'a str,
    /// Difference from an ordinary query, with the length; absent for an ordinary query.
    #[serde(skip_serializing_if = "Option::is_none")]
    odd: Option<&'a str>,
    /// Number of queries.
    count: u64,
    /// Reason in the profile for accepting it; null for a finding.
    expected: Option<&'a str>,
}

/// A failed path lookup, or several that one option would fix.
#[derive(Serialize, JsonSchema)]
pub(super) struct Lookup<'a> {
    /// Kind of the wanted access.
    #[schemars(with = "LookupKind")]
    kind: &'static str,
    /// Path, or one of several.
    path: &'a str,
    /// Number of paths.
    paths: u64,
    /// Number of lookups.
    count: u64,
    /// Time of the first lookup.
    at_us: u64,
    /// Option that would show the path.
    advice: LookupAdvice<'a>,
}

/// Option that would show a path, or the reason why no option does.
#[derive(Serialize, JsonSchema)]
struct LookupAdvice<'a> {
    /// The option.
    #[schemars(with = "Advice")]
    option: &'static str,
    /// Value of the option.
    path: Option<&'a str>,
    /// Reason why no option shows the path.
    #[schemars(with = "Option<Reason>")]
    reason: Option<&'static str>,
}

/// One program that was started, the client included.
#[derive(Serialize, JsonSchema)]
pub(super) struct Process<'a> {
    /// Process id inside the sandbox.
    pid: i32,
    /// Process id of the parent, inside the sandbox.
    ppid: i32,
    /// Path given to execve(2).
    program: &'a str,
    /// Arguments, the name of the program first.
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
