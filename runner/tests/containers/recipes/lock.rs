//! A client under lock: the lock file is made in a container, and a job compares the client with it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use yaml_rust2::Yaml;

use super::github::{ALSO_AFTER_FAILURE, run_steps};
use super::{bad_client, clone_with, good_client, keys, recipe_in, script};
use crate::place::Place;
use crate::text::{blocks_of, section};

const SECTION: &str = "Keep a client under lock in CI";

fn workflow() -> Yaml {
    recipe_in(SECTION, "jobs")
}

fn job() -> Yaml {
    workflow()["jobs"]["lock"].clone()
}

/// A clone with a committed lock file of the passing client.
fn locked() -> Place {
    let clone = clone_with(&good_client());
    let commands = blocks_of(section(SECTION), "shell");
    let output = script(&["sh", "-ec"], &commands.concat(), &clone);
    assert!(output.status.success(), "{output:?}");
    assert!(clone.path().join("agent.lock").exists());
    clone
}

fn parsed(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_job_may_read_and_tell_code_scanning_and_nothing_more() {
    let workflow = workflow();
    assert_eq!(keys(&workflow), ["name", "on", "permissions", "jobs"]);
    let permissions = &workflow["permissions"];
    assert_eq!(keys(permissions), ["contents", "security-events"]);
    assert_eq!(permissions["contents"].as_str(), Some("read"));
    assert_eq!(permissions["security-events"].as_str(), Some("write"));
}

#[test]
fn findings_and_evidence_are_uploaded_also_when_the_run_fails() {
    let job = job();
    let steps = job["steps"].as_vec().unwrap();
    let [_, _, findings, evidence] = steps.as_slice() else {
        panic!("{steps:?}");
    };
    for step in [findings, evidence] {
        assert_eq!(step["if"].as_str(), Some(ALSO_AFTER_FAILURE));
    }
    let name = "sarif_file";
    assert_eq!(
        findings["with"][name].as_str(),
        Some("reports/runner.sarif")
    );
    assert_eq!(evidence["with"]["path"].as_str(), Some("reports/evidence"));
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn a_client_that_did_not_change_passes_and_its_evidence_is_whole() {
    let clone = locked();
    for output in run_steps(&job(), &clone) {
        assert!(output.status.success(), "{output:?}");
    }
    let reports = clone.path().join("reports");
    let sarif = parsed(&reports.join("runner.sarif"));
    assert_eq!(sarif["runs"][0]["results"], serde_json::json!([]));
    let verified = Command::new(env!("CARGO_BIN_EXE_runner"))
        .arg("verify")
        .arg(reports.join("evidence"))
        .output()
        .unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn another_client_fails_at_its_lock_file() {
    let clone = locked();
    fs::copy(bad_client(), clone.path().join("my-client")).unwrap();
    let outputs = run_steps(&job(), &clone);
    let codes: Vec<_> = outputs.iter().map(|output| output.status.code()).collect();
    assert_eq!(codes, [Some(1)], "{outputs:?}");
    let sarif = parsed(&clone.path().join("reports/runner.sarif"));
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let drift = results
        .iter()
        .find(|result| result["ruleId"] == "baseline/unchanged")
        .unwrap();
    let place = &drift["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "agent.lock");
}
