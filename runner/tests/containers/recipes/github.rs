//! GitHub Actions: the summary and the reports are there also when the run fails.

use std::fs;
use std::path::Path;
use std::process::Output;

use yaml_rust2::Yaml;

use super::{bad_client, clone_with, good_client, keys, recipe, script};
use crate::place::Place;

/// Shell of a `run` step without its own settings: docs.github.com, "Workflow syntax", `defaults.run.shell`.
const SHELL: [&str; 4] = ["bash", "-e", "-o", "pipefail"];

/// A step with a condition runs after a failure too.
pub(super) const ALSO_AFTER_FAILURE: &str = "${{ !cancelled() }}";

fn job() -> Yaml {
    recipe("jobs")["jobs"]["case-b"].clone()
}

/// The job in a clone with this client.
fn run(client: &Path) -> (Place, Vec<Output>) {
    let clone = clone_with(client);
    let outputs = run_steps(&job(), &clone);
    (clone, outputs)
}

/// Runs a job's scripts as the service would: after a failed step, only steps that ask for it.
pub(super) fn run_steps(job: &Yaml, clone: &Place) -> Vec<Output> {
    let mut outputs: Vec<Output> = Vec::new();
    for step in job["steps"].as_vec().unwrap() {
        let failed = outputs.iter().any(|output| !output.status.success());
        let Some(text) = step["run"].as_str() else {
            continue;
        };
        if !failed || step["if"].as_str() == Some(ALSO_AFTER_FAILURE) {
            outputs.push(script(&[&SHELL[..], &["-c"]].concat(), text, clone));
        }
    }
    outputs
}

#[test]
fn it_is_a_workflow_with_one_job_that_may_only_read() {
    let workflow = recipe("jobs");
    assert_eq!(keys(&workflow), ["name", "on", "permissions", "jobs"]);
    assert_eq!(keys(&workflow["permissions"]), ["contents"]);
    assert_eq!(workflow["permissions"]["contents"].as_str(), Some("read"));
    assert_eq!(keys(&job()), ["runs-on", "env", "steps"]);
    let steps = job();
    let steps = steps["steps"].as_vec().unwrap();
    assert_eq!(steps[0]["uses"].as_str(), Some("actions/checkout@v4"));
    for step in steps {
        assert_ne!(step["run"].is_badvalue(), step["uses"].is_badvalue());
    }
}

#[test]
fn the_reports_are_uploaded_also_when_the_run_fails() {
    let job = job();
    let upload = job["steps"].as_vec().unwrap().last().unwrap();
    assert_eq!(upload["uses"].as_str(), Some("actions/upload-artifact@v4"));
    assert_eq!(upload["if"].as_str(), Some(ALSO_AFTER_FAILURE));
    assert_eq!(upload["with"]["path"].as_str(), Some("reports"));
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn a_client_that_passes_passes_the_job() {
    let (clone, outputs) = run(&good_client());
    for output in &outputs {
        assert!(output.status.success(), "{output:?}");
    }
    assert_shown(&clone, "PASSED");
}

#[test]
#[ignore = "needs container engines: .ci/containers"]
fn a_client_that_fails_fails_the_job_and_is_in_summary_and_reports() {
    let (clone, outputs) = run(&bad_client());
    let codes: Vec<_> = outputs.iter().map(|output| output.status.code()).collect();
    assert_eq!(codes, [Some(1), Some(0)], "{outputs:?}");
    assert_shown(&clone, "FAILED");
}

/// The summary has the verdict, and the directory that is uploaded has every report.
#[track_caller]
fn assert_shown(clone: &Place, verdict: &str) {
    let summary = fs::read_to_string(clone.path().join("summary-of-the-job")).unwrap();
    assert!(summary.contains(verdict), "{summary}");
    let reports = clone.path().join("reports");
    let junit = fs::read_to_string(reports.join("runner.xml")).unwrap();
    assert!(junit.contains("<testsuites"), "{junit}");
    let json = fs::read(reports.join("runner.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["verdict"], verdict.to_lowercase());
}
