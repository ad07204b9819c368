//! What is left of a run where no namespace ends with it: no process, no directory.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::CONTAINER;
use crate::abuse::Abuse;
use crate::needs_sandbox;
use crate::teardown::watch::Place;

/// Moments at which the runner is killed, half of them an ordinary user's.
const KILLS: u64 = 60;
/// Between two of them; a whole run takes about as long as all of them.
const STEP_US: u64 = 2_500;

fn ended(abuse: &'static str, limits: &[(&'static str, &'static str)]) {
    for ordinary in [false, true] {
        let place = Place::new();
        let mut abuse = Abuse::of(abuse);
        for (key, value) in limits {
            abuse = abuse.limit(key, value);
        }
        if ordinary {
            abuse = abuse.by_an_ordinary_user();
        }
        let run = abuse.described(&place).on_a_host_without(CONTAINER);
        let done = place.start(run).wait();
        place.assert_nothing_left();
        assert_eq!(done.report["tier"], "inherited", "{}", done.stderr);
        assert!(
            done.checks("failed").contains(&"process/no-survivors"),
            "{:?} {}",
            done.checks("failed"),
            done.stderr
        );
    }
}

#[test]
fn what_the_client_leaves_running_is_named_and_ended() {
    needs_sandbox!();
    ended("daemons-hold-the-pipes", &[]);
    ended("stop-everyone", &[("timeout", "\"1s\"")]);
}

#[test]
fn a_fork_bomb_meets_its_limit_and_ends_with_the_client() {
    needs_sandbox!();
    ended("fork-bomb", &[("processes", "64")]);
}

/// It forks and ends, again and again: whoever looks for it finds only where it was.
#[test]
fn a_process_that_is_never_the_same_for_long_is_ended() {
    needs_sandbox!();
    ended("fork-chain", &[("processes", "64")]);
}

#[test]
fn a_thread_bomb_meets_its_limit() {
    needs_sandbox!();
    let place = Place::new();
    let run = Abuse::of("thread-bomb").limit("processes", "64");
    let run = run.described(&place).on_a_host_without(CONTAINER);
    let done = place.start(run).wait();
    place.assert_nothing_left();
    done.assert_passed();
}

#[test]
fn a_runner_killed_at_any_moment_leaves_neither_process_nor_directory() {
    needs_sandbox!();
    let place = Place::new();
    for kill in 0..KILLS {
        let mut abuse = Abuse::of("stop-everyone");
        if kill % 2 == 1 {
            abuse = abuse.by_an_ordinary_user();
        }
        let run = abuse.described(&place).on_a_host_without(CONTAINER);
        let mut command = place.command(run);
        let mut run = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_micros(kill * STEP_US));
        run.kill().unwrap();
        run.wait().unwrap();
        place.assert_nothing_left();
    }
}

#[test]
fn a_run_that_is_interrupted_leaves_nothing() {
    needs_sandbox!();
    let place = Place::new();
    let abuse = Abuse::of("stop-everyone");
    let mut run = place.start(abuse.described(&place).on_a_host_without(CONTAINER));
    thread::sleep(Duration::from_millis(150));
    let done = run.interrupt();
    place.assert_nothing_left();
    assert_eq!(done.code, Some(3), "{}", done.stderr);
}
