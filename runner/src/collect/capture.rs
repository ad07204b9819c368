//! Raw result of one run, before it becomes evidence.

use std::io;
use std::time::Duration;

use model::evidence::{Exit, Gap, GapKind, Moments, Survivor};
use model::journal::Entry;
use model::secret::SecretScanner;
use nix::errno::Errno;
use sandbox::counters::Counts;
use sandbox::error::SetupError;
use sandbox::root::Trees;
use sandbox::supervise::Supervisor;
use sandbox::supervise::ledger::Ledger;
use sandbox::verify::Isolation;

use super::output::{Errors, Output};
use super::questions::Questions;
use super::watcher::Gone;
use crate::error_text::one_line;

/// Everything received during one run.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) journal: Vec<Entry>,
    /// For each request, the number of lines on standard output when its first byte was read.
    pub(crate) barriers: Vec<(u64, usize)>,
    pub(crate) output: Output,
    /// Standard output of an audited program, which is passed on and makes no records.
    pub(crate) passed: Option<Errors>,
    pub(crate) errors: Errors,
    pub(crate) questions: Questions,
    pub(crate) exit: Exit,
    /// Number of processes killed because the cgroup reached its memory limit.
    pub(crate) oom_kills: u64,
    /// Processor time of the client's own process.
    pub(crate) cpu: Duration,
    pub(crate) moments: Moments,
    pub(crate) survivors: Vec<Survivor>,
    pub(crate) isolation: Option<Isolation>,
    /// Streams of the runner to which an audited program's output could not be written, each with its error.
    pub(crate) unwritten: Vec<(&'static str, io::Error)>,
    /// Bytes to write before a report on standard error, which follows the program's output.
    pub(crate) before_report: Vec<u8>,
    /// Landlock ABI of the kernel; 0 until the client's process has reported it.
    pub(crate) landlock_abi: i32,
    /// Address of the stub.
    pub(crate) stub: Option<std::net::SocketAddr>,
    /// Local address of the canary's connection to the stub.
    pub(crate) canary_peer: Option<std::net::SocketAddr>,
    pub(crate) trees: Option<Trees>,
    pub(crate) gone: Gone,
    /// Next inode number of each tree when the client was released: see [`super::inode_count`].
    pub(crate) first_numbers: [Option<u64>; 3],
    /// Traffic of the client's network namespace; `None` if the namespace is inherited.
    pub(crate) counts: Option<Counts>,
    /// The supervisor's ledger; empty if the supervisor was never started.
    pub(crate) ledger: Ledger,
    pub(crate) gaps: Vec<Gap>,
    /// Reason for not starting the client.
    pub(crate) failure: Option<Failure>,
}

impl Capture {
    pub(crate) fn nothing((bytes, lines): (u64, u64), secrets: &SecretScanner) -> Self {
        Self {
            journal: Vec::new(),
            barriers: Vec::new(),
            output: Output::new(bytes, lines, secrets),
            passed: None,
            unwritten: Vec::new(),
            before_report: Vec::new(),
            errors: Errors::new(secrets, None),
            questions: Questions::new(secrets),
            exit: Exit::NotStarted,
            oom_kills: 0,
            cpu: Duration::ZERO,
            moments: Moments::default(),
            survivors: Vec::new(),
            isolation: None,
            landlock_abi: 0,
            stub: None,
            canary_peer: None,
            trees: None,
            gone: Gone::default(),
            first_numbers: [None; 3],
            counts: None,
            ledger: Ledger::default(),
            gaps: Vec::new(),
            failure: None,
        }
    }

    /// Takes the supervisor's ledger, after every process that it supervised has ended.
    pub(super) fn take_ledger(&mut self, supervisor: Option<Supervisor>) {
        match supervisor.map(Supervisor::finish) {
            None => {}
            Some(Some(ledger)) => self.ledger = ledger,
            Some(None) => {
                let detail = "the supervisor was lost".to_owned();
                self.gaps.push(Gap {
                    what: GapKind::Isolation,
                    detail,
                });
            }
        }
    }

    /// Builds the capture of a run whose stage could not be started.
    pub(crate) fn failed(error: SetupError, secrets: &SecretScanner) -> Self {
        let failure = Failure::SetUp(error);
        let gaps = vec![Gap {
            what: GapKind::Isolation,
            detail: one_line(&failure),
        }];
        Self {
            gaps,
            failure: Some(failure),
            ..Self::nothing((0, 0), secrets)
        }
    }
}

/// Reason for a run without a client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A step of set-up failed.
    #[error("cannot set up the sandbox")]
    SetUp(#[source] SetupError),
    /// A layer or a canary probe did not hold, so the client was not started.
    #[error("the sandbox does not hold: {0}; the client was not started")]
    NotSealed(String),
    /// execve(2) of the client failed.
    #[error("cannot execute the client inside the sandbox: {}", .0.desc())]
    NotExecuted(Errno),
}
