//! The last probe: a real run of case-b with our own file, from outside, as a user would make it.

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

/// The case has a shorter time limit of its own.
const LIMIT: Duration = Duration::from_secs(60);

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Code(i32),
    Signal(i32),
    /// Not within the time limit.
    Hung,
    NotStarted(Errno),
}

/// What a real run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WholeRun {
    pub(super) ended: Ended,
    /// From its report, where there is one.
    pub(super) tier: Option<Tier>,
    pub(super) verdict: Option<Verdict>,
    /// What it said of its failure on standard error, a line each.
    pub(super) said: Vec<String>,
}

impl WholeRun {
    /// `ended with exit code 0, PASSED in tier namespace`
    pub(super) fn told(&self) -> String {
        let ended = match self.ended {
            Ended::Code(code) => format!("ended with exit code {code}"),
            Ended::Signal(signal) => format!("was ended by signal {signal}"),
            Ended::Hung => format!("did not end within {} s", LIMIT.as_secs()),
            Ended::NotStarted(errno) => format!("could not be started ({errno:?})"),
        };
        match (self.verdict, self.tier) {
            (Some(verdict), Some(tier)) if verdict != Verdict::Errored => {
                let word = verdict.word().to_uppercase();
                format!("{ended}, {word} in tier {}", tier.word())
            }
            _ => ended,
        }
    }
}

/// Makes the run.
pub(super) fn make() -> WholeRun {
    let started = Command::new(OWN_FILE)
        .arg0("runner")
        .args(["case-b", "--report", "json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    match started {
        Ok(process) => follow(process),
        Err(error) => WholeRun {
            ended: Ended::NotStarted(errno_of(&error)),
            tier: None,
            verdict: None,
            said: Vec::new(),
        },
    }
}

fn follow(mut process: Child) -> WholeRun {
    let outputs = [
        process.stdout.take().map(OwnedFd::from),
        process.stderr.take().map(OwnedFd::from),
    ];
    let read = read_to_end_within(outputs, LIMIT);
    if read.is_none() {
        // A run ends everything of its own with itself.
        let _ = process.kill();
    }
    let ended = match (wait_within(&mut process, LIMIT), &read) {
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
        said: explained(&String::from_utf8_lossy(&errors)),
    }
}

fn explained(errors: &str) -> Vec<String> {
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
