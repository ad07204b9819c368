use model::journal::{Content, Host};
use proptest::prelude::*;

use super::*;

const KEY: &str = "sk-stub-0123456789";

fn budget(bytes: usize) -> Budget {
    Budget::new(&Limits {
        buffered_bytes: bytes,
        ..limits()
    })
}

fn limits() -> Limits {
    Limits {
        head_bytes: 400,
        body_bytes: 64,
        buffered_bytes: 1000,
        requests_per_connection: 3,
        ..Limits::default()
    }
}

#[derive(Debug, PartialEq)]
struct Outcome {
    seen: Vec<RequestFact>,
    passed: Vec<u8>,
    unaccounted: u64,
    cut: Cut,
    refused: bool,
}

/// Parses the pieces of the wire in turn, and checks that every byte was consumed.
fn tap_in(pieces: &[&[u8]]) -> Outcome {
    let mut tap = RequestTap::new(
        limits(),
        budget(1000),
        (Some(SecretScanner::new(KEY).unwrap()), Belongs::default()),
        Host::Stub,
    );
    let (mut seen, mut passed) = (Vec::new(), Vec::new());
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let taken = tap.step(rest, &mut passed, &mut seen);
            rest = &rest[taken..];
        }
    }
    assert_eq!(
        tap.bytes(),
        pieces.iter().map(|piece| piece.len() as u64).sum::<u64>()
    );
    let refused = tap.is_refused();
    let cut = tap.end(&mut seen);
    assert_eq!(
        tap.requests(),
        seen.iter()
            .filter(|fact| **fact == RequestFact::Began)
            .count() as u64
    );
    Outcome {
        seen,
        passed,
        unaccounted: tap.unaccounted(),
        cut,
        refused,
    }
}

fn tap(wire: &str) -> Outcome {
    tap_in(&[wire.as_bytes()])
}

/// Returns the facts as short texts.
fn story(outcome: &Outcome) -> Vec<String> {
    let word = |fact: &RequestFact| match fact {
        RequestFact::Began => "began".to_owned(),
        RequestFact::Head {
            head: Head::Request { method, path, .. },
            ..
        } => format!("{method} {path}"),
        RequestFact::Head {
            head: Head::Malformed { reason },
            ..
        } => format!("malformed: {reason}"),
        RequestFact::Head {
            head: Head::Incomplete,
            ..
        } => "head incomplete".to_owned(),
        RequestFact::Body(body) => format!(
            "{} bytes, {}",
            body.bytes,
            if body.complete {
                "complete"
            } else {
                "incomplete"
            }
        ),
        RequestFact::Sighting(place) => format!("sighting: {place}"),
    };
    outcome.seen.iter().map(word).collect()
}

fn content(outcome: &Outcome) -> &Content {
    let body = outcome.seen.iter().find_map(|fact| {
        if let RequestFact::Body(body) = fact {
            Some(&body.content)
        } else {
            None
        }
    });
    body.unwrap()
}

#[test]
fn a_silent_connection_tells_nothing() {
    let outcome = tap("");
    assert!(outcome.seen.is_empty());
    assert_eq!((outcome.unaccounted, outcome.cut), (0, Cut::Between));
}

#[test]
fn requests_follow_each_other_and_every_byte_is_accounted_for() {
    let wire = "HEAD / HTTP/1.1\r\nHost: x\r\n\r\nPOST /v1/messages HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
    let outcome = tap(wire);
    assert_eq!(
        story(&outcome),
        [
            "began",
            "HEAD /",
            "0 bytes, complete",
            "began",
            "POST /v1/messages",
            "2 bytes, complete"
        ]
    );
    assert_eq!(
        (outcome.unaccounted, outcome.passed.as_slice()),
        (0, wire.as_bytes())
    );
}

#[test]
fn a_head_that_is_cut_off_is_incomplete_and_the_server_never_sees_it() {
    let outcome = tap("POST /v1/messages HTTP/1.1\r\nHost");
    assert_eq!(story(&outcome), ["began", "head incomplete"]);
    assert_eq!(
        (outcome.unaccounted, outcome.passed.len(), outcome.cut),
        (32, 0, Cut::InRequest)
    );
}

#[test]
fn a_body_that_is_cut_off_is_reported_as_far_as_it_came() {
    let outcome = tap("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n[1,");
    assert_eq!(story(&outcome), ["began", "POST /", "3 bytes, incomplete"]);
    assert_eq!(
        content(&outcome),
        &Content::Other {
            reason: "incomplete".to_owned()
        }
    );
    assert_eq!((outcome.unaccounted, outcome.cut), (0, Cut::InRequest));
}

