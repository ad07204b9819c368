//! Resolution of `runner init`: the client as a case describes it, without paths of this machine where that is possible.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{env, fs};

use model::case::client::{InlineVariable, ToolchainRule, VariableValue};
use model::case::{
    Access, Case, Expectations, InlineClient, Origin, Outline, PathRule, Presence, SandboxRules,
    Source, Tier,
};
use model::quote::shown_path;
use policy::init::PolicyName;
use policy::{Reference, is_private_name, may_be_shown};

use super::host::{self, absolute};
use super::options::isolation;
use super::values::VariableArgument;
use super::{InitOptions, UsageError, inline};
use crate::request::{InitRequest, RunRequest};
use crate::startable::is_system;
use crate::toolchain::in_path;

/// Reason of a variable or path that an option gave.
const OF_OPTION: &str = "asked for when the case was made";

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
    let project = file.parent().unwrap_or(Path::new("/"));
    let project = host::canonical(project)?;
    let client = client(&options, &project, search_path)?;
    let notes = notes(&client);
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = PolicyName::nearest(&stem).as_str().to_owned();
    let like = policy::case(&Reference::BuiltIn("case-b".to_owned())).map_err(UsageError::Case)?;
    let case = Case {
        name: name.clone(),
        like: None,
        summary: String::new(),
        origin: Origin {
            source: Source::File(file.clone()),
            sha256: String::new(),
            text: "".into(),
            outline: Outline::default(),
        },
        invocation: client.task(),
        client: Some(client.clone()),
        stub: like.stub,
        sandbox: SandboxRules {
            tiers: Tier::ALL.into(),
            limits: like.sandbox.limits,
            paths: Vec::new(),
        },
        // Receives the interpreters of the program.
        expect: Expectations {
            programs: Some(Vec::new()),
            ..Expectations::default()
        },
    };
    let isolation = isolation(options.isolation, &case.sandbox.tiers)?;
    let (workload, program) = inline::workload(case, &client, None, Vec::new(), search_path)?;
    Ok(InitRequest {
        run: RunRequest {
            timeout: options.timeout,
            use_cache: true,
            ..RunRequest::for_evidence(workload, program, isolation)
        },
        runs: options.runs,
        file,
        client,
        name,
        notes,
    })
}

fn client(
    options: &InitOptions,
    project: &Path,
    search_path: Option<&OsStr>,
) -> Result<InlineClient, UsageError> {
    let words: Vec<String> = options.program.iter().map(text).collect::<Result<_, _>>()?;
    let (program, arguments) = words.split_first().ok_or(UsageError::NotUtf8)?;
    let directory = env::current_dir().and_then(fs::canonicalize).ok();
    let cwd =
        directory.filter(|directory| directory.starts_with(project) && may_be_shown(directory));
    let in_project = |word: &String| relative(Path::new(word), project).unwrap_or(word.clone());
    let program = named(program, project, search_path)?;
    let mut environment = Vec::new();
    for VariableArgument { name, value } in &options.env {
        let value = match value {
            Some(value) if !is_private_name(name) || value.contains('{') => {
                VariableValue::Text(value.clone())
            }
            Some(_) | None => VariableValue::OfCaller,
        };
        environment.push(InlineVariable {
            name: name.clone(),
            value,
            reason: OF_OPTION.to_owned(),
        });
    }
    let mut paths = Vec::new();
    for path in &options.read {
        let path = absolute(path)?;
        let path = relative(&path, project).map_or(path, PathBuf::from);
        paths.push(PathRule {
            path,
            access: Access::ReadExecute,
            presence: Presence::Required,
            reason: OF_OPTION.to_owned(),
        });
    }
    Ok(InlineClient {
        program,
        arguments: arguments.iter().map(in_project).collect(),
        prompt: None,
        cwd: cwd.and_then(|cwd| relative(&cwd, project)),
        toolchain: Some(ToolchainRule::Follow),
        environment,
        paths,
    })
}

/// Program as the case names it: a name of PATH where that means the same file, so that each machine finds its own.
fn named(typed: &str, project: &Path, search_path: Option<&OsStr>) -> Result<String, UsageError> {
    if !typed.contains('/') {
        return Ok(typed.to_owned());
    }
    let path: PathBuf = absolute(Path::new(typed))?.components().collect();
    if let Some(in_project) = relative(&path, project) {
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
fn notes(client: &InlineClient) -> Vec<String> {
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

/// Path below the project, with its placeholder.
fn relative(path: &Path, project: &Path) -> Option<String> {
    let below = path.strip_prefix(project).ok()?.to_str()?;
    Some(match below {
        "" => "{project}".to_owned(),
        below => format!("{{project}}/{below}"),
    })
}

fn text(word: &OsString) -> Result<String, UsageError> {
    word.to_str().map(str::to_owned).ok_or(UsageError::NotUtf8)
}
