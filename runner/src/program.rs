//! The process: its role, its exit code, and its messages on standard error.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use model::evidence::Exit;
use model::finding::Verdict;
use model::report::Purpose;
use nix::errno::Errno;
use sandbox::spawn::{OwnNamespaces, Waiting};
use sys::process::ignore_file_size_signal;

use crate::advice::proofs::{self, PROOFS_ARGUMENT};
use crate::bundle::verify::{self, Verified, VerifyError};
use crate::cli::{self, Cli, Command, UsageError};
use crate::collect::Failure;
use crate::diff::{self, DiffError};
use crate::doctor::audited::TRIAL_ARGUMENT;
use crate::doctor::trial;
use crate::fleet;
use crate::init::{self, InitError};
use crate::output::{self, WriteError};
use crate::policy_command::{self, Outcome, PolicyCommandError};
use crate::prepare::CLIENT_ARGUMENT;
use crate::request::{
    DiffRequest, DoctorAction, FleetRequest, InitRequest, PolicyAction, RunRequest,
    SelftestRequest, VerifyRequest,
};
use crate::run::{self, Done, RunError};
use crate::selftest::{self, HOSTILE_ARGUMENT, SelftestError, SelftestVerdict};
use crate::{doctor, provider, version};

mod messages;

use messages::{
    advised, print_error, print_messages, print_note, print_passed_over, print_text, write_stderr,
};

/// Exit code for wrong use, a wrong policy, or an output that cannot be opened.
const USAGE: u8 = 2;
/// Exit code for a run that was not possible or that lost evidence.
const ERRORED: u8 = Verdict::Errored.exit_code();

/// Exit codes of an audit; those from 124 on are as of timeout(1) and env(1). Smaller codes are the program's own.
const GATE_FAILED: u8 = 123;
const AUDIT_TIMED_OUT: u8 = 124;
const AUDIT_FAILED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Entry point of each process of this executable. A hidden first argument selects a role: stage of a sandbox, guard of
/// temporary directories, proofs of a cause, trial of the doctor, hostile client of the selftest, or reference client. Any
/// other argument belongs to the command line of `runner`.
pub fn main() -> ExitCode {
    if let Some(code) = sandbox::reenter(provider::serve) {
        return code;
    }
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    match arguments.get(1).and_then(|argument| argument.to_str()) {
        Some(TRIAL_ARGUMENT) => trial::main(arguments.get(2..).unwrap_or_default()),
        Some(PROOFS_ARGUMENT) => proofs::main(),
        Some(HOSTILE_ARGUMENT) => {
            arguments.remove(1);
            selftest::main(arguments)
        }
        Some(CLIENT_ARGUMENT) => {
            arguments.remove(1);
            client::main(arguments)
        }
        _ => command(arguments),
    }
}

fn command(arguments: Vec<OsString>) -> ExitCode {
    ignore_file_size_signal();
    if version::is_asked_in_full(arguments.get(1..).unwrap_or_default()) {
        let written = output::stdout().and_then(|mut stdout| {
            stdout.write_all(version::in_full().as_bytes())?;
            stdout.flush()
        });
        return ExitCode::from(text_code(written, USAGE));
    }
    let is_audit = arguments.get(1).is_some_and(|word| word == "audit");
    // The stage makes its namespaces while the options are parsed and the policies read. If it cannot be started, the run
    // itself tries again and says why.
    let early = cli::is_likely_run(&arguments).then_some(OwnNamespaces::UserAndNetwork);
    let waiting = early.and_then(|namespaces| Waiting::start(namespaces).ok());
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let wrong = if is_audit { AUDIT_FAILED } else { USAGE };
            if error.use_stderr() {
                // If the stream is closed, the text cannot be written anywhere else.
                let _ = error.print();
                return ExitCode::from(wrong);
            }
            let written = output::stdout().map(drop).and_then(|()| error.print());
            let written = written.and_then(|()| io::stdout().flush());
            return ExitCode::from(text_code(written, wrong));
        }
    };
    let code = match cli.resolve(std::env::var_os("PATH").as_deref()) {
        Ok(Command::Run(request)) => run(&request, waiting),
        Ok(Command::Fleet(request)) => fleet(*request, waiting),
        Ok(Command::Init(request)) => init(&request),
        Ok(Command::Policy(action)) => policy(&action),
        Ok(Command::Doctor(action)) => doctor(action),
        Ok(Command::Selftest(request)) => self_test(request),
        Ok(Command::Diff(request)) => diff(&request),
        Ok(Command::Verify(request)) => verify(&request),
        Err(error) => {
            let hint = error.hint();
            print_error("error", &error, Some(&hint));
            if is_audit {
                usage_error_code(&error)
            } else {
                USAGE
            }
        }
    };
    ExitCode::from(code)
}

