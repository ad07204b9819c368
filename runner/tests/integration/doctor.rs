//! `runner doctor` on this machine, and on hosts that lack a feature, which the fixture `hindered-host` makes.

mod causes;
mod ids;
mod lacking;
mod printed;

use std::process::{Command, Output};

use serde_json::Value;

use crate::kit::{Run, runner};
use crate::needs_sandbox;

/// `runner doctor`, by root and by an ordinary user.
fn as_both(run: impl Fn() -> Run) -> [Run; 2] {
    [run(), run().as_ordinary_user()]
}

fn doctor() -> Run {
    Run::case("doctor")
}

/// An examination as JSON, valid against its schema.
struct Examined {
    code: Option<i32>,
    document: Value,
}

impl Examined {
    #[track_caller]
    fn of(run: Run) -> Self {
        let Output {
            status,
            stdout,
            stderr,
        } = run.argument("--json").output();
        let said = String::from_utf8_lossy(&stderr);
        let document: Value = serde_json::from_slice(&stdout)
            .unwrap_or_else(|error| panic!("no document ({error}): {said}"));
        let schema = runner::doctor::json::schema();
        let schema = jsonschema::draft202012::new(schema.as_value()).unwrap();
        let faults: Vec<String> = schema
            .iter_errors(&document)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        Self {
            code: status.code(),
            document,
        }
    }

    #[track_caller]
    fn probe(&self, id: &str) -> &Value {
        let probes = self.document["probes"].as_array().unwrap();
        let probe = probes.iter().find(|probe| probe["id"] == id);
        probe.unwrap_or_else(|| panic!("no probe {id}"))
    }

    /// Returns the ids of the probes with this status, in the order in which they ran.
    fn with_status(&self, status: &str) -> Vec<&str> {
        let probes = self.document["probes"].as_array().unwrap();
        let wanted = probes.iter().filter(|probe| probe["status"] == status);
        wanted.map(|probe| probe["id"].as_str().unwrap()).collect()
    }

    /// Asserts the isolation that a run gets, and the exit code for it.
    #[track_caller]
    fn assert_tier(&self, tier: Option<&str>) {
        let verdict = &self.document["verdict"];
        let all = &self.document;
        assert_eq!(verdict["tier"].as_str(), tier, "{all:#}");
        let code = match tier {
            Some("namespace") => 0,
            Some("inherited") => 1,
            _ => 3,
        };
        assert_eq!(self.code, Some(code), "{all:#}");
        assert_eq!(verdict["exit_code"], code);
        if let Some(tier) = tier {
            assert_eq!(self.probe(tier)["status"], "works", "{all:#}");
        }
    }

    /// Asserts that a probe was refused with this errno, and reports this cause and fixes.
    #[track_caller]
    fn assert_refused(&self, id: &str, errno: Option<&str>, cause: &str) {
        let probe = self.probe(id);
        assert_eq!(probe["status"], "refused", "{probe:#}");
        assert_eq!(probe["errno"].as_str(), errno, "{probe:#}");
        let found = probe["cause"].as_str().unwrap();
        assert!(found.contains(cause), "{cause} is not in {probe:#}");
        assert!(!probe["fixes"].as_array().unwrap().is_empty(), "{probe:#}");
    }

    /// Asserts that the set-up of a run with this isolation failed in this step.
    #[track_caller]
    fn assert_step(&self, tier: &str, step: &str) {
        let probe = self.probe(tier);
        assert_eq!(probe["step"], step, "{probe:#}");
    }
}

#[test]
fn habits_of_the_caller_change_nothing() {
    needs_sandbox!();
    for habit in ["umask 777", "ulimit -S -n 8"] {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{habit}; exec \"$0\" doctor")])
            .arg(runner());
        doctor().as_ordinary_user().with_user(&mut command);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{habit}: {said}");
    }
}

#[test]
fn proc_of_another_pid_namespace_is_refused() {
    needs_sandbox!();
    let other = ["--user", "--map-root-user", "--mount", "--pid", "--fork"];
    let mut command = Command::new("unshare");
    command.args(other).arg(runner()).arg("case-b");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let cause = "expected the pid namespace of the runner, found another one";
    assert!(said.contains(cause), "{said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
}
