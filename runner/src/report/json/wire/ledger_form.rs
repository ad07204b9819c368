//! The ledger under `evidence` in schema `runner.report/1`.

use serde::Serialize;

use super::Arg;
use crate::check;
use crate::evidence::{self, Advice, AttemptKind, Outcome};
use crate::report::{self, Known, Report, words};

/// Who refuses what is denied: the kernel's refusals are not in the ledger.
const SUPERVISOR: &str = "supervisor";

#[derive(Serialize)]
pub(super) struct Attempt<'a> {
    seq: u64,
    at_us: u64,
    kind: &'static str,
    pid: i32,
    program: &'a str,
    syscall: &'static str,
    family: Option<&'a str>,
    #[serde(rename = "type")]
    socket_type: Option<&'a str>,
    protocol: Option<u32>,
    address: Option<&'a str>,
    port: Option<u16>,
    outcome: &'static str,
    layer: Option<&'static str>,
    errno: Option<String>,
    count: u64,
    /// Where what was sent is a DNS query.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    names: &'a [String],
    /// Why it is no finding, in the profile's words.
    expected: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct Name<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    count: u64,
    /// Why it is no finding, in the profile's words.
    expected: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct Lookup<'a> {
    kind: &'static str,
    path: &'a str,
    paths: u64,
    count: u64,
    at_us: u64,
    advice: LookupAdvice<'a>,
}

/// The path that an option would show, or why none would.
#[derive(Serialize)]
struct LookupAdvice<'a> {
    option: &'static str,
    path: Option<&'a str>,
    reason: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct Process<'a> {
    pid: i32,
    ppid: i32,
    program: &'a str,
    args: Vec<Arg<'a>>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(attempt: &'a evidence::Attempt, report: &'a Report) -> Self {
        let expected = match attempt.kind {
            AttemptKind::Attempt => {
                check::reason_for_attempt(&report.known.attempts, &report.evidence, attempt)
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
            kind: words::attempt_kind(attempt.kind),
            pid: attempt.pid,
            program: &attempt.program,
            syscall: attempt.syscall,
            family: attempt.family.as_deref(),
            socket_type: attempt.socket_type.as_deref(),
            protocol: attempt.protocol,
            address: attempt.address.as_deref(),
            port: attempt.port,
            outcome: words::outcome(attempt.outcome),
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
            count: question.count,
            expected: check::reason_for_name(&known.attempts, &question.name),
        }
    }
}

impl<'a> From<&'a evidence::Lookup> for Lookup<'a> {
    fn from(lookup: &'a evidence::Lookup) -> Self {
        let (option, path, reason) = match &lookup.advice {
            Advice::Read(path) => ("read", Some(path.as_str()), None),
            Advice::Write(path) => ("write", Some(path.as_str()), None),
            Advice::Never(reason) => ("never", None, Some(words::reason(*reason))),
        };
        Lookup {
            kind: words::lookup_kind(lookup.kind),
            path: &lookup.path,
            paths: lookup.paths,
            count: lookup.count,
            at_us: lookup.at_us,
            advice: LookupAdvice {
                option,
                path,
                reason,
            },
        }
    }
}

impl<'a> From<&'a report::Process> for Process<'a> {
    fn from(process: &'a report::Process) -> Self {
        Process {
            pid: process.pid,
            ppid: process.ppid,
            program: &process.program,
            args: process.args.iter().map(Arg::from).collect(),
        }
    }
}
