//! A hostile provider: for every response, memory stays bounded and the run ends with an error.

use std::{
    io::Write,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use crate::kit::{ANSWER, Client, KEY, Reply, STREAM_HEAD, Server, answer, chunk, event, stream};

fn failure_of(reply: Reply) -> String {
    let server = Server::answering(reply);
    let run = Client::case_b(server.address).output();
    server.requests();
    run.failure()
}

/// Sends the bytes repeatedly until the client closes the connection.
fn endless(start: &str, again: Vec<u8>) -> Reply {
    let head = [STREAM_HEAD.as_bytes(), &chunk(start.as_bytes())].concat();
    let piece = chunk(&again);
    Box::new(move |connection| {
        connection.write_all(&head).unwrap();
        while connection.write_all(&piece).is_ok() {}
    })
}

#[test]
fn an_endless_line_is_an_error() {
    assert_eq!(
        failure_of(endless("data: ", vec![b'x'; 64 * 1024])),
        "a line of the event stream is longer than 1048576 bytes"
    );
}

#[test]
fn an_endless_event_is_an_error() {
    let line = format!("data: {}\n", "x".repeat(8000));
    assert_eq!(
        failure_of(endless("event: message_start\n", line.into_bytes())),
        "an event of the stream is larger than 1048576 bytes"
    );
}

#[test]
fn endless_pings_are_an_error() {
    let pings = event(
        "ping",
        &format!(r#"{{"type":"ping","x":"{}"}}"#, "x".repeat(500_000)),
    );
    assert_eq!(
        failure_of(endless(": pings follow\n", pings.into_bytes())),
        "the stream is longer than 67108864 bytes"
    );
}

#[test]
fn endless_text_is_an_error() {
    let start: String = ANSWER[..2]
        .iter()
        .map(|(name, json)| event(name, json))
        .collect();
    let delta = ANSWER[2].1.replace("Hällo €😀", &"x".repeat(500_000));
    assert_eq!(
        failure_of(endless(&start, event(ANSWER[2].0, &delta).into_bytes())),
        "the message holds more than 8388608 bytes of text"
    );
}

#[test]
fn deep_json_is_an_error() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for json in [
        format!(r#"{{"type":"message_start","message":{{"x":{deep}}}}}"#),
        format!(r#"{{"type":"message_start","x":{deep},"message":{{}}}}"#),
    ] {
        let message = failure_of(stream(event("message_start", &json)));
        assert!(
            message.starts_with("the data of a message_start event is malformed"),
            "{message}"
        );
    }
}

#[test]
fn nul_bytes_are_an_error_in_a_known_event_and_nothing_elsewhere() {
    let message = failure_of(stream("event: message_start\ndata: \0\0\n\n"));
    assert!(
        message.starts_with("the data of a message_start event is malformed"),
        "{message}"
    );
    let server = Server::answering(stream(format!(
        "\0\0\n: \0\nevent: \0\ndata: \0\n\n{}",
        answer()
    )));
    assert_eq!(Client::case_b(server.address).output().code, Some(0));
    server.requests();
}

#[test]
fn data_that_is_not_utf8_is_an_error() {
    let message = failure_of(stream(b"event: message_stop\ndata: {\"x\":\"\xff\"}\n\n"));
    assert_eq!(message, "the data of a message_stop event is not UTF-8");
}

#[test]
fn an_endless_response_head_is_an_error() {
    let message = failure_of(Box::new(|connection| {
        connection.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
        while connection.write_all(b"x-filler: 0123456789\r\n").is_ok() {}
    }));
    assert!(
        message.starts_with("the exchange with the provider broke off: "),
        "{message}"
    );
}

#[test]
fn an_endless_error_body_is_cut_off() {
    let message = failure_of(Box::new(|connection| {
        connection.write_all(b"HTTP/1.1 500 X\r\n\r\n").unwrap();
        while connection.write_all(&[b'x'; 4096]).is_ok() {}
    }));
    assert_eq!(
        message,
        "the provider answered with status 500: no reason given"
    );
}

#[test]
fn words_that_steer_a_terminal_are_escaped_in_the_message() {
    let error = r#"{"error":{"type":"x","message":"a\u001b[2J\n::error::b\u202e"}}"#;
    assert_eq!(
        failure_of(stream(event("error", error))),
        r"the provider ended the stream with an error: x: a\u{1b}[2J ::error::b\u{202e}"
    );
}

#[test]
fn memory_stays_bounded_whatever_the_provider_sends() {
    let start: String = ANSWER[..2]
        .iter()
        .map(|(name, json)| event(name, json))
        .collect();
    let delta = ANSWER[2].1.replace("Hällo €😀", &"x".repeat(900_000));
    let server = Server::answering(endless(&start, event(ANSWER[2].0, &delta).into_bytes()));
    let home = tempfile::tempdir().unwrap();
    // The client under a limit of its data segment: an allocation beyond the limit would abort.
    let output = Command::new("/bin/sh")
        .arg0("sh")
        .args([
            "-c",
            "ulimit -d 65536 && exec \"$0\" --print --safe-mode --include-partial-messages hi",
        ])
        .arg(env!("CARGO_BIN_EXE_agent-cli"))
        .env_clear()
        .env("HOME", home.path())
        .env("AGENT_API_KEY", KEY)
        .env("AGENT_BASE_URL", format!("http://{}", server.address))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    server.requests();
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        stderr,
        "error: the message holds more than 8388608 bytes of text\n"
    );
}
