//! How the client ends, and what it leaves running.

use crate::kit::Run;
use crate::needs_sandbox;

use super::deviations;

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
