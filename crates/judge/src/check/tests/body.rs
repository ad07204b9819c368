//! Deviations in the body of the message request.

use model::digest;
use model::evidence::fixture::{Fixture, record, shape, text};
use model::journal::Content;
use serde_json::{Value, json};

use super::deviations;

deviations! {
    a_further_field_is_found: case_b, |run| post(run, |body| body["temperature"] = json!(1)) => ["body/fields"];

    output_config_in_case_a_is_found: case_a, |run| {
        shape(&mut run.evidence.requests[1], |body| body["output_config"] = json!({}));
    } => ["body/fields"];

    a_missing_field_is_found: case_b, |run| post(run, |body| remove(body, "metadata")) => ["body/fields"];

    a_field_of_another_type_is_found: case_b, |run| post(run, |body| body["max_tokens"] = text(5)) => ["body/fields"];

    a_null_has_no_type_of_the_table: case_b, |run| post(run, |body| body["thinking"] = json!(null)) => ["body/fields"];

    text_where_an_object_belongs_is_found: case_b, |run| post(run, |body| body["metadata"] = text(9)) => ["body/fields"];

    an_object_that_imitates_the_shape_of_text_is_an_object: case_b, |run| {
        post(run, |body| body["model"] = json!({"bytes": 5, "sha256": text(64)}));
    } => ["body/fields"];

    a_key_that_is_named_twice_is_found: case_b, |run| {
        content(run, Content::DuplicateKey { path: "metadata.user_id".to_owned() });
    } => ["body/fields"];

    a_body_that_is_no_json_is_found: case_b, |run| {
        content(run, Content::Other { reason: "expected value at byte 0".to_owned() });
    } => ["body/fields"];

    an_empty_body_is_found: case_b, |run| content(run, Content::Empty) => ["body/fields"];

    a_body_that_did_not_arrive_whole_is_found: case_b, |run| {
        run.evidence.requests[0].body.as_mut().expect("a body").complete = false;
    } => ["requests/connections", "body/fields"];

    no_body_at_all_is_found: case_b, |run| {
        run.evidence.requests[0].body = None;
    } => ["requests/connections", "body/fields"];

    a_third_user_block_is_found: case_b, |run| post(run, |body| {
        push(&mut body["messages"][0]["content"], json!({"type": "text", "text": text(4)}));
    }) => ["body/messages-blocks"];

    a_user_block_that_is_no_text_is_found: case_b, |run| post(run, |body| {
        body["messages"][0]["content"][0]["type"] = json!("image");
    }) => ["body/messages-blocks"];

    a_second_message_is_found: case_b, |run| post(run, |body| {
        push(&mut body["messages"], json!({"role": "assistant", "content": []}));
    }) => ["body/messages-blocks"];

    a_message_of_another_role_is_found: case_b, |run| post(run, |body| {
        body["messages"][0]["role"] = json!("assistant");
    }) => ["body/messages-blocks"];

    a_fourth_system_block_is_found: case_b, |run| post(run, |body| {
        push(&mut body["system"], json!({"type": "text", "text": text(4)}));
    }) => ["body/system-blocks"];

    a_system_block_without_text_is_found: case_b, |run| post(run, |body| {
        body["system"][0]["text"] = json!({"nested": text(3)});
    }) => ["body/system-blocks"];

    cache_control_on_another_user_block_is_found: case_b, |run| post(run, |body| {
        body["messages"][0]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
    }) => ["body/cache-control"];

    cache_control_on_a_third_system_block_is_found: case_b, |run| post(run, |body| {
        body["system"][0]["cache_control"] = json!({"type": "ephemeral"});
    }) => ["body/cache-control"];

    cache_control_missing_on_a_system_block_is_found: case_b, |run| post(run, |body| {
        remove(&mut body["system"][1], "cache_control");
    }) => ["body/cache-control"];

    cache_control_that_is_text_is_found: case_b, |run| post(run, |body| {
        body["messages"][0]["content"][1]["cache_control"] = text(9);
    }) => ["body/cache-control"];

    cache_control_of_another_type_is_found: case_b, |run| post(run, |body| {
        body["system"][1]["cache_control"]["type"] = json!("persistent");
    }) => ["body/cache-control"];

    cache_control_with_further_key_is_found: case_b, |run| post(run, |body| {
        body["system"][1]["cache_control"]["note"] = json!(7);
    }) => ["body/cache-control"];

    cache_control_without_a_type_is_found: case_b, |run| post(run, |body| {
        body["system"][1]["cache_control"] = json!({});
    }) => ["body/cache-control"];

    cache_control_with_another_ttl_is_found: case_b, |run| post(run, |body| {
        body["system"][1]["cache_control"]["ttl"] = text(2);
    }) => ["body/cache-control"];

    cache_control_with_ttl_and_scope_passes: case_b, |run| post(run, |body| {
        let shape = |text: &str| json!({"bytes": text.len(), "sha256": digest::of_bytes(text.as_bytes())});
        body["system"][0]["cache_control"] = json!(null);
        body["system"][1]["cache_control"]["ttl"] = shape("1h");
        body["system"][2]["cache_control"]["scope"] = shape("global");
    }) => [];

    a_tool_is_found: case_b, |run| post(run, |body| {
        push(&mut body["tools"], json!({"name": text(4)}));
    }) => ["body/tools-empty"];

    a_tool_passes_without_the_switch_for_none: case_b, |run| {
        (run.message().body.no_tools, run.stream().no_tools) = (false, false);
        record(&mut run.evidence, "system/init")["tools"] = json!(["Bash"]);
        post(run, |body| push(&mut body["tools"], json!({"name": text(4)})));
    } => [];

    a_request_that_asks_for_no_stream_is_found: case_b, |run| {
        post(run, |body| body["stream"] = json!(false));
    } => ["body/stream"];
}

#[test]
fn a_body_that_is_no_json_leaves_the_checks_of_its_parts_skipped() {
    let mut run = super::case_b();
    content(&mut run, Content::Empty);
    let skipped = super::with_status(super::Status::Skipped, &run);
    for id in [
        "messages-blocks",
        "system-blocks",
        "cache-control",
        "tools-empty",
        "stream",
    ] {
        assert!(
            skipped
                .iter()
                .any(|skipped| *skipped == format!("body/{id}")),
            "{id}: {skipped:?}"
        );
    }
}

#[test]
fn lists_of_tools_are_judged_only_if_the_case_asks() {
    let mut run = super::case_b();
    (run.message().body.no_tools, run.stream().no_tools) = (false, false);
    for id in ["body/tools-empty", "records/tools-empty"] {
        let finding = super::finding(id, &run);
        assert_eq!(finding.status, super::Status::Skipped, "{id}");
    }
}

fn post(run: &mut Fixture, change: impl FnOnce(&mut Value)) {
    shape(&mut run.evidence.requests[0], change);
}

fn content(run: &mut Fixture, content: Content) {
    run.evidence.requests[0]
        .body
        .as_mut()
        .expect("a body")
        .content = content;
}

fn push(array: &mut Value, value: Value) {
    array.as_array_mut().expect("an array").push(value);
}

fn remove(object: &mut Value, key: &str) {
    object
        .as_object_mut()
        .expect("an object")
        .remove(key)
        .expect("the key");
}
