//! Tests of the order of events and of the aggregates.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn payload(json: Value) -> Payload {
    serde_json::from_value(json).unwrap()
}

fn start() -> Payload {
    payload(json!({"type": "message_start", "message": {
        "id": "msg_1", "content": [], "role": "assistant", "usage": {"input_tokens": 3, "output_tokens": 1},
    }}))
}

fn block_start(index: u64, block: Value) -> Payload {
    payload(json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn text_start(index: u64) -> Payload {
    block_start(index, json!({"type": "text", "text": ""}))
}

fn delta(index: u64, delta: Value) -> Payload {
    payload(json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn text_delta(index: u64, text: &str) -> Payload {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn block_stop(index: u64) -> Payload {
    payload(json!({"type": "content_block_stop", "index": index}))
}

fn message_delta() -> Payload {
    payload(
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
        "usage": {"output_tokens": 9}}),
    )
}

fn message_stop() -> Payload {
    payload(json!({"type": "message_stop"}))
}

/// Applies the events. Returns the content of each aggregate with the position of the event after it.
fn aggregates(message: &mut Message, events: Vec<Payload>) -> Vec<(usize, Value)> {
    let mut found = Vec::new();
    for (position, event) in events.into_iter().enumerate() {
        if let Some(aggregate) = message.apply(event).unwrap() {
            found.push((position, aggregate["content"].clone()));
        }
    }
    found
}

fn error_of(events: Vec<Payload>) -> String {
    let mut message = Message::new();
    events
        .into_iter()
        .find_map(|event| message.apply(event).err())
        .unwrap()
        .to_string()
}

#[test]
fn one_text_block_gives_one_aggregate_right_before_its_stop() {
    let mut message = Message::new();
    let events = vec![
        start(),
        text_start(0),
        text_delta(0, "Hel"),
        text_delta(0, "lo"),
        block_stop(0),
        message_delta(),
        message_stop(),
    ];
    let found = aggregates(&mut message, events);
    assert_eq!(found, [(4, json!([{"type": "text", "text": "Hello"}]))]);
    assert!(message.is_complete());
    assert_eq!(message.text(), "Hello");
    assert_eq!(message.stop_reason(), Some("end_turn"));
    assert_eq!(
        Value::Object(message.usage().clone()),
        json!({"input_tokens": 3, "output_tokens": 9})
    );
}

#[test]
fn several_blocks_give_one_aggregate_each_and_lose_no_text() {
    let mut message = Message::new();
    let events = vec![
        start(),
        block_start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "s"})),
        block_stop(0),
        text_start(1),
        text_delta(1, "a"),
        delta(1, json!({"type": "citations_delta", "citation": {"n": 1}})),
        block_stop(1),
        text_start(2),
        text_delta(2, "b"),
        block_stop(2),
        message_delta(),
        message_stop(),
    ];
    let found = aggregates(&mut message, events);
    assert_eq!(
        found,
        [
            (
                4,
                json!([{"type": "thinking", "thinking": "hm", "signature": "s"}])
            ),
            (
                8,
                json!([{"type": "text", "text": "a", "citations": [{"n": 1}]}])
            ),
            (11, json!([{"type": "text", "text": "b"}])),
        ]
    );
    assert_eq!(message.text(), "ab");
}

#[test]
fn a_block_cut_off_by_message_delta_still_gives_its_aggregate() {
    let mut message = Message::new();
    let events = vec![
        start(),
        block_start(
            0,
            json!({"type": "tool_use", "id": "t", "name": "n", "input": {}}),
        ),
        delta(
            0,
            json!({"type": "input_json_delta", "partial_json": "{\"a"}),
        ),
        message_delta(),
        message_stop(),
    ];
    let found = aggregates(&mut message, events);
    assert_eq!(
        found,
        [(
            3,
            json!([{"type": "tool_use", "id": "t", "name": "n", "input": {}}])
        )]
    );
}

#[test]
fn a_message_without_blocks_gives_one_empty_aggregate() {
    let mut message = Message::new();
    let found = aggregates(&mut message, vec![start(), message_delta(), message_stop()]);
    assert_eq!(found, [(1, json!([]))]);
}

