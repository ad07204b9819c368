//! Resolution of a case with a client of its own: the program found, and the paths that it needs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use model::audit::{Audit, OF_CALLER, ProgramLocation};
use model::case::client::{ToolchainRule, VariableValue};
use model::case::expect::ProgramRule;
use model::case::{Access, Case, InlineClient, PathRule, Presence, Source};
use model::profile::{Cases, Variable};
use model::quote::shown_path;

use super::audit::put_first_in_path;
use super::{UsageError, host};
use crate::audit::{Caller, inside, show_program};
use crate::home_dirs::HomeDirs;
use crate::request::{ClientProgram, StdinChoice};
use crate::toolchain::{self, Machine};
use crate::workload::Workload;

/// Reason of the rule for an interpreter of the program.
pub(super) const OF_TOOLCHAIN: &str = "interpreter of the client";

/// Workload and program of a case with a client of its own.
pub(super) fn workload(
    case: Case,
    client: &InlineClient,
    asked_stub: Option<String>,
    further: Vec<OsString>,
    search_path: Option<&OsStr>,
) -> Result<(Workload, ClientProgram), UsageError> {
    let policy = policy::audit().map_err(UsageError::Case)?;
    let project = project(&case.origin.source, client)?;
    let fill = |text: &str| client.fill(text, &project);
    let program = fill(&client.program);
    let mut sandbox = case.sandbox.clone();
    sandbox.paths.splice(..0, policy.sandbox.paths);
    let directory = show_paths(client, &project, &mut sandbox.paths)?;
    let asked = variables(client, &project)?;
    let (mut path, mut file) = ClientProgram::locate(Path::new(&program), search_path)?;
    let mut environment = policy.environment;
    let mut interpreters = Vec::new();
    if client.toolchain == Some(ToolchainRule::Follow) {
        let of_case = asked.iter().find(|variable| variable.name == "PATH");
        let machine = Machine {
            search_path: of_case.map_or(search_path, |path| Some(OsStr::new(&path.value))),
            directory: directory.as_deref().unwrap_or(&project),
            home_dirs: HomeDirs::of_caller(),
            variable: &|name| env::var_os(name),
        };
        let behind = toolchain::behind_shim(&path, &machine);
        if behind != path {
            (path, file) = ClientProgram::locate(&behind, None)?;
        }
        let followed = toolchain::follow(&path, &sandbox.paths, &machine);
        if let Some(refused) = followed.refused.into_iter().next() {
            return Err(refused.into());
        }
        sandbox.paths.extend(followed.rules);
        for directory in followed.search.iter().rev() {
            put_first_in_path(&mut environment, &directory.join(""));
        }
        interpreters = expected(&followed.interpreters);
    }
    // The case shows the current directory by its own rules. A home is not shown because a program is in it.
    let home = env::var_os("HOME").map(PathBuf::from);
    let caller = Caller {
        directory: None,
        home: home.as_deref(),
    };
    let place = show_program(&path, &file, &mut sandbox.paths, caller);
    if let ProgramLocation::Own { path } = &place {
        put_first_in_path(&mut environment, path);
    }
    for variable in asked {
        host::set_variable(&mut environment, variable);
    }
    let mut arguments: Vec<OsString> = vec![program.into()];
    arguments.extend(client.arguments.iter().map(|word| fill(word).into()));
    arguments.extend(further);
    let program = Audit {
        name: case.name.clone(),
        origin: case.origin.clone(),
        stub: Some(case.stub.clone()),
        asked_stub,
        directory,
        sandbox,
        environment,
        attempts: Vec::new(),
        place,
        arguments,
    };
    let expect = case
        .expect
        .on_machine(&project.to_string_lossy(), &interpreters);
    let workload = Workload::Inline {
        expect: Box::new(expect),
        case: Box::new(case),
        project,
        interpreters,
        program,
    };
    Ok((workload, ClientProgram::File(file)))
}

/// Adds the paths of the client and its working directory, which is returned.
fn show_paths(
    client: &InlineClient,
    project: &Path,
    rules: &mut Vec<PathRule>,
) -> Result<Option<PathBuf>, UsageError> {
    for rule in &client.paths {
        let path = shown(&rule.path.to_string_lossy(), client, project)?;
        let rule = PathRule {
            path,
            ..rule.clone()
        };
        host::add_rule(rules, rule);
    }
    let directory = client.cwd.as_deref();
    let directory = directory.map(|cwd| shown(cwd, client, project));
    let directory = directory.transpose()?;
    let hidden = directory.as_ref();
    if let Some(directory) = hidden.filter(|cwd| inside(cwd, rules).is_none()) {
        rules.push(PathRule {
            path: directory.clone(),
            access: Access::ReadExecute,
            presence: Presence::Required,
            reason: "the working directory of the client".to_owned(),
        });
    }
    Ok(directory)
}

/// Variables of the client, with their values.
fn variables(client: &InlineClient, project: &Path) -> Result<Vec<Variable>, UsageError> {
    let mut variables = Vec::new();
    for variable in &client.environment {
        let (value, reason) = match &variable.value {
            VariableValue::Text(text) => (client.fill(text, project), variable.reason.clone()),
            VariableValue::OfCaller => {
                (host::caller_variable(&variable.name)?, OF_CALLER.to_owned())
            }
        };
        variables.push(Variable {
            name: variable.name.clone(),
            value,
            cases: Cases::Every,
            reason,
        });
    }
    Ok(variables)
}

/// Rules for the interpreters of the program, which are found anew on each machine.
fn expected(interpreters: &[PathBuf]) -> Vec<ProgramRule> {
    let rules = interpreters.iter().filter_map(|path| {
        Some(ProgramRule {
            program: path.to_str()?.parse().ok()?,
            reason: OF_TOOLCHAIN.to_owned(),
        })
    });
    rules.collect()
}

/// Standard input that the case names.
pub(super) fn stdin(case: &Case, client: &InlineClient) -> Result<StdinChoice, UsageError> {
    let Some(file) = &client.stdin else {
        return Ok(StdinChoice::Nothing);
    };
    let project = project(&case.origin.source, client)?;
    Ok(StdinChoice::File(client.fill(file, &project).into()))
}

/// Project of the client, absolute and without links.
fn project(source: &Source, client: &InlineClient) -> Result<PathBuf, UsageError> {
    let file = match source {
        Source::File(file) => file.as_path(),
        Source::BuiltIn => Path::new("."),
    };
    let whole = host::absolute(file)?;
    let own = host::canonical(whole.parent().unwrap_or(&whole))?;
    match &client.project {
        Some(upwards) => host::canonical(&own.join(upwards)),
        None => Ok(own),
    }
}

/// Path of a rule. A case that is copied into a home shows no whole home.
fn shown(text: &str, client: &InlineClient, project: &Path) -> Result<PathBuf, UsageError> {
    let path = plain(&client.fill(text, project))?;
    if text.starts_with("{project}") && HomeDirs::of_caller().are_in(&path) {
        return Err(UsageError::HomeAsProject {
            path: shown_path(&path),
        });
    }
    Ok(path)
}

/// Path of a rule, absolute and plain.
fn plain(text: &str) -> Result<PathBuf, UsageError> {
    let whole = host::absolute(Path::new(text))?;
    host::shown(whole.components().collect())
}
