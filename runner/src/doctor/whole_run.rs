//! The last probe: a real run of case-b with our own file, from outside, as a user would make it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::read;
use serde_json::Value;

use crate::case::Tier;
use crate::sandbox::message::errno_of;
use crate::sandbox::spawn::OWN_FILE;
use crate::verdict::Verdict;

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
    let read = read_to_end(outputs);
    if read.is_none() {
        // A run ends everything of its own with itself.
        let _ = process.kill();
    }
    let ended = match (process.wait(), &read) {
        (_, None) => Ended::Hung,
        (Ok(status), Some(_)) => match (status.code(), status.signal()) {
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

/// Both streams to their end, without a thread, which a host with low limits may not give; `None` where the time is
/// up. What cannot be read is missing, and the report with it.
fn read_to_end(mut outputs: [Option<OwnedFd>; 2]) -> Option<[Vec<u8>; 2]> {
    let deadline = Instant::now() + LIMIT;
    let mut texts = [Vec::new(), Vec::new()];
    let mut buffer = vec![0; 16 * 1024];
    while outputs.iter().any(Option::is_some) {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        let open: Vec<BorrowedFd<'_>> = outputs.iter().flatten().map(AsFd::as_fd).collect();
        let mut polled: Vec<PollFd<'_>> = (open.into_iter())
            .map(|one| PollFd::new(one, PollFlags::POLLIN))
            .collect();
        match poll(&mut polled, left) {
            Ok(0) => return None,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Some(texts),
        }
        let ready: Vec<bool> = polled.iter().map(|one| one.any() == Some(true)).collect();
        let mut ready = ready.into_iter();
        for (output, text) in outputs.iter_mut().zip(&mut texts) {
            let Some(descriptor) = output else { continue };
            if ready.next() != Some(true) {
                continue;
            }
            match read(descriptor, &mut buffer) {
                Ok(0) | Err(_) => *output = None,
                Ok(length) => text.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            }
        }
    }
    Some(texts)
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
