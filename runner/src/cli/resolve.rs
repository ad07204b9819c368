//! Meaning of a command line: reads policies, finds programs, rejects contradictions.

use std::ffi::OsStr;

use model::case::{Case, Tier};
use model::profile::{Profile, Settings};
use model::text::count;
use policy::{self, Reference};
use report::Form;

use super::options::{baseline, isolation, scenario, set_limits, stdin};
use super::{
    Cli, CliCommand, DiffOptions, DoctorOptions, InitCommand, IsolationArgument, PolicyCommand,
    RunOptions, SelftestOptions, UsageError, audit, init, inline, reports,
};
use crate::request::{
    ClientProgram, DiffRequest, DoctorAction, InitAction, InitRequest, PolicyAction, RunRequest,
    SelftestRequest, StdinChoice, VerifyRequest,
};
use crate::workload::Workload;

/// A command with its arguments resolved.
#[derive(Debug)]
pub(crate) enum Command {
    /// A run.
    Run(Box<RunRequest>),
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
    /// Checks for a command that makes a run with namespaces of its own, where the host can.
    pub(crate) fn may_run_in_namespaces(&self) -> bool {
        let isolation = match &self.command {
            CliCommand::Audit(options) => options.isolation,
            CliCommand::CaseA(options)
            | CliCommand::CaseB(options)
            | CliCommand::Run { options, .. } => options.isolation,
            CliCommand::Init(_)
            | CliCommand::Doctor(_)
            | CliCommand::Selftest(_)
            | CliCommand::Diff(_)
            | CliCommand::Verify(_)
            | CliCommand::Policy { .. } => return false,
        };
        isolation != IsolationArgument::Inherited
    }

    /// Resolves the command line. Reads the policies that it names, and finds the client. A bare name of a client is
    /// looked up in `search_path`, the variable PATH.
    pub(crate) fn resolve(self, search_path: Option<&OsStr>) -> Result<Command, UsageError> {
        let (case, options) = match self.command {
            CliCommand::Audit(options) => {
                return audit::request(options, search_path).map(Command::run);
            }
            CliCommand::CaseA(options) => (Reference::BuiltIn("case-a".into()), options),
            CliCommand::CaseB(options) => (Reference::BuiltIn("case-b".into()), options),
            CliCommand::Run { case, options } => (Reference::File(case), options),
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
        run_request(&case, options, search_path).map(Command::run)
    }
}

impl Command {
    fn run(request: RunRequest) -> Self {
        Self::Run(Box::new(request))
    }
}

/// Profile of a run without `--profile`.
const DEFAULT_PROFILE: &str = "reference";

/// Rejects options for the client of a profile, which the case does not have.
fn reject_profile(options: &RunOptions) -> Result<(), UsageError> {
    let given = [
        ("--client", options.client.is_some()),
        ("--profile", options.profile.is_some()),
        ("--plain", options.plain),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(UsageError::ClientOfCase { option }),
        None => Ok(()),
    }
}

/// Workload and program of a case that a profile spells.
fn of_profile(
    case: Case,
    options: &RunOptions,
    search_path: Option<&OsStr>,
) -> Result<(Workload, ClientProgram), UsageError> {
    let name = options.profile.as_deref();
    let reference = Reference::parse(name.unwrap_or(OsStr::new(DEFAULT_PROFILE)));
    let profile = policy::profile(&reference).map_err(UsageError::Profile)?;
    profile.command_line(&case.invocation)?;
    if !options.plain {
        require_settings(&profile, &case)?;
    }
    let client = match &options.client {
        None => ClientProgram::Reference,
        Some(program) => ClientProgram::find(program, search_path)?,
    };
    let workload = Workload::Client {
        expect: Box::new(case.expect.of_client(&profile)),
        case: Box::new(case),
        profile,
        settings: if options.plain {
            Settings::Plain
        } else {
            Settings::OfCase
        },
        asked_stub: options.stub.clone(),
        further: options.client_args.clone(),
    };
    Ok((workload, client))
}

fn run_request(
    case: &Reference,
    options: RunOptions,
    search_path: Option<&OsStr>,
) -> Result<RunRequest, UsageError> {
    let reports = reports::targets(options.report.clone())?;
    let mut case = policy::case(case).map_err(UsageError::Case)?;
    require_digest(&case, options.require_case.clone())?;
    let not_reviewed = case.expect.not_reviewed();
    if options.require_reviewed && not_reviewed > 0 {
        return Err(UsageError::NotReviewed {
            rules: count(not_reviewed, "rule"),
        });
    }
    let isolation = isolation(options.isolation, &case.sandbox.tiers)?;
    set_limits(&mut case.sandbox.limits, &options.limit, options.timeout)?;
    if let Some(name) = &options.stub {
        case.stub = scenario(name)?;
    }
    let of_case = match &case.client {
        Some(client) if options.stdin.is_none() => inline::stdin(&case, client)?,
        Some(_) | None => StdinChoice::Nothing,
    };
    let (workload, client) = match case.client.clone() {
        Some(client) => {
            reject_profile(&options)?;
            let further = options.client_args;
            inline::workload(case, &client, options.stub, further, search_path)?
        }
        None => of_profile(case, &options, search_path)?,
    };
    Ok(RunRequest {
        workload,
        client,
        reports,
        isolation,
        timeout: options.timeout,
        limits: options.limit,
        stdin: stdin(options.stdin, of_case),
        out: options.out,
        lookups: false,
        baseline: baseline(options.baseline, options.update_baseline),
        fail_on: Vec::new(),
        keep_home: options.keep_home,
        use_cache: !options.no_cache,
    })
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

fn require_digest(case: &Case, required: Option<String>) -> Result<(), UsageError> {
    match required {
        Some(required) if required != case.origin.sha256 => Err(UsageError::OtherCase {
            found: case.origin.sha256.clone(),
            required,
        }),
        Some(_) | None => Ok(()),
    }
}

/// Rejects a case that no variable of the profile applies to. Otherwise, a copy of a case under another name would
/// silently lose the variables.
fn require_settings(profile: &Profile, case: &Case) -> Result<(), UsageError> {
    let known = profile.cases_with_settings();
    let is_known = |name: &str| known.contains(name) || policy::is_built_in_case(name);
    if known.is_empty() || case.names().into_iter().any(is_known) {
        return Ok(());
    }
    let lines = known.iter().map(|name| format!("like = \"{name}\""));
    Err(UsageError::NoSettings {
        profile: profile.name.clone(),
        case: case.name.clone(),
        hint: format!(
            "add {} to the case, or run with --plain",
            Vec::from_iter(lines).join(" or ")
        ),
    })
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
