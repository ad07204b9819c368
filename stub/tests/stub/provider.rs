//! Answers of the provider.

use serde_json::{Value, json};
use stub::Limits;

use crate::kit::{Client, HEAD, KEY, Plan, ask, limits, post, post_with, scenario};

fn key() -> String {
    format!("x-api-key: {KEY}\r\n")
}

fn assert_error(client: &mut Client, status: u16, kind: &str) {
    let answer = client.answer();
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let id = answer.header("request-id").unwrap().to_owned();
    assert!(id.starts_with("req_"));
    let body = answer.json();
    assert_eq!(
        (&body["type"], &body["error"]["type"], &body["request_id"]),
        (&json!("error"), &json!(kind), &json!(id))
    );
    assert!(!body["error"]["message"].as_str().unwrap().is_empty());
}

#[test]
fn a_preflight_is_answered_200_without_a_body() {
    let run = Plan::default().start();
    let mut client = run.connect();
    let answer = client.send(HEAD).head_answer();
    assert_eq!(answer.status, 200);
    drop(client);
    let journal = run.finish();
    assert!(journal.story().contains(&"1: 200".to_owned()));
}

#[test]
fn a_stream_is_the_six_events_with_their_headers() {
    let run = Plan::default().start();
    let answer = run.connect().send(post()).answer();
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    assert!(answer.header("request-id").unwrap().starts_with("req_"));
    let events = answer.events();
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(names, expected);
    assert_eq!(events[0].1["message"]["model"], "model-x");
    assert!(
        events[0].1["message"]["id"]
            .as_str()
            .unwrap()
            .starts_with("msg_")
    );
    assert!(events.iter().all(|(name, data)| data["type"] == **name));
    assert_eq!(run.finish().sent(), events);
}

#[test]
fn each_answer_has_identifiers_of_its_own() {
    let run = Plan::default().start();
    let mut client = run.connect();
    let (one, two) = (client.send(post()).answer(), client.send(post()).answer());
    assert_ne!(one.header("request-id"), two.header("request-id"));
    assert_ne!(
        one.events()[0].1["message"]["id"],
        two.events()[0].1["message"]["id"]
    );
}

#[test]
fn without_stream_the_answer_is_one_message() {
    let run = Plan::default().start();
    for stream in ["", r#","stream":false"#] {
        let body = format!(r#"{{"model":"m","max_tokens":1,"messages":[{{}}]{stream}}}"#);
        let answer = run
            .connect()
            .send(post_with("/v1/messages", &key(), &body))
            .answer();
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("application/json"))
        );
        let message = answer.json();
        assert_eq!(
            message["content"],
            json!([{ "type": "text", "text": "Hello from the stub." }])
        );
        assert_eq!(
            (&message["type"], &message["role"], &message["stop_reason"]),
            (&json!("message"), &json!("assistant"), &json!("end_turn"))
        );
    }
}

#[test]
fn the_query_does_not_change_the_match() {
    let run = Plan::default().start();
    assert_eq!(
        run.connect()
            .send(post_with("/v1/messages?beta=true", &key(), &ask()))
            .answer()
            .status,
        200
    );
}

#[test]
fn message_after_any_prefix_is_answered() {
    let run = Plan::default().start();
    for prefix in ["/openai", "/a/b-c.d~e:f@g", "/v1", "/a%20b"] {
        let target = format!("{prefix}/v1/messages?beta=true&p=/v1/other");
        let answer = run
            .connect()
            .send(post_with(&target, &key(), &ask()))
            .answer();
        assert_eq!(answer.status, 200, "{target}");
        let head = format!("HEAD {prefix}/ HTTP/1.1\r\nHost: stub\r\n\r\n");
        let answer = run.connect().send(head).head_answer();
        assert_eq!(answer.status, 200, "{prefix}/");
    }
    let story = run.finish();
    assert_eq!(story.sent().len(), 4 * 6);
}

#[test]
fn path_of_two_readings_is_not_found() {
    let run = Plan::default().start();
    let absolute = format!("http://{}/v1/messages", run.address);
    for target in [
        "//v1/messages",
        "/a//v1/messages",
        "/v1/messages/",
        "/messages",
        "/xv1/messages",
        "/a/../v1/messages",
        "/./v1/messages",
        "/v1%2fmessages",
        "/a%2Fb/v1/messages",
        "/%2e%2e/v1/messages",
        "/x?/v1/messages",
        &absolute,
    ] {
        let mut client = run.connect();
        assert_error(
            client.send(post_with(target, &key(), &ask())),
            404,
            "not_found_error",
        );
    }
    assert_eq!(run.finish().sent(), []);
}

