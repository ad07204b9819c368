//! A small kit: one builder that runs the executable and reads its JSON report.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// The ordinary user as whom root's tests run the executable as well.
const ORDINARY: u32 = 1000;

/// The executable under test.
pub fn runner() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_runner"))
}

/// A fixture client: an example of this package, static like the executable.
pub fn fixture(name: &str) -> PathBuf {
    runner().with_file_name("examples").join(name)
}

pub fn is_root() -> bool {
    nix::unistd::Uid::current().is_root()
}

/// Returns from a test where this machine has no sandbox, and counts it; with SANDBOX_MUST_WORK=1 the test
/// fails instead.
#[macro_export]
macro_rules! needs_sandbox {
    () => {
        if let Some(reason) = $crate::kit::sandbox_is_missing() {
            $crate::kit::skip(reason);
            return;
        }
    };
}

/// Why there is no sandbox here; asked once.
pub fn sandbox_is_missing() -> Option<&'static str> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let output = Command::new(runner()).arg("case-b").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        said.contains("cannot set up the sandbox").then_some(said)
    });
    missing.as_deref()
}

/// Counts a skipped test, or fails it where skipping is not allowed.
pub fn skip(reason: &str) {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    assert!(
        std::env::var_os("SANDBOX_MUST_WORK").is_none(),
        "no sandbox: {reason}"
    );
    eprintln!("skipped ({count} so far), no sandbox here: {reason}");
}

/// A run of the executable, being described.
pub struct Run {
    arguments: Vec<OsString>,
    client_arguments: Vec<OsString>,
    user: Option<u32>,
}

/// What a run left.
pub struct Done {
    pub code: Option<i32>,
    pub report: Value,
    pub stderr: String,
}

impl Run {
    pub fn case(name: &str) -> Self {
        Self {
            arguments: vec![name.into()],
            client_arguments: Vec::new(),
            user: None,
        }
    }

    pub fn case_a() -> Self {
        Self::case("case-a")
    }

    pub fn case_b() -> Self {
        Self::case("case-b")
    }

    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub fn client(self, program: impl AsRef<Path>) -> Self {
        self.argument("--client").argument(program.as_ref())
    }

    /// An argument for the client, behind the profile's own.
    pub fn client_argument(mut self, argument: impl Into<OsString>) -> Self {
        self.client_arguments.push(argument.into());
        self
    }

    /// Runs it as an ordinary user where the tests run as root.
    pub fn as_ordinary_user(mut self) -> Self {
        self.user = is_root().then_some(ORDINARY);
        self
    }

    /// The command, for tests that need the process itself.
    pub fn command(&self) -> Command {
        let mut command = Command::new(runner());
        command.args(&self.arguments).stdin(Stdio::null());
        if !self.client_arguments.is_empty() {
            command.arg("--").args(&self.client_arguments);
        }
        self.with_user(&mut command);
        command
    }

    /// Sets the user of a command, for tests that make their own.
    pub fn with_user(&self, command: &mut Command) {
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
    }

    pub fn output(&self) -> Output {
        self.command().output().unwrap()
    }

    /// Runs it with a JSON report on standard output.
    pub fn json(self) -> Done {
        let output = self.argument("--report").argument("json").output();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("no report ({error}); standard error: {stderr}"));
        Done {
            code: output.status.code(),
            report,
            stderr,
        }
    }
}

impl Done {
    pub fn verdict(&self) -> &str {
        self.report["verdict"].as_str().unwrap()
    }

    /// Ids of the checks with this status, in the report's order.
    pub fn checks(&self, status: &str) -> Vec<&str> {
        let checks = self.report["checks"].as_array().unwrap();
        let wanted = checks.iter().filter(|check| check["status"] == status);
        wanted.map(|check| check["id"].as_str().unwrap()).collect()
    }

    /// Passed with nothing errored; the human report is in the message otherwise.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert_eq!(
            (self.code, self.verdict()),
            (Some(0), "passed"),
            "{}",
            self.stderr
        );
    }

    /// Failed by exactly these checks, in the report's order.
    #[track_caller]
    pub fn assert_fails(&self, ids: &[&str]) {
        assert_eq!(self.checks("failed"), ids, "{}", self.stderr);
        assert_eq!(self.checks("errored"), [""; 0], "{}", self.stderr);
        assert_eq!(
            (self.code, self.verdict()),
            (Some(1), "failed"),
            "{}",
            self.stderr
        );
    }
}
