//! Paths and variables of the host, as options and cases name them.

use std::path::{self, Path, PathBuf};
use std::{env, fs};

use model::case::PathRule;
use model::profile::Variable;
use model::quote::shown_path;
use policy::may_be_shown;

use super::UsageError;

/// Returns the absolute path, without resolving links.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, UsageError> {
    path::absolute(path).map_err(|source| not_found(path, source))
}

/// Resolves all links of a path.
pub(super) fn canonical(path: &Path) -> Result<PathBuf, UsageError> {
    fs::canonicalize(path).map_err(|source| not_found(path, source))
}

/// Rejects a path that is never shown.
pub(super) fn shown(path: PathBuf) -> Result<PathBuf, UsageError> {
    if may_be_shown(&path) {
        return Ok(path);
    }
    Err(UsageError::NeverShown {
        path: shown_path(&path),
    })
}

/// Adds a rule. A later rule for a path replaces an earlier one.
pub(super) fn add_rule(rules: &mut Vec<PathRule>, rule: PathRule) {
    rules.retain(|other| other.path != rule.path);
    rules.push(rule);
}

/// Reads a variable of the runner's environment.
pub(super) fn caller_variable(name: &str) -> Result<String, UsageError> {
    env::var(name).map_err(|_| UsageError::VariableNotSet {
        name: name.to_owned(),
    })
}

/// Sets a variable. A later value replaces an earlier one.
pub(super) fn set_variable(environment: &mut Vec<Variable>, variable: Variable) {
    environment.retain(|other| other.name != variable.name);
    environment.push(variable);
}

fn not_found(path: &Path, source: std::io::Error) -> UsageError {
    UsageError::PathNotFound {
        path: shown_path(path),
        source,
    }
}