/// Exit code for a help or version text. A reader that has left is no error, as for any program in a pipe.
fn text_code(written: io::Result<()>, failed: u8) -> u8 {
    match written {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            print_text(
                "error",
                &format!("cannot write to standard output: {error}"),
                None,
            );
            failed
        }
    }
}

fn run(request: &RunRequest, waiting: Option<Waiting>) -> u8 {
    let purpose = request.workload.purpose();
    match run::run(request, waiting) {
        Ok(done) => {
            print_messages(&done, purpose);
            match purpose {
                Purpose::Judge => code_of(done.verdict, &done.lost),
                Purpose::Audit => audit_code(&done),
            }
        }
        Err(error) => {
            print_error("error", &error, advised(error.advice()).as_deref());
            match purpose {
                Purpose::Judge => error.exit_code(),
                Purpose::Audit if matches!(error, RunError::NotStartable(_)) => NOT_FOUND,
                Purpose::Audit => AUDIT_FAILED,
            }
        }
    }
}

fn fleet(request: FleetRequest, waiting: Option<Waiting>) -> u8 {
    let told = fleet::run(request, waiting, |ended| {
        let line = |finding| report::fleet::line(ended.run, (ended.number, ended.all), finding);
        let finding = ended.run.first_finding.as_ref();
        match ended.result {
            Ok(done) => {
                // An error of its own follows the line.
                let finding = finding.filter(|_| done.failure.is_none() && done.lost.is_empty());
                write_stderr(line(finding).as_bytes());
                print_messages(done, Purpose::Judge);
            }
            Err(error) => {
                write_stderr(line(None).as_bytes());
                print_error("error", error, advised(error.advice()).as_deref());
            }
        }
    });
    match told {
        Ok(done) => {
            for error in &done.lost {
                print_error("error", error, None);
            }
            code_of(done.verdict, &done.lost)
        }
        Err(error) => {
            print_error("error", &error, error.hint());
            USAGE
        }
    }
}

fn init(request: &InitRequest) -> u8 {
    match init::run(request) {
        Ok(written) => {
            for line in &written.lines {
                print_note(line);
            }
            for line in &written.doubts {
                print_note(line);
            }
            for line in &written.refused {
                print_note(&format!("no rule accepts {line}"));
            }
            u8::from(!written.refused.is_empty() || !written.doubts.is_empty())
        }
        Err(error) => {
            print_error("error", &error, advised(error.advice()).as_deref());
            match error {
                InitError::Write { .. } => USAGE,
                InitError::Run(error) => error.exit_code(),
                InitError::Failed { .. } | InitError::NoEnd { .. } | InitError::Unreadable(_) => {
                    ERRORED
                }
            }
        }
    }
}

/// If a report could not be written, the verdict is not delivered: exit with 3.
fn code_of(verdict: Verdict, lost: &[WriteError]) -> u8 {
    match verdict {
        Verdict::Passed | Verdict::Failed | Verdict::Audited if !lost.is_empty() => ERRORED,
        verdict @ (Verdict::Passed | Verdict::Failed | Verdict::Errored | Verdict::Audited) => {
            verdict.exit_code()
        }
    }
}

fn usage_error_code(error: &UsageError) -> u8 {
    if matches!(error, UsageError::ClientNotFound { .. }) {
        NOT_FOUND
    } else if matches!(error, UsageError::ClientNotExecutable { .. }) {
        NOT_EXECUTABLE
    } else {
        AUDIT_FAILED
    }
}

/// Exit code of an audit, by the first rule that applies: the audit itself failed, the program was not started or ran
/// too long, a gate failed, the program's own code.
fn audit_code(done: &Done) -> u8 {
    match (&done.failure, done.exit) {
        (Some(Failure::SetUp(_) | Failure::NotSealed(_)), _) => AUDIT_FAILED,
        _ if !done.lost.is_empty() => AUDIT_FAILED,
        (Some(Failure::NotExecuted(Errno::ENOENT)), _) => NOT_FOUND,
        (Some(Failure::NotExecuted(_)), _) => NOT_EXECUTABLE,
        (None, _) if done.verdict == Verdict::Errored => AUDIT_FAILED,
        (None, Exit::OutputLimit | Exit::RequestLimit | Exit::Interrupted | Exit::NotStarted) => {
            AUDIT_FAILED
        }
        (None, Exit::Timeout(_)) => AUDIT_TIMED_OUT,
        (None, Exit::Code(_) | Exit::Signal(_)) if done.verdict == Verdict::Failed => GATE_FAILED,
        (None, Exit::Code(code)) => u8::try_from(code).unwrap_or(AUDIT_FAILED),
        (None, Exit::Signal(signal)) => u8::try_from(128 + signal).unwrap_or(AUDIT_FAILED),
    }
}

