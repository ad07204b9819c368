//! Journal entries of connections, well-formed and malformed.

use std::os::fd::AsRawFd as _;

use model::journal::{Content, End, Entry, Head};
use nix::sys::socket::{MsgFlags, send};
use stub::Limits;

use crate::kit::{HEAD, KEY, Plan, ask, limits, post, post_with};

#[test]
fn a_connection_that_never_says_a_word_is_journaled() {
    let mut run = Plan::default().start();
    drop(run.connect());
    run.wait_for_closed();
    let journal = run.finish();
    assert_eq!(
        journal.story(),
        [
            "1 accepted",
            "1 closed Closed bytes=0 unaccounted=0 requests=0",
            "done"
        ]
    );
    assert!(journal.at_us().is_sorted());
}

#[test]
fn an_open_connection_is_journaled_at_the_end() {
    let run = Plan::default().start();
    let mut client = run.connect();
    client.send("POST /v1/mess");
    let journal = run.finish();
    let expected = [
        "1 accepted",
        "1 began 1",
        "1: incomplete",
        "1 closed Open bytes=13 unaccounted=13 requests=1",
        "done",
    ];
    assert_eq!(journal.story(), expected);
}

#[test]
fn a_request_that_is_cut_off_is_truncated() {
    let mut run = Plan::default().start();
    let message = post();
    drop({
        let mut client = run.connect();
        client.send(&message[..message.len() - 5]);
        client
    });
    run.wait_for_closed();
    let journal = run.finish();
    assert_eq!(
        journal.ends(),
        [(message.len() as u64 - 5, 0, End::Truncated)]
    );
    assert!(!journal.bodies()[0].complete);
}

#[test]
fn whole_requests_leave_no_byte_unaccounted() {
    let mut run = Plan::default().start();
    let mut client = run.connect();
    client.send(HEAD).head_answer();
    client.send(post()).answer();
    drop(client);
    run.wait_for_closed();
    let journal = run.finish();
    assert_eq!(
        journal.ends(),
        [((HEAD.len() + post().len()) as u64, 0, End::Closed)]
    );
    assert!(matches!(journal.bodies()[1].content, Content::Json { .. }));
}

#[test]
fn a_head_keeps_names_and_order_and_hides_the_key() {
    let run = Plan::default().start();
    run.connect().send(post()).answer();
    let journal = run.finish();
    let head = journal.entries.iter().find_map(|entry| {
        if let Entry::Head { head, .. } = entry {
            Some(head)
        } else {
            None
        }
    });
    let Some(Head::Request {
        headers,
        query: None,
        version,
        ..
    }) = head
    else {
        panic!("{head:?}")
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        headers[..2],
        [pair("Host", "stub"), pair("x-api-key", "<redacted>")]
    );
    assert_eq!(version, "HTTP/1.1");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let run = Plan::default().start();
    let mut client = run.connect();
    client.send([HEAD, &post(), &post_with("/x", "", "")].concat());
    assert_eq!(client.head_answer().status, 200);
    assert_eq!(client.answer().events().len(), 6);
    assert_eq!(client.answer().status, 404);
    drop(client);
    let statuses: Vec<_> = run
        .finish()
        .story()
        .into_iter()
        .filter(|word| word.len() == 6)
        .collect();
    assert_eq!(statuses, ["1: 200", "2: 200", "3: 404"]);
}

#[test]
fn what_two_readers_could_understand_in_two_ways_is_refused_and_never_served() {
    for (headers, reason) in [
        (
            "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length and Transfer-Encoding in one request",
        ),
        (
            "Content-Length: 2\r\nContent-Length: 2\r\n",
            "Content-Length is named twice",
        ),
        (
            "Content-Length: 2\r\nA: b\r\n folded\r\n",
            "the head does not follow the grammar: invalid header name",
        ),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding is not `chunked`",
        ),
    ] {
        let mut run = Plan::default().start();
        let mut client = run.connect();
        let wire = format!("POST /v1/messages HTTP/1.1\r\nx-api-key: {KEY}\r\n{headers}\r\n{{}}");
        let answer = client.send(&wire).answer();
        assert_eq!(answer.status, 400);
        assert_eq!(answer.json()["error"]["message"], reason);
        assert_eq!(client.rest(), "");
        drop(client);
        run.wait_for_closed();
        let journal = run.finish();
        assert_eq!(
            journal.ends(),
            [(wire.len() as u64, wire.len() as u64, End::ByStub)],
            "{headers}"
        );
        assert!(journal.story().contains(&"1: 400".to_owned()));
        let malformed = |entry: &Entry| matches!(entry, Entry::Head { head: Head::Malformed { reason: found }, .. } if found == reason);
        assert!(journal.entries.iter().any(malformed));
    }
}

