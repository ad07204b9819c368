//! Answers that break off, stall, redirect or follow each other, over a real socket.

use std::io::{ErrorKind, Read as _};

use model::journal::{End, Entry, Host};

use crate::kit::{Client, HEAD, KEY, Plan, post, post_with, scenario};

/// Reads to the end. Returns the text, and the error that ended the connection; `None` is a FIN.
fn to_end(client: &mut Client) -> (String, Option<ErrorKind>) {
    let mut bytes = Vec::new();
    let mut piece = [0; 1024];
    let end = loop {
        match client.stream.read(&mut piece) {
            Ok(0) => break None,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) => break Some(error.kind()),
        }
    };
    (String::from_utf8(bytes).unwrap(), end)
}

fn names(sent: &[(String, serde_json::Value)]) -> Vec<&str> {
    sent.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn a_connection_that_ends_before_the_head_carries_no_answer() {
    for (by, end) in [("fin", None), ("reset", Some(ErrorKind::ConnectionReset))] {
        let mut run = scenario(&format!("cut = {{ at = 'before-head', by = '{by}' }}")).start();
        let mut client = run.connect();
        assert_eq!(to_end(client.send(post())), (String::new(), end), "{by}");
        drop(client);
        run.wait_for_closed();
        let journal = run.finish();
        assert_eq!(journal.ends(), [(post().len() as u64, 0, End::ByStub)]);
        assert!(!journal.story().contains(&"1: 200".to_owned()));
    }
}

#[test]
fn a_connection_that_ends_after_the_head_carries_no_event() {
    for (by, end) in [("fin", None), ("reset", Some(ErrorKind::ConnectionReset))] {
        let run = scenario(&format!("cut = {{ at = 'after-head', by = '{by}' }}")).start();
        let (text, found) = to_end(run.connect().send(post()));
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n"),
            "{text}"
        );
        assert_eq!(found, end, "{by}");
        let journal = run.finish();
        assert!(journal.story().contains(&"1: 200".to_owned()));
        assert!(journal.sent().is_empty());
    }
}

#[test]
fn only_events_that_went_out_whole_count_as_sent() {
    let six = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    for by in ["fin", "reset"] {
        for (count, event) in (1..).zip(six) {
            for (place, whole) in [("after", count), ("inside", count - 1)] {
                let toml = format!("cut = {{ {place} = '{event}', by = '{by}' }}");
                let run = scenario(&toml).start();
                let (text, end) = to_end(run.connect().send(post()));
                assert_eq!(end.is_some(), by == "reset", "{toml}");
                assert_eq!(text.matches("\n\n\r\n").count(), whole, "{toml}");
                assert!(!text.ends_with("\r\n0\r\n\r\n"), "{toml}");
                assert_eq!(names(&run.finish().sent()), six[..whole], "{toml}");
            }
        }
    }
}

#[test]
fn a_body_that_ends_early_is_whole_to_http() {
    let run = scenario("cut = { after = 'content_block_stop', by = 'end' }").start();
    let mut client = run.connect();
    let events = client.send(post()).answer().events();
    assert_eq!(events.len(), 4);
    assert_eq!(client.send(HEAD).head_answer().status, 200);
    assert_eq!(run.finish().sent(), events);
}

#[test]
fn one_message_is_cut_below_the_length_that_it_states() {
    let run = scenario("cut = { byte = 10 }").start();
    let ask = r#"{"model":"m","max_tokens":1,"messages":[{}]}"#;
    let request = post_with("/v1/messages", &format!("x-api-key: {KEY}\r\n"), ask);
    let (text, end) = to_end(run.connect().send(request));
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert_eq!((body.len(), end), (10, None));
    let length = head.split("content-length: ").nth(1).unwrap();
    assert!(length.lines().next().unwrap().parse::<usize>().unwrap() > 10);
}

