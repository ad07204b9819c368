//! A small kit: one builder that runs the executable and reads its JSON report.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tempfile::TempDir;

/// The ordinary user for runs by root's tests.
const ORDINARY: u32 = 1000;

/// The executable under test.
pub(crate) fn runner() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_runner"))
}

/// A fixture client: an example of this package, static like the executable. `cargo test` builds it, but not
/// with `--test`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    let path = runner().with_file_name("examples").join(name);
    let built = fs::metadata(&path).and_then(|file| file.modified()).ok();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    let changed = fs::read_dir(sources)
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().modified().unwrap())
        .max();
    assert!(
        built >= changed,
        "{name} is out of date: cargo build --examples"
    );
    path
}

pub(crate) fn is_root() -> bool {
    nix::unistd::Uid::current().is_root()
}

/// Returns from a test if this machine has no sandbox, and counts it; with SANDBOX_MUST_WORK=1 the test fails instead.
#[macro_export]
macro_rules! needs_sandbox {
    () => {
        if let Some(reason) = $crate::kit::sandbox_is_missing() {
            $crate::kit::skip(reason);
            return;
        }
    };
}

/// Returns from a test if a program is not installed, and counts it like one without a sandbox.
#[macro_export]
macro_rules! needs_program {
    ($path:literal) => {
        $crate::needs_sandbox!();
        if !::std::path::Path::new($path).exists() {
            $crate::kit::skip(concat!($path, " is not installed"));
            return;
        }
    };
}

/// Returns the reason for a missing sandbox, determined once.
pub(crate) fn sandbox_is_missing() -> Option<&'static str> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let output = Command::new(runner()).arg("case-b").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        said.contains("cannot set up the sandbox").then_some(said)
    });
    missing.as_deref()
}

/// Skips a test that needs a sandbox.
pub(crate) fn skip(reason: &str) {
    skip_without("sandbox", "SANDBOX_MUST_WORK", reason);
}

/// Counts a skipped test, or fails it if the variable `must` requires the resource.
pub(crate) fn skip_without(what: &str, must: &str, reason: &str) {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    assert!(
        std::env::var_os(must).is_none(),
        "{must} is set, and there is no {what}: {reason}"
    );
    eprintln!("skipped ({count} so far), no {what} here: {reason}");
}

/// A built-in policy of which `text` is replaced by `other`, in a file that every user can read.
fn changed_policy(name: &str, text: &str, other: &str) -> (TempDir, PathBuf) {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies");
    let policy = fs::read_to_string(policies.join(name).with_extension("toml")).unwrap();
    assert!(policy.contains(text), "{name} does not say {text}");
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = directory.path().join("changed.toml");
    fs::write(&path, policy.replace(text, other)).unwrap();
    (directory, path)
}

/// Builder of a run of the executable.
pub(crate) struct Run {
    arguments: Vec<OsString>,
    client_arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    user: Option<u32>,
    /// Features that the host lacks, in words of the fixture `hindered-host`.
    lacking: Option<&'static str>,
    /// Hold the case and the profile, where they are not built in.
    directories: Vec<TempDir>,
}

