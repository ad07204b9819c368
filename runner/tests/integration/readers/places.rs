//! Locations and fingerprints of results, which are equal for every directory and time of a run.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::kit::{Run, runner};
use crate::needs_sandbox;

/// Creates a directory with a case and a client in it, as a user's working directory.
fn project() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let cases = directory.path().join("my cases");
    fs::create_dir(&cases).unwrap();
    fs::write(
        cases.join("[b](1) {0}.toml"),
        policy::text("case-b").unwrap(),
    )
    .unwrap();
    fs::copy(
        crate::kit::fixture("deviant-client"),
        directory.path().join("agent"),
    )
    .unwrap();
    directory
}

/// Returns the SARIF of a client that deviates, run from `directory`.
fn sarif(directory: &Path, case: &str, client: &str) -> Value {
    let run = Run::case("run")
        .argument(case)
        .argument("--client")
        .argument(client);
    let run = run.argument("--report").argument("sarif");
    let run = run
        .client_argument("--deviate")
        .client_argument("unknown-get");
    let mut command = run.command_of(runner());
    let output = command.current_dir(directory).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn of_each_result(log: &Value, part: &str) -> Vec<Value> {
    let results = log["runs"][0]["results"].as_array().unwrap().iter();
    results.map(|result| result[part].clone()).collect()
}

#[test]
fn two_runs_in_different_directories_have_the_same_fingerprints_and_places() {
    needs_sandbox!();
    let (one, other) = (project(), project());
    let case = "my cases/[b](1) {0}.toml";
    let whole = other.path().canonicalize().unwrap();
    let first = sarif(one.path(), case, "./agent");
    let second = sarif(
        other.path(),
        whole.join(case).to_str().unwrap(),
        whole.join("agent").to_str().unwrap(),
    );
    for part in ["ruleId", "partialFingerprints", "locations", "message"] {
        let found = of_each_result(&first, part);
        assert!(!found.is_empty());
        assert_eq!(found, of_each_result(&second, part), "{part}");
        let text = serde_json::to_string(&found).unwrap();
        for directory in [&one, &other] {
            let name = directory.path().file_name().unwrap().to_str().unwrap();
            assert!(!text.contains(name), "{text}");
        }
    }
    let details = "automationDetails";
    assert_eq!(first["runs"][0][details], second["runs"][0][details]);
    let place = &first["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    let location = &place["artifactLocation"];
    assert_eq!(location["uri"], "my%20cases/%5Bb%5D%281%29%20%7B0%7D.toml");
    let line = usize::try_from(place["region"]["startLine"].as_u64().unwrap()).unwrap();
    let text = fs::read_to_string(one.path().join(case)).unwrap();
    assert!(
        text.lines()
            .nth(line - 1)
            .unwrap()
            .starts_with("[[expect.requests.rule]]")
    );
}

#[test]
fn a_case_that_lies_elsewhere_is_known_by_its_files_name() {
    needs_sandbox!();
    let (one, other) = (project(), tempfile::tempdir().unwrap());
    let case = one.path().join("my cases/[b](1) {0}.toml");
    let client = one.path().join("agent");
    let log = sarif(
        other.path(),
        case.to_str().unwrap(),
        client.to_str().unwrap(),
    );
    let artifact = &log["runs"][0]["artifacts"][0]["location"];
    assert_eq!(artifact["uri"], "%5Bb%5D%281%29%20%7B0%7D.toml");
}
