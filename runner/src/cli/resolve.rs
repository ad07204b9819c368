//! Meaning of a command line: reads policies, finds programs, rejects contradictions.

use std::ffi::OsStr;

use model::case::Tier;
use policy::Reference;
use report::Form;

use super::options::isolation;
use super::{
    Cli, CliCommand, DiffOptions, DoctorOptions, InitCommand, PolicyCommand, SelftestOptions,
    UsageError, audit, folder, init, run,
};
use crate::request::{
    ClientProgram, DiffRequest, DoctorAction, FleetRequest, InitAction, InitRequest, PolicyAction,
    RunRequest, SelftestRequest, VerifyRequest,
};

/// A command with its arguments resolved.
#[derive(Debug)]
pub(crate) enum Command {
    /// A run.
    Run(Box<RunRequest>),
    /// Runs of several cases.
    Fleet(Box<FleetRequest>),
    /// Several runs that become a case file.
    Init(Box<InitRequest>),
    /// An action on policy files.
    Policy(PolicyAction),
    /// A test of this machine.
    Doctor(DoctorAction),
    /// A test of the sandbox on this machine.
    Selftest(SelftestRequest),
    /// A comparison of two runs.
    Diff(DiffRequest),
    /// A verification of a directory of `--out`.
    Verify(VerifyRequest),
}

impl Cli {
    /// Resolves the command line. Reads the policies that it names, and finds the client. A bare name of a client is
    /// looked up in `search_path`, the variable PATH.
    pub(crate) fn resolve(self, search_path: Option<&OsStr>) -> Result<Command, UsageError> {
        let (case, options) = match self.command {
            CliCommand::Audit(options) => {
                return audit::request(options, search_path).map(Command::run);
            }
            CliCommand::CaseA(options) => (Reference::BuiltIn("case-a".into()), options),
            CliCommand::CaseB(options) => (Reference::BuiltIn("case-b".into()), options),
            CliCommand::Run { cases, options } if folder::is_single(&cases) => {
                let case = cases.into_iter().next().unwrap_or_default();
                (Reference::File(case), options)
            }
            CliCommand::Run { cases, options } => {
                let request = folder::request(&cases, options, search_path)?;
                return Ok(Command::Fleet(Box::new(request)));
            }
            CliCommand::Doctor(options) => return Ok(Command::Doctor(doctor_action(&options))),
            CliCommand::Selftest(options) => {
                return selftest_request(options).map(Command::Selftest);
            }
            CliCommand::Diff(options) => return Ok(Command::Diff(diff_request(options))),
            CliCommand::Init(options) => {
                let request = init::request(options, search_path)?;
                return Ok(Command::Init(Box::new(request)));
            }
            CliCommand::Verify(options) => {
                return Ok(Command::Verify(VerifyRequest {
                    directory: options.directory,
                    required: options.require_sums,
                }));
            }
            CliCommand::Policy { command } => {
                return policy_action(command, search_path).map(Command::Policy);
            }
        };
        run::request(&case, options, search_path).map(Command::run)
    }
}

impl Command {
    fn run(request: RunRequest) -> Self {
        Self::Run(Box::new(request))
    }
}

fn selftest_request(options: SelftestOptions) -> Result<SelftestRequest, UsageError> {
    Ok(SelftestRequest {
        isolation: isolation(options.isolation, &Tier::ALL)?,
        form: output_form(options.json),
        strict: options.strict,
    })
}

fn diff_request(options: DiffOptions) -> DiffRequest {
    DiffRequest {
        old: options.old,
        new: options.new,
        form: output_form(options.json),
    }
}

fn output_form(json: bool) -> Form {
    if json { Form::Json } else { Form::Human }
}

fn doctor_action(options: &DoctorOptions) -> DoctorAction {
    match options {
        DoctorOptions { apparmor: true, .. } => DoctorAction::AppArmor,
        DoctorOptions { json: true, .. } => DoctorAction::Json,
        DoctorOptions { .. } => DoctorAction::Human,
    }
}

fn policy_action(
    command: PolicyCommand,
    search_path: Option<&OsStr>,
) -> Result<PolicyAction, UsageError> {
    Ok(match command {
        PolicyCommand::List => PolicyAction::List,
        PolicyCommand::Show { policy } => PolicyAction::Show(Reference::parse(&policy)),
        PolicyCommand::Check {
            files,
            require_reviewed,
        } => PolicyAction::Check {
            files,
            require_reviewed,
        },
        PolicyCommand::Schema { form } => PolicyAction::Schema(form),
        PolicyCommand::Init { command } => PolicyAction::Init(init_action(command, search_path)?),
    })
}

fn init_action(
    command: InitCommand,
    search_path: Option<&OsStr>,
) -> Result<InitAction, UsageError> {
    match command {
        InitCommand::Case { name } => Ok(InitAction::Case(name)),
        InitCommand::Profile { name, client } => {
            let client = client
                .map(|program| ClientProgram::find(&program, search_path))
                .transpose()?;
            let client = match client {
                Some(ClientProgram::File(file)) => Some(file),
                Some(ClientProgram::Reference | ClientProgram::Hostile) | None => None,
            };
            Ok(InitAction::Profile { name, client })
        }
    }
}
