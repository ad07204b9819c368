//! What the heads of the requests say.

use super::deviations;

deviations! {
    a_message_without_a_key_is_found_and_refused: case_b, "no-key" => ["headers/api-key-present",
        "records/sequence", "records/result-success", "process/exit-zero"];
    a_second_key_is_found: case_b, "another-key-as-well" => ["headers/api-key-present"];
    the_key_written_twice_is_found: case_b, "key-twice" => ["headers/api-key-present",
        "secrets/credential-not-written"];
    an_empty_key_beside_authorization_is_found: case_b, "empty-key-beside-authorization" =>
        ["headers/api-key-present", "headers/authorization-absent", "headers/nothing-else"];
    authorization_beside_the_key_is_found: case_b, "authorization" => ["headers/authorization-absent",
        "headers/nothing-else"];
    the_key_in_authorization_is_found: case_b, "key-in-authorization" => ["headers/api-key-present",
        "headers/authorization-absent", "headers/nothing-else", "secrets/credential-not-written"];

    another_agent_is_found: case_b, "another-agent" => ["headers/user-agent"];
    another_version_than_in_the_init_record_is_found: case_b, "another-version" => ["headers/user-agent"];
    another_version_in_the_init_record_is_found: case_b, "init-with-another-version" => ["headers/user-agent"];
    a_message_without_an_agent_is_found: case_b, "no-user-agent" => ["headers/user-agent"];
    the_clients_agent_on_the_preflight_is_found: case_a, "preflight-with-client-agent" =>
        ["headers/user-agent"];

    a_missing_beta_family_is_found: case_b, "missing-beta-family" => ["headers/beta-families"];
    a_beta_header_on_the_preflight_is_found: case_a, "preflight-with-beta" => ["headers/beta-families",
        "headers/nothing-else"];

    another_key_on_the_preflight_is_found: case_a, "preflight-with-another-key" =>
        ["headers/preflight-unauthenticated", "headers/nothing-else"];
    a_cookie_on_the_preflight_is_found: case_a, "preflight-with-cookie" =>
        ["headers/preflight-unauthenticated", "headers/nothing-else"];
    the_key_on_the_preflight_is_found: case_a, "preflight-with-key" =>
        ["headers/preflight-unauthenticated", "headers/nothing-else", "secrets/credential-not-written"];

    a_header_that_the_profile_does_not_list_is_found: case_b, "extra-header" => ["headers/nothing-else"];
}
