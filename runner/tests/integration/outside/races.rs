//! Calls that try to differ from the supervisor's view: while it reads, under signals, during process exit, or in great
//! numbers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::world::sandboxed;
use super::{
    assert_judged, denied, entries, listed, made, needs_outside, said_inside, several, times,
};
use crate::kit::{Done, Run};

const FAR: &str = "192.0.2.2";
/// Number of calls, as in the fixture.
const IN_A_LOOP: u64 = 5000;
const UNDER_SIGNALS: u64 = 2000;
const FLIPPED: u64 = 10_000;
const KILLED: u64 = 300;

/// Case B with large limits, for these clients' many connections on a busy machine.
fn spacious() -> Run {
    Run::changed_case("case-b", "connections = 1000 ", "connections = 1000000 ")
        .argument("--timeout")
        .argument("600s")
}

/// Asserts that the allowed and the accepted connections match, or else that no served request was judged. The client
/// fails in both cases.
#[track_caller]
fn assert_reconciled(done: &Done, through: u64) {
    let accepted = listed(done, "connections").len() as u64;
    let gaps = listed(done, "gaps");
    if gaps.is_empty() {
        assert_eq!(through, accepted);
    } else {
        assert!(gaps.iter().all(|gap| gap["what"] == "requests"), "{gaps:?}");
    }
    done.assert_verdict(1, "failed");
}

#[track_caller]
fn assert_attempted(done: &Done) {
    assert!(done.checks("failed").contains(&super::NO_ATTEMPTS));
}

fn count(said: &BTreeMap<String, u64>, word: &str) -> u64 {
    said.get(word).copied().unwrap_or(0)
}

#[test]
fn an_address_that_changes_while_it_is_read_leads_nowhere_and_hides_nothing() {
    needs_outside!();
    let (done, arrived) = sandboxed(spacious(), "flip-outside");
    assert!(arrived.is_empty(), "{arrived:?}");
    let said = said_inside(&done, "flip-outside");
    let (connected, refused) = (count(&said, "ok"), count(&said, "ENETUNREACH"));
    assert_eq!(connected + refused, FLIPPED);
    // The supervisor lists each call under one of the two addresses.
    let (through, denied) = (
        made(&done, "connect", "127.0.0.1"),
        made(&done, "connect", FAR),
    );
    assert_eq!(through + denied, FLIPPED);
    // The kernel counted the calls that the supervisor saw go to the stub but that went elsewhere.
    let label =
        "call beyond loopback that no recorded call explains (kernel counter Ip OutNoRoutes)";
    let unlisted = made(&done, "unknown", label);
    assert!(unlisted > 0, "the race was too short");
    assert_eq!(unlisted, refused - denied);
    // Every call that the supervisor saw leave loopback was denied; the allowed ones arrived, or the kernel refused
    // them.
    assert!(denied <= refused, "{denied} of {refused}");
    assert_eq!(listed(&done, "connections").len() as u64, connected);
    assert_reconciled(&done, through);
    assert_attempted(&done);
}

#[test]
fn an_address_that_changes_between_two_ports_inside_hides_no_connection() {
    needs_outside!();
    let (done, arrived) = sandboxed(spacious(), "flip-inside");
    assert!(arrived.is_empty(), "{arrived:?}");
    let said = said_inside(&done, "flip-inside");
    let connected = count(&said, "ok");
    assert_eq!(connected + count(&said, "ECONNREFUSED"), FLIPPED);
    assert_eq!(made(&done, "connect", "127.0.0.1"), FLIPPED);
    assert_eq!(listed(&done, "connections").len() as u64, connected);
    let through = entries(&done, "setup").iter().fold(0, |sum, entry| {
        let counts = entry[0] == "connect";
        sum + if counts {
            entry[9].as_u64().unwrap()
        } else {
            0
        }
    });
    assert_reconciled(&done, through);
    assert_attempted(&done);
}

