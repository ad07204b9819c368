//! Hostile client inside the runner's executable. It makes the probes that its command line names, each in its own
//! process. The result of each is a line of JSON on standard output.
//!
//! The same code makes the twins outside. Arguments before the first `--attempt` are ignored: they are those of any
//! client.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use nix::unistd::alarm;
use sys::attempt::allow_any_tracer;
use sys::process::{read_to_end_within, wait_within};

pub use crate::own_program::HOSTILE_ARGUMENT;
use crate::own_program::{CRASH, NOTHING_TO_DO, own_file};
use crate::probe::{NOTHING, TwinEnv};
use crate::reply::{self, Reply, Said};
use crate::{table, twin_env};

/// Option that begins an attempt; its name and its targets follow.
pub const ATTEMPT: &str = "--attempt";
/// Option that makes one attempt in this process; its name and its targets follow.
const MAKE: &str = "--make";
/// Option like [`MAKE`] for a twin, in its environment.
const TWIN: &str = "--twin";
/// Option that waits until standard input ends.
pub(super) const WAIT: &str = "--wait";
/// Option that starts a waiting process, prints its pid and exits, so that the waiting process is no child of the
/// caller.
pub const WAIT_APART: &str = "--wait-apart";
/// Time limit of an attempt, in seconds, by SIGALRM.
const ATTEMPT_SECONDS: u32 = 20;
/// Time limit of an attempt's process. A stopped process gets no SIGALRM, so its parent kills it at this limit.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Entry point of the hostile client; `arguments` exclude the hidden one.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let words: Vec<String> = arguments
        .into_iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    match words.as_slice() {
        [NOTHING_TO_DO, ..] => ExitCode::SUCCESS,
        [WAIT, ..] => {
            allow_any_tracer();
            // Every result of the copy ends the wait.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            ExitCode::SUCCESS
        }
        [WAIT_APART, ..] => wait_apart(),
        [CRASH, ..] => std::process::abort(),
        [option @ (MAKE | TWIN), name, aims @ ..] => {
            let _ = alarm::set(ATTEMPT_SECONDS);
            say(&make(*option == TWIN, name, aims))
        }
        ordinary => make_all(ordinary),
    }
}

fn wait_apart() -> ExitCode {
    let waiting = Command::new(own_file())
        .args([HOSTILE_ARGUMENT, WAIT])
        .stdout(Stdio::null())
        .spawn();
    let printed =
        waiting.and_then(|child| io::stdout().write_all(child.id().to_string().as_bytes()));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn make_all(words: &[&str]) -> ExitCode {
    for attempt in words.split(|word| *word == ATTEMPT).skip(1) {
        let Some((name, aims)) = attempt.split_first() else {
            continue;
        };
        let said = in_own_process(MAKE, name, aims, |_| {});
        if say(&said) != ExitCode::SUCCESS {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Makes the twin of a probe in a new process of this program, in its environment. `change` may modify the command.
pub fn twin(name: &str, aims: &[impl AsRef<OsStr>], change: impl FnOnce(&mut Command)) -> Said {
    in_own_process(TWIN, name, aims, change)
}

/// Makes one attempt in a new process of this program and returns its result. If the process prints no result, its exit
/// status is the result.
fn in_own_process(
    option: &str,
    name: &str,
    aims: &[impl AsRef<OsStr>],
    change: impl FnOnce(&mut Command),
) -> Said {
    let mut command = Command::new(own_file());
    command.args([HOSTILE_ARGUMENT, option, name]);
    command.args(aims.iter().map(AsRef::as_ref));
    command.stdout(Stdio::piped());
    change(&mut command);
    let said = |reply, detail: String| Said {
        attempt: name.to_owned(),
        reply,
        detail,
    };
    let ended = command
        .spawn()
        .and_then(|mut child| ended_within(&mut child, LIMIT));
    let (status, text) = match ended {
        Ok(ended) => ended,
        Err(error) => return said(Reply::Unmade, reply::error_words(&error)),
    };
    match (status.signal(), serde_json::from_str::<Said>(&text)) {
        (None, Ok(line)) if line.attempt == name => line,
        (Some(signal), _) => said(Reply::Killed(signal), String::new()),
        (None, _) => said(
            Reply::Unmade,
            format!("it ended with {status} and no result"),
        ),
    }
}

/// Waits for a child of this program and returns its exit status and output. The child is killed at the limit.
///
/// # Errors
/// `TimedOut` at the limit.
pub fn ended_within(child: &mut Child, limit: Duration) -> io::Result<(ExitStatus, String)> {
    let output = child.stdout.take().map(OwnedFd::from);
    let read = read_to_end_within([output], limit);
    if read.is_none() {
        child.kill()?;
    }
    match (wait_within(child, limit)?, read) {
        (Some(status), Some([text])) => Ok((status, String::from_utf8_lossy(&text).into_owned())),
        (Some(_) | None, _) => {
            let cause = format!("it did not end within {} s", limit.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, cause))
        }
    }
}

fn say(said: &Said) -> ExitCode {
    let line = serde_json::to_string(said).unwrap_or_default();
    let written = io::stdout().write_all(format!("{line}\n").as_bytes());
    if written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn make(is_twin: bool, name: &str, aims: &[&str]) -> Said {
    let said = |reply, detail| Said {
        attempt: name.to_owned(),
        reply,
        detail,
    };
    let Some(probe) = table::find(name) else {
        return said(Reply::Unmade, "no such attempt".to_owned());
    };
    let env = if is_twin {
        probe.twin_env
    } else {
        TwinEnv::Host
    };
    let prepared = match twin_env::prepare(env) {
        Ok(prepared) => prepared,
        Err(error) => return said(Reply::Unmade, error.to_string()),
    };
    let aims: Vec<OsString> = aims.iter().map(OsString::from).collect();
    let outcome = probe.call.make(&aims);
    drop(prepared);
    match outcome {
        Ok(detail) => said(Reply::Through, detail),
        Err(NOTHING) => said(Reply::Nothing, String::new()),
        Err(errno) => said(Reply::Refused(errno as i32), String::new()),
    }
}