#[test]
fn a_stalled_answer_ends_when_the_client_goes() {
    for (toml, answered) in [
        ("stall = { at = 'before-head' }", false),
        ("stall = { at = 'after-head' }", true),
        ("stall = { inside = 'content_block_delta' }", true),
    ] {
        let mut run = scenario(toml).start();
        let mut client = run.connect();
        client.send(post());
        if answered {
            assert_eq!(client.head_answer().status, 200);
        }
        client.end_sending();
        let (text, end) = to_end(&mut client);
        assert_eq!(end, None, "{toml}");
        assert!(!text.contains("message_stop"), "{toml}");
        run.wait_for_closed();
        let journal = run.finish();
        assert_eq!(
            journal.ends(),
            [(post().len() as u64, 0, End::Closed)],
            "{toml}"
        );
        let answers = journal
            .story()
            .iter()
            .filter(|word| *word == "1: 200")
            .count();
        assert_eq!(answers, usize::from(answered), "{toml}");
    }
}

#[test]
fn a_stalled_answer_does_not_hold_the_end_of_the_run() {
    let mut run = scenario("stall = { after = 'message_start' }").start_with_barrier();
    let mut client = run.connect();
    client.send(post());
    let request = run.wait_for_began();
    run.go(request);
    client.head_answer();
    run.wait_for(|entry| matches!(entry, Entry::Sent { .. }));
    let journal = run.finish();
    assert_eq!(journal.ends(), [(post().len() as u64, 0, End::Open)]);
    assert_eq!(names(&journal.sent()), ["message_start"]);
}

#[test]
fn what_was_sent_beside_an_answer_that_is_reset_is_accounted_for() {
    let mut run = scenario("cut = { at = 'before-head', by = 'reset' }").start_with_barrier();
    let mut client = run.connect();
    let wire = [post(), "x".repeat(50_000)].concat();
    client.send(&wire);
    let request = run.wait_for_began();
    run.go(request);
    let (text, end) = to_end(&mut client);
    assert_eq!((text.as_str(), end), ("", Some(ErrorKind::ConnectionReset)));
    run.wait_for_closed();
    let journal = run.finish();
    let [(bytes, unaccounted, End::ByStub)] = journal.ends()[..] else {
        panic!("{journal:?}")
    };
    assert_eq!((bytes, unaccounted), (wire.len() as u64, 50_000));
}

#[test]
fn answers_follow_each_other_over_connections_and_the_last_repeats() {
    let run =
        scenario("scenario = 'error-429-retry-after'\nthen = [{ scenario = 'error-529' }, {}]")
            .start();
    let answers: Vec<_> = (0..4)
        .map(|_| run.connect().send(post()).answer())
        .collect();
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [429, 529, 200, 200]);
    assert_eq!(answers[0].header("retry-after"), Some("1"));
    assert_eq!(answers[0].header("x-should-retry"), Some("true"));
    assert_eq!(answers[1].header("retry-after"), None);
    assert_eq!(answers[2].events().len(), 6);
}

#[test]
fn only_messages_that_are_answered_move_the_sequence_on() {
    let run = scenario("scenario = 'error-529'\nthen = [{}]").start();
    let mut client = run.connect();
    assert_eq!(client.send(HEAD).head_answer().status, 200);
    let keyless = post_with("/v1/messages", "", "{}");
    assert_eq!(client.send(keyless).answer().status, 401);
    let unsound = post_with("/v1/messages", &format!("x-api-key: {KEY}\r\n"), "{}");
    assert_eq!(client.send(unsound).answer().status, 400);
    assert_eq!(client.send(post()).answer().status, 529);
    assert_eq!(client.send(post()).answer().status, 200);
}

#[test]
fn each_error_has_the_public_shape_and_its_status() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (402, "billing_error"),
        (409, "conflict_error"),
        (503, "api_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ] {
        let run = scenario(&format!("scenario = 'error-{status}'")).start();
        let answer = run.connect().send(post()).answer();
        assert_eq!(answer.status, status);
        let body = answer.json();
        assert_eq!(
            (&body["type"], &body["error"]["type"]),
            (&"error".into(), &kind.into())
        );
        assert_eq!(body["request_id"], answer.header("request-id").unwrap());
    }
}

