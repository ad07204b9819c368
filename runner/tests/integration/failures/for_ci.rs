//! The reports for CI systems in their files: complete for every verdict, with the same exit codes.

use std::fs;

use crate::kit::Run;
use crate::needs_sandbox;

/// Runs with both reports in files, and returns the XML and the Markdown.
#[track_caller]
fn reports(run: Run, code: i32) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    let [xml, page] = ["junit.xml", "summary.md"].map(|name| directory.path().join(name));
    let output = run
        .argument("--report")
        .argument(format!("junit={}", xml.display()))
        .argument("--report")
        .argument(format!("markdown={}", page.display()))
        .output();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    let read = |file| fs::read_to_string(file).unwrap();
    (read(xml), read(page))
}

/// Tests, failures and errors.
fn counts(xml: &str) -> (usize, usize, usize) {
    roxmltree::Document::parse(xml).unwrap();
    let read = quick_junit::Report::deserialize_from_str(xml).unwrap();
    (read.tests, read.failures, read.errors)
}

#[track_caller]
fn assert_begins(page: &str, line: &str) {
    assert!(page.starts_with(line), "{page}");
}

#[test]
fn a_run_that_passes_has_both_reports() {
    needs_sandbox!();
    let (xml, page) = reports(Run::case_b(), 0);
    assert_eq!(counts(&xml), (40, 0, 0));
    assert_begins(
        &page,
        "## PASSED: ` case-b: 34 checks passed, 6 skipped; not judged: programs `\n",
    );
}

#[test]
fn a_run_that_fails_has_both_reports_with_what_failed() {
    needs_sandbox!();
    let (xml, page) = reports(Run::case_b().deviating("missing-beta-family"), 1);
    assert_eq!(counts(&xml), (40, 1, 0));
    assert_begins(&page, "## FAILED: ` case-b: 1 check failed, ");
    assert!(
        page.contains("\n- failed ` headers/beta-families `, "),
        "{page}"
    );
}

#[test]
fn a_run_that_is_none_has_both_reports_with_why() {
    needs_sandbox!();
    let (xml, page) = reports(Run::case_b().client("/etc/../bin/true"), 3);
    let (tests, failures, errors) = counts(&xml);
    assert!(tests == 40 && failures == 0 && errors > 0, "{xml}");
    assert_begins(&page, "## ERRORED: ` case-b: ");
    assert!(
        page.contains("\n### How it ended: never started\n\n- because: `` cannot execute "),
        "{page}"
    );
}

#[test]
fn an_audit_has_both_reports_and_the_programs_exit_code() {
    needs_sandbox!();
    let program = ["/bin/sh", "-c", "ls /srv/none; exit 7"];
    let run = program
        .into_iter()
        .fold(Run::case("audit"), Run::client_argument);
    let (xml, page) = reports(run, 7);
    assert_eq!(counts(&xml), (4, 0, 0));
    assert_begins(&page, "## AUDITED, no findings\n");
    assert!(page.contains("\n### How it ended: exit code 7\n"), "{page}");
    assert!(
        page.contains("\n### Attempts of the program: none\n"),
        "{page}"
    );
}

#[test]
fn the_markdown_report_goes_to_standard_output_with_the_verdict_first() {
    needs_sandbox!();
    let output = Run::case_b()
        .argument("--report")
        .argument("markdown")
        .output();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_begins(&text, "## PASSED: ` case-b: ");
    assert!(text.contains("\n### Attempts: none\n"), "{text}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("PASSED  case-b"), "{told}");
}
