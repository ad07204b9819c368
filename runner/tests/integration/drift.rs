//! Changes between two runs, and between a run and its lock file.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::kit::{Run, fixture};

mod comparison;
mod lock_file;
mod noise;

/// A directory that every user can write to.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self::of(tempfile::tempdir().unwrap())
    }

    /// Creates the place in a directory that a profile may mount.
    fn showable() -> Self {
        Self::of(tempfile::tempdir_in("/var/tmp").unwrap())
    }

    fn of(directory: TempDir) -> Self {
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
        Self(directory)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Executes the run and keeps its JSON report under this name.
    pub(crate) fn keep(&self, run: Run, name: &str) {
        let file = format!("json={}", self.at(name).display());
        let output = run.argument("--report").argument(file).output();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    }

    /// Runs `runner diff` on two kept reports.
    pub(crate) fn diff(&self, old: &str, new: &str) -> Output {
        self.command(old, new).output()
    }

    /// Returns the comparison in JSON, valid against its schema by a third-party validator.
    pub(crate) fn diff_json(&self, old: &str, new: &str) -> Value {
        let output = self.command(old, new).argument("--json").output();
        let answer = serde_json::from_slice(&output.stdout).unwrap();
        let schema = runner::diff::schema();
        let schema = jsonschema::draft202012::new(schema.as_value()).unwrap();
        assert!(schema.is_valid(&answer), "{answer:#}");
        answer
    }

    fn command(&self, old: &str, new: &str) -> Run {
        let (old, new) = (self.at(old), self.at(new));
        Run::case("diff").argument(old).argument(new)
    }
}

/// Runs case B with the deviating fixture, without a deviation.
fn straight() -> Run {
    Run::case_b().client(fixture("deviant-client"))
}

/// Returns each change as a signed line of a lock file, without the one for the fixture's own argument.
fn lines(changes: &Value) -> Vec<String> {
    let text = |change: &Value, key: &str| change[key].as_str().unwrap().to_owned();
    let changes = changes.as_array().unwrap().iter();
    let told = changes.filter(|change| !text(change, "key").contains("--no-session-persistence"));
    told.map(|change| {
        let sign = match change["kind"].as_str().unwrap() {
            "added" => '+',
            "removed" => '-',
            _ => '~',
        };
        let value = change["new"].as_str().or(change["old"].as_str()).unwrap();
        let (area, key) = (text(change, "area"), text(change, "key"));
        format!("{sign} {area} {key}: {value}")
    })
    .collect()
}
