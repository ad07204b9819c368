//! The program: which of its roles this process has, its exit code, and its words for people.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command, PolicyAction, RunRequest};
use crate::collect::Failure;
use crate::output::{self, OutputError};
use crate::policy_command::{self, Outcome, PolicyCommandError};
use crate::prepare::{CLIENT_ARGUMENT, PrepareError};
use crate::run::{self, Done, RunError};
use crate::sandbox::spawn::STAGE_ARGUMENT;
use crate::sandbox::stage;
use crate::verdict::Verdict;

/// Wrong use, a policy that is no good, or an output that cannot be opened.
const USAGE: u8 = 2;
/// The run says nothing, or could not be made.
const ERRORED: u8 = 3;

/// Entry of every process that is made of this executable. Two hidden first arguments make it the stage of a
/// sandbox or the reference client; whatever else is the runner's command line.
pub fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    match arguments.get(1).and_then(|argument| argument.to_str()) {
        Some(STAGE_ARGUMENT) => stage::main(),
        Some(CLIENT_ARGUMENT) => {
            arguments.remove(1);
            client::main(arguments)
        }
        _ => command(arguments),
    }
}

fn command(arguments: Vec<OsString>) -> ExitCode {
    let code = match Cli::parse_from(arguments).resolve(std::env::var_os("PATH").as_deref()) {
        Ok(Command::Run(request)) => run(&request),
        Ok(Command::Policy(action)) => policy(&action),
        Err(error) => {
            let hint = error.hint();
            tell("error", &error, Some(&hint));
            USAGE
        }
    };
    ExitCode::from(code)
}

fn run(request: &RunRequest) -> u8 {
    match run::run(request) {
        Ok(Done {
            verdict,
            failure,
            kept,
            lost,
        }) => {
            if let Some(failure) = failure {
                tell("error", &failure, failure.hint());
            }
            if let Some(copy) = kept {
                note(&format!("the home is kept in {}", copy.display()));
            }
            for error in &lost {
                tell("error", error, None);
            }
            match verdict {
                Verdict::Passed | Verdict::Failed if !lost.is_empty() => ERRORED,
                Verdict::Passed => 0,
                Verdict::Failed => 1,
                Verdict::Errored => ERRORED,
            }
        }
        Err(error) => {
            tell("error", &error, error.hint());
            error.exit_code()
        }
    }
}

fn policy(action: &PolicyAction) -> u8 {
    let done = output::stdout()
        .map_err(PolicyCommandError::from)
        .and_then(|mut stdout| policy_command::run(action, &mut stdout));
    match done {
        Ok(Outcome::Good) => 0,
        Ok(Outcome::Bad) => USAGE,
        Err(error) => {
            tell("error", &error, error.hint().as_deref());
            USAGE
        }
    }
}

impl RunError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Output(_) => USAGE,
            Self::Prepare(error) if error.is_policy() => USAGE,
            Self::Prepare(_)
            | Self::Namespaces(_)
            | Self::EventLoop(_)
            | Self::Keep(_)
            | Self::Digest(_)
            | Self::Render(_) => ERRORED,
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Namespaces(_) => Some("/proc must be mounted where the runner is started"),
            Self::Prepare(PrepareError::FewFiles { .. }) => {
                Some("raise the hard limit, as with `ulimit -Hn 1024`, before the start")
            }
            Self::Output(OutputError::Replaces { .. }) => Some("give the report a file of its own"),
            Self::Output(_)
            | Self::Prepare(_)
            | Self::EventLoop(_)
            | Self::Keep(_)
            | Self::Digest(_)
            | Self::Render(_) => None,
        }
    }
}

impl Failure {
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::SetUp(error) => error.hint(),
            Self::NotSealed(_) => Some(
                "this is a fault of the kernel, of its configuration or of this program: please report it",
            ),
            Self::NotExecuted(nix::errno::Errno::ENOENT) => Some(
                "a dynamic program needs its loader and libraries, a script its interpreter: name their paths in the profile",
            ),
            Self::NotExecuted(nix::errno::Errno::EACCES) => Some(
                "the client runs as another user than root: its file must be readable and executable for all",
            ),
            Self::NotExecuted(_) => None,
        }
    }
}

/// `error:`, then each cause on a line of its own, then a hint.
fn tell(label: &str, error: &dyn std::error::Error, hint: Option<&str>) {
    let mut text = format!("{label}: {error}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!("  caused by: {error}\n"));
        cause = error.source();
    }
    if let Some(hint) = hint {
        text.push_str(&format!("  hint: {hint}\n"));
    }
    write_stderr(&text);
}

fn note(text: &str) {
    write_stderr(&format!("note: {text}\n"));
}

/// Where standard error is closed there is nobody to tell.
fn write_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
