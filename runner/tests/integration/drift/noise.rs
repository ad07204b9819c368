//! Comparison of an agent with itself: its noise is no difference, and each real change is.

use std::fs;

use serde_json::Value;

use super::Place;
use crate::kit::{Run, fixture, parsed};
use crate::needs_sandbox;

/// Runs of one client that are compared, each with each other.
const RUNS: usize = 10;

fn audit() -> Run {
    let audit = Run::case("audit").argument("--stub=text");
    audit
        .client_argument(fixture("noisy-agent"))
        .client_argument("{base_url}")
}

fn case() -> Run {
    Run::case_b().client(fixture("noisy-agent"))
}

/// Executes the run, and keeps its report if the agent did all of its work.
fn keep(place: &Place, run: Run, name: &str) {
    place.keep(run, name);
    let report = parsed(&fs::read(place.at(name)).unwrap(), name);
    let number = |list: &str| report["evidence"][list].as_array().map_or(0, Vec::len);
    assert_eq!(report["client"]["exit"]["code"], 0, "{name}");
    assert_eq!(number("requests"), 5, "{name}");
    assert!(number("files") > 20, "{name}");
    assert!(number("attempts") > 2, "{name}");
}

#[track_caller]
fn assert_quiet(run: impl Fn() -> Run) {
    let place = Place::new();
    let names: Vec<String> = (0..RUNS).map(|number| format!("{number}.json")).collect();
    names.iter().for_each(|name| keep(&place, run(), name));
    for (index, old) in names.iter().enumerate() {
        for new in names.iter().skip(index + 1) {
            let output = place.diff(old, new);
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{said}");
        }
    }
}

#[test]
fn ten_audits_of_a_noisy_agent_are_alike() {
    needs_sandbox!();
    assert_quiet(audit);
}

#[test]
fn ten_runs_of_a_noisy_agent_are_alike() {
    needs_sandbox!();
    assert_quiet(case);
}

/// The lock file of one run accepts the others.
#[test]
fn lock_file_of_a_noisy_agent_accepts_it() {
    needs_sandbox!();
    let place = Place::new();
    let with = || {
        case()
            .argument("--baseline")
            .argument(place.at("agent.lock"))
    };
    with().argument("--update-baseline").json();
    let first = fs::read(place.at("agent.lock")).unwrap();
    with().argument("--update-baseline").json();
    assert_eq!(fs::read(place.at("agent.lock")).unwrap(), first);
    let done = with().json();
    assert_eq!(done.check("baseline/unchanged")["status"], "passed");
}

/// Areas and keys of the differences that a change makes, beside the argument that asks for it.
fn changed(run: impl Fn() -> Run, change: &str) -> Vec<String> {
    let place = Place::new();
    place.keep(run(), "old.json");
    let other = run().client_argument("--change").client_argument(change);
    place.keep(other, "new.json");
    let answer = place.diff_json("old.json", "new.json");
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let changes = answer["changes"].as_array().unwrap().iter();
    let is_own =
        |one: &&Value| text(one, "key").starts_with("{client} ") && one["area"] == "processes";
    let told = changes.filter(|one| !is_own(one));
    told.map(|one| format!("{} {}", text(one, "area"), text(one, "key")))
        .collect()
}

#[test]
fn each_real_change_of_a_noisy_agent_is_told() {
    needs_sandbox!();
    let one = |change: &str, expected: &str| {
        assert_eq!(changed(audit, change), [expected], "{change}");
    };
    one("program", "processes /bin/true /bin/true");
    one("file", "files home .noisy/new.txt");
    one("content", "files home .noisy/settings.toml");
    one("mode", "files home .noisy/state.db");
    one("model", "body POST /v1/messages $.model");
    let host = changed(audit, "host");
    assert!(
        host[0].ends_with("connect inet 192.0.2.99 port 443"),
        "{host:?}"
    );
    let port = changed(audit, "port");
    assert!(
        port[0].ends_with("connect inet 127.0.0.1 port 5432"),
        "{port:?}"
    );
    for (change, header) in [("header", "x-extra"), ("agent", "user-agent")] {
        let found = changed(case, change);
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found.iter().all(|line| line.ends_with(header)), "{found:?}");
    }
}
