//! Many runs at once.

use std::thread;

use super::Abuse;
use crate::needs_sandbox;

const AT_ONCE: usize = 8;
const EACH: usize = 5;

#[test]
fn forty_runs_eight_at_once_all_pass() {
    needs_sandbox!();
    let run_some =
        || (0..EACH).for_each(|_| Abuse::of("kill-everyone").run().assert_found(&[], &[]));
    thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(run_some))));
}
