//! The reference print-mode client: one text-only turn against a Messages-compatible provider.
//!
//! The client represents a command-line agent client in the built-in cases. It sends the requests, writes the records
//! and creates the files of the observed behaviour, and does no more. Its inputs are its arguments, three environment
//! variables (`AGENT_BASE_URL`, `AGENT_API_KEY`, `HOME`), and standard input if the prompt is not an argument.
//!
//! | exit code | meaning | standard output |
//! |---|---|---|
//! | 0 | the turn succeeded, or help or version was asked for | records, the last is `result/success` |
//! | 1 | the turn failed | records, the last is `result/error_during_execution`, unless standard output is closed |
//! | 2 | usage error: no output was written and no request sent | empty |
//!
//! With 1 and 2, one sentence is printed on standard error. No message contains the key.
//!
//! Flow through the modules: [`cli`] makes an invocation, [`state`] creates the files, [`provider`] sends the body of
//! [`request`], [`sse`] decodes the stream, [`event`] parses each event, [`message`] checks their order, [`turn`]
//! passes them on, and [`records`] writes.

mod cli;
mod event;
mod ids;
mod key;
mod message;
mod provider;
mod records;
mod request;
mod sentence;
mod sse;
mod state;
mod turn;

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use crate::{
    cli::{Command, Environment, Invocation, Mode, UsageError},
    ids::Ids,
    key::ApiKey,
    message::Message,
    provider::{Provider, ProviderError, TIMEOUTS},
    records::{OutputError, Records},
    request::Body,
    state::StateError,
    turn::TurnError,
};

/// Time limit of a turn, from the preflight to the end of the stream.
const TURN_TIMEOUT: Duration = Duration::from_secs(600);

/// Reason why a run failed.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("cannot start the event loop")]
    EventLoop(#[source] io::Error),
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error("the turn took longer than {} seconds", TURN_TIMEOUT.as_secs())]
    TimedOut,
}

/// Runs the client as a program, with the arguments given (the first is the program's name), the environment and the
/// standard streams of the process.
///
/// The exit codes are 0, 1 and 2; see the [crate] documentation.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let environment = Environment::read();
    match start(arguments, &environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error, environment.key().as_ref());
            error.exit_code()
        }
    }
}

fn start(
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
) -> Result<(), RunError> {
    let stdin = Some(io::stdin()).filter(|stdin| !stdin.is_terminal());
    match cli::parse(arguments, environment, stdin)? {
        Command::Turn(invocation) => run(&invocation, io::stdout()),
        Command::Show(text) => Ok(io::stdout()
            .write_all(text.as_bytes())
            .map_err(OutputError::from)?),
    }
}

/// Runs a turn and writes the result record.
fn run(invocation: &Invocation, out: impl Write) -> Result<(), RunError> {
    let started = Instant::now();
    let mut records = Records::new(out, invocation.partial_messages);
    let mut message = Message::new();
    let outcome = one_turn(invocation, &mut message, &mut records);
    match &outcome {
        Ok(()) => records.success(&message, started.elapsed())?,
        // The reader of standard output has closed it.
        Err(RunError::Output(_) | RunError::Turn(TurnError::Output(_))) => {}
        Err(error) => {
            let why = sentence::sentence(error, Some(&invocation.key));
            records.failure(&why, &message, started.elapsed())?;
        }
    }
    outcome
}

/// Runs the pipeline of one turn.
fn one_turn<W: Write>(
    invocation: &Invocation,
    message: &mut Message,
    records: &mut Records<W>,
) -> Result<(), RunError> {
    state::prepare(&invocation.home)?;
    records.init(&working_directory(), &invocation.model)?;
    on_event_loop(TURN_TIMEOUT, async {
        let provider = Provider::new(invocation, TIMEOUTS)?;
        match invocation.mode {
            Mode::Normal => provider.preflight().await,
            Mode::Safe => {}
        }
        records.status()?;
        let body = Body::new(invocation, Ids::new().next());
        let answer = provider.post(&body, invocation.max_retries).await?;
        Ok(turn::read(answer, message, records).await?)
    })
}

/// Runs the turn on this thread, up to `limit`.
fn on_event_loop(
    limit: Duration,
    turn: impl Future<Output = Result<(), RunError>>,
) -> Result<(), RunError> {
    let event_loop = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RunError::EventLoop)?;
    let outcome = event_loop.block_on(async { timeout(limit, turn).await });
    // Without this, a pending name lookup would delay the end.
    event_loop.shutdown_background();
    outcome.map_err(|_| RunError::TimedOut)?
}

/// Returns the working directory for the init record; empty if it was removed.
fn working_directory() -> String {
    std::env::current_dir()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn complain(error: &RunError, key: Option<&ApiKey>) {
    let line = format!("error: {}\n", sentence::sentence(error, key));
    // If standard error is closed, the message cannot be printed anywhere else.
    let _ = io::stderr().write_all(line.as_bytes());
}

impl RunError {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::State(_)
            | Self::Output(_)
            | Self::EventLoop(_)
            | Self::Provider(_)
            | Self::Turn(_)
            | Self::TimedOut => ExitCode::from(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_never_ends_is_ended_by_its_time() {
        let outcome = on_event_loop(Duration::from_millis(10), std::future::pending());
        assert!(matches!(outcome, Err(RunError::TimedOut)));
        assert_eq!(
            RunError::TimedOut.to_string(),
            "the turn took longer than 600 seconds"
        );
    }
}
