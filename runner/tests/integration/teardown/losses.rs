//! A process of the sandbox that is lost in the middle of a run: the run is errored and leaves no remains.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::watch::{Place, Started};
use crate::escapes::attempt::hostile;
use crate::needs_sandbox;

fn loses(lost: impl Fn(&Started) -> Pid, what: &str) {
    let place = Place::new();
    let run = hostile(&[&format!("sleep-with-daemon {}", place.marker())]);
    let mut started = place.start(run);
    started.client();
    kill(lost(&started), Signal::SIGKILL).unwrap();
    let done = started.wait();
    place.assert_nothing_left();
    assert_eq!((done.code, done.verdict()), (Some(3), "errored"));
    let gaps = done.report["evidence"]["gaps"].to_string();
    assert!(gaps.contains(what), "{gaps}");
}

#[test]
fn a_run_that_loses_its_stub_is_errored() {
    needs_sandbox!();
    // Init ends with the stage, and either loss may be noticed first.
    loses(
        Started::stage,
        "the stub did not say that it had read everything",
    );
}

#[test]
fn a_run_that_loses_init_is_errored() {
    needs_sandbox!();
    loses(Started::init, "init was lost");
}

#[test]
fn a_client_that_is_killed_from_outside_is_told_as_such() {
    needs_sandbox!();
    let place = Place::new();
    let run = hostile(&[&format!("sleep-with-daemon {}", place.marker())]);
    let mut started = place.start(run);
    kill(started.client(), Signal::SIGKILL).unwrap();
    let done = started.wait();
    place.assert_nothing_left();
    assert_eq!(done.report["client"]["exit"]["signal"], 9);
    assert_eq!(done.code, Some(1));
}
