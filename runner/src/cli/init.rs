//! Resolution of `runner init`: the case without its expectations, checked before the first run.

mod client;
mod project;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use judge::observed::Observed;
use model::case::{Case, Expectations, Origin, Outline, SandboxRules, Source, Tier};
use model::quote::shown_path;
use policy::Reference;
use policy::init::PolicyName;
use scenario::Scenario;

use super::host::absolute;
use super::options::{isolation, scenario, set_limits};
use super::{InitOptions, IsolationArgument, UsageError, audit, inline};
use crate::request::{InitRequest, NewFile, RunRequest};
use project::Project;

/// Runs that `options` ask for.
pub(super) fn request(
    options: InitOptions,
    search_path: Option<&OsStr>,
) -> Result<InitRequest, UsageError> {
    let file = absolute(&options.file)?;
    if fs::symlink_metadata(&file).is_ok() {
        return Err(UsageError::FileExists {
            path: shown_path(&file),
        });
    }
    let project = Project::of(&file)?;
    let client = client::described(&options, &project, search_path)?;
    let mut notes = project.notes;
    notes.extend(client::notes(&client));
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let like = policy::case(&Reference::BuiltIn("case-b".to_owned())).map_err(UsageError::Case)?;
    let mut limits = like.sandbox.limits;
    set_limits(&mut limits, &options.limit, options.timeout)?;
    limits.timeout = options.timeout.unwrap_or(limits.timeout);
    let tiers = match options.isolation {
        IsolationArgument::Auto => Tier::ALL.to_vec(),
        IsolationArgument::Namespace => vec![Tier::Namespace],
        IsolationArgument::Inherited => vec![Tier::Inherited],
    };
    let attempts = audit::allowed(options.allow_attempt, OF_OPTION);
    let new = NewFile {
        name: PolicyName::nearest(&stem).as_str().to_owned(),
        client,
        scenario: options.stub,
        tiers,
        exec: options.allow_exec,
        limits,
        attempts,
    };
    check(&new, &file)?;
    let stub = match &new.scenario {
        Some(name) => scenario(name)?,
        None => Scenario::default(),
    };
    let case = Case {
        name: new.name.clone(),
        like: None,
        summary: String::new(),
        origin: Origin {
            source: Source::File(file.clone()),
            sha256: String::new(),
            text: "".into(),
            outline: Outline::default(),
        },
        invocation: new.client.task(),
        client: Some(new.client.clone()),
        stub,
        sandbox: SandboxRules {
            tiers: new.tiers.clone(),
            limits: new.limits.clone(),
            paths: Vec::new(),
            exec: new.exec.clone(),
        },
        // Receives the interpreters of the program.
        expect: Expectations {
            programs: Some(Vec::new()),
            ..Expectations::default()
        },
    };
    let isolation = isolation(options.isolation, &case.sandbox.tiers)?;
    let stdin = inline::stdin(&case, &new.client)?;
    let (workload, program) = inline::workload(case, &new.client, None, Vec::new(), search_path)?;
    Ok(InitRequest {
        run: RunRequest {
            stdin,
            // Sensitive paths that it looks for are named.
            lookups: true,
            use_cache: true,
            ..RunRequest::for_evidence(workload, program, isolation)
        },
        runs: options.runs,
        file,
        project: project.root,
        new,
        notes,
    })
}

/// Reason of a variable, path or attempt that an option gave.
const OF_OPTION: &str = "asked for when the case was made";

/// Refuses a command line that no case can hold, such as an argument with an unknown placeholder.
fn check(new: &NewFile, file: &Path) -> Result<(), UsageError> {
    let text = new.text(&[], &Observed::default());
    let parsed = policy::case_of_text(file, text);
    parsed.map(drop).map_err(UsageError::NoCase)
}
