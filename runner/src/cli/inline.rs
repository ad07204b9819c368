//! Resolution of a case with a client of its own: the program found, and the paths that it needs.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use model::audit::{Audit, OF_CALLER, ProgramLocation};
use model::case::client::VariableValue;
use model::case::{Access, Case, InlineClient, PathRule, Presence, Source};
use model::profile::{Cases, Variable};

use super::audit::put_first_in_path;
use super::{UsageError, host};
use crate::audit::{Caller, inside, show_program};
use crate::request::ClientProgram;
use crate::workload::Workload;

/// Workload and program of a case with a client of its own.
pub(super) fn workload(
    case: Case,
    client: &InlineClient,
    asked_stub: Option<String>,
    further: Vec<OsString>,
    search_path: Option<&OsStr>,
) -> Result<(Workload, ClientProgram), UsageError> {
    let policy = policy::audit().map_err(UsageError::Case)?;
    let project = project(&case.origin.source)?;
    let fill = |text: &str| client.fill(text, &project);
    let program = fill(&client.program);
    let (path, file) = ClientProgram::locate(Path::new(&program), search_path)?;
    let mut sandbox = case.sandbox.clone();
    sandbox.paths.splice(..0, policy.sandbox.paths);
    for rule in &client.paths {
        let path = plain(&fill(&rule.path.to_string_lossy()))?;
        let rule = PathRule {
            path,
            ..rule.clone()
        };
        host::add_rule(&mut sandbox.paths, rule);
    }
    let directory = client.cwd.as_deref().map(|cwd| plain(&fill(cwd)));
    let directory = directory.transpose()?;
    let hidden = directory.as_ref();
    if let Some(directory) = hidden.filter(|cwd| inside(cwd, &sandbox.paths).is_none()) {
        sandbox.paths.push(PathRule {
            path: directory.clone(),
            access: Access::ReadExecute,
            presence: Presence::Required,
            reason: "the working directory of the client".to_owned(),
        });
    }
    // The case says what the client sees, so no directory of the caller is protected from it.
    let place = show_program(&path, &file, &mut sandbox.paths, Caller::default());
    let mut environment = policy.environment;
    if let ProgramLocation::Own { path } = &place {
        put_first_in_path(&mut environment, path);
    }
    for variable in &client.environment {
        let (value, reason) = match &variable.value {
            VariableValue::Text(text) => (fill(text), variable.reason.clone()),
            VariableValue::OfCaller => {
                (host::caller_variable(&variable.name)?, OF_CALLER.to_owned())
            }
        };
        let variable = Variable {
            name: variable.name.clone(),
            value,
            cases: Cases::Every,
            reason,
        };
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
    let workload = Workload::Inline {
        expect: Box::new(case.expect.clone()),
        case: Box::new(case),
        program,
    };
    Ok((workload, ClientProgram::File(file)))
}

/// Directory of the case file, absolute.
fn project(source: &Source) -> Result<PathBuf, UsageError> {
    let file = match source {
        Source::File(file) => file.as_path(),
        Source::BuiltIn => Path::new("."),
    };
    let whole = host::absolute(file)?;
    host::canonical(whole.parent().unwrap_or(&whole))
}

/// Path of a rule, absolute and plain.
fn plain(text: &str) -> Result<PathBuf, UsageError> {
    let whole = host::absolute(Path::new(text))?;
    host::shown(whole.components().collect())
}
