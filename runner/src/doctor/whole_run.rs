//! The last test: a real run of case-b with this executable, started as a user would start it.

use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::case::Tier;
use model::finding::Verdict;
use nix::errno::Errno;
use sandbox::error::errno_of;
use serde_json::Value;
use sys::process::{OWN_FILE, read_to_end_within, wait_within};

/// Time limit of the run; the case's own limit is shorter.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// End of the run's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Code(i32),
    Signal(i32),
    /// The process did not end within the time limit.
    Hung,
    NotStarted(Errno),
}

/// Result of a real run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WholeRun {
    pub(super) ended: Ended,
    /// Isolation in its report, if it wrote one.
    pub(super) tier: Option<Tier>,
    pub(super) verdict: Option<Verdict>,
    /// Lines of error messages on its standard error.
    pub(super) errors: Vec<String>,
}

impl WholeRun {
    /// Text such as `ended with exit code 0, PASSED with isolation namespace`.
    pub(super) fn describe(&self) -> String {
        let ended = match self.ended {
            Ended::Code(code) => format!("ended with exit code {code}"),
            Ended::Signal(signal) => format!("was ended by signal {signal}"),
            Ended::Hung => format!("did not end within {} s", TIME_LIMIT.as_secs()),
            Ended::NotStarted(errno) => format!("could not be started ({errno:?})"),
        };
        match (self.verdict, self.tier) {
            (Some(verdict), Some(tier)) if verdict != Verdict::Errored => {
                let word = verdict.word().to_uppercase();
                format!("{ended}, {word} with isolation {}", tier.word())
            }
            _ => ended,
        }
    }
}

/// Starts the run and waits for its end.
pub(super) fn make() -> WholeRun {
    let started = Command::new(OWN_FILE)
        .arg0("runner")
        .args(["case-b", "--report", "json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    match started {
        Ok(process) => wait_for_end(process),
        Err(error) => WholeRun {
            ended: Ended::NotStarted(errno_of(&error)),
            tier: None,
            verdict: None,
            errors: Vec::new(),
        },
    }
}

fn wait_for_end(mut process: Child) -> WholeRun {
    let outputs = [
        process.stdout.take().map(OwnedFd::from),
        process.stderr.take().map(OwnedFd::from),
    ];
    let read = read_to_end_within(outputs, TIME_LIMIT);
    if read.is_none() {
        // A run ends all of its processes if it is killed.
        let _ = process.kill();
    }
    let ended = match (wait_within(&mut process, TIME_LIMIT), &read) {
        (_, None) | (Ok(None), Some(_)) => Ended::Hung,
        (Ok(Some(status)), Some(_)) => match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Code(code),
            (None, signal) => Ended::Signal(signal.unwrap_or(0)),
        },
        (Err(error), Some(_)) => Ended::NotStarted(errno_of(&error)),
    };
    let [report, errors] = read.unwrap_or_default();
    let report: Value = serde_json::from_slice(&report).unwrap_or_default();
    let word = |key: &str| report.get(key).and_then(Value::as_str);
    WholeRun {
        ended,
        tier: word("tier").and_then(|word| Tier::ALL.into_iter().find(|one| one.word() == word)),
        verdict: word("verdict")
            .and_then(|word| Verdict::ALL.into_iter().find(|one| one.word() == word)),
        errors: error_lines(&String::from_utf8_lossy(&errors)),
    }
}

fn error_lines(errors: &str) -> Vec<String> {
    errors
        .lines()
        .map(str::trim)
        .filter(|line| {
            ["error: ", "caused by: "]
                .iter()
                .any(|word| line.starts_with(word))
        })
        .map(str::to_owned)
        .collect()
}
