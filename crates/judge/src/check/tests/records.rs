//! Deviations on standard output.

use model::evidence::fixture::{Fixture, insert_record, record, shape};
use model::evidence::{Before, Line};
use model::profile::{InitField, InitList};
use serde_json::json;

use super::deviations;

deviations! {
    a_line_that_is_no_json_is_found: case_b, |run| {
        insert_record(&mut run.evidence, 3, json!({}));
        run.evidence.records[3].line = Line::NotJson { reason: "expected value".to_owned() };
    } => ["records/json-lines"];

    a_last_record_without_its_line_feed_is_found: case_b, |run| {
        let last = run.evidence.records.last_mut().expect("a record");
        last.line = Line::NotJson { reason: "no line feed at the end".to_owned() };
    } => ["records/json-lines", "records/sequence", "records/result-success"];

    an_empty_standard_output_fails_what_compares_it: case_b, |run| {
        run.evidence.records.clear();
    } => ["records/sequence", "records/events-match-provider"];

    a_record_without_a_type_is_found: case_b, |run| {
        insert_record(&mut run.evidence, 2, json!({"note": "x"}));
    } => ["records/sequence"];

    an_api_retry_record_is_found: case_b, |run| {
        insert_record(&mut run.evidence, 2, json!({"type": "system", "subtype": "api_retry"}));
    } => ["records/sequence"];

    a_second_aggregate_is_found: case_b, |run| {
        let again = record(&mut run.evidence, "assistant").clone();
        insert_record(&mut run.evidence, 7, again);
    } => ["records/sequence"];

    a_missing_aggregate_is_found: case_b, |run| {
        run.evidence.records.retain(|record| record.kind() != Some("assistant"));
    } => ["records/sequence"];

    a_type_that_spells_type_and_subtype_is_no_init_record: case_b, |run| {
        *record(&mut run.evidence, "system/init") = json!({"type": "system/init"});
    } => ["records/sequence"];

    status_before_init_is_found: case_b, |run| run.evidence.records.swap(0, 1) => ["records/sequence"];

    a_record_for_each_ping_that_was_sent_is_as_good: case_b, |run| {
        insert_record(&mut run.evidence, 4, json!({"type": "stream_event", "event": {"type": "ping"}}));
    } => [];

    a_second_record_for_one_ping_is_found: case_b, |run| {
        for _ in 0..2 {
            insert_record(&mut run.evidence, 4, json!({"type": "stream_event", "event": {"type": "ping"}}));
        }
    } => ["records/events-match-provider"];

    a_ping_with_something_in_it_is_found: case_b, |run| {
        insert_record(&mut run.evidence, 4, json!({"type": "stream_event", "event": {"type": "ping", "x": 1}}));
    } => ["records/events-match-provider"];

    a_ping_in_another_place_is_found: case_b, |run| {
        insert_record(&mut run.evidence, 3, json!({"type": "stream_event", "event": {"type": "ping"}}));
    } => ["records/events-match-provider"];

    one_record_for_two_pings_is_found: case_b, |run| {
        let ping = run.evidence.provider_events.iter().find(|event| event.event == "ping");
        let ping = ping.expect("a ping").clone();
        run.evidence.provider_events.push(ping);
        insert_record(&mut run.evidence, 4, json!({"type": "stream_event", "event": {"type": "ping"}}));
    } => ["records/events-match-provider"];

    a_record_for_an_event_that_was_never_sent_is_found: case_b, |run| {
        insert_record(&mut run.evidence, 4, json!({"type": "stream_event", "event": {"type": "pong"}}));
    } => ["records/sequence"];

    a_missing_init_field_is_found: case_b, |run| {
        record(&mut run.evidence, "system/init").as_object_mut().expect("an object").remove("skills");
    } => ["records/init-fields"];

    an_init_field_of_another_type_is_found: case_b, |run| {
        record(&mut run.evidence, "system/init")["agents"] = json!("none");
    } => ["records/init-fields"];

    bypassed_permissions_fail_init_fields: case_b, |run| {
        record(&mut run.evidence, "system/init")["permissionMode"] = json!("bypassPermissions");
    } => ["records/init-fields"];

    mcp_server_fails_init_fields: case_b, |run| {
        record(&mut run.evidence, "system/init")["mcp_servers"] =
            json!([{ "name": "files", "status": "connected" }]);
    } => ["records/init-fields"];

    plugin_fails_init_fields: case_a, |run| {
        record(&mut run.evidence, "system/init")["plugins"] = json!([{ "name": "x", "path": "/x" }]);
    } => ["records/init-fields"];

    agent_fails_init_fields: case_b, |run| {
        record(&mut run.evidence, "system/init")["agents"] = json!(["helper"]);
    } => ["records/init-fields"];

    skill_fails_init_fields: case_b, |run| {
        record(&mut run.evidence, "system/init")["skills"] = json!(["helper"]);
    } => ["records/init-fields"];

    slash_command_fails_init_fields: case_b, |run| {
        record(&mut run.evidence, "system/init")["slash_commands"] = json!(["init"]);
    } => ["records/init-fields"];

    slash_commands_of_the_profile_pass: case_b, |run| {
        allow(run, InitField::SlashCommands, None);
        allow(run, InitField::McpServers, Some("files"));
        record(&mut run.evidence, "system/init")["slash_commands"] = json!(["init", "help"]);
        record(&mut run.evidence, "system/init")["mcp_servers"] = json!([{ "name": "files" }]);
    } => [];

    skill_beside_those_of_the_profile_fails_init_fields: case_b, |run| {
        allow(run, InitField::Skills, Some("write"));
        record(&mut run.evidence, "system/init")["skills"] = json!(["write", "send"]);
    } => ["records/init-fields"];

    permission_mode_of_the_profile_passes: case_b, |run| {
        run.profile.records.permission_mode = "plan".to_owned();
        record(&mut run.evidence, "system/init")["permissionMode"] = json!("plan");
    } => [];

    an_init_record_without_a_version_is_found: case_b, |run| {
        record(&mut run.evidence, "system/init")["agent_version"] = json!(2);
    } => ["records/init-fields"];

    another_version_in_the_init_record_is_found_in_the_user_agent: case_b, |run| {
        record(&mut run.evidence, "system/init")["agent_version"] = json!("2.1.178");
    } => ["headers/user-agent"];

    a_tool_in_the_init_record_is_found: case_b, |run| {
        record(&mut run.evidence, "system/init")["tools"] = json!(["Bash"]);
    } => ["records/tools-empty"];

    an_init_record_written_after_the_request_began_is_found: case_b, |run| {
        run.evidence.records[0].before = Before::None;
    } => ["records/init-before-post"];

    a_status_record_written_after_the_request_began_is_found: case_b, |run| {
        run.evidence.records[1].before = Before::None;
    } => ["records/init-before-post"];

    an_event_that_was_changed_is_found: case_b, |run| {
        record(&mut run.evidence, "stream_event/message_delta")["event"]["usage"]["output_tokens"] = json!(10);
    } => ["records/events-match-provider"];

    an_event_that_was_dropped_is_found: case_b, |run| {
        run.evidence.records.remove(4);
    } => ["records/sequence", "records/events-match-provider"];

    an_aggregate_with_other_text_is_found: case_b, |run| {
        record(&mut run.evidence, "assistant")["message"]["content"][0]["text"] = json!("Something else.");
    } => ["records/assistant-text"];

    an_aggregate_whose_content_is_no_text_is_found: case_b, |run| {
        record(&mut run.evidence, "assistant")["message"]["content"][0]["type"] = json!("tool_use");
    } => ["records/assistant-text"];

    an_aggregate_after_the_stop_of_its_block_is_found: case_b, |run| {
        run.evidence.records.swap(7, 8);
    } => ["records/assistant-position"];

    an_aggregate_before_the_last_delta_is_found: case_b, |run| {
        run.evidence.records.swap(6, 7);
    } => ["records/assistant-position"];

    a_result_that_is_an_error_is_found_although_its_subtype_is_success: case_b, |run| {
        record(&mut run.evidence, "result/success")["is_error"] = json!(true);
    } => ["records/result-success"];

    a_result_of_another_subtype_is_found: case_b, |run| {
        record(&mut run.evidence, "result/success")["subtype"] = json!("error_during_execution");
    } => ["records/result-success"];

    a_record_after_the_result_is_found: case_b, |run| {
        let end = run.evidence.records.len();
        insert_record(&mut run.evidence, end, json!({"type": "system", "subtype": "note"}));
    } => ["records/sequence", "records/result-success"];

    success_after_a_cut_answer_is_found: case_b, |run| {
        run.stream().partial_messages = false;
        run.evidence.records.retain(|record| record.kind() != Some("stream_event"));
        run.evidence.provider_events.truncate(6);
    } => ["records/result-success"];

    success_after_a_status_of_error_is_found: case_b, |run| {
        run.evidence.requests[0].status = Some(529);
    } => ["records/result-success"];

    success_without_any_answer_is_found: case_b, |run| {
        run.evidence.requests[0].status = None;
    } => ["records/result-success"];

    error_after_a_cut_answer_fails_for_the_error: case_b, |run| {
        run.evidence.requests[0].status = Some(529);
        record(&mut run.evidence, "result/success")["is_error"] = json!(true);
    } => ["records/result-success"];

    success_after_a_whole_answer_to_the_second_request: case_b, |run| {
        let mut refused = run.evidence.requests[0].clone();
        refused.status = Some(429);
        run.evidence.requests.insert(0, refused);
        run.evidence.requests[1].seq = 2;
        run.evidence.provider_events.iter_mut().for_each(|event| event.request = 2);
    } => ["requests/first-and-only", "requests/post-count"];

    success_without_a_stream_is_not_followed_to_its_end: case_b, |run| {
        run.evidence.provider_events.clear();
        run.evidence.records.retain(|record| record.kind() != Some("stream_event"));
        shape(&mut run.evidence.requests[0], |body| body["stream"] = json!(false));
    } => ["body/stream"];

    without_partial_messages_the_aggregate_stands_alone: case_b, |run| {
        run.stream().partial_messages = false;
        run.evidence.records.retain(|record| record.kind() != Some("stream_event"));
    } => [];

    without_partial_messages_an_event_record_is_found: case_b, |run| {
        run.stream().partial_messages = false;
    } => ["records/sequence"];
}

/// Allows entries in a list of the init record: this one, or all.
fn allow(run: &mut Fixture, field: InitField, name: Option<&str>) {
    run.profile.records.init_lists.push(InitList {
        field,
        names: name.map(|name| vec![name.to_owned()]),
        reason: "the client is known for it".to_owned(),
    });
}