/// Result of a run.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    /// The JSON report, and its text.
    pub(crate) report: Value,
    pub(crate) text: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn case(name: &str) -> Self {
        Self {
            arguments: vec![name.into()],
            client_arguments: Vec::new(),
            environment: Vec::new(),
            user: None,
            lacking: None,
            directories: Vec::new(),
        }
    }

    pub(crate) fn case_a() -> Self {
        Self::case("case-a")
    }

    pub(crate) fn case_b() -> Self {
        Self::case("case-b")
    }

    /// Runs case B with an answer that ends after its block, as if complete.
    pub(crate) fn case_b_cut_short() -> Self {
        Self::case_b().argument("--stub=end-early")
    }

    /// Runs a built-in case, from a file in which `text` is replaced by `other`.
    pub(crate) fn changed_case(name: &str, text: &str, other: &str) -> Self {
        let (directory, path) = changed_policy(name, text, other);
        let mut run = Self::case("run").argument(path);
        run.directories.push(directory);
        run
    }

    /// Uses a built-in profile, from a file in which `text` is replaced by `other`.
    pub(crate) fn changed_profile(mut self, name: &str, text: &str, other: &str) -> Self {
        let (directory, path) = changed_policy(&format!("profiles/{name}"), text, other);
        self.directories.push(directory);
        self.argument("--profile").argument(path)
    }

    /// Adds these tables to the reference profile.
    pub(crate) fn knowing(self, tables: &str) -> Self {
        self.changed_profile("reference", "[records]", &format!("{tables}\n[records]"))
    }

    /// Uses the reference profile with these devices: `"null", "zero"`.
    pub(crate) fn with_devices(self, devices: &str) -> Self {
        let listed = format!("devices = [{devices}]");
        self.changed_profile("reference", "devices = []", &listed)
    }

    pub(crate) fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn client(self, program: impl AsRef<Path>) -> Self {
        self.argument("--client").argument(program.as_ref())
    }

    /// Adds an argument for the client, after the profile's own.
    pub(crate) fn client_argument(mut self, argument: impl Into<OsString>) -> Self {
        self.client_arguments.push(argument.into());
        self
    }

    /// Uses the fixture client with this deviation.
    pub(crate) fn deviating(self, deviation: &str) -> Self {
        self.client(fixture("deviant-client"))
            .client_argument("--deviate")
            .client_argument(deviation)
    }

    /// Sets a variable of the runner's own environment.
    pub(crate) fn variable(
        mut self,
        name: impl Into<OsString>,
        value: impl Into<OsString>,
    ) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Runs as an ordinary user if the tests run as root.
    #[allow(
        clippy::wrong_self_convention,
        reason = "reads as a part of the sentence"
    )]
    pub(crate) fn as_ordinary_user(mut self) -> Self {
        self.user = is_root().then_some(ORDINARY);
        self
    }

    /// Runs on a host that lacks a feature, in words of the fixture `hindered-host`.
    pub(crate) fn on_a_host_without(mut self, words: &'static str) -> Self {
        self.lacking = Some(words);
        self
    }

    /// The command, for tests that need the process itself.
    pub(crate) fn command(&self) -> Command {
        self.command_of(runner())
    }

    /// Returns the command, with the executable at `program`.
    pub(crate) fn command_of(&self, program: &Path) -> Command {
        let mut command = match self.lacking {
            None => Command::new(program),
            Some(words) => {
                let mut command = Command::new(fixture("hindered-host"));
                command.args([words, "--"]).arg(program);
                command
            }
        };
        command.args(&self.arguments).stdin(Stdio::null());
        // No test uses the developer's own cache of digests.
        command.env("XDG_CACHE_HOME", "/nonexistent");
        command.envs(self.environment.iter().cloned());
        if !self.client_arguments.is_empty() {
            command.arg("--").args(&self.client_arguments);
        }
        self.with_user(&mut command);
        command
    }

    /// Sets the user of a command, for tests that make their own.
    pub(crate) fn with_user(&self, command: &mut Command) {
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
    }

    pub(crate) fn output(&self) -> Output {
        self.command().output().unwrap()
    }

    /// Runs with a JSON report on standard output.
    pub(crate) fn json(self) -> Done {
        Done::of(&self.argument("--report").argument("json").output())
    }
}

/// Parses a JSON report and validates it against its schema with a third-party validator; `said` is the message if it
/// is absent.
#[track_caller]
pub(crate) fn parsed(report: &[u8], said: &str) -> Value {
    static SCHEMA: OnceLock<jsonschema::Validator> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| {
        let schema = report::json::schema();
        jsonschema::draft202012::new(schema.as_value()).unwrap()
    });
    let report = serde_json::from_slice(report)
        .unwrap_or_else(|error| panic!("no report ({error}); standard error: {said}"));
    let faults: Vec<String> = schema
        .iter_errors(&report)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    report
}

impl Done {
    /// Returns the result of a run that has its JSON report on standard output.
    #[track_caller]
    pub(crate) fn of(output: &Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Self {
            code: output.status.code(),
            report: parsed(&output.stdout, &stderr),
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr,
        }
    }

    pub(crate) fn verdict(&self) -> &str {
        self.report["verdict"].as_str().unwrap()
    }

    /// Returns the ids of the checks with this status, in the report's order.
    pub(crate) fn checks(&self, status: &str) -> Vec<&str> {
        let checks = self.report["checks"].as_array().unwrap();
        let wanted = checks.iter().filter(|check| check["status"] == status);
        wanted.map(|check| check["id"].as_str().unwrap()).collect()
    }

    /// Returns the check with this id.
    pub(crate) fn check(&self, id: &str) -> &Value {
        let checks = self.report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == id).unwrap()
    }

    #[track_caller]
    pub(crate) fn assert_verdict(&self, code: i32, verdict: &str) {
        assert_eq!(
            (self.code, self.verdict()),
            (Some(code), verdict),
            "{}",
            self.stderr
        );
    }

    /// Asserts that the run passed without errored checks; otherwise prints the human report.
    #[track_caller]
    pub(crate) fn assert_passed(&self) {
        self.assert_verdict(0, "passed");
    }

    /// Asserts that exactly these checks failed, in the report's order, and none is errored.
    #[track_caller]
    pub(crate) fn assert_fails(&self, ids: &[&str]) {
        self.assert_fails_and_errs(ids, &[]);
    }

    /// Asserts that exactly the first checks failed, and exactly the second ones are errored.
    #[track_caller]
    pub(crate) fn assert_fails_and_errs(&self, failed: &[&str], errored: &[&str]) {
        assert_eq!(self.checks("failed"), failed, "{}", self.stderr);
        assert_eq!(self.checks("errored"), errored, "{}", self.stderr);
        self.assert_verdict(1, "failed");
    }
}