#[test]
fn a_literal_body_is_taken_as_written() {
    let run = scenario("scenario = 'html-200'\nthen = [{ scenario = 'empty-200' }]").start();
    let mut client = run.connect();
    let page = client.send(post()).answer();
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(page.body.starts_with("<!doctype html>"));
    let empty = client.send(post()).answer();
    assert_eq!((empty.status, empty.body.as_str()), (200, ""));
    assert!(run.finish().sent().is_empty());
}

#[test]
fn a_redirect_leads_to_a_second_host_that_is_journaled_as_such() {
    for status in [302, 307, 308] {
        let mut run = scenario(&format!("scenario = 'redirect-{status}'")).start();
        let answer = run.connect().send(post()).answer();
        assert_eq!((answer.status, answer.body.as_str()), (status, ""));
        let elsewhere = run.elsewhere.unwrap();
        assert_ne!(elsewhere.ip(), run.address.ip());
        let location = format!("http://{elsewhere}/v1/messages");
        assert_eq!(answer.header("location"), Some(location.as_str()));

        let mut other = run.connect_elsewhere();
        assert_eq!(other.send(post()).answer().events().len(), 6);
        drop(other);
        run.wait_for(|entry| matches!(entry, Entry::Closed { connection: 2, .. }));
        let journal = run.finish();
        let story = journal.story();
        assert!(story.contains(&"1 accepted".to_owned()), "{story:?}");
        assert!(
            story.contains(&"2 accepted elsewhere".to_owned()),
            "{story:?}"
        );
        let sighting = "2: sighting header x-api-key of POST /v1/messages at another host";
        assert!(story.contains(&sighting.to_owned()), "{story:?}");
        assert!(!story.iter().any(|word| word.starts_with("1: sighting")));
    }
}

#[test]
fn the_credential_is_sighted_elsewhere_in_every_header_and_in_the_body() {
    let run = scenario("scenario = 'redirect-307'").start();
    let mut client = run.connect_elsewhere();
    let headers = format!("Authorization: Bearer {KEY}\r\nx-api-key: {KEY}\r\n");
    client.send(post_with(
        "/v1/messages?a=b",
        &headers,
        &format!("[\"{KEY}\"]"),
    ));
    assert_eq!(client.answer().status, 400);
    let story = run.finish().story();
    for place in [
        "header authorization",
        "header x-api-key of POST /v1/messages",
        "body",
    ] {
        let word = format!("1: sighting {place} at another host");
        assert!(story.contains(&word), "{story:?}");
    }
}

#[test]
fn the_second_host_waits_at_the_barrier_and_is_read_to_its_end() {
    let mut run = scenario("scenario = 'redirect-308'").start_with_barrier();
    let mut client = run.connect_elsewhere();
    client.send(post());
    let request = run.wait_for_began();
    client.assert_nothing();
    run.go(request);
    assert_eq!(client.answer().status, 200);
    run.connect_elsewhere().send("half a requ");
    let journal = run.finish();
    let host = |entry: &Entry| {
        let Entry::Accepted { host, .. } = entry else {
            return None;
        };
        Some(*host)
    };
    let hosts: Vec<_> = journal.entries.iter().filter_map(host).collect();
    assert_eq!(hosts, [Host::Elsewhere; 2]);
    assert!(journal.ends().iter().any(|end| end.0 == 11));
}

#[test]
fn a_scenario_that_leads_elsewhere_needs_a_second_host() {
    let run = Plan {
        without_elsewhere: true,
        ..scenario("scenario = 'redirect-307'")
    };
    let error = run.start_with_barrier().fail();
    assert!(matches!(error, stub::ServeError::NoElsewhere), "{error}");
}

#[test]
fn an_entry_of_an_older_journal_was_accepted_at_the_stub() {
    let line = r#"{"entry":"accepted","connection":1,"at_us":2,"peer":"127.0.0.1:3"}"#;
    let Entry::Accepted { host, .. } = serde_json::from_str(line).unwrap() else {
        panic!()
    };
    assert_eq!(host, Host::Stub);
}