#[test]
fn nothing_is_understood_after_a_malformed_head() {
    let wire = "GET / HTTP/1.1\n\nGET / HTTP/1.1\r\n\r\n";
    let outcome = tap(wire);
    assert_eq!(
        story(&outcome),
        [
            "began",
            "malformed: a line of the head ends without a carriage return"
        ]
    );
    assert_eq!(
        (outcome.unaccounted, outcome.passed.len(), outcome.refused),
        (wire.len() as u64, 0, true)
    );
}

#[test]
fn bytes_of_another_protocol_are_malformed_at_the_first_control_character() {
    let outcome = tap("\u{16}\u{3}\u{1}hello");
    assert_eq!(
        story(&outcome),
        ["began", "malformed: a control character in the head"]
    );
    assert_eq!(outcome.unaccounted, 8);
}

#[test]
fn empty_lines_between_requests_are_unaccounted_and_begin_nothing() {
    let outcome = tap("\r\n\r\nGET / HTTP/1.1\r\n\r\n\r\n");
    assert_eq!(story(&outcome), ["began", "GET /", "0 bytes, complete"]);
    assert_eq!(outcome.unaccounted, 6);
}

#[test]
fn chunks_are_joined_and_what_hides_in_their_framing_is_unaccounted() {
    let outcome = tap(
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\n[\r\n1\r\n]\r\n0\r\nA: b\r\n\r\n",
    );
    assert_eq!(story(&outcome), ["began", "POST /", "2 bytes, complete"]);
    assert_eq!(
        content(&outcome),
        &Content::Json {
            shape: serde_json::json!([])
        }
    );
    assert_eq!(outcome.unaccounted, 4 + 6);
}

#[test]
fn malformed_framing_ends_the_body_and_what_follows_is_unaccounted() {
    let outcome = tap("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\nzz\r\n");
    assert_eq!(story(&outcome), ["began", "POST /", "1 bytes, incomplete"]);
    assert_eq!(
        content(&outcome),
        &Content::Other {
            reason: "a chunk size is not hexadecimal".to_owned()
        }
    );
    assert_eq!((outcome.unaccounted, outcome.refused), (4, false));
}

#[test]
fn a_head_beyond_the_limit_is_malformed() {
    let outcome = tap(&format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(400)));
    assert_eq!(
        story(&outcome),
        ["began", "malformed: the head is longer than 400 bytes"]
    );
    assert_eq!(outcome.unaccounted, 400 + 18);
}

#[test]
fn a_request_beyond_the_limit_is_malformed() {
    let outcome = tap(&"GET / HTTP/1.1\r\n\r\n".repeat(5));
    assert_eq!(
        story(&outcome)[9..],
        ["began", "malformed: more than 3 requests on one connection"]
    );
    assert_eq!(outcome.unaccounted, 2 * 18);
}

#[test]
fn a_body_beyond_the_limit_is_counted_and_hashed_to_its_end() {
    let outcome = tap(&format!(
        "POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n{}",
        "1".repeat(100)
    ));
    assert_eq!(story(&outcome), ["began", "POST /", "100 bytes, complete"]);
    assert_eq!(
        content(&outcome),
        &Content::Other {
            reason: "longer than 64 bytes".to_owned()
        }
    );
    let Some(RequestFact::Body(body)) = outcome.seen.last() else {
        panic!()
    };
    assert_eq!(
        body.sha256,
        model::digest::of_bytes("1".repeat(100).as_bytes())
    );
}

#[test]
fn bodies_together_take_no_more_memory_than_the_budget() {
    let budget = budget(10);
    let mut tap = RequestTap::new(limits(), budget, (None, Belongs::default()), Host::Stub);
    let mut seen = Vec::new();
    let wire = b"POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n[1,2,3,4,5]";
    let mut at = 0;
    while at < wire.len() {
        at += tap.step(&wire[at..], &mut Vec::new(), &mut seen);
    }
    let Some(RequestFact::Body(body)) = seen.last() else {
        panic!()
    };
    assert_eq!(
        body.content,
        Content::Other {
            reason: "more than 1000 bytes of bodies at one time".to_owned()
        }
    );
}