#[test]
fn errors_have_the_public_shape() {
    let run = limits(Limits {
        body_bytes: 200,
        ..Limits::default()
    })
    .start();
    let mut client = run.connect();
    assert_error(
        client.send(post_with("/v1/messages", "", &ask())),
        401,
        "authentication_error",
    );
    assert_error(
        client.send(post_with("/v1/messages", "x-api-key:\r\n", &ask())),
        401,
        "authentication_error",
    );
    assert_error(
        client.send(post_with("/v1/messages", &key(), "{")),
        400,
        "invalid_request_error",
    );
    for missing in ["model", "max_tokens", "messages"] {
        let mut body: Value = serde_json::from_str(&ask()).unwrap();
        body.as_object_mut().unwrap().remove(missing);
        assert_error(
            client.send(post_with("/v1/messages", &key(), &body.to_string())),
            400,
            "invalid_request_error",
        );
    }
    assert_error(
        client.send(post_with("/v1/other", &key(), &ask())),
        404,
        "not_found_error",
    );
    assert_error(
        client.send(post_with("/", &key(), &ask())),
        405,
        "invalid_request_error",
    );
    assert_error(
        client.send("GET /v1/messages HTTP/1.1\r\n\r\n"),
        405,
        "invalid_request_error",
    );
    assert_error(
        client.send(post_with("/v1/messages", &key(), &"1".repeat(201))),
        413,
        "request_too_large",
    );
}

#[test]
fn an_authorization_header_is_a_key_as_well() {
    let run = Plan::default().start();
    let answer = run
        .connect()
        .send(post_with(
            "/v1/messages",
            "Authorization: Bearer x\r\n",
            &ask(),
        ))
        .answer();
    assert_eq!(answer.status, 200);
}

#[test]
fn pieces_of_any_size_carry_the_same_events() {
    for size in [1, 3, 64, 10_000] {
        let run = scenario(&format!(
            "text = \"añb€c\"\ndeltas = 2\npings = 1\nchunk_bytes = {size}"
        ))
        .start();
        let events = run.connect().send(post()).answer().events();
        assert_eq!(events.len(), 8);
        assert_eq!(events[4].1["delta"]["text"], "€c");
        assert_eq!(run.finish().sent(), events);
    }
}

#[test]
fn without_a_delay_head_and_first_event_are_one_write() {
    use std::io::Read as _;
    let run = scenario("event_delay_ms = 20").start();
    let mut client = run.connect();
    client.send(post());
    let mut bytes = [0; 16 * 1024];
    let count = client.stream.read(&mut bytes).unwrap();
    let first = String::from_utf8_lossy(&bytes[..count]).into_owned();
    assert!(
        first.starts_with("HTTP/1.1 200 OK\r\n") && first.contains("event: message_start\ndata: {"),
        "{first}"
    );
}

#[test]
fn a_client_of_http_1_0_gets_its_stream_up_to_the_close() {
    let run = Plan::default().start();
    let request = post().replacen("HTTP/1.1", "HTTP/1.0", 1);
    let answer = run.connect().send(request).answer();
    assert_eq!(
        (answer.status, answer.header("transfer-encoding")),
        (200, None)
    );
    assert_eq!(answer.events(), run.finish().sent());
}

#[test]
fn a_client_that_waits_is_told_to_continue() {
    let run = Plan::default().start();
    let mut client = run.connect();
    let request = post_with(
        "/v1/messages",
        &format!("{}Expect: 100-continue\r\n", key()),
        &ask(),
    );
    let (head, body) = request.split_at(request.find("\r\n\r\n").unwrap() + 4);
    assert_eq!(client.send(head).head_answer().status, 100);
    assert_eq!(client.send(body).answer().status, 200);
    drop(client);
    let story = run.finish().story();
    assert_eq!(
        story
            .iter()
            .filter(|word| word.starts_with("1: 200"))
            .count(),
        1,
        "{story:?}"
    );
    assert!(!story.contains(&"1: 100".to_owned()));
}