/// A connect with AF_UNSPEC does not count as a connection: one made by such a call is a gap.
#[test]
fn a_family_that_changes_while_it_is_read_hides_no_connection() {
    needs_outside!();
    let (done, arrived) = sandboxed(spacious(), "flip-family");
    assert!(arrived.is_empty(), "{arrived:?}");
    let through = made(&done, "connect", "127.0.0.1");
    let accepted = listed(&done, "connections").len() as u64;
    let said = said_inside(&done, "flip-family");
    assert_eq!(count(&said, "ok"), FLIPPED);
    assert!(accepted > 0 && through < FLIPPED, "{accepted}, {through}");
    assert_reconciled(&done, through);
}

#[test]
fn five_thousand_connections_are_answered_in_time_and_counted() {
    needs_outside!();
    let (done, arrived) = sandboxed(Run::case_b(), "loop");
    assert!(arrived.is_empty(), "{arrived:?}");
    assert_eq!(
        said_inside(&done, "loop"),
        several("ENETUNREACH", IN_A_LOOP)
    );
    let entry = times(IN_A_LOOP, denied("connect", "inet", FAR, 7000));
    assert_eq!(entries(&done, "attempt"), [entry]);
    assert_judged(&done, true);
}

#[test]
fn a_call_that_a_signal_restarts_is_made_and_counted_once() {
    needs_outside!();
    let class = "signals-restarting";
    let (done, arrived) = sandboxed(Run::case_b(), class);
    assert!(arrived.is_empty(), "{arrived:?}");
    assert_eq!(
        said_inside(&done, class),
        several("ENETUNREACH", UNDER_SIGNALS)
    );
    let entry = times(UNDER_SIGNALS, denied("connect", "inet", FAR, 7000));
    assert_eq!(entries(&done, "attempt"), [entry]);
    assert_judged(&done, true);
}

#[test]
fn a_call_that_a_signal_interrupts_is_not_made_and_not_counted() {
    needs_outside!();
    let class = "signals-interrupting";
    let (done, arrived) = sandboxed(Run::case_b(), class);
    assert!(arrived.is_empty(), "{arrived:?}");
    let said = said_inside(&done, class);
    let (refused, interrupted) = (count(&said, "ENETUNREACH"), count(&said, "EINTR"));
    assert_eq!(refused + interrupted, UNDER_SIGNALS);
    let entry = times(refused, denied("connect", "inet", FAR, 7000));
    assert_eq!(entries(&done, "attempt"), [entry]);
    assert_judged(&done, true);
}

#[test]
fn a_process_that_is_killed_in_its_call_leads_nowhere_and_loses_nothing() {
    needs_outside!();
    let class = "killed-children";
    let (done, arrived) = sandboxed(Run::case_b(), class);
    assert!(arrived.is_empty(), "{arrived:?}");
    assert_eq!(said_inside(&done, class), several("ok", KILLED));
    let mut attempts = entries(&done, "attempt");
    for attempt in &mut attempts {
        attempt[9] = json!(1);
    }
    assert_eq!(attempts, [denied("connect", "inet", FAR, 7000)]);
    assert_judged(&done, true);
}

/// An allowed connection may die with its process before it arrives, which is a gap. No connection arrives that was not
/// allowed, and an exited process is no fault of the supervisor.
#[test]
fn a_process_that_is_killed_at_the_stub_makes_no_connection_that_is_missed() {
    needs_outside!();
    let class = "killed-at-the-stub";
    let (done, arrived) = sandboxed(spacious(), class);
    assert!(arrived.is_empty(), "{arrived:?}");
    assert_eq!(said_inside(&done, class), several("ok", KILLED));
    assert_eq!(entries(&done, "attempt"), [Value::Null; 0]);
    // The ledger also lists calls whose caller exited before the answer.
    let listed_calls = made(&done, "connect", "127.0.0.1");
    let accepted = listed(&done, "connections").len() as u64;
    assert!(accepted <= listed_calls, "{accepted} of {listed_calls}");
    let gaps = listed(&done, "gaps");
    let of_requests = gaps.iter().all(|gap| gap["what"] == "requests");
    assert!(of_requests && gaps.len() <= 1, "{gaps:?}");
    done.assert_verdict(1, "failed");
}
