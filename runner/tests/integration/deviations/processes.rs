//! End of the client, and processes that it leaves running.

use super::deviations;
use crate::kit::Run;
use crate::needs_sandbox;

deviations! {
    another_exit_code_is_found: case_b, "exit-code-1" => ["process/exit-zero"];
    a_signal_is_found: case_b, "abort" => ["process/exit-zero"];
    a_process_that_outlives_the_client_is_found: case_b, "survivor" => ["process/no-survivors"];
    a_child_that_has_ended_and_was_not_waited_for_is_none: case_b, "ended-child" => [];
}

#[test]
fn a_survivor_is_named() {
    needs_sandbox!();
    let done = Run::case_b().deviating("survivor").json();
    let finding = done.check("process/no-survivors");
    assert!(
        finding["found"]
            .as_str()
            .unwrap()
            .starts_with("agent-cli (pid "),
        "{finding}"
    );
}

#[test]
fn a_client_that_stays_is_ended_at_its_time_and_fails() {
    needs_sandbox!();
    let done = Run::case_b()
        .argument("--timeout")
        .argument("1s")
        .deviating("stays")
        .json();
    done.assert_fails(&["process/exit-zero"]);
    assert!(
        done.report["client"]["exit"]["timeout"].is_number(),
        "{}",
        done.report["client"]["exit"]
    );
    assert_eq!(done.report["evidence"]["stderr"]["tail"], "staying\n");
}

/// The client might have removed these files, so their check is skipped; actions before the end are still judged.
#[test]
fn remains_of_a_client_ended_at_its_time_are_skipped() {
    needs_sandbox!();
    let run = |deviation| {
        let run = Run::case_b().argument("--timeout").argument("1s");
        run.deviating(deviation).json()
    };
    let done = run("extra-file+survivor+stays");
    done.assert_fails(&["process/exit-zero"]);
    for id in ["files/nothing-else", "process/no-survivors"] {
        let finding = done.check(id);
        assert_eq!(finding["status"], "skipped", "{finding}");
        assert!(finding["found"].is_string(), "{finding}");
        let because = "ended by the runner (time-out after 1.0 s)";
        assert_eq!(finding["because"], because, "{finding}");
    }
    run("key-in-file-name+same-message-again+stays").assert_fails(&[
        "requests/first-and-only",
        "requests/post-count",
        "records/sequence",
        "records/events-match-provider",
        "records/assistant-text",
        "secrets/credential-not-written",
        "process/exit-zero",
    ]);
}
