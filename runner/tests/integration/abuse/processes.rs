//! Signals, forks and threads.

use super::{Abuse, abuses};
use crate::needs_sandbox;

const EXIT: &[&str] = &["process/exit-zero"];
const LEFT: &[&str] = &["process/no-survivors"];

abuses! {
    a_client_that_ignores_every_signal_is_ended: "ignore-every-signal" with timeout = "1s" => *EXIT, &[];
    a_client_that_stops_itself_is_ended: "stop-itself" with timeout = "1s" => *EXIT, &[];
    a_client_that_stops_everyone_stops_nobody_above_it: "stop-everyone" with timeout = "1s" => *EXIT, &[];
    a_client_that_kills_everyone_kills_nobody_above_it: "kill-everyone" => [], &[];
    daemons_that_hold_the_pipes_hold_nothing_up: "daemons-hold-the-pipes" => *LEFT, &[];
    a_fork_bomb_ends_with_the_client: "fork-bomb" with processes = 64 => *LEFT, &[];
    a_process_that_is_never_the_same_for_long_is_a_survivor: "fork-chain" with processes = 64 => *LEFT, &[];
    a_thread_bomb_meets_its_limit: "thread-bomb" with processes = 64 => [], &[];
    processor_time_is_limited: "all-processor-time" with cpu_time = "1s" => *EXIT, &[];
    a_real_time_signal_is_an_exit_status: "real-time-signal" => *EXIT, &[];
    an_orphan_that_a_real_time_signal_ended_is_nothing: "orphan-of-a-real-time-signal" => [], &[];
    everything_below_proc_can_be_opened_without_harm: "reader-of-proc" => [], &[];
}

/// Any of its requests may be the last, so connections may be whole or not.
#[test]
fn a_child_that_asks_on_after_the_end_is_found_as_survivor_and_by_its_requests() {
    needs_sandbox!();
    let ended = Abuse::of("children-go-on").run();
    let failed = ended.checks("failed");
    for id in ["requests/first-and-only", "process/no-survivors"] {
        assert!(failed.contains(&id), "{failed:?}");
    }
    ended.assert_verdict(1, "failed");
}

#[test]
fn an_ordinary_users_client_is_held_as_well() {
    needs_sandbox!();
    for (abuse, failed) in [
        ("fork-bomb", LEFT),
        ("stop-itself", EXIT),
        ("real-time-signal", EXIT),
    ] {
        let abuse = Abuse::of(abuse).by_an_ordinary_user();
        let abuse = abuse.limit("timeout", "\"1s\"").limit("processes", "64");
        abuse.run().assert_found(failed, &[]);
    }
}
