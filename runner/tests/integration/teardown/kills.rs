//! SIGKILL of the runner, at any moment.

use std::time::{Duration, Instant};

use super::watch::Place;
use crate::escapes::attempt::hostile;
use crate::kit::Run;
use crate::needs_sandbox;

/// Moments at which the runner is killed, spread over the start of a run.
const KILLS: u32 = 60;
const LAST: Duration = Duration::from_millis(40);

fn kill_at_many_moments(run: impl Fn(&str) -> Run) {
    let mounts = || {
        let own = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        own.lines().count()
    };
    let before = mounts();
    let place = Place::new();
    for index in 0..KILLS {
        // Every moment once, early and late ones mixed: 7 and 60 have no common factor.
        let moment = LAST * (index * 7 % KILLS) / KILLS;
        let mut started = place.start(run(&place.marker()));
        let end = Instant::now() + moment;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        started.kill();
        place.assert_nothing_left();
    }
    assert_eq!(mounts(), before);
}

fn sleeping(marker: &str) -> Run {
    hostile(&[&format!("sleep-with-daemon {marker}")])
}

#[test]
fn a_runner_that_is_killed_leaves_nothing() {
    needs_sandbox!();
    kill_at_many_moments(sleeping);
}

#[test]
fn a_runner_of_an_ordinary_user_that_is_killed_leaves_nothing() {
    needs_sandbox!();
    kill_at_many_moments(|marker| sleeping(marker).as_ordinary_user());
}

#[test]
fn a_runner_that_is_killed_while_the_client_runs_leaves_nothing() {
    needs_sandbox!();
    for attempt in ["sleep-with-daemon", "stop", "ignore-signals"] {
        let place = Place::new();
        let mut started = place.start(hostile(&[&format!("{attempt} {}", place.marker())]));
        started.client();
        started.kill();
        place.assert_nothing_left();
    }
}
