//! Chunk boundaries of an answer's body, as received by a client.

use std::io::Read as _;

use crate::kit::{KEY, post, post_with, scenario};

/// Returns the chunks of the scenario's only stream.
fn pieces(toml: &str) -> Vec<Vec<u8>> {
    let run = scenario(toml).start();
    let mut client = run.connect();
    let head = client.send(post()).head_answer();
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    let pieces = client.pieces();
    // The stub parses its own output, so the journal counts every event.
    let text = String::from_utf8(pieces.concat()).unwrap();
    assert_eq!(run.finish().sent().len(), text.matches("event:").count());
    pieces
}

fn sizes(pieces: &[Vec<u8>]) -> Vec<usize> {
    pieces.iter().map(Vec::len).collect()
}

#[test]
fn each_piece_is_a_chunk_of_its_own() {
    let sevens = sizes(&pieces("chunk_bytes = 7"));
    assert!(sevens[..sevens.len() - 1].iter().all(|size| *size == 7));
    let numbered = sizes(&pieces("chunk_cuts = [5, 9, 100]"));
    assert_eq!(numbered[..3], [5, 4, 91]);
    assert_eq!(numbered.len(), 4);
    let seeded = sizes(&pieces("chunk_seed = 1"));
    assert_eq!(seeded[..4], [2, 40, 31, 12]);
    let whole = sizes(&pieces(""));
    assert_eq!(whole.len(), 6);
}

#[test]
fn named_cuts_fall_inside_characters_line_ends_and_events() {
    let pieces = pieces(
        "text = 'é'\nframing = { line_end = 'crlf' }\nchunk_cuts = ['mid-utf8', 'mid-crlf', 'event-data']",
    );
    let ends_with = |end: &[u8]| pieces.iter().any(|piece| piece.ends_with(end));
    assert!(ends_with(b"\"text\":\"\xc3"));
    assert!(ends_with(b"event: message_stop\r"));
    assert!(pieces.iter().any(|piece| piece == b"\n"));
    assert!(pieces.iter().any(|piece| piece.starts_with(b"data: ")));
}

/// The delay is longer than the run, so all bytes read belong to the first write.
#[test]
fn a_piece_is_written_without_those_after_it() {
    for cut in [1, 50, 400] {
        let run = scenario(&format!("chunk_cuts = [{cut}]\nchunk_delay_ms = 60000")).start();
        let mut client = run.connect();
        client.send(post()).head_answer();
        let mut bytes = [0; 1024];
        let count = client.stream.read(&mut bytes).unwrap();
        let framed = format!("{cut:X}\r\n").len() + cut + "\r\n".len();
        assert_eq!(count, framed, "{cut}");
        client.assert_nothing();
    }
}

#[test]
fn a_piece_waits_until_those_before_it_are_taken() {
    // More bytes than the kernel buffers for a client that does not read.
    let text = "0123456789".repeat(100_000);
    let run = scenario(&format!("text = '{text}'\nchunk_bytes = 100000")).start();
    let mut client = run.connect();
    client.send(post()).head_answer();
    let sizes = sizes(&client.pieces());
    assert_eq!(sizes[..10], [100_000; 10]);
    assert_eq!(run.finish().sent().len(), 6);
}

#[test]
fn one_message_is_cut_as_well_and_states_its_length() {
    let ask = r#"{"model":"m","max_tokens":1,"messages":[{}]}"#;
    let request = post_with("/v1/messages", &format!("x-api-key: {KEY}\r\n"), ask);
    let first = scenario("chunk_bytes = 10\nchunk_delay_ms = 60000").start();
    let mut client = first.connect();
    client.send(&request).head_answer();
    let mut bytes = [0; 1024];
    assert_eq!(client.stream.read(&mut bytes).unwrap(), 10);
    client.assert_nothing();

    let all = scenario("chunk_bytes = 10").start();
    let answer = all.connect().send(&request).answer();
    assert!(answer.header("content-length").is_some());
    assert_eq!(answer.json()["content"][0]["text"], "Hello from the stub.");
}
