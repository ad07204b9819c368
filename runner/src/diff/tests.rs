//! Tests of answers, and of files that are not reports.

use std::fs;
use std::os::unix::fs::symlink;

use judge::fixture::{hostile, report};
use model::evidence::fixture::{Fixture, add_header, case_a, case_b, file, gap, shape};
use model::evidence::{CanaryStatus, Exit, GapKind, LayerNeed, LayerStatus, Root};
use report::json as report_json;
use serde_json::Value;

use super::*;

fn form(report: &model::report::Report) -> Report {
    Report::parse(&report_json::render(report).unwrap()).unwrap()
}

fn answer(old: &model::report::Report, new: &model::report::Report) -> Answer {
    let (old_path, new_path) = (Path::new("old.json"), Path::new("new.json"));
    Answer::of((old_path, form(old)), (new_path, form(new)))
}

fn human(answer: &Answer) -> String {
    String::from_utf8(human::render(answer, Colour::Plain).unwrap()).unwrap()
}

/// Answer as JSON, validated against its schema by another implementation.
fn json(answer: &Answer) -> Value {
    let value: Value = serde_json::from_slice(&json::render(answer).unwrap()).unwrap();
    assert!(
        jsonschema::draft202012::new(schema().as_value())
            .unwrap()
            .is_valid(&value),
        "{value:#}"
    );
    value
}

fn other() -> model::report::Report {
    let mut run = case_a();
    add_header(&mut run.evidence.requests[1], "X-New", "1");
    report(run)
}

#[test]
fn the_human_answer_of_two_cases() {
    insta::assert_snapshot!(human(&answer(&report(case_b()), &other())));
}

#[test]
fn the_json_answer_of_two_cases() {
    insta::assert_json_snapshot!(json(&answer(&report(case_b()), &other())));
}

#[test]
fn the_first_line_is_the_last_and_the_status() {
    let same = answer(&report(case_b()), &report(case_b()));
    let text = human(&same);
    assert_eq!(text.lines().next(), Some("UNCHANGED  no difference"));
    assert_eq!(text.lines().next(), text.lines().last());
    assert_eq!(same.status(), Status::Unchanged);
    assert_eq!(json(&same)["status"], "unchanged");
    let changed = answer(&report(case_b()), &other());
    assert_eq!(changed.status(), Status::Changed);
    assert!(human(&changed).starts_with("CHANGED  8 differences: "));
}

#[test]
fn a_run_with_gaps_or_without_a_sound_verdict_is_never_unchanged() {
    let with = |change: fn(&mut Fixture)| {
        let mut run = case_b();
        change(&mut run);
        report(run)
    };
    let broken = [
        with(|run| run.evidence.gaps.push(gap(GapKind::Attempts))),
        with(|run| run.evidence.gaps.push(gap(GapKind::Cut))),
        with(|run| run.evidence.layers.clear()),
    ];
    for broken in broken {
        for answer in [
            answer(&report(case_b()), &broken),
            answer(&broken, &report(case_b())),
        ] {
            assert_eq!(answer.status(), Status::Incomplete);
            let text = human(&answer);
            assert!(text.contains("  | lost      the "), "{text}");
            assert_eq!(json(&answer)["status"], "incomplete");
        }
    }
}

/// Facts behind the cut may be in both runs.
#[test]
fn of_a_run_that_is_cut_nothing_is_said_to_be_missing() {
    let mut run = case_b();
    run.evidence.files.push(file(Root::Home, "new.txt"));
    let long = serde_json::json!({ "n".repeat(380): vec![serde_json::json!([]); 300_000] });
    shape(&mut run.evidence.requests[0], |shape| *shape = long);
    let cut = report(run);
    let (to, from) = (
        answer(&report(case_b()), &cut),
        answer(&cut, &report(case_b())),
    );
    assert_eq!(
        (to.status(), from.status()),
        (Status::Incomplete, Status::Incomplete)
    );
    let is = |found: &Difference, word| found.change.word() == word;
    assert!(to.differences.iter().any(|found| is(found, "added")));
    assert!(!to.differences.iter().any(|found| is(found, "removed")));
    assert!(from.differences.iter().any(|found| is(found, "removed")));
    assert!(!from.differences.iter().any(|found| is(found, "added")));
}

