//! Fields of the message's body.

use super::deviations;
use crate::kit::Run;
use crate::needs_sandbox;

deviations! {
    a_further_field_is_found: case_b, "extra-field" => ["body/fields"];
    a_missing_field_is_found: case_b, "missing-field" => ["body/fields"];
    a_missing_list_of_tools_is_found: case_b, "missing-tools" => ["body/fields"];
    a_key_that_is_named_twice_is_found: case_b, "duplicate-key" => ["body/fields"];
    a_string_in_the_place_of_an_object_is_found: case_b, "string-for-object" => ["body/fields"];
    null_in_the_place_of_an_object_is_found: case_b, "null-for-object" => ["body/fields"];
    a_string_in_the_place_of_a_number_is_found_and_refused: case_b, "string-for-number" => ["body/fields",
        "records/sequence", "records/result-success", "process/exit-zero"];
    a_body_that_is_no_json_is_found_and_refused: case_b, "body-is-no-json" => ["body/fields",
        "records/sequence", "records/result-success", "process/exit-zero"];

    one_user_block_is_found: case_a, "one-user-block" => ["body/messages-blocks"];
    one_user_block_carries_the_mark_in_another_place: case_b, "one-user-block" => ["body/messages-blocks",
        "body/cache-control"];
    three_user_blocks_are_found: case_b, "three-user-blocks" => ["body/messages-blocks"];
    a_block_that_is_no_text_is_found: case_b, "image-block" => ["body/messages-blocks"];
    a_message_without_blocks_is_found: case_a, "content-as-string" => ["body/messages-blocks"];
    a_second_message_in_the_body_is_found: case_b, "two-messages" => ["body/messages-blocks"];
    another_role_is_found: case_b, "assistant-role" => ["body/messages-blocks"];

    two_system_blocks_are_found: case_a, "two-system-blocks" => ["body/system-blocks"];
    four_system_blocks_are_found: case_b, "four-system-blocks" => ["body/system-blocks"];
    system_input_without_blocks_is_found: case_b, "system-as-string" => ["body/fields",
        "body/system-blocks"];

    a_mark_on_the_first_user_block_is_found: case_b, "mark-on-first-user-block" => ["body/cache-control"];
    a_missing_mark_on_the_second_user_block_is_found: case_b, "no-mark-on-user-block" =>
        ["body/cache-control"];
    a_mark_on_every_system_block_is_found: case_b, "three-marks-on-system-blocks" => ["body/cache-control"];
    a_mark_that_is_text_is_found: case_b, "mark-that-is-text" => ["body/cache-control"];
    a_mark_of_another_type_is_found: case_b, "mark-of-another-type" => ["body/cache-control"];
    a_mark_with_text_is_found: case_b, "mark-with-text" => ["body/cache-control"];
    a_mark_with_another_ttl_is_found: case_b, "mark-with-another-ttl" => ["body/cache-control"];
    a_mark_with_a_known_ttl_passes: case_b, "mark-with-ttl" => [];
    case_a_does_not_ask_for_marks: case_a, "mark-on-first-user-block" => [];

    a_tool_is_found: case_b, "one-tool" => ["body/tools-empty"];
    tools_that_are_no_array_are_found: case_b, "tools-as-object" => ["body/fields", "body/tools-empty"];

    a_message_that_asks_for_no_stream_is_found: case_b, "no-stream" => ["body/stream"];
    a_message_that_does_not_say_stream_is_found: case_b, "missing-stream" => ["body/fields"];
}

#[test]
fn tools_pass_in_a_case_that_does_not_judge_them() {
    needs_sandbox!();
    let case = || Run::changed_case("case-b", "tools = \"empty\"\n", "");
    for deviation in ["one-tool", "init-with-tool"] {
        let done = case().deviating(deviation).json();
        done.assert_passed();
        for id in ["body/tools-empty", "records/tools-empty"] {
            assert_eq!(done.check(id)["status"], "skipped", "{deviation}: {id}");
        }
    }
}
