//! Resolution of the run of one case: its policies read, its program found.

use std::ffi::OsStr;

use model::case::{Case, Source};
use model::profile::{Profile, Settings};
use model::text::count;
use policy::{self, Reference};

use super::options::{allow_exec, baseline, isolation, scenario, set_limits, stdin};
use super::{RunOptions, UsageError, inline, reports};
use crate::request::{ClientProgram, RunRequest, StdinChoice};
use crate::workload::Workload;

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

/// Run of one case.
pub(super) fn request(
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
    if !options.allow_exec.is_empty() && case.origin.source == Source::BuiltIn {
        return Err(UsageError::ExecInBuiltIn {
            case: case.name.clone(),
        });
    }
    allow_exec(&mut case.sandbox, &options.allow_exec);
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
        lookups: options.lookups,
        hidden: Vec::new(),
        baseline: baseline(options.baseline, options.update_baseline),
        fail_on: Vec::new(),
        keep_home: options.keep_home,
        use_cache: !options.no_cache,
    })
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
