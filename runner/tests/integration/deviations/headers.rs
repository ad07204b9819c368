//! Heads of the requests.

use super::deviations;
use crate::kit::Run;
use crate::needs_sandbox;

deviations! {
    a_message_without_a_key_is_found_and_refused: case_b, "no-key" => ["headers/api-key-present",
        "records/sequence", "records/result-success", "process/exit-zero"];
    another_key_is_found: case_b, "another-key" => ["headers/api-key-present"];
    a_key_with_a_suffix_is_found: case_b, "key-with-a-suffix" => ["headers/api-key-present",
        "secrets/credential-not-written"];
    two_keys_in_one_line_are_found: case_b, "two-keys-in-one-line" => ["headers/api-key-present",
        "secrets/credential-not-written"];
    the_key_as_bearer_in_its_own_header_is_found: case_b, "key-as-bearer" => ["headers/api-key-present",
        "secrets/credential-not-written"];
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

    a_message_without_a_host_is_found: case_b, "no-host" => ["headers/nothing-else"];
    a_preflight_without_a_host_is_found: case_a, "preflight-without-host" => ["headers/nothing-else"];
    the_same_host_twice_is_found: case_b, "host-twice" => ["headers/nothing-else"];
    another_host_as_well_is_found: case_a, "another-host-as-well" => ["headers/nothing-else"];
    another_host_is_found: case_b, "another-host" => ["headers/nothing-else"];
    a_host_without_its_port_is_found: case_b, "host-without-port" => ["headers/nothing-else"];
    a_host_by_the_name_of_loopback_is_none: case_b, "host-by-name" => [];
    a_content_type_twice_is_found: case_b, "content-type-twice" => ["headers/nothing-else"];
    a_beta_header_twice_is_found: case_b, "beta-twice" => ["headers/nothing-else"];
    a_user_agent_twice_is_found_once: case_b, "user-agent-twice" => ["headers/user-agent"];
    a_list_in_two_lines_is_none: case_b, "accept-twice" => [];

    a_header_that_the_profile_does_not_list_is_found: case_b, "extra-header" => ["headers/nothing-else"];
}

/// SHA-256 of `another`.
const ANOTHER: &str = "ae448ac86c4e8e4dec645729708ef41873ae79c6dff84eff73360989487f08e5";

#[test]
fn another_key_is_reported_by_length_and_digest() {
    needs_sandbox!();
    let shown = format!("7 bytes, sha256 {ANOTHER}");
    let done = Run::case_b().deviating("another-key").json();
    assert_eq!(
        done.check("headers/api-key-present")["found"],
        format!("another value, {shown}")
    );
    let on_preflight = Run::case_a().deviating("preflight-with-another-key").json();
    for done in [done, on_preflight] {
        let headers = done.report["evidence"]["requests"][0]["headers"].as_array();
        let mut headers = headers.unwrap().iter();
        let key = headers.find(|header| header[0] == "x-api-key").unwrap();
        assert_eq!(key[1], format!("<{shown}>"));
    }
}
