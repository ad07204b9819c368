//! Deviations in request headers.

use model::evidence::fixture::{add_header, headers, set_header};

use super::deviations;

deviations! {
    a_missing_api_key_is_found: case_b, |run| {
        headers(&mut run.evidence.requests[0]).retain(|(name, _)| name != "x-api-key");
    } => ["headers/api-key-present"];

    an_empty_api_key_is_found: case_b, |run| {
        set_header(&mut run.evidence.requests[0], "x-api-key", " ");
    } => ["headers/api-key-present"];

    another_value_of_the_api_key_is_found: case_b, |run| {
        set_header(&mut run.evidence.requests[0], "x-api-key", "<7 bytes, sha256 00>");
    } => ["headers/api-key-present"];

    a_second_api_key_is_found_in_whatever_case_it_is_spelt: case_b, |run| {
        add_header(&mut run.evidence.requests[0], "X-Api-KEY", "<redacted>");
    } => ["headers/api-key-present"];

    an_authorization_header_that_the_profile_lists_is_found: case_b, |run| {
        run.profile.headers.message.push("authorization".to_owned());
        add_header(&mut run.evidence.requests[0], "Authorization", "<redacted>");
    } => ["headers/authorization-absent"];

    an_authorization_header_is_no_header_of_the_profile_either: case_b, |run| {
        add_header(&mut run.evidence.requests[0], "Authorization", "<redacted>");
    } => ["headers/authorization-absent", "headers/nothing-else"];

    another_version_than_that_of_the_init_record_is_found: case_b, |run| {
        set_header(&mut run.evidence.requests[0], "user-agent", "agent-cli/2.1.178 (external, sdk-cli)");
    } => ["headers/user-agent"];

    another_client_name_is_found: case_b, |run| {
        set_header(&mut run.evidence.requests[0], "user-agent", "agent-cli-x/2.1.177 (external, sdk-cli)");
    } => ["headers/user-agent"];

    something_behind_the_user_agent_is_found: case_b, |run| {
        set_header(&mut run.evidence.requests[0], "user-agent", "agent-cli/2.1.177 (external, sdk-cli) more");
    } => ["headers/user-agent"];

    a_second_user_agent_is_found: case_b, |run| {
        add_header(&mut run.evidence.requests[0], "User-Agent", "agent-cli/2.1.177 (external, sdk-cli)");
    } => ["headers/user-agent"];

    another_user_agent_of_the_preflight_is_found: case_a, |run| {
        set_header(&mut run.evidence.requests[0], "user-agent", "curl/8.5.0");
    } => ["headers/user-agent"];

    text_behind_the_version_of_the_preflight_is_found: case_a, |run| {
        set_header(&mut run.evidence.requests[0], "user-agent", "reqwest/0.13.1 (host=build-7)");
    } => ["headers/user-agent"];

    a_missing_protocol_family_is_found: case_b, |run| {
        set_header(&mut run.evidence.requests[0], "agent-beta", "agent-client-1, interleaved-thinking-2");
    } => ["headers/beta-families"];

    a_protocol_family_without_a_date_is_found: case_b, |run| {
        let beta = "agent-client-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,\
            prompt-caching-scope-of-anything";
        set_header(&mut run.evidence.requests[0], "agent-beta", beta);
    } => ["headers/beta-families"];

    a_second_line_of_the_beta_header_is_found: case_b, |run| {
        add_header(&mut run.evidence.requests[0], "Agent-Beta", "effort-2025-11-24");
    } => ["headers/nothing-else"];

    a_second_line_of_a_list_is_as_good: case_b, |run| {
        run.profile.headers.message.push("accept-encoding".to_owned());
        add_header(&mut run.evidence.requests[0], "accept-encoding", "gzip");
        add_header(&mut run.evidence.requests[0], "Accept-Encoding", "br");
    } => [];

    a_second_host_is_found: case_b, |run| {
        add_header(&mut run.evidence.requests[0], "Host", "127.0.0.1:4000");
    } => ["headers/nothing-else"];

    a_message_without_a_host_is_found: case_b, |run| {
        headers(&mut run.evidence.requests[0]).retain(|(name, _)| name != "host");
    } => ["headers/nothing-else"];

    another_port_in_the_host_is_found: case_b, |run| {
        set_header(&mut run.evidence.requests[0], "host", "127.0.0.1:4001");
    } => ["headers/nothing-else"];

    another_host_of_the_preflight_is_found: case_a, |run| {
        set_header(&mut run.evidence.requests[0], "host", "api.example.com");
    } => ["headers/nothing-else"];

    a_host_by_the_name_of_loopback_is_as_good: case_b, |run| {
        set_header(&mut run.evidence.requests[0], "host", "LocalHost:4000");
    } => [];

    the_beta_header_on_the_preflight_is_found: case_a, |run| {
        run.profile.headers.preflight.push("agent-beta".to_owned());
        add_header(&mut run.evidence.requests[0], "agent-beta", "agent-client-1");
    } => ["headers/beta-families"];

    a_preflight_with_a_key_is_found: case_a, |run| {
        run.profile.headers.preflight.push("x-api-key".to_owned());
        add_header(&mut run.evidence.requests[0], "X-API-Key", "<redacted>");
    } => ["headers/preflight-unauthenticated"];

    a_preflight_with_a_cookie_is_found: case_a, |run| {
        run.profile.headers.preflight.push("cookie".to_owned());
        add_header(&mut run.evidence.requests[0], "cookie", "a=b");
    } => ["headers/preflight-unauthenticated"];

    a_header_that_the_profile_does_not_list_is_found: case_b, |run| {
        add_header(&mut run.evidence.requests[0], "x-machine-id", "4711");
    } => ["headers/nothing-else"];

    a_header_of_the_preflight_that_the_profile_does_not_list_is_found: case_a, |run| {
        add_header(&mut run.evidence.requests[0], "content-type", "text/plain");
    } => ["headers/nothing-else"];

    names_in_another_case_are_the_same_headers: case_b, |run| {
        for (name, _) in headers(&mut run.evidence.requests[0]) {
            *name = name.to_ascii_uppercase();
        }
    } => [];
}
