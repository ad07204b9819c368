//! Reports of several runs: the frames with their parts, in each format.

use std::time::SystemTime;

use model::fleet::{CheckCounts, FirstFinding, Fleet, FleetRun};

use super::*;
use crate::fleet::{first_finding, frame, line, part, separator};

fn run_of(report: &Report) -> FleetRun {
    FleetRun {
        case: report.case.name.clone(),
        file: "cases/a.toml".to_owned(),
        verdict: Some(report.verdict),
        duration_ms: 42,
        checks: CheckCounts::of(report),
        first_finding: first_finding(report),
        not_judged: vec!["programs".to_owned()],
        not_reviewed: 2,
    }
}

/// A passed run, a failed one with hostile text, one without a report, and one that was not made.
fn runs() -> Vec<(FleetRun, Option<Report>)> {
    let with_report = [report(case_b()), hostile()];
    let without = FleetRun {
        case: "lost".to_owned(),
        verdict: Some(Verdict::Errored),
        checks: CheckCounts::default(),
        first_finding: Some(FirstFinding {
            check: None,
            message: "cannot start \u{1b}[2J".to_owned(),
        }),
        ..run_of(&report(case_b()))
    };
    let not_made = FleetRun {
        case: "later".to_owned(),
        verdict: None,
        first_finding: None,
        ..without.clone()
    };
    let with_report = with_report.map(|report| (run_of(&report), Some(report)));
    let without = [without, not_made].map(|run| (run, None));
    with_report.into_iter().chain(without).collect()
}

fn fleet(runs: &[(FleetRun, Option<Report>)]) -> Fleet {
    Fleet {
        runner: report(case_b()).runner,
        started: SystemTime::UNIX_EPOCH,
        duration: Duration::from_millis(168),
        runs: runs.iter().map(|(run, _)| run.clone()).collect(),
        not_cases: vec!["cases/profile.toml".to_owned()],
    }
}

/// The whole report, as a caller joins it.
fn rendered(runs: &[(FleetRun, Option<Report>)], format: Format) -> String {
    let frame = frame(&fleet(runs), format, Colour::Plain).unwrap();
    let parts = runs
        .iter()
        .map(|(run, report)| part(run, report.as_ref(), format).unwrap());
    let parts: Vec<Vec<u8>> = parts.filter(|part| !part.is_empty()).collect();
    let parts = parts.join(separator(format).as_bytes());
    String::from_utf8([frame.head, parts, frame.tail].concat()).unwrap()
}

#[test]
fn json_of_a_fleet_holds_each_report() {
    let runs = runs();
    let text = rendered(&runs, Format::Json);
    let fleet: Value = serde_json::from_str(&text).unwrap();
    let schema = jsonschema::draft202012::new(crate::fleet::schema().as_value()).unwrap();
    assert_eq!(
        schema
            .iter_errors(&fleet)
            .map(|fault| fault.to_string())
            .collect::<Vec<_>>(),
        [""; 0]
    );
    for ((_, report), found) in runs.iter().zip(fleet["runs"].as_array().unwrap()) {
        let single = report.as_ref().map_or(Value::Null, |report| {
            serde_json::from_str(&super::json(report)).unwrap()
        });
        assert_eq!(found["report"], single);
    }
    assert_eq!(
        fleet["counts"],
        json!({"passed": 1, "failed": 1, "errored": 1, "not_run": 1})
    );
    // As in a single report, the layout shows the depth, and no dangerous character is left.
    assert!(text.contains("\n      \"report\": {\n        \"schema\": \"runner.report/1\","));
    assert_eq!(escape::for_terminal(&text), text);
}

#[test]
fn junit_of_a_fleet_counts_its_suites() {
    let text = rendered(&runs(), Format::Junit);
    let xml = roxmltree::Document::parse(&text).unwrap();
    let root = xml.root_element();
    let suites: Vec<_> = root
        .children()
        .filter(|node| node.has_tag_name("testsuite"))
        .collect();
    assert_eq!(suites.len(), 4);
    for name in ["tests", "failures", "errors"] {
        let number = |node: &roxmltree::Node<'_, '_>| {
            node.attribute(name).unwrap().parse::<usize>().unwrap()
        };
        let sum: usize = suites.iter().map(number).sum();
        assert_eq!(number(&root), sum, "{name}");
    }
    assert!(
        text.contains("<error message=\"cannot start \\u{1b}[2J\"/>"),
        "{text}"
    );
    assert!(
        text.contains("<error message=\"not run: the runs were interrupted\"/>"),
        "{text}"
    );
}

#[test]
fn sarif_of_a_fleet_has_a_run_for_each_report() {
    let log: Value = serde_json::from_str(&rendered(&runs(), Format::Sarif)).unwrap();
    assert_eq!(log["runs"].as_array().unwrap().len(), 2);
    assert_eq!(log["version"], "2.1.0");
}

#[test]
fn fleet_for_people() {
    let runs = runs();
    let formats = [Format::Human, Format::Markdown];
    insta::assert_snapshot!(formats.map(|format| rendered(&runs, format)).join("\n\n"));
    let page = rendered(&runs, Format::Html);
    assert!(page.contains("4 cases: 1 errored, 1 not run, 1 failed, 1 passed"));
    assert!(!page.contains('\u{1b}'));
}

#[test]
fn line_of_a_run_has_no_dangerous_text() {
    let (run, _) = runs().remove(2);
    assert_eq!(
        line(&run, (3, 4), run.first_finding.as_ref()),
        "[3/4] ERRORED  lost, 42.0 ms; cannot start \\u{1b}[2J\n"
    );
}

#[test]
fn first_finding_of_a_run_is_its_cause() {
    assert_eq!(first_finding(&report(case_b())), None);
    let mut run = case_b();
    run.evidence.exit = Exit::Code(3);
    run.evidence.stderr.tail = "one\nlast\n".to_owned();
    let found = first_finding(&report(run)).unwrap();
    assert_eq!((found.check, &*found.message), (None, "exit code 3: last"));
}
