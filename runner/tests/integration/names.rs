//! Names that a client looks up, and files that it creates and removes.

use serde_json::{Value, json};

use crate::kit::{Done, Run, fixture};
use crate::needs_sandbox;

fn asking_client() -> Run {
    Run::case_b().client(fixture("asking-client"))
}

/// `[name, type, count]`, in the report's order.
fn names(done: &Done) -> Vec<Value> {
    let names = done.report["evidence"]["names"].as_array().unwrap();
    let row = |one: &Value| json!([one["name"], one["type"], one["count"]]);
    names.iter().map(row).collect()
}

/// Returns `[root, path]` of the temporary files, in the report's order.
fn transient(done: &Done) -> Vec<Value> {
    let files = done.report["evidence"]["files"].as_array().unwrap();
    let transient = files.iter().filter(|file| file["transient"] == true);
    transient
        .map(|file| json!([file["root"], file["path"]]))
        .collect()
}

#[track_caller]
fn assert_names(done: &Done) {
    assert_eq!(done.report["client"]["exit"], json!({"code": 0}));
    let expected = [
        json!(["raw.example", "A", 2]),
        json!(["raw.example", "TYPE65", 1]),
        json!([r"odd\032name.\255\.example", "TXT", 1]),
        json!(["<credential>.leak.example", "A", 1]),
        json!(["library.example", "A", 1]),
        json!(["library.example", "AAAA", 1]),
        json!(["late.example", "A", 1]),
        json!(["", "malformed", 1]),
    ];
    let mut found = names(done);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    found.retain(|name| !expected.contains(name));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn each_name_is_answered_at_once_and_listed_with_type_and_count() {
    needs_sandbox!();
    assert_names(&asking_client().json());
}

#[test]
fn names_are_listed_for_an_ordinary_user() {
    needs_sandbox!();
    assert_names(&asking_client().as_ordinary_user().json());
}

#[test]
fn the_credential_in_a_name_is_a_finding() {
    needs_sandbox!();
    let failed = asking_client().json();
    let failed = failed.checks("failed");
    assert!(failed.contains(&"secrets/credential-not-written"));
}

#[test]
fn a_file_that_was_removed_or_renamed_is_listed_as_transient() {
    needs_sandbox!();
    for run in [asking_client(), asking_client().as_ordinary_user()] {
        let done = run.json();
        let expected = [json!(["tmp", "scratch"]), json!(["home", "state.tmp"])];
        assert_eq!(transient(&done), expected);
    }
}

#[test]
fn files_that_were_made_and_removed_are_counted_whether_or_not_they_were_noticed() {
    needs_sandbox!();
    for run in [Run::case_b(), Run::case_b().as_ordinary_user()] {
        // The client renames its only temporary file to the state file, so the count is zero.
        let none = ["home", "tmp", "work"].map(|root| json!({"root": root, "count": 0}));
        assert_eq!(
            run.json().report["evidence"]["made_and_removed"],
            json!(none)
        );
    }
    let some = Run::case_b().deviating("removed-files").json();
    let counted = json!([{"root": "home", "count": 3}, {"root": "tmp", "count": 2}, {"root": "work", "count": 0}]);
    assert_eq!(some.report["evidence"]["made_and_removed"], counted);
    assert_eq!(transient(&some).len(), 5);
    some.assert_passed();
}

#[test]
fn a_client_that_asks_nobody_has_no_names() {
    needs_sandbox!();
    assert_eq!(names(&Run::case_b().json()), [Value::Null; 0]);
}
