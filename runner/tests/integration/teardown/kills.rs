//! SIGKILL of the runner while the client runs. At any other moment: `killed`.

use super::watch::Place;
use crate::escapes::attempt::hostile;
use crate::needs_sandbox;

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
