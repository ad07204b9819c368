//! JUnit XML report for CI systems: a test suite for the run, a test case for each check.
//!
//! Passed, failed, errored and skipped checks keep their kind. Text of the client is escaped for people, then for XML,
//! so that neither the document nor the viewer's log can be forged.

use std::time::Duration;

use model::finding::{Finding, Status};
use model::fleet::{CheckCounts, Fleet, FleetRun};
use model::report::Report;
use model::{escape, time};
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite, XmlString};

use super::frame::Frame;
use super::headline::headline;
use super::{RenderError, phrases};

/// End of the document.
const END: &str = "</testsuites>";
/// Indentation of a suite.
const INDENT: &str = "    ";

/// Renders the report as UTF-8 XML.
pub fn render(report: &Report) -> Result<Vec<u8>, RenderError> {
    let mut document = quick_junit::Report::new("runner");
    let duration = report.evidence.duration;
    document.set_time(duration).add_test_suite(suite(report));
    Ok(document.to_string()?.into_bytes())
}

/// Renders the suite of one run of several. A run without a report has one test case for the run itself.
pub(super) fn part(run: &FleetRun, report: Option<&Report>) -> Result<Vec<u8>, RenderError> {
    let mut document = quick_junit::Report::new("runner");
    document.add_test_suite(report.map_or_else(|| suite_without_report(run), suite));
    let text = document.to_string()?;
    // The text of a test case is escaped, so only the tags of the document match.
    let place = || RenderError::NoPlace;
    let (_, suite) = text.split_once("<testsuite ").ok_or_else(place)?;
    let (suite, _) = suite.rsplit_once(END).ok_or_else(place)?;
    Ok(format!("{INDENT}<testsuite {}", suite.trim_end()).into_bytes())
}

/// Renders the document without its suites.
pub(super) fn frame(fleet: &Fleet) -> Result<Frame, RenderError> {
    let mut document = quick_junit::Report::new("runner");
    document.set_time(fleet.duration);
    for run in &fleet.runs {
        let CheckCounts {
            passed,
            failed,
            errored,
            skipped,
        } = run.checks;
        let made = passed + failed + errored + skipped;
        document.tests += made.max(1);
        document.failures += failed;
        document.errors += if made == 0 { 1 } else { errored };
    }
    Frame::split(
        document.to_string()?.as_bytes(),
        END,
        ["", "\n</testsuites>"],
    )
    .ok_or(RenderError::NoPlace)
}

fn suite_without_report(run: &FleetRun) -> TestSuite {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    let message = run
        .first_finding
        .as_ref()
        .map(|found| found.message.as_str());
    status.set_message(text(
        message.unwrap_or("not run: the runs were interrupted"),
    ));
    let mut case = TestCase::new("run", status);
    case.set_classname("run");
    case.set_time(Duration::ZERO);
    let mut suite = TestSuite::new(text(&run.case));
    suite.set_time(Duration::from_millis(run.duration_ms));
    suite.add_test_case(case);
    suite
}

fn suite(report: &Report) -> TestSuite {
    let duration = report.evidence.duration;
    let mut suite = TestSuite::new(text(&report.case.name));
    suite.set_time(duration);
    let cases: Vec<_> = report.checks.iter().map(test_case).collect();
    for (name, value) in properties(report) {
        suite.add_property((name, escape::visible(&value).as_str()));
    }
    for (name, value) in attributes(report) {
        suite.extra.insert(text(name), text(&value));
    }
    suite.add_test_cases(cases);
    suite.set_system_out(text(&headline(report).line()));
    if let Some(cause) = cause(report) {
        suite.set_system_err(XmlString::new(cause));
    }
    suite
}

/// End of the program with its last lines on standard error, if the end explains other findings.
fn cause(report: &Report) -> Option<String> {
    let end = phrases::exit(&report.evidence);
    let mut lines = vec![format!("How it ended: {end}")];
    lines.extend(phrases::reason_of_no_start(report).map(escape::visible));
    let last = phrases::last_lines(&report.evidence);
    lines.extend(last.into_iter().map(escape::visible));
    phrases::is_cause(report).then(|| lines.join("\n  "))
}

/// Attributes that viewers read and `quick_junit` does not write.
///
/// The crate has `disabled` for the number of skipped checks, and its timestamps need another calendar crate.
fn attributes(report: &Report) -> [(&'static str, String); 2] {
    let skipped = report
        .checks
        .iter()
        .filter(|finding| finding.status == Status::Skipped);
    [
        ("skipped", skipped.count().to_string()),
        ("timestamp", time::rfc3339(report.evidence.wall.0)),
    ]
}

fn properties(report: &Report) -> impl Iterator<Item = (&'static str, String)> {
    let (client, runner) = (&report.client, &report.runner);
    let sha256 = client.content.sha256();
    let sha256 = sha256.map(|sha256| ("client.sha256", sha256.to_owned()));
    let findings = report.findings();
    let findings = findings.map(|found| ("findings", found.count.to_string()));
    let all = [
        ("verdict", report.verdict.word().to_owned()),
        ("tier", report.tier.word().to_owned()),
        ("case", report.case.name.clone()),
        ("case.sha256", report.case.origin.sha256.clone()),
        ("client", client.program.clone()),
        ("client.from", client.content.from().word().to_owned()),
        ("runner.version", runner.version.clone()),
        ("runner.commit", runner.commit.clone()),
        ("runner.build_id", runner.build_id.clone()),
    ];
    all.into_iter().chain(sha256).chain(findings)
}

fn test_case(finding: &Finding) -> TestCase {
    let (area, _) = finding.id.split_once('/').unwrap_or((&finding.id, ""));
    let mut case = TestCase::new(&*finding.id, status(finding));
    case.set_classname(area);
    // All checks are made together after the run, but viewers expect a time.
    case.set_time(Duration::ZERO);
    case
}

fn status(finding: &Finding) -> TestCaseStatus {
    let kind = match finding.status {
        Status::Passed => return TestCaseStatus::success(),
        Status::Skipped => {
            let mut skipped = TestCaseStatus::skipped();
            skipped.set_message(text(finding.because.as_deref().unwrap_or_default()));
            if phrases::is_leftover(finding) {
                skipped.set_description(description(finding));
            }
            return skipped;
        }
        Status::Failed => NonSuccessKind::Failure,
        Status::Errored => NonSuccessKind::Error,
    };
    let mut status = TestCaseStatus::non_success(kind);
    status
        .set_message(text(&finding.message))
        .set_type(phrases::asked_by(&finding.asked_by))
        .set_description(description(finding));
    status
}

/// Expected and found values, a line each; for drift, a line for each of the first differences.
fn description(finding: &Finding) -> XmlString {
    let visible = |part: &Option<String>| part.as_deref().map(escape::visible);
    let found = phrases::found(finding).into_iter().map(escape::visible);
    let found: Vec<_> = found.collect();
    let parts = [
        ("object", visible(&finding.object)),
        ("expected", visible(&finding.expected)),
        ("found", (!found.is_empty()).then(|| found.join("\n  "))),
        ("because", visible(&finding.because)),
    ];
    let lines = parts
        .into_iter()
        .filter_map(|(label, part)| Some(format!("{label}: {}", part?)));
    let accept = finding.accept.iter().flat_map(|text| text.lines());
    let label = finding.accept.as_ref().map(|_| "to accept:".to_owned());
    let lines = lines.chain(label).chain(accept.map(escape::visible));
    XmlString::new(lines.collect::<Vec<_>>().join("\n"))
}

fn text(text: &str) -> XmlString {
    XmlString::new(escape::visible(text))
}