#[test]
fn requests_before_a_malformed_one_are_answered_first() {
    let run = Plan::default().start();
    let mut client = run.connect();
    client.send([&post(), "nonsense\r\n\r\n", &post()].concat());
    assert_eq!(client.answer().events().len(), 6);
    assert_eq!(client.answer().status, 400);
    assert_eq!(client.rest(), "");
    drop(client);
    assert_eq!(run.finish().ends()[0].1, 12 + post().len() as u64);
}

#[test]
fn malformed_chunks_end_the_request_and_what_follows_is_unaccounted() {
    let run = Plan::default().start();
    let mut client = run.connect();
    client.send(format!("POST /v1/messages HTTP/1.1\r\nx-api-key: {KEY}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\nzz\r\n{HEAD}"));
    let answer = client.answer();
    assert_eq!(answer.status, 400);
    drop(client);
    let journal = run.finish();
    assert_eq!(journal.ends()[0].1, 4 + HEAD.len() as u64);
    assert_eq!(
        journal.bodies()[0].content,
        Content::Other {
            reason: "a chunk size is not hexadecimal".to_owned()
        }
    );
}

#[test]
fn chunk_extensions_and_trailers_are_served_but_unaccounted() {
    let run = Plan::default().start();
    let mut client = run.connect();
    let body = ask();
    client.send(format!("POST /v1/messages HTTP/1.1\r\nx-api-key: {KEY}\r\nTransfer-Encoding: chunked\r\n\r\n{:x};a=b\r\n{body}\r\n0\r\nT: u\r\n\r\n", body.len()));
    assert_eq!(client.answer().status, 200);
    drop(client);
    let journal = run.finish();
    assert_eq!(journal.ends()[0].1, 4 + 6);
    assert_eq!(journal.bodies()[0].bytes, body.len() as u64);
}

