//! Complete and broken journals, and the evidence that they fold into.

use model::journal::{Content, Host};
use serde_json::{Value, json};

use super::*;

mod classes;

const START_US: u64 = 1_000_000;

/// Builder of a journal, step by step.
#[derive(Default)]
struct Journal(Vec<Entry>);

impl Journal {
    fn accepted(mut self, connection: u64) -> Self {
        self.0.push(Entry::Accepted {
            connection,
            at_us: START_US + connection,
            peer: peer(connection),
            host: Host::Stub,
        });
        self
    }

    fn asked(self, connection: u64, request: u64, method: &str, path: &str) -> Self {
        self.asked_with(connection, request, method, path, &[])
    }

    fn asked_with(
        mut self,
        connection: u64,
        request: u64,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Self {
        let at_us = START_US + 100 * request;
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let head = Head::Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: None,
            version: "HTTP/1.1".to_owned(),
            headers: headers.iter().map(owned).collect(),
        };
        self.0.push(Entry::Began {
            connection,
            request,
            at_us,
        });
        self.0.push(Entry::Head {
            connection,
            request,
            at_us,
            head,
        });
        self
    }

    fn body(self, connection: u64, request: u64, sha256: &str) -> Self {
        self.shaped(connection, request, sha256, json!({}))
    }

    fn shaped(mut self, connection: u64, request: u64, sha256: &str, shape: Value) -> Self {
        let body = Body {
            bytes: 2,
            sha256: sha256.to_owned(),
            complete: true,
            content: Content::Json { shape },
        };
        self.0.push(Entry::Body {
            connection,
            request,
            at_us: START_US,
            body,
        });
        self
    }

    fn answered(mut self, connection: u64, request: u64) -> Self {
        self.0.push(Entry::Answered {
            connection,
            request,
            at_us: START_US,
            status: 200,
        });
        self
    }

    fn sent(mut self, connection: u64, request: u64, event: &str) -> Self {
        let at_us = START_US + 500;
        self.0.push(Entry::Sent {
            connection,
            request,
            at_us,
            event: event.to_owned(),
            data: json!({"type": event}),
        });
        self
    }

    fn closed(mut self, connection: u64, bytes: u64, requests: u64) -> Self {
        let (at_us, unaccounted, end) = (START_US + 900, 0, End::Closed);
        self.0.push(Entry::Closed {
            connection,
            at_us,
            bytes,
            unaccounted,
            requests,
            end,
        });
        self
    }

    fn entry(mut self, entry: Entry) -> Self {
        self.0.push(entry);
        self
    }

    fn done(self) -> Traffic {
        self.entry(Entry::Done {
            at_us: START_US + 1_000,
        })
        .cut()
    }

    fn cut(self) -> Traffic {
        self.cut_with(&[])
    }

    fn cut_with(self, side_requests: &[SideRequest]) -> Traffic {
        from_journal(self.0, START_US, None, side_requests)
    }
}

#[test]
fn held_bytes_belong_to_the_connection_of_their_peer_or_to_a_new_one() {
    let held = |of, bytes| Entry::Held {
        at_us: START_US + 950,
        peer: peer(of),
        host: Host::Stub,
        bytes,
    };
    let journal = Journal::default().accepted(1).closed(1, 0, 0);
    let served = journal.entry(held(1, 839)).entry(held(7, 2)).done();
    assert_eq!(served.gaps, []);
    let held = served
        .connections
        .iter()
        .map(|one| (one.seq, one.held, one.end));
    let expected = [(1, 839, End::Closed), (2, 2, End::Open)];
    assert!(held.eq(expected), "{:?}", served.connections);
}

fn peer(connection: u64) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 40_000 + connection as u16))
}

fn classes(served: &Traffic) -> Vec<RequestClass> {
    served
        .requests
        .iter()
        .map(|request| request.class)
        .collect()
}

fn gaps(served: &Traffic) -> Vec<&str> {
    served.gaps.iter().map(|gap| gap.detail.as_str()).collect()
}

#[test]
fn a_whole_journal_becomes_evidence_without_gaps() {
    let served = Journal::default()
        .accepted(1)
        .asked(1, 1, "POST", "/v1/messages")
        .body(1, 1, "aa")
        .answered(1, 1)
        .sent(1, 1, "message_start")
        .sent(1, 1, "message_stop")
        .closed(1, 300, 1)
        .done();
    assert_eq!(gaps(&served), [""; 0]);
    assert_eq!(classes(&served), [RequestClass::Message]);
    assert_eq!(
        (served.requests[0].at_us, served.requests[0].status),
        (100, Some(200))
    );
    assert_eq!(
        (served.connections[0].at_us, served.connections[0].bytes),
        (1, 300)
    );
    let events: Vec<_> = served
        .provider_events
        .iter()
        .map(|event| event.event.as_str())
        .collect();
    assert_eq!(events, ["message_start", "message_stop"]);
    assert_eq!(served.provider_events[0].at_us, 500);
}

#[test]
fn a_head_that_is_none_is_an_unknown_request_and_no_gap() {
    let malformed = Head::Malformed {
        reason: "no method".to_owned(),
    };
    let served = Journal::default()
        .accepted(1)
        .entry(Entry::Began {
            connection: 1,
            request: 1,
            at_us: START_US,
        })
        .entry(Entry::Head {
            connection: 1,
            request: 1,
            at_us: START_US,
            head: malformed,
        })
        .closed(1, 9, 1)
        .done();
    assert_eq!(classes(&served), [RequestClass::Unknown]);
    assert_eq!(gaps(&served), [""; 0]);
}