/// If the result cannot be written, exit with 3.
fn doctor(action: DoctorAction) -> u8 {
    let examined = output::stdout()
        .map_err(doctor::DoctorError::from)
        .and_then(|mut stdout| doctor::run(action, run::colour(stdout.is_terminal()), &mut stdout));
    match examined {
        Ok(code) => code,
        Err(error) => {
            print_error("error", &error, None);
            ERRORED
        }
    }
}

fn self_test(request: SelftestRequest) -> u8 {
    match selftest::run(request) {
        Ok(SelftestVerdict::Held) => 0,
        Ok(SelftestVerdict::Broken) => 1,
        Ok(SelftestVerdict::Inconclusive) => ERRORED,
        Err(error) => {
            if let SelftestError::NotStarted { passed_over, .. } = &error {
                print_passed_over(passed_over);
            }
            print_error("error", &error, advised(error.advice()).as_deref());
            ERRORED
        }
    }
}

/// If the comparison cannot be written, exit with 2.
fn diff(request: &DiffRequest) -> u8 {
    let compared = output::stdout()
        .map_err(DiffError::from)
        .and_then(|mut stdout| diff::run(request, run::colour(stdout.is_terminal()), &mut stdout));
    match compared {
        Ok(diff::Status::Unchanged) => 0,
        Ok(diff::Status::Changed) => 1,
        Ok(diff::Status::Incomplete) => USAGE,
        Err(error) => {
            print_error("error", &error, error.hint());
            USAGE
        }
    }
}

fn verify(request: &VerifyRequest) -> u8 {
    let verified = output::stdout()
        .map_err(VerifyError::Write)
        .and_then(|mut stdout| verify::verify(request, &mut stdout));
    match verified {
        Ok(Verified::Good) => 0,
        Ok(Verified::Bad) => 1,
        Err(error) => {
            print_error("error", &error, error.hint());
            USAGE
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
            print_error("error", &error, error.hint().as_deref());
            USAGE
        }
    }
}

impl RunError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_)
            | Self::Output(_)
            | Self::Bundle(_)
            | Self::Baseline(_)
            | Self::Keep(_) => USAGE,
            Self::Prepare(error) if error.is_policy() => USAGE,
            Self::NotStartable(_)
            | Self::Prepare(_)
            | Self::EventLoop(_)
            | Self::NoTier
            | Self::Digest(_) => ERRORED,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn done(verdict: Verdict, exit: Exit) -> Done {
        Done {
            verdict,
            exit,
            failure: None,
            passed_over: Vec::new(),
            kept: None,
            bundled: None,
            lost: Vec::new(),
            input_error: None,
            before: Vec::new(),
        }
    }

    #[test]
    fn own_failure_of_an_audit_comes_first() {
        let lost = || vec![WriteError::Keep(io::Error::other("full"))];
        let not_found = || Some(Failure::NotExecuted(Errno::ENOENT));
        for (exit, failure) in [
            (Exit::Code(0), None),
            (Exit::Timeout(Duration::from_secs(1)), None),
            (Exit::NotStarted, not_found()),
        ] {
            let audit = Done {
                lost: lost(),
                failure,
                ..done(Verdict::Failed, exit)
            };
            assert_eq!(audit_code(&audit), AUDIT_FAILED, "{exit:?}");
        }
        let unfound = Done {
            failure: not_found(),
            ..done(Verdict::Errored, Exit::NotStarted)
        };
        assert_eq!(audit_code(&unfound), NOT_FOUND);
    }

    #[test]
    fn an_unsound_audit_looks_neither_like_its_program_nor_like_a_time_out() {
        let exits = [
            (Exit::Timeout(Duration::from_secs(1)), AUDIT_TIMED_OUT),
            (Exit::Code(0), 0),
            (Exit::Code(7), 7),
            (Exit::Signal(9), 137),
        ];
        for (exit, own) in exits {
            for verdict in [Verdict::Audited, Verdict::Passed] {
                assert_eq!(audit_code(&done(verdict, exit)), own, "{exit:?}");
            }
            let gated = if own == AUDIT_TIMED_OUT {
                own
            } else {
                GATE_FAILED
            };
            assert_eq!(audit_code(&done(Verdict::Failed, exit)), gated);
            assert_eq!(audit_code(&done(Verdict::Errored, exit)), AUDIT_FAILED);
            let errored = done(Verdict::Errored, exit);
            assert_eq!(code_of(errored.verdict, &errored.lost), ERRORED);
        }
    }
}
