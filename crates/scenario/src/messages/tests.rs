use serde_json::json;

use super::*;
use crate::{Reply, Scenario};

#[test]
fn the_default_answer_is_the_six_events_in_their_public_shapes() {
    let turn = Turn::default();
    let events = events(&turn, "msg_1", "model-x");
    let values: Vec<Value> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .collect();
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "model-x", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 25, "output_tokens": 1 },
    });
    assert_eq!(
        values,
        [
            json!({ "type": "message_start", "message": message }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hello from the stub." } }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null }, "usage": { "output_tokens": 4 } }),
            json!({ "type": "message_stop" }),
        ]
    );
    for (event, value) in events.iter().zip(values) {
        assert_eq!(event.name(), value["type"]);
    }
}

/// Parses the turn of a `[stub]` table.
fn turn(toml: &str) -> Turn {
    let scenario: Scenario = toml::from_str(toml).unwrap();
    let Reply::Message(turn) = &scenario.answer(0).reply else {
        panic!("no message: {toml}")
    };
    turn.clone()
}

fn values(turn: &Turn) -> Vec<Value> {
    let events = events(turn, "msg_0a", "m");
    events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .collect()
}

#[test]
fn pings_and_unknown_events_follow_the_start_of_the_first_block() {
    let turn = turn("pings = 2\nunknown_events = 1\ndeltas = 2");
    let events = events(&turn, "msg_1", "m");
    let names: Vec<_> = events.iter().map(Event::name).collect();
    assert_eq!(
        names[1..7],
        [
            "content_block_start",
            "ping",
            "ping",
            "stub_notice",
            "content_block_delta",
            "content_block_delta"
        ]
    );
    assert_eq!(
        serde_json::to_string(&Event::Ping).unwrap(),
        r#"{"type":"ping"}"#
    );
    assert_eq!(values(&turn)[4]["type"], "stub_notice");
}

#[test]
fn a_thinking_block_ends_with_its_signature() {
    let turn = turn(
        "blocks = [{ type = 'thinking', thinking = 'Hm, so.', deltas = 2, signature = 'c2ln' }]",
    );
    let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
    let delta = |delta| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    assert_eq!(
        values(&turn)[1..6],
        [
            json!({ "type": "content_block_start", "index": 0, "content_block": start }),
            delta(json!({ "type": "thinking_delta", "thinking": "Hm, " })),
            delta(json!({ "type": "thinking_delta", "thinking": "so." })),
            delta(json!({ "type": "signature_delta", "signature": "c2ln" })),
            json!({ "type": "content_block_stop", "index": 0 }),
        ]
    );
}

#[test]
fn the_pieces_of_a_call_begin_with_an_empty_one_and_add_up_to_its_input() {
    let turn = turn(
        "blocks = [{ type = 'text', text = 'I look.' }, { type = 'tool_use', name = 'find', input = { q = 'é', n = 2 }, deltas = 3 }]",
    );
    let values = values(&turn);
    assert_eq!(
        values[4]["content_block"],
        json!({ "type": "tool_use", "id": "toolu_010a", "name": "find", "input": {} })
    );
    let pieces: Vec<_> = values[5..9]
        .iter()
        .map(|event| event["delta"]["partial_json"].as_str().unwrap())
        .collect();
    assert_eq!(pieces[0], "");
    assert_eq!(pieces.concat(), r#"{"n":2,"q":"é"}"#);
    assert_eq!(values[10]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn one_message_carries_the_same_content() {
    let turn = turn(
        "stop_sequence = 'END'\nblocks = [{ type = 'thinking', thinking = 'Hm.' }, { type = 'text', deltas = ['Hel', 'lo'] }, { type = 'tool_use', name = 'find', input = { q = 1 }, id = 'toolu_x' }]",
    );
    let message = serde_json::to_value(message(&turn, "msg_1", "m")).unwrap();
    assert_eq!(
        message["content"],
        json!([
            { "type": "thinking", "thinking": "Hm.", "signature": "c3R1Yi1zaWduYXR1cmU=" },
            { "type": "text", "text": "Hello" },
            { "type": "tool_use", "id": "toolu_x", "name": "find", "input": { "q": 1 } },
        ])
    );
    assert_eq!(
        (&message["stop_reason"], &message["stop_sequence"]),
        (&json!("stop_sequence"), &json!("END"))
    );
}

#[test]
fn each_identifier_is_new_and_of_one_form() {
    let ids: std::collections::HashSet<String> = (0..100).map(|_| new_id("msg")).collect();
    assert_eq!(ids.len(), 100);
    let hexadecimal = |id: &String| {
        id.strip_prefix("msg_")
            .is_some_and(|bits| u128::from_str_radix(bits, 16).is_ok())
    };
    assert!(ids.iter().all(|id| hexadecimal(id) && id.len() == 36));
}

#[test]
fn an_error_has_the_public_shape() {
    let body: Value =
        serde_json::from_str(&error_body(ErrorType::RequestTooLarge, "too much", "req_1")).unwrap();
    let error = json!({ "type": "request_too_large", "message": "too much" });
    assert_eq!(
        body,
        json!({ "type": "error", "error": error, "request_id": "req_1" })
    );
}