#[test]
fn the_canary_is_left_out_and_the_others_are_numbered_anew() {
    let journal = Journal::default()
        .accepted(1)
        .closed(1, 0, 0)
        .accepted(2)
        .asked(2, 1, "POST", "/v1/messages")
        .closed(2, 300, 1)
        .entry(Entry::Done { at_us: START_US });
    let served = from_journal(journal.0, START_US, Some(peer(1)), &[]);
    assert_eq!(gaps(&served), [""; 0]);
    assert_eq!(served.connections.len(), 1);
    assert_eq!(
        (served.connections[0].seq, served.requests[0].connection),
        (1, 1)
    );
}

#[test]
fn a_canary_connection_that_carried_bytes_is_kept() {
    let journal = Journal::default()
        .accepted(1)
        .closed(1, 4, 0)
        .entry(Entry::Done { at_us: START_US });
    let served = from_journal(journal.0, START_US, Some(peer(1)), &[]);
    assert_eq!(served.connections.len(), 1);
}

#[test]
fn only_the_first_connection_of_the_canarys_address_is_left_out() {
    let again = Entry::Accepted {
        connection: 2,
        at_us: START_US,
        peer: peer(1),
        host: Host::Stub,
    };
    let journal = Journal::default()
        .accepted(1)
        .closed(1, 0, 0)
        .entry(again)
        .closed(2, 0, 0)
        .entry(Entry::Done { at_us: START_US });
    let served = from_journal(journal.0, START_US, Some(peer(1)), &[]);
    assert_eq!(served.connections.len(), 1);
}

#[test]
fn a_canary_that_the_stub_never_saw_is_a_gap() {
    let journal = Journal::default().entry(Entry::Done { at_us: START_US });
    let served = from_journal(journal.0, START_US, Some(peer(1)), &[]);
    assert_eq!(
        gaps(&served),
        ["the connection of the positive canary is not in the journal"]
    );
}

#[test]
fn a_journal_without_its_end_is_a_gap() {
    let served = Journal::default().accepted(1).closed(1, 0, 0).cut();
    assert_eq!(
        gaps(&served),
        ["the stub did not say that it had read everything"]
    );
    assert_eq!(served.gaps[0].what, GapKind::Requests);
}

#[test]
fn a_connection_without_its_end_is_a_gap() {
    let served = Journal::default().accepted(1).done();
    assert_eq!(gaps(&served), ["connection 1 has no end"]);
}

#[test]
fn entries_about_what_never_began_are_gaps() {
    let served = Journal::default().closed(3, 0, 0).answered(1, 7).done();
    assert_eq!(
        gaps(&served),
        [
            "connection 3 ended but was never accepted",
            "the answer of request 7 came before its first byte"
        ]
    );
}

#[test]
fn a_request_on_an_unknown_connection_is_a_gap() {
    let served = Journal::default().asked(5, 1, "HEAD", "/").done();
    let expected = ["request 1 is on a connection that was never accepted"];
    assert_eq!(gaps(&served), expected);
    assert_eq!(served.requests[0].connection, 0);
}

#[test]
fn a_request_without_a_head_is_a_gap() {
    let began = Entry::Began {
        connection: 1,
        request: 1,
        at_us: START_US,
    };
    let served = Journal::default()
        .accepted(1)
        .entry(began)
        .closed(1, 5, 1)
        .done();
    assert_eq!(gaps(&served), ["request 1 has no head"]);
    assert_eq!(served.requests[0].head, Head::Incomplete);
}

#[test]
fn counts_that_disagree_are_a_gap() {
    let served = Journal::default()
        .accepted(1)
        .asked(1, 1, "HEAD", "/")
        .closed(1, 50, 2)
        .done();
    assert_eq!(
        gaps(&served),
        ["connection 1 ended with 2 requests, but the journal has 1"]
    );
}

#[test]
fn parts_that_come_twice_and_entries_after_the_end_are_gaps() {
    let served = Journal::default()
        .accepted(1)
        .asked(1, 1, "HEAD", "/")
        .answered(1, 1)
        .answered(1, 1)
        .closed(1, 50, 1)
        .entry(Entry::Done { at_us: START_US })
        .done();
    assert_eq!(
        gaps(&served),
        [
            "request 1 has a second answer",
            "the journal continues after its end"
        ]
    );
}

#[test]
fn an_answer_before_its_go_is_a_gap_of_order() {
    let unordered = Entry::Unordered {
        connection: 1,
        request: 1,
        at_us: START_US,
    };
    let served = Journal::default()
        .accepted(1)
        .asked(1, 1, "HEAD", "/")
        .entry(unordered)
        .closed(1, 50, 1)
        .done();
    assert_eq!(served.gaps.len(), 1);
    assert_eq!(served.gaps[0].what, GapKind::Order);
}

#[test]
fn a_sighting_names_its_request() {
    let sighting = Entry::Sighting {
        connection: 1,
        request: 1,
        at_us: START_US,
        place: "header user-agent".to_owned(),
    };
    let served = Journal::default()
        .accepted(1)
        .asked(1, 1, "HEAD", "/")
        .entry(sighting)
        .closed(1, 50, 1)
        .done();
    assert_eq!(served.sightings[0].place, "request 1 header user-agent");
}