#[test]
fn gap_in_what_is_not_compared_is_no_matter() {
    for what in [GapKind::Lookups, GapKind::Order] {
        let mut run = case_b();
        run.evidence.gaps.push(gap(what));
        let mut with_gap = report(run);
        // Findings of a run whose checks do not need this evidence, such as an audit.
        with_gap.checks = report(case_b()).checks;
        with_gap.verdict = report(case_b()).verdict;
        let same = answer(&report(case_b()), &with_gap);
        assert_eq!(same.status(), Status::Unchanged);
    }
}

/// A run that is errored because of its lock file. `change` adds another fault.
fn with_errored_baseline(change: fn(&mut Fixture)) -> model::report::Report {
    let mut run = case_b();
    change(&mut run);
    let mut errored = report(run);
    let mut finding = errored.checks[0].clone();
    (finding.id, finding.status) = (
        model::finding::BASELINE.into(),
        model::finding::Status::Errored,
    );
    errored.checks.push(finding);
    errored.verdict = model::finding::Verdict::Errored;
    errored
}

#[test]
fn a_run_that_only_its_lock_file_made_errored_can_be_compared() {
    let errored = with_errored_baseline(|_| ());
    let verdict = judge::check::verdict(&errored.checks, &errored.evidence);
    assert_eq!(verdict, errored.verdict);
    let same = answer(&report(case_b()), &errored);
    assert_eq!(same.status(), Status::Unchanged);
}

/// The other findings are those of a sound run, as in an edited report.
#[test]
fn an_unsound_run_is_incomplete_although_its_lock_file_made_it_errored_as_well() {
    type Change = fn(&mut Fixture);
    let unsound: [(Change, &str); 8] = [
        (
            |run| run.evidence.layers.clear(),
            "no layer of its sandbox was verified",
        ),
        (
            |run| run.evidence.layers[1].status = LayerStatus::Absent,
            "a layer of its sandbox is absent: network namespace",
        ),
        (
            |run| run.evidence.layers[1].status = LayerStatus::Partial,
            "a layer of its sandbox is partial: network namespace",
        ),
        (
            |run| run.evidence.canaries[0].status = CanaryStatus::NotHeld,
            "a probe did not hold: tcp4",
        ),
        (|run| run.evidence.canaries.clear(), "no canary was tried"),
        (
            |run| run.evidence.exit = Exit::NotStarted,
            "its client was never started",
        ),
        (
            |run| run.evidence.exit = Exit::Interrupted,
            "it was interrupted",
        ),
        (
            |run| run.evidence.gaps.push(gap(GapKind::Requests)),
            "its requests are incomplete: the instrument was lost",
        ),
    ];
    for (change, why) in unsound {
        let mut errored = with_errored_baseline(change);
        let sound = with_errored_baseline(|_| ());
        errored.checks.clone_from(&sound.checks);
        for verdict in model::finding::Verdict::ALL {
            errored.verdict = verdict;
            let found = answer(&sound, &errored);
            assert_eq!(found.status(), Status::Incomplete, "{why}");
            assert_eq!(found.incomplete, [format!("the new run: {why}")]);
        }
    }
}

/// A failed check outranks an errored lock file, so an errored verdict means that the run itself is unsound.
#[test]
fn an_errored_verdict_beside_a_failed_check_is_not_the_lock_files_doing() {
    let mut errored = with_errored_baseline(|_| ());
    errored.checks[0].status = model::finding::Status::Failed;
    let found = answer(&report(case_b()), &errored);
    assert_eq!(found.incomplete, ["the new run: its verdict is errored"]);
}

#[test]
fn a_layer_that_the_kernel_need_not_offer_may_be_absent() {
    let mut run = case_b();
    let offered = run.evidence.layers.iter_mut();
    offered
        .filter(|layer| layer.need == LayerNeed::IfOffered)
        .for_each(|layer| layer.status = LayerStatus::Absent);
    let same = answer(&report(case_b()), &report(run));
    assert_eq!(same.status(), Status::Unchanged);
}