#[test]
fn a_tools_input_is_joined_from_its_pieces() {
    let mut message = Message::new();
    let input = |text: &str| delta(0, json!({"type": "input_json_delta", "partial_json": text}));
    let events = vec![
        start(),
        block_start(0, json!({"type": "tool_use", "input": {}})),
        input(""),
        input("{\"a\":"),
        input("1}"),
        block_stop(0),
    ];
    let found = aggregates(&mut message, events);
    assert_eq!(
        found,
        [(5, json!([{"type": "tool_use", "input": {"a": 1}}]))]
    );
}

#[test]
fn a_tools_input_that_is_not_json_is_an_error() {
    let events = vec![
        start(),
        block_start(0, json!({"type": "tool_use", "input": {}})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{"})),
        block_stop(0),
    ];
    assert_eq!(
        error_of(events),
        "the input of a tool_use block is not JSON"
    );
}

#[test]
fn an_unknown_delta_adds_nothing_and_is_no_error() {
    let mut message = Message::new();
    let events = vec![
        start(),
        text_start(0),
        delta(0, json!({"type": "later", "x": [1]})),
        block_stop(0),
    ];
    assert_eq!(
        aggregates(&mut message, events),
        [(3, json!([{"type": "text", "text": ""}]))]
    );
}

#[test]
fn each_event_out_of_order_is_named_with_its_place() {
    let cases = [
        (
            vec![text_delta(0, "x")],
            "a content_block_delta event came before message_start",
        ),
        (
            vec![message_stop()],
            "a message_stop event came before message_start",
        ),
        (
            vec![start(), start()],
            "a message_start event came while no block was open",
        ),
        (
            vec![start(), text_delta(0, "x")],
            "a content_block_delta event came while no block was open",
        ),
        (
            vec![start(), block_stop(0)],
            "a content_block_stop event came while no block was open",
        ),
        (
            vec![start(), text_start(0), text_start(1)],
            "a content_block_start event came while a block was open",
        ),
        (
            vec![start(), text_start(0), message_stop()],
            "a message_stop event came while a block was open",
        ),
        (
            vec![start(), message_stop()],
            "a message_stop event came while no block was open",
        ),
        (
            vec![start(), message_delta(), text_start(0)],
            "a content_block_start event came after message_delta",
        ),
        (
            vec![start(), message_delta(), message_stop(), message_stop()],
            "a message_stop event came after message_stop",
        ),
    ];
    for (events, expected) in cases {
        assert_eq!(error_of(events), expected);
    }
}

#[test]
fn an_event_for_another_block_is_an_error() {
    let message = error_of(vec![start(), text_start(1)]);
    assert_eq!(
        message,
        "a content_block_start event names block 1, expected block 0"
    );
    let message = error_of(vec![start(), text_start(0), text_delta(7, "x")]);
    assert_eq!(
        message,
        "a content_block_delta event names block 7, expected block 0"
    );
    let message = error_of(vec![start(), text_start(0), block_stop(u64::MAX)]);
    assert!(message.starts_with("a content_block_stop event names block 1844"));
}

#[test]
fn a_second_message_delta_overwrites_the_first() {
    let mut message = Message::new();
    aggregates(
        &mut message,
        vec![start(), message_delta(), message_delta(), message_stop()],
    );
    assert!(message.is_complete());
}

#[test]
fn text_beyond_the_limit_is_an_error() {
    let piece = "x".repeat(1024 * 1024);
    let mut message = Message::new();
    aggregates(&mut message, vec![start(), text_start(0)]);
    let refused = (0..9).find_map(|_| message.apply(text_delta(0, &piece)).err());
    assert_eq!(refused, Some(MessageError::TextTooLong));
}

#[test]
fn blocks_beyond_the_limit_are_an_error() {
    let mut message = Message::new();
    aggregates(&mut message, vec![start()]);
    for index in 0..MAX_BLOCKS {
        aggregates(&mut message, vec![text_start(index), block_stop(index)]);
    }
    assert_eq!(
        message.apply(text_start(MAX_BLOCKS)),
        Err(MessageError::TooManyBlocks)
    );
}

proptest! {
    #[test]
    fn any_order_of_events_is_an_answer_or_an_error_and_never_a_panic(
        choices in prop::collection::vec((0..7_u8, 0..3_u64), 0..30),
    ) {
        let mut message = Message::new();
        for (choice, index) in choices {
            let event = match choice {
                0 => start(),
                1 => text_start(index),
                2 => text_delta(index, "x"),
                3 => block_stop(index),
                4 => message_delta(),
                5 => delta(index, json!({"type": "citations_delta", "citation": null})),
                _ => message_stop(),
            };
            let _ = message.apply(event);
        }
    }
}
