//! Standard output and standard error.

use serde_json::Value;

use super::bounded::Ended;
use super::{Abuse, WITHOUT_RECORDS, abuses};
use crate::needs_sandbox;

const EXIT: &[&str] = &["process/exit-zero"];
/// Checks that fail for endless lines that are no records.
const NO_LINES: &[&str] = &["records/json-lines", "process/exit-zero"];
/// Checks that fail for a last line that is no record.
const NO_RECORD: &[&str] = &["records/json-lines", "records/result-success"];

abuses! {
    endless_lines_are_kept_to_a_limit: "endless-lines" => *NO_LINES, &lacking("records/sequence");
    endless_errors_are_not_kept: "endless-errors" => *EXIT, &["secrets/credential-not-written"];
    millions_of_empty_lines_are_too_many: "empty-lines" => *NO_LINES, &lacking("records/sequence");
    millions_of_small_records_are_too_many: "small-records"
        => ["records/sequence", "process/exit-zero"], &lacking("records/json-lines");
    one_line_of_15_mib_is_no_record: "one-long-line" => *NO_RECORD, &[];
    a_record_of_millions_of_numbers_is_not_read: "one-wide-record" => *NO_RECORD, &[];
    a_record_of_millions_of_strings_is_not_read: "one-record-of-strings" => *NO_RECORD, &[];
    a_record_of_10_000_levels_is_not_read: "deep-record" => *NO_RECORD, &[];
    a_line_of_millions_of_open_brackets_is_not_read: "deep-record-without-end" => *NO_RECORD, &[];
    nul_bytes_are_no_record: "nul-bytes" => *NO_RECORD, &[];
    invalid_utf8_is_no_record: "invalid-utf8" => *NO_RECORD, &[];
    a_write_of_one_byte_is_as_good_as_any: "one-byte-writes" => [], &[];
    closed_outputs_are_nothing_to_find: "closed-outputs" => [], &[];
    a_client_that_closes_its_outputs_and_stays_is_ended: "closed-outputs-and-stays" with timeout = "1s"
        => *EXIT, &[];
}

/// Returns the checks that are errored with incomplete standard output, if one check of its lines already failed.
fn lacking(undecided: &'static str) -> Vec<&'static str> {
    let mut lacking = WITHOUT_RECORDS.to_vec();
    lacking.insert(1, undecided);
    lacking
}

/// Every abuse's reports are checked for forged lines; this abuse writes some.
#[test]
fn a_forged_verdict_is_a_line_like_any_other() {
    needs_sandbox!();
    let ended = Abuse::of("forged-verdict").run();
    ended.assert_found(
        &[
            "records/json-lines",
            "records/sequence",
            "records/result-success",
        ],
        &[],
    );
    assert!(ended.said().contains("PASSED  case-b: all checks passed"));
}

#[test]
fn a_little_output_over_the_limit_is_a_gap_whoever_reads_it() {
    needs_sandbox!();
    let ended = Abuse::of("nul-bytes")
        .limit("output_size", "\"2 KiB\"")
        .run();
    let found = [ended.checks("failed"), ended.checks("errored")].concat();
    assert!(found.contains(&"records/json-lines"), "{}", ended.stderr);
    assert!(ended.gaps().contains("over its limit"), "{}", ended.gaps());
}

/// Runs an abuse that writes 48 MiB.
fn large(name: &'static str) -> Ended {
    let abuse = Abuse::of(name).limit("output_size", "\"64 MiB\"");
    abuse.limit("timeout", "\"120s\"").run()
}

/// Asserts that a run took little more memory than one with little output.
#[track_caller]
fn assert_memory_within(ended: &Ended, more_kib: u64) {
    let little = Abuse::of("one-byte-writes").run().peak_kib;
    let peak = ended.peak_kib;
    assert!(peak < little + more_kib, "{peak} KiB, {little} KiB");
}

/// The length is counted to the end, and the credential is found although no byte of the line is kept.
#[test]
fn memory_does_not_grow_with_a_line() {
    needs_sandbox!();
    let ended = large("line-of-48-mib");
    let failed = [NO_RECORD, &["secrets/credential-not-written"]].concat();
    ended.assert_found(&failed, &[]);
    let records = ended.report["evidence"]["records"].as_array().unwrap();
    let last = records.last().unwrap();
    assert!(last["bytes"].as_u64() > Some(48 << 20), "{last}");
    assert_eq!(last["fault"], "longer than 4 MiB");
    assert_memory_within(&ended, 16 * 1024);
}

#[test]
fn memory_does_not_grow_with_standard_error() {
    needs_sandbox!();
    let ended = large("errors-of-48-mib");
    ended.assert_found(&[], &[]);
    assert_memory_within(&ended, 4 * 1024);
}

/// The first 16 MiB of records are kept. The report has one entry for each line.
#[test]
fn records_beyond_their_limit_are_none_and_not_kept() {
    needs_sandbox!();
    let ended = large("records-of-48-mib");
    let failed = [
        "records/json-lines",
        "records/sequence",
        "records/result-success",
    ];
    ended.assert_found(&failed, &[]);
    let records = ended.report["evidence"]["records"].as_array().unwrap();
    let faults = |record: &&Value| record["fault"].is_string();
    let beyond = records.iter().filter(faults).count();
    assert!((32_700..32_900).contains(&beyond), "{beyond}");
    let last = records.last().unwrap();
    assert_eq!(last["fault"], "more than 16 MiB of records together");
    assert_memory_within(&ended, 80 * 1024);
}
