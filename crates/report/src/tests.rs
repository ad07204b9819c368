//! Snapshots of the reports of one fixed evidence, and tests with hostile text.

use std::path::PathBuf;
use std::time::Duration;

use model::case::Source;
use model::difference::{Area, Change, Difference, Fact};
use model::escape::{self, visible};
use model::evidence::fixture::{
    Fixture, add_header, case_b, connect, digest, file, gap, head_request, insert_record, question,
};
use model::evidence::{
    Advice, Attempt, AttemptKind, Evidence, Exit, FileKind, GapKind, LayerStatus, Lookup,
    LookupKind, Outcome, Record, RequestClass, Root, Sensitive, SensitivePath, Sighting, Survivor,
};
use model::finding::{Finding, Status, Verdict};
use model::journal::Head;
use model::report::*;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::human::Colour;
use super::*;

pub(crate) use judge::fixture::*;

mod audits;
pub(crate) mod ci;
mod crowd;
mod document;
mod drift;
mod fleet;
mod page;
mod sarif;

fn human(report: &Report) -> String {
    String::from_utf8(human::render(report, Colour::Plain).expect("a report")).expect("UTF-8")
}

fn json(report: &Report) -> String {
    String::from_utf8(json::render(report).expect("a report")).expect("UTF-8")
}

#[test]
fn the_json_report_of_a_passed_run() {
    insta::assert_snapshot!(json(&report(case_b())));
}

#[test]
fn the_json_report_of_a_failed_run_with_hostile_text() {
    insta::assert_snapshot!(json(&hostile()));
}

#[test]
fn the_verdict_is_the_first_and_the_last_line() {
    for report in [report(case_b()), hostile()] {
        let text = human(&report);
        let word = report.verdict.word().to_ascii_uppercase();
        assert!(
            text.lines()
                .next()
                .is_some_and(|line| line.starts_with(&word)),
            "{text}"
        );
        assert_eq!(text.lines().next(), text.lines().last());
    }
}

#[test]
fn no_line_of_the_human_report_is_wider_than_the_terminal() {
    for report in [report(case_b()), hostile()] {
        for line in human(&report).lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

#[test]
fn colours_are_the_only_escape_sequences() {
    let coloured = human::render(&hostile(), Colour::Ansi).expect("a report");
    let coloured = String::from_utf8(coloured).expect("UTF-8");
    let mut plain = String::new();
    let mut pieces = coloured.split("\x1b[");
    plain.push_str(pieces.next().expect("text"));
    for piece in pieces {
        let (code, text) = piece.split_once('m').expect("a colour");
        assert!(
            code.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b';'),
            "{code}"
        );
        plain.push_str(text);
    }
    assert_eq!(plain, human(&hostile()));
}

#[test]
fn the_json_report_reads_back_what_the_client_wrote() {
    let value: Value = serde_json::from_str(&json(&hostile())).expect("JSON");
    assert_eq!(value["evidence"]["survivors"][0]["program"], HOSTILE);
    assert_eq!(value["evidence"]["requests"][0]["headers"][6][1], HOSTILE);
}

/// Asserts that a text has no dangerous character, and no line that a CI system takes for a command.
fn assert_harmless(text: &str) {
    for line in text.lines() {
        let start = line.trim_start();
        assert!(
            !start.starts_with("::") && !start.starts_with("##"),
            "{line}"
        );
        assert!(!line.contains("##"), "{line}");
        let mut before = None;
        for c in line.chars() {
            assert!(!escape::is_dangerous(before, c), "{c:?} in {line}");
            before = Some(c);
        }
    }
}

#[test]
fn hostile_text_is_harmless_in_both_reports() {
    assert_harmless(&human(&hostile()));
    assert_harmless(&json(&hostile()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_harmless_in_both_reports(text in "(\\PC|\\pC|::|##|\n| ){0,60}") {
        let mut run = case_b();
        run.evidence.survivors.push(Survivor { pid: 7, program: text.clone() });
        run.evidence.attempts.push(Attempt { program: text.clone(), ..connect("unix", &text, None) });
        run.evidence.names.push(question(&text));
        run.evidence.processes.push(started(&[&text, &text]));
        run.evidence.stderr.bytes = 1;
        run.evidence.stderr.tail = text.clone();
        insert_record(&mut run.evidence, 2, json!({"type": text.clone(), "subtype": text.clone()}));
        let report = report(run);
        assert_harmless(&human(&report));
        assert_harmless(&json(&report));
        let value: Value = serde_json::from_str(&json(&report)).expect("JSON");
        prop_assert_eq!(value["evidence"]["survivors"][0]["program"].as_str(), Some(text.as_str()));
    }
}

#[test]
fn no_prompt_stands_in_either_report() {
    let mut run = case_b();
    let shell = started(&["sh", "-c", "agent-cli --prompt='Say something.'"]);
    run.evidence.processes.push(shell);
    let report = report(run);
    for text in [human(&report), json(&report)] {
        assert!(
            !text.contains("Say something") && !text.contains("You are synthetic"),
            "{text}"
        );
    }
    let value: Value = serde_json::from_str(&json(&report)).expect("JSON");
    let args = &value["evidence"]["processes"][0]["args"];
    assert_eq!(args[1], "--print");
    assert_eq!(args[6]["bytes"], "Say something.".len());
    assert_eq!(
        args[6]["sha256"],
        model::digest::of_bytes(b"Say something.")
    );
}
