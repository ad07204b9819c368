//! Clients that do not end by themselves, or leave processes or files behind.

use serde_json::json;

use super::watch::Place;
use crate::escapes::attempt::hostile;
use crate::needs_sandbox;

/// Runs `attempt` against a time-out of a second.
fn timed_out(attempt: &str) {
    let place = Place::new();
    let run = hostile(&[&format!("{attempt} {}", place.marker())]);
    let done = place.start(run.argument("--timeout").argument("1s")).wait();
    place.assert_nothing_left();
    assert_eq!(done.report["client"]["exit"], json!({ "timeout": 1000 }));
    assert!(done.checks("failed").contains(&"process/exit-zero"));
    assert_eq!((done.code, done.verdict()), (Some(1), "failed"));
}

#[test]
fn a_client_that_sleeps_is_ended_with_its_daemons() {
    needs_sandbox!();
    timed_out("sleep-with-daemon");
}

#[test]
fn a_client_that_has_stopped_itself_is_ended() {
    needs_sandbox!();
    timed_out("stop");
}

#[test]
fn a_client_that_ignores_every_signal_is_ended() {
    needs_sandbox!();
    timed_out("ignore-signals");
}

#[test]
fn a_client_that_bombs_with_forks_is_ended_with_all_of_them() {
    needs_sandbox!();
    timed_out("fork-bomb-and-sleep");
}

#[test]
fn daemons_that_hold_the_outputs_are_ended_and_named() {
    needs_sandbox!();
    let place = Place::new();
    let run = hostile(&[&format!("leave-daemons {}", place.marker())]);
    let done = place.start(run).wait();
    place.assert_nothing_left();
    assert!(done.checks("failed").contains(&"process/no-survivors"));
    assert_eq!(done.report["evidence"]["gaps"], json!([]));
    assert_eq!((done.code, done.verdict()), (Some(1), "failed"));
}

/// kill(2) of -1 reaches every process in the namespace except init.
#[test]
fn a_client_that_kills_everything_it_can_ends_only_itself() {
    needs_sandbox!();
    let place = Place::new();
    let run = hostile(&[&format!("kill-everything {}", place.marker())]);
    let done = place.start(run).wait();
    place.assert_nothing_left();
    assert_eq!(done.report["client"]["exit"], json!({ "code": 0 }));
    assert_eq!(done.report["evidence"]["gaps"], json!([]));
    assert_eq!(done.code, Some(1));
}

#[test]
fn a_client_that_floods_its_output_is_ended() {
    needs_sandbox!();
    let place = Place::new();
    let run = hostile(&[&format!("flood {}", place.marker())]);
    let done = place.start(run).wait();
    place.assert_nothing_left();
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert_eq!(
        done.report["client"]["exit"],
        json!({ "output_limit": true })
    );
}

#[test]
fn ctrl_c_leaves_a_report_and_nothing_else() {
    needs_sandbox!();
    let place = Place::new();
    let run = hostile(&[&format!("sleep-with-daemon {}", place.marker())]);
    let mut started = place.start(run);
    started.client();
    let done = started.interrupt();
    place.assert_nothing_left();
    assert_eq!((done.code, done.verdict()), (Some(3), "errored"));
}
