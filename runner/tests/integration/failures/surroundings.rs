//! The client's surroundings: only those that the profile names.

use std::collections::BTreeMap;

use super::after;
use crate::kit::{Done, Run};
use crate::needs_sandbox;

/// Returns the client's report about itself: the first word of each line, and the rest of the lines with that word.
fn told(done: &Done) -> BTreeMap<String, Vec<String>> {
    done.assert_passed();
    let mut told = BTreeMap::<_, Vec<_>>::new();
    for line in done.report["evidence"]["stderr"]["tail"]
        .as_str()
        .unwrap()
        .lines()
    {
        let (word, rest) = line.split_once(' ').unwrap();
        told.entry(word.to_owned())
            .or_default()
            .push(rest.to_owned());
    }
    told
}

fn run() -> Run {
    Run::case_b().deviating("tell-surroundings")
}

#[test]
fn no_variable_of_the_runner_reaches_the_client() {
    needs_sandbox!();
    let told = told(
        &run()
            .variable("SECRET_OF_THE_HOST", "1")
            .variable("HTTP_PROXY", "http://h")
            .json(),
    );
    let names: Vec<_> = told["variable"]
        .iter()
        .map(|one| one.split('=').next().unwrap())
        .collect();
    assert_eq!(names, ["AGENT_BASE_URL", "AGENT_API_KEY", "HOME", "TMPDIR"]);
    assert_eq!(
        told["variable"][1..],
        ["AGENT_API_KEY=KEY", "HOME=/home/sandbox", "TMPDIR=/tmp"]
    );
}

#[test]
fn the_client_is_told_its_arguments_and_no_path_of_the_host() {
    needs_sandbox!();
    let told = told(&run().json());
    assert_eq!(told["argument"][0], "agent-cli");
    assert_eq!(told["argument"].last().unwrap(), "tell-surroundings");
    assert_eq!(told["cwd"], ["/home/work"]);
    assert_eq!(told["host"], ["sandbox"]);
}

#[test]
fn no_descriptor_of_the_runner_reaches_the_client() {
    needs_sandbox!();
    let run = run().with_devices("\"null\"");
    let json = run.argument("--report").argument("json");
    let told = told(&Done::of(&after("exec 9</dev/null", &json)));
    let numbers: Vec<_> = told["descriptor"]
        .iter()
        .map(|one| one.split(' ').next().unwrap())
        .collect();
    // The fourth is the directory that the client opened for this list.
    assert_eq!(numbers, ["\"0\"", "\"1\"", "\"2\"", "\"3\""]);
    assert_eq!(told["descriptor"][0], "\"0\" /dev/null");
    assert!(told["descriptor"][3].ends_with("/fd"), "{told:?}");
}

#[test]
fn the_client_is_an_unprivileged_user_behind_a_filter_whoever_runs_it() {
    needs_sandbox!();
    for run in [run(), run().as_ordinary_user()] {
        let told = told(&run.json());
        let expected = [
            "Uid: 1000 1000 1000 1000",
            "Gid: 1000 1000 1000 1000",
            "CapEff: 0000000000000000",
            "CapBnd: 0000000000000000",
            "NoNewPrivs: 1",
            "Seccomp: 2",
        ];
        for line in expected {
            assert!(
                told["status"].iter().any(|one| one == line),
                "{line}: {told:?}"
            );
        }
    }
}
