//! The reference print-mode client: one text-only turn against a Messages-compatible provider.
//!
//! It stands in for a command-line agent client, as the subject of the built-in cases: it sends
//! the requests, writes the records and makes the files of the observed behaviour, and nothing
//! else. What it reads: its arguments, three environment variables (`AGENT_BASE_URL`,
//! `AGENT_API_KEY`, `HOME`), and standard input if the prompt is not an argument.
//!
//! | exit code | meaning | standard output |
//! |---|---|---|
//! | 0 | the turn succeeded | records, the last is `result/success` |
//! | 1 | it failed | records, the last is `result/error_during_execution`, unless nobody reads it |
//! | 2 | usage error: nothing was written or sent | nothing |
//!
//! With 1 and 2 there is one sentence on standard error. The key is in no message.
//!
//! The way through the modules: [`cli`] gives an invocation, [`state`] makes the files,
//! [`provider`] sends what [`request`] describes, [`sse`] decodes the stream, [`event`]
//! understands each event, [`message`] checks their order, [`turn`] exposes them, and [`records`]
//! writes.

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

/// How long a turn may take, from the preflight to the end of the stream.
const TURN_TIMEOUT: Duration = Duration::from_secs(600);

/// Why a run did not succeed.
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

/// Runs the client as a program: arguments (the first is the program's name), environment and the
/// three standard streams are those of the process.
///
/// The exit codes are 0, 1 and 2, see the [crate] documentation.
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

/// One run: a turn, and the result record that says how it ended.
fn run(invocation: &Invocation, out: impl Write) -> Result<(), RunError> {
    let started = Instant::now();
    let mut records = Records::new(out, invocation.partial_messages);
    let mut message = Message::new();
    let outcome = one_turn(invocation, &mut message, &mut records);
    match &outcome {
        Ok(()) => records.success(&message, started.elapsed())?,
        // Nobody reads any more.
        Err(RunError::Output(_) | RunError::Turn(TurnError::Output(_))) => {}
        Err(error) => {
            let why = sentence::sentence(error, Some(&invocation.key));
            records.failure(&why, &message, started.elapsed())?;
        }
    }
    outcome
}

/// The pipeline.
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

/// Runs the turn on this thread, within `limit`.
fn on_event_loop(
    limit: Duration,
    turn: impl Future<Output = Result<(), RunError>>,
) -> Result<(), RunError> {
    let event_loop = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RunError::EventLoop)?;
    let outcome = event_loop.block_on(async { timeout(limit, turn).await });
    // A name that is still being looked up does not hold up the end.
    event_loop.shutdown_background();
    outcome.map_err(|_| RunError::TimedOut)?
}

/// The working directory as the init record shows it; empty if it is gone.
fn working_directory() -> String {
    std::env::current_dir()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn complain(error: &RunError, key: Option<&ApiKey>) {
    let line = format!("error: {}\n", sentence::sentence(error, key));
    // There is no one left to tell if standard error is closed.
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
