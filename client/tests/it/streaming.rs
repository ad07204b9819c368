//! The records of a good answer: their order, their content, and when they are written.

use std::{io::Write, net::TcpListener, sync::mpsc};

use serde_json::{Value, json};

use crate::kit::{
    ANSWER, Client, Reply, STREAM_HEAD, Server, answer, chunk, event, name_of, raw, stream,
};

const ORDER: [&str; 10] = [
    "system/init",
    "system/status",
    "stream_event/message_start",
    "stream_event/content_block_start",
    "stream_event/content_block_delta",
    "assistant",
    "stream_event/content_block_stop",
    "stream_event/message_delta",
    "stream_event/message_stop",
    "result/success",
];

fn records_of(reply: Reply) -> Vec<Value> {
    let server = Server::answering(reply);
    let run = Client::case_b(server.address).output();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stderr, "");
    server.requests();
    run.records()
}

fn names_of(reply: Reply) -> Vec<String> {
    records_of(reply).iter().map(name_of).collect()
}

#[test]
fn the_records_come_in_the_observed_order() {
    assert_eq!(names_of(stream(answer())), ORDER);
}

#[test]
fn each_event_is_exposed_byte_for_byte() {
    let server = Server::answering(stream(answer()));
    let run = Client::case_b(server.address).output();
    server.requests();
    let events: Vec<&str> = run
        .stdout
        .lines()
        .filter(|line| line.contains("stream_event"))
        .collect();
    assert_eq!(events.len(), ANSWER.len());
    for (line, (_, json)) in events.iter().zip(ANSWER) {
        assert!(
            line.starts_with(&format!(r#"{{"type":"stream_event","event":{json},"#)),
            "{line}"
        );
    }
}

#[test]
fn the_aggregate_the_result_and_the_session_fit_the_stream() {
    let records = records_of(stream(answer()));
    let assistant = &records[5];
    assert_eq!(
        assistant["message"]["content"],
        json!([{"type": "text", "text": "Hällo €😀"}])
    );
    assert_eq!(assistant["message"]["id"], "msg_1");
    assert_eq!(assistant["message"]["model"], "stub-model");
    assert_eq!(assistant["parent_tool_use_id"], Value::Null);
    let result = &records[9];
    assert_eq!(result["is_error"], false);
    assert_eq!(result["result"], "Hällo €😀");
    assert_eq!(result["stop_reason"], "end_turn");
    assert_eq!(result["num_turns"], 1);
    assert_eq!(
        result["usage"],
        json!({"input_tokens": 25, "output_tokens": 15})
    );
    assert!(result["duration_ms"].is_u64());
    assert!(
        records
            .iter()
            .all(|record| record["session_id"] == records[0]["session_id"])
    );
    let mut ids: Vec<&str> = records
        .iter()
        .map(|record| record["uuid"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), records.len());
}

#[test]
fn without_the_flag_no_event_is_exposed() {
    let server = Server::answering(stream(answer()));
    let run = Client::bare(&["--print", "--safe-mode", "hi"])
        .env("AGENT_BASE_URL", &format!("http://{}", server.address))
        .env("AGENT_API_KEY", "sk-x")
        .output();
    server.requests();
    assert_eq!(
        run.names(),
        [
            "system/init",
            "system/status",
            "assistant",
            "result/success"
        ]
    );
}

#[test]
fn init_and_status_are_written_before_the_posts_connection_is_opened() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Client::case_b(listener.local_addr().unwrap()).stdout(file.reopen().unwrap());
    let run = std::thread::spawn(move || client.run());
    let (connection, _) = listener.accept().unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    drop((connection, listener));
    let names: Vec<String> = written
        .lines()
        .map(|line| name_of(&serde_json::from_str(line).unwrap()))
        .collect();
    assert_eq!(names, ["system/init", "system/status"]);
    assert!(written.ends_with('\n'));
    assert_eq!(run.join().unwrap().code, Some(1));
}

#[test]
fn each_record_is_written_when_its_event_arrives() {
    // The server sends each event only after the client has printed the record of the previous one.
    let (next, wait) = mpsc::channel::<()>();
    let server = Server::answering(Box::new(move |connection| {
        connection.write_all(STREAM_HEAD.as_bytes()).unwrap();
        for (name, json) in ANSWER {
            wait.recv().unwrap();
            connection
                .write_all(&chunk(event(name, json).as_bytes()))
                .unwrap();
        }
        wait.recv().unwrap();
        connection.write_all(b"0\r\n\r\n").unwrap();
    }));
    let mut running = Client::case_b(server.address).spawn();
    let mut seen = vec![name_of(&running.record()), name_of(&running.record())];
    for (name, _) in ANSWER {
        next.send(()).unwrap();
        loop {
            seen.push(name_of(&running.record()));
            if seen.last().unwrap().ends_with(name) {
                break;
            }
        }
    }
    next.send(()).unwrap();
    seen.push(name_of(&running.record()));
    assert_eq!(seen, ORDER);
    let run = running.finish();
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""));
    server.requests();
}

#[test]
fn a_stream_split_into_single_bytes_gives_the_same_records() {
    let body: Vec<u8> = answer().bytes().flat_map(|byte| chunk(&[byte])).collect();
    let reply = raw([STREAM_HEAD.as_bytes(), &body, b"0\r\n\r\n"].concat());
    assert_eq!(names_of(reply), ORDER);
}

