//! Places where the credential must not appear.

use super::deviations;
use crate::kit::Run;
use crate::needs_sandbox;

deviations! {
    the_key_in_a_record_is_found: case_b, "key-in-record" => ["secrets/credential-not-written"];
    the_key_on_standard_error_is_found: case_b, "key-on-stderr" => ["secrets/credential-not-written"];
    the_key_in_base64_on_standard_error_is_found: case_b, "key-in-base64-on-stderr" =>
        ["secrets/credential-not-written"];
    the_key_in_base64_in_a_file_is_found: case_b, "key-in-state-as-base64" =>
        ["secrets/credential-not-written"];
    key_as_utf_16_in_a_file_is_found: case_b, "key-in-state-as-utf-16" => ["secrets/credential-not-written"];
    key_as_wrapped_base64_in_a_file_is_found: case_b, "key-in-state-as-wrapped-base64" =>
        ["secrets/credential-not-written"];
    key_as_spaced_hex_in_a_file_is_found: case_b, "key-in-state-as-spaced-hex" =>
        ["secrets/credential-not-written"];
    key_backwards_in_a_file_is_found: case_a, "key-in-state-backwards" => ["secrets/credential-not-written"];
    key_as_wrapped_base64_on_stderr_is_found: case_b, "key-in-wrapped-base64-on-stderr" =>
        ["secrets/credential-not-written"];
    key_as_separated_hex_in_the_body_is_found: case_b, "key-in-body-as-colon-separated-hex" =>
        ["secrets/credential-not-written"];
    key_in_another_auth_header_is_found: case_b, "key-in-x-goog-api-key" => ["headers/api-key-present",
        "headers/nothing-else", "records/sequence", "records/result-success", "secrets/credential-not-written",
        "process/exit-zero"];
    the_key_in_a_file_name_is_found: case_b, "key-in-file-name" => ["files/nothing-else",
        "secrets/credential-not-written"];
    the_key_in_the_target_of_a_link_is_found: case_b, "key-in-link-target" => ["files/nothing-else",
        "secrets/credential-not-written"];
    the_key_percent_encoded_in_a_header_is_found: case_b, "key-in-header-percent-encoded" =>
        ["secrets/credential-not-written"];
    the_key_in_hexadecimal_in_the_body_is_found: case_b, "key-in-body-as-hex" =>
        ["secrets/credential-not-written"];
    the_key_in_the_query_is_found: case_b, "key-in-query" => ["requests/query",
        "secrets/credential-not-written"];
}

#[test]
fn no_report_shows_the_key_itself() {
    needs_sandbox!();
    for deviation in [
        "key-in-record",
        "key-on-stderr",
        "key-in-file-name",
        "key-in-query",
    ] {
        let done = Run::case_b().deviating(deviation).json();
        done.assert_verdict(1, "failed");
        for report in [&done.report.to_string(), &done.stderr] {
            assert!(!report.contains("runner-key-"), "{deviation}: {report}");
        }
    }
}

#[test]
fn key_in_the_header_that_the_profile_names_passes() {
    needs_sandbox!();
    let named = "    \"x-own-key\",\n]\ncredential = \"x-own-key\"\npreflight";
    let run = Run::case_b().changed_profile("reference", "]\npreflight", named);
    run.deviating("key-in-x-own-key").json().assert_passed();
}

#[test]
fn wrapped_key_is_masked_in_the_report() {
    needs_sandbox!();
    let done = Run::case_b()
        .deviating("key-in-wrapped-base64-on-stderr")
        .json();
    let tail = done.report["evidence"]["stderr"]["tail"].as_str().unwrap();
    let (masked, rest) = tail.split_once("<credential>").unwrap();
    assert!(masked.is_empty() && rest.len() < 8, "{tail}");
}

#[test]
fn what_stands_for_the_key_is_shown_where_the_key_stood() {
    needs_sandbox!();
    let on_stderr = Run::case_b().deviating("key-on-stderr").json();
    assert_eq!(
        on_stderr.report["evidence"]["stderr"]["tail"],
        "using <credential>\n"
    );
    let in_name = Run::case_b().deviating("key-in-file-name").json();
    assert_eq!(
        in_name.report["evidence"]["files"][4]["path"],
        "<credential>"
    );
}
