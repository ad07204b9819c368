//! `runner audit`: any program in the same sandbox, its output, its exit code, and its attempts.

mod exec;
mod files;
mod gates;
mod limits;
mod outputs;
mod programs;
mod redirects;
mod running;
mod shown;
mod starting;
mod stdin;
mod terminals;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::inherited::CONTAINER;
use crate::kit::{self, Run};

/// Builder of an audit.
struct Audit {
    options: Vec<OsString>,
    program: Vec<OsString>,
    directory: Option<PathBuf>,
    as_ordinary_user: bool,
    in_container: bool,
}

/// Result of an audit.
struct Audited {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    report: Value,
}

impl Audit {
    fn of<I: IntoIterator<Item = S>, S: Into<OsString>>(program: I) -> Self {
        Self {
            options: Vec::new(),
            program: program.into_iter().map(Into::into).collect(),
            directory: None,
            as_ordinary_user: false,
            in_container: false,
        }
    }

    /// A line of shell.
    fn shell(line: &str) -> Self {
        Self::of(["/bin/sh", "-c", line])
    }

    fn option(mut self, option: impl Into<OsString>) -> Self {
        self.options.push(option.into());
        self
    }

    fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    #[allow(
        clippy::wrong_self_convention,
        reason = "reads as a part of the sentence"
    )]
    fn as_ordinary_user(mut self) -> Self {
        self.as_ordinary_user = true;
        self
    }

    /// Without namespaces, in the network of a container.
    fn in_container(mut self) -> Self {
        self.in_container = true;
        self
    }

    fn command(&self) -> Command {
        let mut run = Run::case("audit");
        for option in &self.options {
            run = run.argument(option);
        }
        for word in &self.program {
            run = run.client_argument(word);
        }
        if self.as_ordinary_user {
            run = run.as_ordinary_user();
        }
        if self.in_container {
            run = run.on_a_host_without(CONTAINER);
        }
        let mut command = run.command();
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    /// Runs the audit with a JSON report in a file.
    fn run(self) -> Audited {
        let directory = open_directory("/tmp");
        let report = directory.path().join("report.json");
        let mut option = OsString::from("--report=json=");
        option.push(&report);
        let output = self.option(option).command().output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = match fs::read(&report) {
            Ok(text) => kit::parsed(&text, &told),
            Err(_) => Value::Null,
        };
        Audited {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: told,
            report,
        }
    }
}

impl Audited {
    /// Returns `address:port outcome` of every attempt, in the ledger's order.
    fn attempts(&self) -> Vec<String> {
        let attempts = self.report["evidence"]["attempts"].as_array().unwrap();
        let judged = attempts.iter().filter(|one| one["kind"] == "attempt");
        let line = |one: &Value| {
            let (address, port) = (one["address"].as_str().unwrap(), &one["port"]);
            let outcome = one["errno"].as_str().unwrap_or("allowed");
            format!("{address}:{port} {outcome}")
        };
        judged.map(line).collect()
    }

    /// Returns every name that was looked up, once.
    fn names(&self) -> Vec<&str> {
        let names = self.report["evidence"]["names"].as_array().unwrap();
        let mut names: Vec<_> = names
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// `METHOD path` of every request.
    fn requests(&self) -> Vec<String> {
        let requests = self.report["evidence"]["requests"].as_array().unwrap();
        let line = |one: &Value| {
            let (method, path) = (one["method"].as_str(), one["path"].as_str());
            format!("{} {}", method.unwrap(), path.unwrap())
        };
        requests.iter().map(line).collect()
    }

    /// Asserts the program's own exit code; the message of a failure has both outputs.
    #[track_caller]
    fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
    }

    #[track_caller]
    fn assert_printed(&self, code: i32, text: &str) {
        assert_eq!(
            (self.code, self.stdout.as_str()),
            (Some(code), text),
            "{}",
            self.stderr
        );
    }
}

/// A fresh directory that every user may read and write.
fn open_directory(within: impl AsRef<Path>) -> TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir_in(within).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    directory
}
