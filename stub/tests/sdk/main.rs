//! Every built-in scenario: the official SDKs decode the stub's stream as expected.
//!
//! The test starts the stub's executable and two small scripts beside this file; `expected.txt` is the table of
//! results. All of them run in a network namespace with loopback only. `STUB_SDK_DIR` names the directory into which
//! `install` has put the SDKs.
#![cfg(test)]

mod found;
mod provider;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use found::{Found, table};
use provider::Provider;

/// Modes in which each scenario is requested.
const MODES: [&str; 3] = ["raw", "helper", "single"];
/// Environment variable of the test process that runs inside the network namespace.
const INSIDE: &str = "STUB_SDK_INSIDE";

#[test]
fn the_official_sdks_read_each_scenario_as_the_table_says() {
    let sdks = match Sdks::find() {
        Ok(sdks) => sdks,
        Err(reason) => return skip("REGISTRY_MUST_WORK", &reason),
    };
    if std::env::var_os(INSIDE).is_none() {
        match sdks.can_seal() {
            Ok(()) => return sdks.again_inside(),
            // Outside a namespace, the rest of the test still uses loopback addresses only.
            Err(reason) => skip("SANDBOX_MUST_WORK", &reason),
        }
    }
    let python = sdks.ask(&mut sdks.python_client());
    let typescript = sdks.ask(&mut sdks.typescript_client());
    let found = table(&python, &typescript);
    let expected: Vec<_> = include_str!("expected.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let differs: Vec<_> = expected
        .iter()
        .filter(|line| !found.iter().any(|other| other == *line))
        .map(|line| format!("- {line}"))
        .chain(
            found
                .iter()
                .filter(|line| !expected.contains(&line.as_str()))
                .map(|line| format!("+ {line}")),
        )
        .collect();
    assert!(
        differs.is_empty(),
        "these are not as expected.txt says:\n{}",
        differs.join("\n")
    );
    assert_eq!(found, expected, "the lines stand in another order");
}

/// Prints the reason for a skip; panics if the variable `must` forbids skipping.
fn skip(must: &str, reason: &str) {
    assert!(std::env::var_os(must).is_none(), "{must} is set: {reason}");
    println!("skipped: {reason}");
}

/// The two SDKs, in the layout of `install`.
struct Sdks {
    python: PathBuf,
    node: PathBuf,
}

impl Sdks {
    fn find() -> Result<Self, String> {
        let directory = std::env::var_os("STUB_SDK_DIR").map(PathBuf::from).ok_or(
            "STUB_SDK_DIR names no directory with the SDKs; stub/tests/sdk/install DIR makes one",
        )?;
        let sdks = Self {
            python: directory.join("python/bin/python"),
            node: directory.join("node"),
        };
        for path in [&sdks.python, &sdks.node.join("node_modules")] {
            if !path.exists() {
                return Err(format!("{} is not there", path.display()));
            }
        }
        Ok(sdks)
    }

    /// Returns a command in new user and network namespaces, with loopback up.
    fn sealed(&self, program: &Path) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--net", "--"])
            .arg(&self.python)
            .arg(beside("loopback.py"))
            .arg(program);
        command
    }

    fn can_seal(&self) -> Result<(), String> {
        let output = self
            .sealed(Path::new("/bin/true"))
            .output()
            .map_err(|error| format!("unshare(1) cannot be started: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(format!("no network namespace of our own: {said}"))
    }

    /// Starts this test again in a network namespace with loopback only.
    fn again_inside(&self) {
        let this = std::env::current_exe().unwrap();
        let output = self
            .sealed(&this)
            .args([
                "--exact",
                "the_official_sdks_read_each_scenario_as_the_table_says",
            ])
            .args(["--nocapture"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn python_client(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(beside("client.py"));
        command
    }

    fn typescript_client(&self) -> Command {
        let mut command = Command::new("node");
        command.arg(beside("client.mjs")).arg(&self.node);
        command
    }

    /// Runs the client for each scenario in each mode. Each pair has its own provider, whose journal counts the
    /// requests.
    fn ask(&self, client: &mut Command) -> Vec<Found> {
        let providers: Vec<_> = scenario::Scenario::names()
            .flat_map(|scenario| MODES.map(|mode| Provider::start(scenario.name, mode)))
            .collect();
        let jobs: Vec<_> = providers.iter().map(Provider::job).collect();
        let answers = converse(client, &json!(jobs));
        let answers: Vec<Value> = answers
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(answers.len(), providers.len());
        providers
            .into_iter()
            .zip(answers)
            .map(|(provider, answer)| Found::new(&answer, provider.requests()))
            .collect()
    }
}

fn beside(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/sdk")
        .join(file)
}

/// Runs a client with an empty environment, except the path of its interpreter.
fn converse(client: &mut Command, jobs: &Value) -> String {
    let mut child = client
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take().unwrap();
    serde_json::to_writer(stdin, jobs).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{client:?}");
    String::from_utf8(output.stdout).unwrap()
}
