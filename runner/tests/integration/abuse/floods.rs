//! Requests and connections.

use super::{Abuse, abuses};
use crate::needs_sandbox;

/// Checks that fail for a request that never ends.
const ENDLESS: &[&str] = &[
    "requests/first-and-only",
    "requests/connections",
    "process/exit-zero",
];

abuses! {
    a_body_of_2_gib_with_its_length_is_counted_and_not_kept: "endless-body-with-length" with timeout = "2s"
        => *ENDLESS, &[];
    a_body_of_2_gib_in_chunks_is_counted_and_not_kept: "endless-body-in-chunks" with timeout = "2s"
        => *ENDLESS, &[];
    a_head_without_end_holds_nothing_up: "slow-head" with timeout = "1s" => *ENDLESS, &[];
    a_thousand_idle_connections_are_found: "idle-connections" => ["requests/connections"], &[];
    a_request_byte_by_byte_is_one_request: "one-byte-at-a-time" => ["requests/first-and-only"], &[];
}

/// Each request is as large as permitted.
#[test]
fn large_requests_are_kept_to_a_limit_together() {
    needs_sandbox!();
    for (abuse, limit) in [
        ("bodies-of-many-values", "20"),
        ("requests-of-many-headers", "300"),
        ("requests-of-long-heads", "300"),
    ] {
        let ended = Abuse::of(abuse).limit("requests", limit).run();
        assert!(ended.checks("failed").contains(&"requests/first-and-only"));
        assert!(ended.checks("errored").is_empty());
    }
}

/// The last request may be whole or cut off.
#[test]
fn a_flood_of_requests_is_ended_on_one_connection_as_on_many() {
    needs_sandbox!();
    for abuse in ["requests-on-one-connection", "requests-on-new-connections"] {
        let ended = Abuse::of(abuse).limit("requests", "50").run();
        let failed = ended.checks("failed");
        for id in ["requests/first-and-only", "process/exit-zero"] {
            assert!(failed.contains(&id), "{failed:?}");
        }
        assert_eq!(ended.report["client"]["exit"]["request_limit"], true);
        assert!(ended.checks("errored").is_empty());
    }
}

/// The stub never reads the requests of connections beyond the limit.
#[test]
fn connections_beyond_the_limit_leave_those_within_it_to_judge() {
    needs_sandbox!();
    let ended = Abuse::of("too-many-idle-connections").run();
    ended.assert_verdict(1, "failed");
    assert_eq!(ended.checks("failed"), ["requests/connections"]);
    assert!(
        ended.gaps().contains("beyond the limit"),
        "{}",
        ended.gaps()
    );
}

/// The stub reports each connection that it accepts in time; further ones leave a gap.
#[test]
fn connections_that_are_dropped_at_once_never_pass() {
    needs_sandbox!();
    let ended = Abuse::of("connections-dropped-at-once").run();
    let found = [ended.checks("failed"), ended.checks("errored")].concat();
    assert!(found.contains(&"requests/connections"), "{found:?}");
}

/// The calling thread's descriptor table is read instead (Linux 6.9); on older kernels a gap is reported.
#[test]
fn connections_of_a_process_without_its_first_thread_never_pass_and_are_told_once() {
    needs_sandbox!();
    let ended = Abuse::of("connections-without-a-leader").run();
    let found = [ended.checks("failed"), ended.checks("errored")].concat();
    assert!(found.contains(&"requests/connections"), "{found:?}");
    let told = ended
        .gaps()
        .matches("cannot read the state of a socket")
        .count();
    assert!(told <= 2, "{}", ended.gaps());
}