#[test]
fn hostile_text_stays_on_its_lines_in_both_forms() {
    let answer = answer(&report(case_b()), &hostile());
    let text = human(&answer);
    assert!(text.contains("evil"));
    let dangerous =
        |c: char| (c.is_control() && c != '\n') || ('\u{200b}'..='\u{202e}').contains(&c);
    assert!(!text.contains(dangerous) && !text.contains("##"));
    assert!(text.lines().all(|line| !line.starts_with("::")));
    let document = String::from_utf8(json::render(&answer).unwrap()).unwrap();
    assert!(!document.contains(dangerous) && !document.contains("##"));
    json(&answer);
}

#[test]
fn another_tier_case_or_profile_is_noted() {
    let mut inherited = other();
    inherited.tier = model::case::Tier::Inherited;
    inherited.client.profile = None;
    let notes = answer(&report(case_b()), &inherited).notes;
    assert_eq!(notes.len(), 4, "{notes:?}");
    assert_eq!(notes[0], "the case differs: case-b before, case-a now");
}

#[test]
fn what_is_no_report_is_told_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let good = String::from_utf8(report_json::render(&report(case_b())).unwrap()).unwrap();
    let said = |text: &str| {
        fs::write(&path, text).unwrap();
        let error = load(&path).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap();
        let deepest = cause
            .source()
            .map_or(String::new(), |cause| cause.to_string());
        format!("{error}: {cause}: {deepest}")
    };
    for (text, expected) in [
        (
            "".to_owned(),
            "EOF while parsing a value at line 1 column 0",
        ),
        (
            "{}".to_owned(),
            "expected the schema runner.report/1, found nothing",
        ),
        (good[..good.len() / 2].to_owned(), "EOF while parsing"),
        (
            good.replace("runner.report/1", "runner.report/2"),
            "found `runner.report/2`",
        ),
        (
            good.replace("\"sightings\"", "\"sighted\""),
            "unexpected value at evidence: missing field `sightings`",
        ),
        (
            good.replace("\"tier\": \"namespace\"", "\"tier\": 1"),
            "unexpected value at tier: ",
        ),
        (
            good.replace("\"tier\": \"namespace\"", "\"tier\": \"none\""),
            "unknown variant `none`, expected `namespace` or `inherited`",
        ),
        (
            good.replace("\"verdict\": \"passed\"", "\"verdict\": \"fine\""),
            "unknown variant `fine`, expected one of `passed`, `failed`, `errored`",
        ),
        (
            good.replace("\"schema\"", "\"schema\": 1, \"x\""),
            "expected the schema runner.report/1, found 1",
        ),
    ] {
        let said = said(&text);
        assert!(said.contains("report.json as a JSON report"), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    fs::write(&path, &good).unwrap();
    load(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(load(&path).unwrap_err().hint().is_some());
}

#[test]
fn bundle_needs_a_report_that_matches_sums() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let said = || {
        let error = load(directory.path()).unwrap_err();
        assert!(
            error
                .hint()
                .unwrap()
                .contains("the report itself to compare it anyway")
        );
        error.to_string()
    };
    let document = report_json::render(&report(case_b())).unwrap();
    fs::write(at("report.json"), &document).unwrap();
    assert!(said().ends_with("is not a directory of `--out`: it has no SHA256SUMS"));
    let line = |content| format!("{}  report.json\n", digest::of_bytes(content));
    fs::write(at("SHA256SUMS"), line(&document)).unwrap();
    load(directory.path()).unwrap();
    for name in ["report.json", "SHA256SUMS"] {
        fs::rename(at(name), at("moved")).unwrap();
        symlink("moved", at(name)).unwrap();
        assert!(said().ends_with(&format!("{name} is a symbolic link, not a regular file")));
        fs::rename(at("moved"), at(name)).unwrap();
        load(directory.path()).unwrap();
    }
    for sums in [String::new(), line(b"another")] {
        fs::write(at("SHA256SUMS"), sums).unwrap();
        assert!(said().ends_with("its report.json does not match SHA256SUMS"));
    }
    fs::write(at("SHA256SUMS"), "{}").unwrap();
    assert!(said().starts_with("cannot parse SHA256SUMS of "));
}
