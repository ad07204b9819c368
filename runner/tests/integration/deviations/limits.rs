//! A client that exceeds a limit of its case is ended, and its actions until then are judged.

use crate::abuse::WITHOUT_FILES;
use crate::kit::Run;
use crate::needs_sandbox;

#[test]
fn endless_output_ends_the_client_and_what_needs_all_records_is_errored() {
    needs_sandbox!();
    let run = Run::changed_case(
        "case-b",
        "output_size = \"16 MiB\"",
        "output_size = \"64 KiB\"",
    );
    run.deviating("endless-output")
        .json()
        .assert_fails_and_errs(
            &["records/json-lines", "process/exit-zero"],
            &[
                "headers/user-agent",
                "records/sequence",
                "records/init-fields",
                "records/tools-empty",
                "records/init-before-post",
                "records/events-match-provider",
                "records/assistant-text",
                "records/assistant-position",
                "records/result-success",
                "secrets/credential-not-written",
            ],
        );
}

#[test]
fn endless_output_on_standard_error_ends_the_client_too() {
    needs_sandbox!();
    let run = Run::changed_case(
        "case-b",
        "output_size = \"16 MiB\"",
        "output_size = \"64 KiB\"",
    );
    let done = run.deviating("endless-stderr").json();
    done.assert_fails_and_errs(&["process/exit-zero"], &["secrets/credential-not-written"]);
}

#[test]
fn a_flood_of_requests_ends_the_client_and_fails() {
    needs_sandbox!();
    let run = Run::changed_case("case-b", "requests = 1000", "requests = 20");
    let done = run.deviating("many-requests").json();
    done.assert_fails(&[
        "requests/first-and-only",
        "requests/connections",
        "process/exit-zero",
    ]);
    assert_eq!(
        done.report["evidence"]["requests"]
            .as_array()
            .unwrap()
            .len(),
        21
    );
}

#[test]
fn as_many_requests_as_the_limit_allows_do_not_end_the_client() {
    needs_sandbox!();
    let run = Run::changed_case("case-b", "requests = 1000", "requests = 1");
    run.client(crate::kit::fixture("deviant-client"))
        .json()
        .assert_passed();
}

/// The stub never reads connections beyond the limit; the requests of the others still fail their checks.
#[test]
fn connections_beyond_the_limit_hide_no_deviation() {
    needs_sandbox!();
    let run = Run::changed_case("case-b", "connections = 1000", "connections = 10");
    let done = run.deviating("many-connections").json();
    done.assert_verdict(1, "failed");
    assert_eq!(done.checks("failed"), ["requests/connections"]);
    assert!(
        done.checks("errored").contains(&"requests/post-count"),
        "{}",
        done.stderr
    );
    let gaps = done.report["evidence"]["gaps"].to_string();
    assert!(
        gaps.contains("connections beyond the limit were closed unread"),
        "{gaps}"
    );
}

#[test]
fn a_tree_too_deep_to_walk_is_found_and_what_needs_all_files_errored() {
    needs_sandbox!();
    let done = Run::case_b().deviating("deep-directories").json();
    done.assert_fails_and_errs(&["files/nothing-else"], WITHOUT_FILES);
}

/// A client cannot choose an errored run over a failed one.
#[test]
fn lost_evidence_hides_no_certain_deviation() {
    needs_sandbox!();
    let done = Run::case_b()
        .deviating("deep-directories+same-message-again")
        .json();
    done.assert_fails_and_errs(
        &[
            "requests/first-and-only",
            "requests/post-count",
            "records/sequence",
            "records/events-match-provider",
            "records/assistant-text",
            "files/nothing-else",
        ],
        WITHOUT_FILES,
    );
    let few = Run::changed_case("case-b", "connections = 1000", "connections = 10");
    let done = few.deviating("same-message-again+many-connections").json();
    done.assert_verdict(1, "failed");
    assert_eq!(
        done.checks("failed"),
        [
            "requests/first-and-only",
            "requests/post-count",
            "requests/connections",
        ]
    );
}