#[test]
fn the_credential_is_sighted_in_the_body_the_framing_and_outside_of_requests() {
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (half, rest) = KEY.split_at(8);
    let sighting = |wire: &str| {
        story(&tap(wire))
            .into_iter()
            .find(|word| word.starts_with("sighting"))
    };
    assert_eq!(
        sighting(&format!("{chunked}8\r\n{half}\r\na\r\n{rest}\r\n0\r\n\r\n")).as_deref(),
        Some("sighting: body")
    );
    assert_eq!(
        sighting(&format!("{chunked}0;{KEY}\r\n\r\n")).as_deref(),
        Some("sighting: chunk framing")
    );
    assert_eq!(
        sighting(&format!("GET /{KEY}")).as_deref(),
        Some("sighting: head that is no request")
    );
    assert_eq!(
        sighting(&format!("GET /\n{KEY}")).as_deref(),
        Some("sighting: bytes outside of requests")
    );
    assert_eq!(
        sighting(&format!(
            "POST /v1/messages HTTP/1.1\r\nx-api-key: {KEY}\r\n\r\n"
        )),
        None
    );
}

/// Generates parts of a request stream, well-formed and malformed.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let sound = prop_oneof![
        Just("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned()),
        "[a-z0-9]{0,80}".prop_map(|body| format!(
            "POST /v1/messages HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )),
        "[a-f;]{1,20}".prop_map(|body| format!(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        )),
        Just(format!(
            "POST / HTTP/1.1\r\ncontent-length: 40\r\n\r\n{{\"a\":\"{KEY}\",\"a\":0123456789}}"
        )),
    ];
    let unsound = prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(KEY.as_bytes().to_vec()),
        Just(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;".to_vec()),
        Just(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;a\r\n[\r\nzz\r\n".to_vec()),
        Just(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n".to_vec()),
        Just(b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n".to_vec()),
        "[ -~]{0,30}\r\n\r\n".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..30),
    ];
    prop_oneof![3 => sound.prop_map(String::into_bytes), 1 => unsound]
}

proptest! {
    #[test]
    fn the_same_bytes_tell_the_same_however_they_are_cut(
        parts in proptest::collection::vec(part(), 0..6),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let wire = parts.concat();
        let mut borders: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).chain([0, wire.len()]).collect();
        borders.sort_unstable();
        let pieces: Vec<&[u8]> = borders.windows(2).map(|pair| &wire[pair[0]..pair[1]]).collect();
        let bytewise: Vec<&[u8]> = wire.chunks(1).collect();
        let whole = tap_in(&[&wire]);
        prop_assert_eq!(&tap_in(&pieces), &whole);
        prop_assert_eq!(&tap_in(&bytewise), &whole);
        prop_assert!(whole.unaccounted <= wire.len() as u64);
    }
}

#[test]
fn the_shapes_of_a_run_have_no_more_values_than_are_kept() {
    let few = Limits {
        run_json_values: 14,
        ..limits()
    };
    let budget = Budget::new(&few);
    // A list with a string, which counts as an object with two values: a weight of seven each.
    let contents: Vec<_> = (0..3)
        .map(|_| {
            let mut body = super::body::BodyTap::new(Framing::Length(5), &budget, None);
            body.step(b"[\"a\"]", &few).unwrap();
            body.end(None, &few, None).body.content
        })
        .collect();
    let read = |content: &&Content| matches!(content, Content::Json { .. });
    assert_eq!(contents.iter().filter(read).count(), 2);
    assert!(matches!(contents[2], Content::Other { .. }));
}

#[test]
fn heads_of_a_run_have_no_more_bytes_than_are_kept() {
    let head = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let few = Limits {
        run_head_bytes: 2 * head.len(),
        ..limits()
    };
    let budget = Budget::new(&few);
    let outcomes = [0; 3].map(|_| {
        let belongs = (None, Belongs::default());
        let mut tap = RequestTap::new(few, budget.clone(), belongs, Host::Stub);
        let (mut seen, mut passed) = (Vec::new(), Vec::new());
        let mut rest = &head[..];
        while !rest.is_empty() {
            rest = &rest[tap.step(rest, &mut passed, &mut seen)..];
        }
        (seen.remove(1), passed.len(), tap.unaccounted())
    });
    for (fact, passed, unaccounted) in &outcomes[..2] {
        let is_request = |fact: &RequestFact| {
            matches!(
                fact,
                RequestFact::Head {
                    head: Head::Request { .. },
                    ..
                }
            )
        };
        assert!(is_request(fact) && *passed == head.len() && *unaccounted == 0);
    }
    let reason = format!(
        "the heads of all requests are longer than {} bytes together",
        2 * head.len()
    );
    let refused = RequestFact::Head {
        head: Head::Malformed { reason },
        bodiless: false,
    };
    assert_eq!(outcomes[2], (refused, 0, head.len() as u64));
}
