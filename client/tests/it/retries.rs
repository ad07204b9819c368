//! Retries: only on request, never more than requested, never after a stream began.

use std::net::TcpListener;

use crate::kit::{ANSWER, Client, Reply, Server, answer, empty, event, json, raw, stream};

fn run_with(retries: &str, replies: Vec<Reply>) -> (crate::kit::Run, usize) {
    let server = Server::start(replies);
    let run = Client::case_b(server.address)
        .args(&["--max-retries", retries])
        .output();
    (run, server.requests().len())
}

fn at_once(status: &str) -> Reply {
    json(status, "retry-after: 0\r\n", "{}")
}

#[test]
fn a_transient_status_is_retried_and_the_answer_counts() {
    for status in ["408 X", "409 X", "429 X", "500 X", "529 X"] {
        let (run, requests) = run_with("1", vec![at_once(status), stream(answer())]);
        assert_eq!((run.code, requests), (Some(0), 2), "{status}");
        assert_eq!(
            run.names()
                .iter()
                .filter(|name| *name == "system/status")
                .count(),
            1
        );
    }
}

#[test]
fn the_same_body_is_sent_again() {
    let server = Server::start(vec![at_once("500 X"), stream(answer())]);
    Client::case_b(server.address)
        .args(&["--max-retries", "3"])
        .output();
    let requests = server.requests();
    assert_eq!(requests[0].body, requests[1].body);
}

#[test]
fn retries_end_at_their_number_with_the_last_error() {
    let (run, requests) = run_with(
        "2",
        vec![at_once("500 X"), at_once("503 X"), at_once("529 X")],
    );
    assert_eq!(requests, 3);
    assert_eq!(
        run.failure(),
        "the provider answered with status 529: no reason given"
    );
}

#[test]
fn a_permanent_status_a_redirect_and_a_wrong_type_are_not_retried() {
    for reply in [
        at_once("401 X"),
        raw("HTTP/1.1 307 X\r\nlocation: /\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n"),
        json("200 OK", "retry-after: 0\r\n", "{}"),
    ] {
        let (run, requests) = run_with("5", vec![reply]);
        run.failure();
        assert_eq!(requests, 1);
    }
}

#[test]
fn a_provider_that_asks_for_too_long_a_pause_is_not_asked_again() {
    let (run, requests) = run_with("5", vec![json("429 X", "retry-after: 3600\r\n", "{}")]);
    run.failure();
    assert_eq!(requests, 1);
}

#[test]
fn nothing_is_retried_once_the_stream_began() {
    let start = event(ANSWER[0].0, ANSWER[0].1);
    let error = event(
        "error",
        r#"{"error":{"type":"overloaded_error","message":"x"}}"#,
    );
    for body in [String::new(), start.clone(), start + &error] {
        let (run, requests) = run_with("5", vec![stream(body)]);
        run.failure();
        assert_eq!(requests, 1);
    }
}

#[test]
fn a_connection_that_ends_without_an_answer_is_retried() {
    let (run, requests) = run_with("1", vec![raw(""), stream(answer())]);
    assert_eq!((run.code, requests), (Some(0), 2));
}

#[test]
fn a_refused_connection_is_retried_and_then_an_error() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let run = Client::case_b(address)
        .args(&["--max-retries", "1"])
        .output();
    assert!(run.failure().starts_with("cannot connect to the provider"));
    let took = run.records().last().unwrap()["duration_ms"]
        .as_u64()
        .unwrap();
    assert!(
        took >= 500,
        "the pause before the retry is missing: {took} ms"
    );
}

#[test]
fn without_the_flag_nothing_is_retried() {
    let server = Server::answering(empty("500 X"));
    Client::case_b(server.address).output().failure();
    assert_eq!(server.requests().len(), 1);
}
