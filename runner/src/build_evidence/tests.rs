//! Boundaries, gaps and the facts taken from the ledger.

use model::evidence::{Connection, Request, RequestClass};
use model::journal::{End, Host};
use sandbox::supervise::ledger::Connect;

use super::*;

const SECRET: &str = "runner-key-0123456789abcdef";

fn secrets() -> SecretScanner {
    SecretScanner::new(SECRET).unwrap()
}

fn connection(seq: u64, at_us: u64) -> Connection {
    Connection {
        seq,
        at_us,
        host: Host::Stub,
        bytes: 9,
        unaccounted: 0,
        held: 0,
        requests: 1,
        end: End::Closed,
    }
}

fn post(seq: u64, connection: u64) -> Request {
    let head = model::journal::Head::Request {
        method: "POST".into(),
        path: "/v1/messages".into(),
        query: None,
        version: "HTTP/1.1".into(),
        headers: Vec::new(),
    };
    Request {
        seq,
        at_us: 22,
        connection,
        host: Host::Stub,
        class: RequestClass::Message,
        side: None,
        head,
        body: None,
        status: None,
        expected: None,
    }
}

/// Returns two connections, of which the second carries the POST.
fn two(connects: &[(u64, usize)], accepted: [u64; 2]) -> (Traffic, Capture) {
    let mut capture = Capture::nothing((100, 100), &secrets());
    capture.barriers = vec![(1, 2), (2, 7)];
    capture.output.push(&[b'\n'; 7], 21);
    let connects = connects.iter().map(|(at_us, lines)| Connect {
        at_us: *at_us,
        lines: Some(*lines),
    });
    capture.ledger.connects = connects.collect();
    let served = Traffic {
        connections: vec![connection(1, accepted[0]), connection(2, accepted[1])],
        requests: vec![post(2, 2)],
        ..Traffic::default()
    };
    (served, capture)
}

#[test]
fn records_before_the_connect_are_told_from_those_before_the_request() {
    let (served, capture) = two(&[(10, 1), (20, 5)], [11, 21]);
    let (before, gaps) = boundaries(&served, &capture);
    assert_eq!(
        (before, gaps.len()),
        (
            Boundaries {
                connect: 5,
                post: 7
            },
            0
        )
    );
}

#[test]
fn record_read_late_is_not_before_the_request() {
    let (served, mut capture) = two(&[(10, 1), (20, 5)], [11, 21]);
    capture.output.push(b"in time\n", 22 + BARRIER_US - 1);
    capture.output.push(b"late\n", 22 + BARRIER_US);
    capture.barriers[1].1 = 9;
    let (before, gaps) = boundaries(&served, &capture);
    assert_eq!((before.post, gaps[0].what), (8, GapKind::Order));
}

#[test]
fn connections_that_may_have_changed_places_count_as_the_earlier_one() {
    let (served, capture) = two(&[(10, 1), (20, 5)], [25, 26]);
    assert_eq!(
        boundaries(&served, &capture).0,
        Boundaries {
            connect: 1,
            post: 7
        }
    );
}

#[test]
fn a_connection_that_nobody_let_through_is_a_gap_and_proves_no_order() {
    let (served, capture) = two(&[(10, 1)], [11, 21]);
    let (before, gaps) = boundaries(&served, &capture);
    assert_eq!(
        before,
        Boundaries {
            connect: 0,
            post: 7
        }
    );
    assert_eq!(gaps[0].what, GapKind::Requests);
}

#[test]
fn a_connection_that_never_arrived_is_a_gap() {
    let (served, capture) = two(&[(10, 1), (20, 5), (30, 6)], [11, 21]);
    assert_eq!(boundaries(&served, &capture).1[0].what, GapKind::Requests);
}

/// One connection was made past the supervisor, and another one was permitted but never arrived. The numbers
/// match, the connections do not.
#[test]
fn a_connection_accepted_before_one_was_let_through_is_a_gap_and_proves_no_order() {
    let (served, capture) = two(&[(10, 1), (20, 5)], [11, 15]);
    let (before, gaps) = boundaries(&served, &capture);
    assert_eq!((before.connect, gaps[0].what), (0, GapKind::Requests));
}

#[test]
fn a_connection_that_never_arrived_does_not_stand_for_one_that_nobody_let_through() {
    let (served, capture) = two(&[(10, 1), (20, 5)], [11, 19]);
    let (before, gaps) = boundaries(&served, &capture);
    assert_eq!((before.connect, gaps[0].what), (0, GapKind::Requests));
}

#[test]
fn connections_that_the_stub_refused_were_let_through_all_the_same() {
    let (mut served, capture) = two(&[(10, 1), (20, 5), (30, 6)], [11, 21]);
    served.refused = 1;
    assert!(boundaries(&served, &capture).1.is_empty());
}

#[test]
fn an_incomplete_ledger_is_a_gap_for_each_kind() {
    let mut ledger = Ledger::default();
    ledger.unlisted.denied = 3;
    ledger.further_processes = 2;
    ledger.faults = vec!["cannot answer a system call".into()];
    ledger.connects = vec![Connect {
        at_us: 1,
        lines: None,
    }];
    let kinds: Vec<GapKind> = incomplete_ledger(&ledger)
        .iter()
        .map(|gap| gap.what)
        .collect();
    use GapKind::{Attempts, Cut, Order};
    assert_eq!(kinds, [Cut, Cut, Attempts, Order]);
}
