//! Failures after the start: each ends with one error result and exit code 1.

use std::net::TcpListener;

use crate::kit::{
    ANSWER, Client, KEY, Reply, STREAM_HEAD, Server, answer, chunk, empty, event, json, raw, stream,
};

fn failure_of(reply: Reply) -> String {
    let server = Server::answering(reply);
    let run = Client::case_b(server.address).output();
    assert_eq!(server.requests().len(), 1);
    run.failure()
}

/// Returns the first events of a good answer, followed by `then`.
fn answer_until(events: usize, then: &str) -> Reply {
    let start: String = ANSWER[..events]
        .iter()
        .map(|(name, json)| event(name, json))
        .collect();
    stream(start + then)
}

#[test]
fn a_refused_connection_is_an_error_after_init_and_status() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for client in [Client::case_a(address), Client::case_b(address)] {
        let run = client.output();
        assert_eq!(
            run.failure(),
            "cannot connect to the provider: Connection refused (os error 111)"
        );
        assert_eq!(
            run.names(),
            [
                "system/init",
                "system/status",
                "result/error_during_execution"
            ]
        );
    }
}

#[test]
fn each_error_status_is_told_with_the_providers_words() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (408, "timeout_error"),
        (409, "conflict_error"),
        (413, "request_too_large"),
        (418, "teapot"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ] {
        let body = format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"no"}},"request_id":"req_1"}}"#
        );
        let message = failure_of(json(&format!("{status} X"), "", &body));
        assert_eq!(
            message,
            format!("the provider answered with status {status}: {kind}: no")
        );
    }
}

#[test]
fn an_error_status_without_the_public_shape_has_no_reason() {
    for reply in [
        empty("500 X"),
        json("500 X", "", "<html>"),
        json("500 X", "", "{\"error\":\"text\"}"),
        raw("HTTP/1.1 500 X\r\ncontent-length: 100\r\n\r\n{"),
    ] {
        assert_eq!(
            failure_of(reply),
            "the provider answered with status 500: no reason given"
        );
    }
}

#[test]
fn a_success_status_other_than_200_is_an_error() {
    assert_eq!(
        failure_of(empty("204 No Content")),
        "the provider answered with status 204: no reason given"
    );
}

#[test]
fn a_redirect_is_not_followed_and_the_key_goes_nowhere_else() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let target = elsewhere.local_addr().unwrap();
    for status in [301, 302, 303, 307, 308] {
        let message = failure_of(raw(format!(
            "HTTP/1.1 {status} X\r\nlocation: http://{target}/v1/messages\r\ncontent-length: 0\r\n\r\n"
        )));
        let expected = format!(
            "the provider answered with a redirect (status {status}), which is not followed"
        );
        assert_eq!(message, expected);
    }
    assert_eq!(
        elsewhere.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[test]
fn an_answer_that_is_no_event_stream_is_an_error() {
    assert_eq!(
        failure_of(json("200 OK", "", "{}")),
        "the provider answered with the content type \"application/json\" instead of text/event-stream"
    );
    assert_eq!(
        failure_of(raw(format!("HTTP/1.1 200 OK\r\n\r\n{}", answer()))),
        "the provider answered with the content type \"\" instead of text/event-stream"
    );
}

#[test]
fn an_error_event_ends_the_turn_with_the_providers_words() {
    let error = event(
        "error",
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    );
    for events in 0..=ANSWER.len() {
        assert_eq!(
            failure_of(answer_until(events, &error)),
            "the provider ended the stream with an error: overloaded_error: Overloaded"
        );
    }
}

#[test]
fn a_stream_cut_before_message_stop_is_an_error_at_each_place() {
    for events in 0..ANSWER.len() {
        assert_eq!(
            failure_of(answer_until(events, "")),
            "the stream ended before message_stop"
        );
    }
    let unfinished = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n";
    assert_eq!(
        failure_of(answer_until(5, unfinished)),
        "the stream ended before message_stop"
    );
}

#[test]
fn a_connection_lost_within_the_body_is_an_error_after_the_events_that_came() {
    let body = event(ANSWER[0].0, ANSWER[0].1);
    let server = Server::answering(raw(
        [STREAM_HEAD.as_bytes(), &chunk(body.as_bytes())].concat()
    ));
    let run = Client::case_b(server.address).output();
    assert!(
        run.failure().starts_with("the stream was cut off: "),
        "{}",
        run.failure()
    );
    assert_eq!(run.names()[2], "stream_event/message_start");
    server.requests();
}

#[test]
fn malformed_json_in_a_known_event_is_an_error_and_is_not_exposed() {
    for (at, (name, json)) in ANSWER.iter().enumerate() {
        let broken = event(name, &json[..json.len() - 1]);
        let server = Server::answering(answer_until(at, &broken));
        let run = Client::case_b(server.address).output();
        assert!(
            run.failure()
                .starts_with(&format!("the data of a {name} event is malformed"))
        );
        assert_eq!(
            run.names()
                .iter()
                .filter(|shown| shown.ends_with(name))
                .count(),
            0
        );
        server.requests();
    }
}

#[test]
fn an_event_out_of_order_is_an_error_and_is_not_exposed() {
    let delta = event(ANSWER[2].0, ANSWER[2].1);
    let server = Server::answering(stream(&delta));
    let run = Client::case_b(server.address).output();
    assert_eq!(
        run.failure(),
        "a content_block_delta event came before message_start"
    );
    assert_eq!(run.names().len(), 3);
    server.requests();
    assert_eq!(
        failure_of(answer_until(6, &delta)),
        "a content_block_delta event came after message_stop"
    );
}

#[test]
fn an_answer_that_is_not_http_is_an_error() {
    for bytes in ["nonsense\r\n\r\n", "", "HTTP/1.1 200"] {
        let message = failure_of(raw(bytes));
        assert!(
            message.starts_with("the exchange with the provider broke off: "),
            "{message}"
        );
    }
}

#[test]
fn a_provider_that_echoes_the_key_does_not_get_it_into_a_message() {
    let body =
        format!(r#"{{"error":{{"type":"authentication_error","message":"bad key {KEY}"}}}}"#);
    assert_eq!(
        failure_of(json("401 X", "", &body)),
        "the provider answered with status 401: authentication_error: bad key [key]"
    );
    assert_eq!(
        failure_of(stream(event("error", &body))),
        "the provider ended the stream with an error: authentication_error: bad key [key]"
    );
    assert_eq!(
        failure_of(raw(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {KEY}\r\ncontent-length: 0\r\n\r\n"
        ))),
        "the provider answered with the content type \"[key]\" instead of text/event-stream"
    );
}

#[test]
fn a_home_that_cannot_be_written_is_an_error_result() {
    let server = Server::start(Vec::new());
    let run = Client::case_b(server.address)
        .env("HOME", "/dev/null")
        .output();
    assert!(
        run.failure()
            .starts_with("cannot look for .agent/.agent.json: "),
        "{}",
        run.failure()
    );
    assert_eq!(run.names(), ["result/error_during_execution"]);
    let run = Client::case_b(server.address)
        .env("HOME", "/nonexistent/home")
        .output();
    assert_eq!(
        run.failure(),
        "cannot make the directory .agent: No such file or directory (os error 2)"
    );
    assert_eq!(server.requests().len(), 0);
}