#[test]
fn every_framing_of_the_stream_gives_the_same_records() {
    let plain = answer();
    for body in [
        plain.replace('\n', "\r\n"),
        plain.replace('\n', "\r"),
        plain.replace(": ", ":"),
        format!("\u{feff}{plain}"),
        plain.replace("event:", ": a comment\nid: 1\nevent:"),
    ] {
        assert_eq!(names_of(stream(&body)), ORDER, "{body}");
    }
}

#[test]
fn an_event_over_several_data_lines_is_one_record_on_one_line() {
    let body = answer().replace(
        "data: {\"type\":\"message_stop\"}",
        "data: {\ndata: \"type\":\ndata: \"message_stop\"}",
    );
    let records = records_of(stream(body));
    assert_eq!(records.iter().map(name_of).collect::<Vec<_>>(), ORDER);
}

#[test]
fn pings_unknown_events_and_events_without_a_name_give_no_record() {
    let noise = [
        event("ping", "{\"type\":\"ping\"}"),
        event("later_addition", "not even JSON"),
        format!("data: {}\n\n", ANSWER[5].1),
    ]
    .concat();
    let body: String = ANSWER
        .iter()
        .flat_map(|(name, json)| [noise.clone(), event(name, json)])
        .collect();
    assert_eq!(names_of(stream(body)), ORDER);
}

#[test]
fn a_second_block_gets_an_aggregate_of_its_own_before_its_stop() {
    let block = |index: u64, text: &str| {
        [
            event("content_block_start", &format!(r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"text","text":""}}}}"#)),
            event("content_block_delta", &format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":"{text}"}}}}"#)),
            event("content_block_stop", &format!(r#"{{"type":"content_block_stop","index":{index}}}"#)),
        ]
        .concat()
    };
    let part = |at: usize| event(ANSWER[at].0, ANSWER[at].1);
    let body = [part(0), block(0, "a"), block(1, "b"), part(4), part(5)].concat();
    let records = records_of(stream(body));
    let names: Vec<String> = records.iter().map(name_of).collect();
    let stop = "stream_event/content_block_stop";
    let at: Vec<usize> = (0..names.len())
        .filter(|at| names[*at] == "assistant")
        .collect();
    assert_eq!(at.len(), 2);
    assert!(at.iter().all(|at| names[at + 1] == stop), "{names:?}");
    assert_eq!(records[at[0]]["message"]["content"][0]["text"], "a");
    assert_eq!(records[at[1]]["message"]["content"][0]["text"], "b");
    assert_eq!(records.last().unwrap()["result"], "ab");
}

#[test]
fn an_answer_is_complete_at_message_stop_even_if_the_body_is_not() {
    let reply = raw([STREAM_HEAD.as_bytes(), &chunk(answer().as_bytes())].concat());
    assert_eq!(names_of(reply), ORDER);
}

#[test]
fn a_provider_that_holds_the_stream_open_after_message_stop_does_not_hold_up_the_turn() {
    let server = Server::answering(Box::new(|connection| {
        use std::io::Read;
        connection.write_all(STREAM_HEAD.as_bytes()).unwrap();
        connection.write_all(&chunk(answer().as_bytes())).unwrap();
        let _ = connection.read(&mut [0; 1]);
    }));
    let run = Client::case_b(server.address).output();
    assert_eq!(run.names(), ORDER);
    assert_eq!(run.code, Some(0));
    let took = run.records()[9]["duration_ms"].as_u64().unwrap();
    assert!(
        took < 15_000,
        "the end of the body was awaited for {took} ms"
    );
    server.requests();
}

#[test]
fn blank_lines_without_end_after_message_stop_do_not_hold_up_the_turn() {
    let server = Server::answering(Box::new(|connection| {
        connection.write_all(STREAM_HEAD.as_bytes()).unwrap();
        connection.write_all(&chunk(answer().as_bytes())).unwrap();
        while connection.write_all(&chunk(b"\n")).is_ok() {}
    }));
    let run = Client::case_b(server.address).output();
    assert_eq!(run.names(), ORDER);
    assert_eq!(run.code, Some(0));
    let took = run.records()[9]["duration_ms"].as_u64().unwrap();
    assert!(
        took < 15_000,
        "the end of the body was awaited for {took} ms"
    );
    server.requests();
}

#[test]
fn a_reader_that_goes_away_ends_the_run_cleanly() {
    let (gone, wait) = mpsc::channel::<()>();
    let server = Server::answering(Box::new(move |connection| {
        wait.recv().unwrap();
        let _ = connection.write_all(STREAM_HEAD.as_bytes());
        let _ = connection.write_all(&chunk(answer().as_bytes()));
    }));
    let mut running = Client::case_b(server.address).spawn();
    // Both records that need no answer, so that the next write comes after the close.
    running.record();
    running.record();
    let run = running.close_stdout(|| gone.send(()).unwrap());
    assert_eq!(run.code, Some(1));
    assert_eq!(
        run.stderr,
        "error: cannot write to standard output: Broken pipe (os error 32)\n"
    );
    server.requests();
}
