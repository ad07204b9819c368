//! GitLab CI: the JUnit report is an artifact also when the run fails.

use std::fs;
use std::path::Path;
use std::process::Output;

use yaml_rust2::Yaml;

use super::{bad_client, clone_with, good_client, keys, recipe, script, words};
use crate::place::Place;

/// The lines of a job are one script, which ends with the first that fails.
const SHELL: [&str; 2] = ["sh", "-ec"];

fn job() -> Yaml {
    recipe("case-b")["case-b"].clone()
}

fn run(client: &Path) -> (Place, Output) {
    let clone = clone_with(client);
    let lines = words(&job()["script"]).join("\n");
    let output = script(&SHELL, &lines, &clone);
    (clone, output)
}

#[test]
fn the_report_is_an_artifact_also_when_the_run_fails() {
    let job = job();
    let known = ["image", "services", "variables", "script", "artifacts"];
    assert_eq!(keys(&job), known);
    let artifacts = &job["artifacts"];
    assert_eq!(artifacts["when"].as_str(), Some("always"));
    assert_eq!(words(&artifacts["paths"]), ["runner.xml"]);
    assert_eq!(artifacts["reports"]["junit"].as_str(), Some("runner.xml"));
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn a_client_that_passes_passes_the_job() {
    let (clone, output) = run(&good_client());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(failures(&clone), 0);
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn a_client_that_fails_fails_the_job_and_is_in_the_artifact() {
    let (clone, output) = run(&bad_client());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(failures(&clone) > 0);
}

/// Failures that the JUnit report counts.
fn failures(clone: &Place) -> u32 {
    let report = fs::read_to_string(clone.path().join("runner.xml")).unwrap();
    let report = roxmltree::Document::parse(&report).unwrap();
    let counted = report.root_element().attribute("failures").unwrap();
    counted.parse().unwrap()
}
