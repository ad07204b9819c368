//! Contents of standard output.

use super::deviations;
use crate::kit::{Run, fixture};
use crate::needs_sandbox;

deviations! {
    a_line_that_is_no_json_is_found: case_b, "line-that-is-no-json" => ["records/json-lines"];
    a_line_that_is_no_object_is_found: case_b, "line-that-is-no-object" => ["records/json-lines"];
    an_empty_line_is_found: case_b, "empty-line" => ["records/json-lines"];
    a_line_after_the_result_is_found: case_b, "line-after-the-result" => ["records/json-lines",
        "records/result-success"];
    a_result_without_its_line_feed_is_no_record: case_b, "no-last-line-feed" => ["records/json-lines",
        "records/sequence", "records/result-success"];

    a_missing_init_record_is_found: case_b, "no-init" => ["records/sequence"];
    a_missing_status_record_is_found: case_b, "no-status" => ["records/sequence"];
    a_second_status_record_is_found: case_b, "status-twice" => ["records/sequence"];
    an_unknown_record_is_found: case_b, "unknown-record" => ["records/sequence"];
    a_record_after_the_result_is_found: case_b, "record-after-the-result" => ["records/sequence",
        "records/result-success"];

    an_init_record_without_a_field_is_found: case_b, "init-without-agents" => ["records/init-fields"];
    an_init_record_without_tools_is_found: case_b, "init-without-tools" => ["records/init-fields"];
    an_init_record_with_another_type_is_found: case_b, "init-with-model-as-number" => ["records/init-fields"];
    bypassed_permissions_fail_init_fields: case_b, "init-that-bypasses-permissions" =>
        ["records/init-fields"];
    mcp_server_fails_init_fields: case_b, "init-with-mcp-server" => ["records/init-fields"];
    plugin_fails_init_fields: case_b, "init-with-plugin" => ["records/init-fields"];
    agent_fails_init_fields: case_a, "init-with-agent" => ["records/init-fields"];
    skill_fails_init_fields: case_b, "init-with-skill" => ["records/init-fields"];
    slash_command_fails_init_fields: case_b, "init-with-slash-command" => ["records/init-fields"];
    an_init_record_with_a_tool_is_found: case_b, "init-with-tool" => ["records/tools-empty"];
    an_init_record_with_tools_that_are_no_array_is_found: case_b, "init-with-tools-as-string" =>
        ["records/init-fields", "records/tools-empty"];

    init_after_the_answer_fails_case_a: case_a, "init-after-the-answer" => ["records/init-before-post"];
    init_after_the_answer_fails_case_b: case_b, "init-after-the-answer" => ["records/init-before-post"];
    init_that_ends_after_the_answer_is_found: case_b, "init-ends-after-the-answer" =>
        ["records/init-before-post"];
    init_after_the_preflight_is_early_enough: case_a, "init-after-the-preflight" => [];
    status_after_the_answer_is_found: case_b, "status-after-the-answer" => ["records/init-before-post"];

    events_in_another_order_are_found: case_b, "events-swapped" => ["records/sequence",
        "records/events-match-provider"];
    a_missing_event_is_found: case_b, "event-left-out" => ["records/sequence",
        "records/events-match-provider"];
    an_event_shown_twice_is_found: case_b, "event-twice" => ["records/sequence",
        "records/events-match-provider"];
    an_event_with_other_text_is_found: case_b, "event-with-other-text" => ["records/events-match-provider"];
    an_event_with_a_further_field_is_found: case_b, "event-with-further-field" =>
        ["records/events-match-provider"];

    other_text_in_the_aggregate_is_found: case_b, "assistant-with-other-text" => ["records/assistant-text"];
    a_tool_use_in_the_aggregate_is_found: case_b, "assistant-with-tool-use" => ["records/assistant-text"];
    a_missing_aggregate_is_found: case_b, "no-assistant" => ["records/sequence"];
    a_second_aggregate_is_found: case_b, "assistant-twice" => ["records/sequence"];
    the_aggregate_after_the_stop_is_found: case_b, "assistant-after-the-stop" =>
        ["records/assistant-position"];
    the_aggregate_before_the_delta_is_found: case_b, "assistant-before-the-delta" =>
        ["records/assistant-position"];

    a_success_that_is_an_error_is_found: case_b, "result-is-error" => ["records/result-success"];
    a_result_that_is_no_success_is_found: case_b, "result-without-success" => ["records/result-success"];
    cut_answer_taken_for_whole_is_found: case_b_cut_short, "cut-answer-taken-for-whole" =>
        ["records/result-success"];
    whole_answer_taken_for_whole_passes: case_b, "cut-answer-taken-for-whole" => [];
    a_missing_result_is_found: case_b, "no-result" => ["records/sequence", "records/result-success"];
}

#[test]
fn success_after_any_cut_answer_is_found() {
    needs_sandbox!();
    for scenario in [
        "cut-after-head",
        "cut-after-content-block-start",
        "cut-after-content-block-delta",
        "cut-after-message-delta",
        "cut-mid-event",
        "reset-after-head",
        "error-event-mid",
        "no-last-blank-line",
        "empty-200",
        "json-200",
        "error-529",
    ] {
        let run = Run::case_b().argument("--stub").argument(scenario);
        let done = run.deviating("cut-answer-taken-for-whole").json();
        assert_eq!(
            done.checks("failed"),
            ["records/result-success"],
            "{scenario}"
        );
    }
}

#[test]
fn pings_have_their_records_unchanged_or_none() {
    needs_sandbox!();
    let found: &[&str] = &["records/events-match-provider"];
    for (deviation, ids) in [
        ("none", &[][..]),
        ("pings-left-out", &[]),
        ("many-pings", found),
        ("pings-with-content", found),
    ] {
        let run = Run::case_b().argument("--stub").argument("pings");
        let run = match deviation {
            "none" => run.client(fixture("deviant-client")),
            deviation => run.deviating(deviation),
        };
        super::assert_found(&run.json(), ids);
    }
}

#[test]
fn what_the_client_writes_cannot_steer_a_terminal_or_a_ci_service() {
    needs_sandbox!();
    let json = Run::case_b().deviating("hostile-text").json();
    json.assert_fails(&["records/json-lines", "files/nothing-else"]);
    let human = Run::case_b().deviating("hostile-text").output().stdout;
    let human = String::from_utf8(human).unwrap();
    for report in [human, json.stderr, json.text] {
        let active = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!report.contains(active), "{report:?}");
        let begins = |words| {
            report
                .lines()
                .any(|line| line.trim_start().starts_with(words))
        };
        assert!(
            !begins("::") && !begins("##") && !begins("PASSED"),
            "{report}"
        );
    }
}
