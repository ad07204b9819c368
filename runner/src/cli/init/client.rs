//! Client of a new case, without paths of this machine where that is possible.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use model::case::client::{InlineVariable, ToolchainRule, VariableValue};
use model::case::{Access, InlineClient, PathRule, Presence};
use model::quote::shown_path;
use policy::is_private_name;

use super::OF_OPTION;
use super::project::Project;
use crate::cli::host::absolute;
use crate::cli::options::stdin;
use crate::cli::values::VariableArgument;
use crate::cli::{InitOptions, UsageError};
use crate::request::StdinChoice;
use crate::startable::is_system;
use crate::toolchain::in_path;

/// Describes the client that the options name.
pub(super) fn described(
    options: &InitOptions,
    project: &Project,
    search_path: Option<&OsStr>,
) -> Result<InlineClient, UsageError> {
    let words: Vec<String> = options.program.iter().map(text).collect::<Result<_, _>>()?;
    let (program, arguments) = words.split_first().ok_or(UsageError::NotUtf8)?;
    let in_project = |word: &String| project.relative(Path::new(word)).unwrap_or(word.clone());
    let environment = options.env.iter().map(variable);
    let mut paths: Vec<PathRule> = project.rule().into_iter().collect();
    for path in &options.read {
        let path = absolute(path)?;
        let path = project.relative(&path).map_or(path, PathBuf::from);
        paths.push(read_rule(path, OF_OPTION.to_owned()));
    }
    let stdin = match stdin(options.stdin.clone(), StdinChoice::Nothing) {
        StdinChoice::Nothing => None,
        StdinChoice::Inherit => return Err(UsageError::InheritedInput),
        StdinChoice::File(file) => {
            let file = absolute(&file)?;
            let typed = || file.to_str().map(str::to_owned).ok_or(UsageError::NotUtf8);
            Some(project.relative(&file).map_or_else(typed, Ok)?)
        }
    };
    let current = project.current.as_deref();
    Ok(InlineClient {
        program: named(program, project, search_path)?,
        arguments: arguments.iter().map(in_project).collect(),
        prompt: None,
        cwd: current.and_then(|current| project.relative(current)),
        project: project.upwards.clone(),
        stdin,
        toolchain: Some(ToolchainRule::Follow),
        environment: environment.collect(),
        paths,
    })
}

fn variable(VariableArgument { name, value }: &VariableArgument) -> InlineVariable {
    let value = match value {
        Some(value) if !is_private_name(name) || value.contains('{') => {
            VariableValue::Text(value.clone())
        }
        Some(_) | None => VariableValue::OfCaller,
    };
    InlineVariable {
        name: name.clone(),
        value,
        reason: OF_OPTION.to_owned(),
    }
}

impl Project {
    /// Rule that shows the project, if the working directory is only a part of it.
    fn rule(&self) -> Option<PathRule> {
        let mark = self.mark.filter(|_| {
            self.current
                .as_ref()
                .is_some_and(|current| *current != self.root)
        })?;
        Some(read_rule(
            "{project}".into(),
            format!("the project: {mark} is there"),
        ))
    }
}

fn read_rule(path: PathBuf, reason: String) -> PathRule {
    PathRule {
        path,
        access: Access::ReadExecute,
        presence: Presence::Required,
        reason,
    }
}

/// Program as the case names it: a name of PATH where that means the same file, so that each machine finds its own.
fn named(
    typed: &str,
    project: &Project,
    search_path: Option<&OsStr>,
) -> Result<String, UsageError> {
    if !typed.contains('/') {
        return Ok(typed.to_owned());
    }
    let path: PathBuf = absolute(Path::new(typed))?.components().collect();
    if let Some(in_project) = project.relative(&path) {
        return Ok(in_project);
    }
    let name = path.file_name().unwrap_or_default();
    let is_found = !is_system(&path) && in_path(name, search_path).as_deref() == Some(&*path);
    Ok(match name.to_str() {
        Some(name) if is_found => name.to_owned(),
        Some(_) | None => path.display().to_string(),
    })
}

/// Notes about paths that another machine may lack.
pub(super) fn notes(client: &InlineClient) -> Vec<String> {
    let words = [&client.program].into_iter().chain(&client.arguments);
    let is_foreign = |word: &&String| word.starts_with('/') && !is_system(Path::new(word));
    words
        .filter(is_foreign)
        .map(|word| {
            format!(
                "{} is a path of this machine; the case runs elsewhere if its client is in the project or in PATH",
                shown_path(Path::new(word))
            )
        })
        .collect()
}

fn text(word: &OsString) -> Result<String, UsageError> {
    word.to_str().map(str::to_owned).ok_or(UsageError::NotUtf8)
}
