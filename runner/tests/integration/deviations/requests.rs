//! Received requests, and other bytes on their connections.

use super::deviations;

deviations! {
    the_same_message_sent_again_fails_case_b: case_b, "same-message-again" => ["requests/first-and-only",
        "requests/post-count", "records/sequence", "records/events-match-provider", "records/assistant-text"];
    the_same_message_sent_again_fails_case_a: case_a, "same-message-again" => ["requests/sequence",
        "requests/post-count", "records/sequence", "records/events-match-provider", "records/assistant-text"];
    another_message_is_found: case_b, "another-message" => ["requests/first-and-only",
        "requests/post-count", "records/sequence", "records/events-match-provider", "records/assistant-text"];
    no_message_at_all_is_found: case_b, "no-message" => ["requests/first-and-only", "requests/post-count",
        "records/sequence", "records/result-success", "process/exit-zero"];
    a_message_that_says_it_is_a_repetition_is_found: case_b, "retry-count" => ["requests/first-and-only",
        "headers/nothing-else"];
    a_message_to_another_path_is_found: case_b, "another-path" => ["requests/first-and-only",
        "requests/post-count", "records/sequence", "records/result-success",
        "secrets/credential-not-written", "process/exit-zero"];
    message_after_a_prefix_is_found_in_case_b: case_b, "another-prefix" => ["requests/first-and-only",
        "requests/post-count"];
    message_after_a_prefix_is_found_in_case_a: case_a, "another-prefix" => ["requests/sequence",
        "requests/post-count"];

    a_preflight_in_case_b_is_found: case_b, "preflight-in-case-b" => ["requests/first-and-only"];
    case_a_passes_without_a_preflight: case_a, "no-preflight" => [];
    a_preflight_after_the_message_is_found: case_a, "preflight-after-the-message" => ["requests/sequence"];
    a_second_preflight_is_found: case_a, "second-preflight" => ["requests/sequence"];

    an_unknown_request_after_the_message_fails_case_a: case_a, "unknown-get" => ["requests/sequence"];
    an_unknown_request_after_the_message_fails_case_b: case_b, "unknown-get" => ["requests/first-and-only"];
    an_unknown_request_before_the_message_is_found: case_b, "unknown-get-first" => ["requests/first-and-only"];
    a_request_behind_the_message_on_its_connection_is_found: case_b, "another-request-behind-it" =>
        ["requests/first-and-only"];
    a_side_request_is_found_and_its_key_does_not_belong: case_b, "token-count" => ["requests/first-and-only",
        "secrets/credential-not-written"];

    a_message_beside_the_turn_is_taken_for_the_turn_where_the_profile_does_not_know_it: case_b, "title" =>
        ["requests/first-and-only", "requests/post-count", "body/fields", "body/messages-blocks", "records/sequence",
        "records/events-match-provider", "records/assistant-text"];

    a_connection_that_carries_nothing_is_found: case_b, "idle-connection" => ["requests/connections"];
    a_connection_that_carries_nothing_fails_case_a_too: case_a, "idle-connection" => ["requests/connections"];
    half_a_head_is_found: case_b, "half-a-head" => ["requests/first-and-only", "requests/connections"];
    half_a_head_that_is_corked_is_found: case_b, "half-a-head-corked" =>
        ["requests/first-and-only", "requests/connections"];
    half_a_head_that_is_delayed_is_found: case_b, "half-a-head-delayed" =>
        ["requests/first-and-only", "requests/connections"];
    half_a_head_on_a_lingering_socket_is_found: case_b, "half-a-head-lingering" =>
        ["requests/first-and-only", "requests/connections"];
    half_a_head_before_a_reset_is_found: case_b, "half-a-head-reset" =>
        ["requests/first-and-only", "requests/connections"];
    half_a_head_with_a_time_limit_is_found: case_b, "half-a-head-with-a-limit" =>
        ["requests/first-and-only", "requests/connections"];
    half_a_head_fails_case_a_too: case_a, "half-a-head" => ["requests/sequence", "requests/connections"];
    requests_that_are_read_after_the_clients_end_are_judged: case_b, "requests-until-the-end" =>
        ["requests/first-and-only", "requests/connections"];
    half_a_body_is_a_second_message: case_b, "half-a-body" => ["requests/first-and-only",
        "requests/post-count", "requests/connections", "body/fields"];
    bytes_that_are_no_request_are_found: case_b, "no-http" => ["requests/first-and-only",
        "requests/connections"];
    line_feeds_behind_the_message_are_found: case_b, "trailing-line-feeds" => ["requests/connections"];
    other_bytes_behind_the_message_are_a_request_that_does_not_end: case_b, "trailing-bytes" =>
        ["requests/first-and-only", "requests/connections"];
    white_space_in_a_head_is_found: case_b, "spaces-in-header" => ["requests/connections"];
    header_spelt_otherwise_is_found: case_b, "header-without-its-space" => ["requests/connections"];
    length_with_leading_zeros_is_found: case_b, "length-with-zeros" => ["requests/connections"];
    length_with_a_plus_is_no_request: case_b, "length-with-a-plus" => ["requests/first-and-only",
        "requests/post-count", "requests/connections", "records/sequence", "records/result-success",
        "secrets/credential-not-written", "process/exit-zero"];
    length_with_a_space_is_no_request: case_b, "length-with-a-space" => ["requests/first-and-only",
        "requests/post-count", "requests/connections", "records/sequence", "records/result-success",
        "secrets/credential-not-written", "process/exit-zero"];
    length_named_twice_is_no_request: case_b, "length-twice" => ["requests/first-and-only",
        "requests/post-count", "requests/connections", "records/sequence", "records/result-success",
        "secrets/credential-not-written", "process/exit-zero"];
    chunk_size_with_leading_zeros_is_found: case_b, "chunk-size-with-zeros" => ["requests/connections",
        "headers/nothing-else"];
    chunk_sizes_in_both_cases_are_found: case_b, "chunk-sizes-in-both-cases" => ["requests/connections",
        "headers/nothing-else"];
    a_chunk_extension_is_found: case_b, "chunk-extension" => ["requests/connections", "headers/nothing-else"];
    a_trailer_is_found: case_b, "trailer" => ["requests/connections", "headers/nothing-else"];
    plain_chunks_only_bring_a_header_that_the_profile_does_not_list: case_b, "chunked" =>
        ["headers/nothing-else"];

    a_query_that_the_profile_does_not_name_is_found: case_b, "another-query" => ["requests/query"];
    a_query_that_the_profile_names_passes: case_b, "named-query" => [];
    a_query_of_the_preflight_is_found: case_a, "preflight-with-query" => ["requests/query"];
}