#[test]
fn an_upgrade_is_not_followed() {
    let run = Plan::default().start();
    let mut client = run.connect();
    client.send("GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(client.answer().status, 405);
    client.send("CONNECT example:443 HTTP/1.1\r\n\r\n");
    assert_ne!(client.answer().status, 200);
    drop(client);
    let story = run.finish().story();
    assert!(
        story.contains(&"2: CONNECT example:443".to_owned()),
        "{story:?}"
    );
}

#[test]
fn the_preface_of_http_2_is_malformed() {
    let run = Plan::default().start();
    let mut client = run.connect();
    assert_eq!(
        client
            .send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .answer()
            .status,
        400
    );
    drop(client);
    assert_eq!(run.finish().ends()[0].1, 24);
}

#[test]
fn a_request_after_the_last_answer_is_journaled_unanswered() {
    let run = Plan::default().start();
    let mut client = run.connect();
    client.send(
        [
            &post_with(
                "/v1/messages",
                &format!("x-api-key: {KEY}\r\nConnection: close\r\n"),
                &ask(),
            ),
            HEAD,
        ]
        .concat(),
    );
    assert_eq!(client.answer().status, 200);
    drop(client);
    let story = run.finish().story();
    assert!(
        story.contains(&"2: HEAD /".to_owned()) && !story.contains(&"2: 200".to_owned()),
        "{story:?}"
    );
}

#[test]
fn a_client_that_closed_its_sending_side_gets_its_answer() {
    let mut run = Plan::default().start();
    let mut client = run.connect();
    let answer = client.send(post()).end_sending().answer();
    assert_eq!(answer.events().len(), 6);
    assert_eq!(client.rest(), "");
    run.wait_for_closed();
    assert_eq!(run.finish().ends()[0].2, End::Closed);
}

#[test]
fn urgent_data_is_counted_like_any_byte() {
    let mut run = Plan::default().start();
    let mut client = run.connect();
    send(client.stream.as_raw_fd(), b"!", MsgFlags::MSG_OOB).unwrap();
    client.send(&HEAD[1..]).answer();
    send(client.stream.as_raw_fd(), b"\n", MsgFlags::MSG_OOB).unwrap();
    drop(client);
    run.wait_for_closed();
    let journal = run.finish();
    assert!(
        journal.story().contains(&"1: !EAD /".to_owned()),
        "{:?}",
        journal.story()
    );
    assert_eq!(journal.ends(), [(HEAD.len() as u64 + 1, 1, End::Closed)]);
}

#[test]
fn a_reset_is_told_from_a_close() {
    let mut run = Plan::default().start();
    let mut client = run.connect();
    client.send(HEAD).head_answer();
    client.reset();
    run.wait_for_closed();
    assert_eq!(run.finish().ends(), [(HEAD.len() as u64, 0, End::Reset)]);
}

#[test]
fn a_body_beyond_the_limit_is_counted_to_its_end() {
    let mut run = limits(Limits {
        body_bytes: 1000,
        ..Limits::default()
    })
    .start();
    let mut client = run.connect();
    let body = "1".repeat(3_000_000);
    let request = post_with("/v1/messages", &format!("x-api-key: {KEY}\r\n"), &body);
    let answer = client.send(&request).answer();
    assert_eq!(answer.status, 413);
    drop(client);
    run.wait_for_closed();
    let journal = run.finish();
    assert_eq!(journal.bodies()[0].bytes, 3_000_000);
    assert!(journal.bodies()[0].complete);
    assert_eq!(
        journal.bodies()[0].sha256,
        model::digest::of_bytes(body.as_bytes())
    );
    assert_eq!(journal.ends()[0].0, request.len() as u64);
}

#[test]
fn connections_beyond_the_limit_are_counted() {
    let mut run = limits(Limits {
        connections: 1,
        ..Limits::default()
    })
    .start();
    let mut clients = [run.connect(), run.connect(), run.connect()];
    run.wait_for(|entry| matches!(entry, Entry::Refused { connections: 1, .. }));
    assert_eq!(clients[0].send(HEAD).head_answer().status, 200);
    let [client, ..] = clients;
    drop(client);
    let story = run.finish().story();
    assert_eq!(story[0], "1 accepted");
    assert_eq!(story[story.len() - 2..], ["refused 2", "done"]);
}

#[test]
fn closed_connection_makes_room_for_another() {
    let mut run = limits(Limits {
        open_connections: 1,
        ..Limits::default()
    })
    .start();
    drop(run.connect());
    run.wait_for_closed();
    let mut second = run.connect();
    assert_eq!(second.send(HEAD).head_answer().status, 200);
    let third = run.connect();
    run.wait_for(|entry| matches!(entry, Entry::Refused { connections: 1, .. }));
    drop((second, third));
    let story = run.finish().story();
    let accepted = story.iter().filter(|entry| entry.ends_with("accepted"));
    assert_eq!(accepted.count(), 2, "{story:?}");
}

#[test]
fn the_credential_in_a_wrong_place_is_sighted_and_never_repeated() {
    let run = Plan::default().start();
    let mut client = run.connect();
    client
        .send(format!(
            "HEAD / HTTP/1.1\r\nx-api-key: {KEY}\r\nUser-Agent: a/{KEY}\r\n\r\n"
        ))
        .head_answer();
    let body = format!(r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"{KEY}"}}]}}"#);
    client
        .send(post_with(
            &format!("/v1/messages?k={KEY}"),
            &format!("x-api-key: {KEY}\r\n"),
            &body,
        ))
        .answer();
    drop(client);
    let sightings: Vec<_> = run
        .finish()
        .story()
        .into_iter()
        .filter(|word| word.contains("sighting"))
        .collect();
    let expected = [
        "1: sighting header x-api-key of HEAD /",
        "1: sighting header user-agent",
        "2: sighting query",
        "2: sighting body",
    ];
    assert_eq!(sightings, expected);
}

#[test]
fn a_model_named_like_the_credential_is_redacted_in_what_was_sent() {
    let run = Plan::default().start();
    let body = ask().replace("model-x", KEY);
    let answer = run
        .connect()
        .send(post_with(
            "/v1/messages",
            &format!("x-api-key: {KEY}\r\n"),
            &body,
        ))
        .answer();
    assert_eq!(answer.events()[0].1["message"]["model"], KEY);
    assert_eq!(run.finish().sent()[0].1["message"]["model"], "<credential>");
}

#[test]
fn an_absolute_target_is_journaled_as_it_was_written() {
    let run = Plan::default().start();
    let target = "http://stub/v1/messages";
    run.connect()
        .send(post_with(target, &format!("x-api-key: {KEY}\r\n"), &ask()))
        .answer();
    let story = run.finish().story();
    assert!(story.contains(&format!("1: POST {target}")), "{story:?}");
    assert!(
        story
            .iter()
            .any(|word| word.contains("sighting header x-api-key of POST")),
        "{story:?}"
    );
}
