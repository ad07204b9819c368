//! SARIF report: results, locations, fingerprints, and client text that must not become a link.

use model::evidence::LayerNeed;

use super::ci::{audit, audit_of, every_report, with_text_everywhere};
use super::*;
use crate::sarif::message::shown;

pub(super) fn sarif(report: &Report) -> String {
    String::from_utf8(super::super::sarif::render(report).unwrap()).unwrap()
}

/// Returns the only run of the log.
fn run(report: &Report) -> Value {
    let mut log: Value = serde_json::from_str(&sarif(report)).unwrap();
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(log["runs"].as_array().map(Vec::len), Some(1));
    log["runs"][0].take()
}

/// Returns rule and level of each result.
fn results(report: &Report) -> Vec<(String, String)> {
    let run = run(report);
    let results = run["results"].as_array().unwrap().iter();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    results
        .map(|result| (word(&result["ruleId"]), word(&result["level"])))
        .collect()
}

#[test]
fn the_sarif_report_of_a_passed_run() {
    insta::assert_snapshot!(sarif(&report(case_b())));
}

#[test]
fn the_sarif_report_of_a_failed_run_with_hostile_text() {
    insta::assert_snapshot!(sarif(&hostile()));
}

#[test]
fn a_run_that_passed_has_no_result_and_a_rule_for_each_check() {
    let run = run(&report(case_b()));
    assert_eq!(run["results"], json!([]));
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    assert_eq!(run["invocations"][0]["exitCode"], 0);
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let ids = rules.iter().map(|rule| rule["id"].as_str().unwrap());
    assert!(ids.eq(model::finding::ids()));
}

#[test]
fn a_check_that_failed_is_an_error_and_one_that_could_not_be_made_a_warning() {
    let report = hostile();
    let level = |status| match status {
        Status::Failed => Some("error"),
        Status::Errored => Some("warning"),
        Status::Passed | Status::Skipped => None,
    };
    let of_each = |one: &Finding| Some((one.id.to_string(), level(one.status)?.to_owned()));
    let expected: Vec<_> = report.checks.iter().filter_map(of_each).collect();
    assert!(expected.iter().any(|(_, level)| level == "warning"));
    assert_eq!(results(&report), expected);
    let run = run(&report);
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    assert_eq!(run["invocations"][0]["exitCode"], 1);
}

#[test]
fn a_drift_lies_in_the_lock_file_and_the_lock_file_asks_for_it() {
    let run = run(&drifted("x-new"));
    let result = &run["results"][0];
    assert_eq!(result["ruleId"], model::finding::BASELINE);
    let location = &result["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(location["uri"], "locks/agent.lock");
    let lines = result["locations"].as_array().unwrap().iter();
    let lines = lines.map(|place| &place["physicalLocation"]["region"]["startLine"]);
    assert_eq!(lines.collect::<Vec<_>>(), [12, 30]);
    let index = usize::try_from(location["index"].as_u64().unwrap()).unwrap();
    assert_eq!(run["artifacts"][index]["location"], *location);
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let full = &rules.last().unwrap()["fullDescription"]["text"];
    assert!(
        full.as_str().unwrap().ends_with("Asked by: the lock file."),
        "{full}"
    );
}

#[test]
fn a_run_that_never_started_has_a_warning_for_each_check_and_is_no_success() {
    let report = broken();
    let expected: Vec<_> = model::finding::ids()
        .map(|id| (id.to_owned(), "warning".to_owned()))
        .collect();
    assert_eq!(results(&report), expected);
    let run = run(&report);
    let first = &run["results"][0]["message"]["text"];
    let told = "Not decided: required layer not enforced: network namespace (no link but lo).\n\
                Asked: The message request is the first request and the only one.";
    assert_eq!(first, told);
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert_eq!(invocation["exitCode"], 3);
    let notifications = &invocation["toolExecutionNotifications"];
    assert_eq!(
        notifications.as_array().map(Vec::len),
        Some(3 + expected.len())
    );
}

#[test]
fn in_an_unsound_run_nothing_is_an_error_of_the_client() {
    let mut unsound = case_b();
    let layer = unsound.evidence.layers.iter_mut();
    let mut layer = layer.filter(|layer| layer.need == LayerNeed::Required);
    layer.next().unwrap().status = LayerStatus::Absent;
    add_header(&mut unsound.evidence.requests[0], "authorization", "x");
    let report = report(unsound);
    assert_eq!(report.verdict, Verdict::Errored);
    let results = results(&report);
    assert!(results.iter().all(|(_, level)| level == "warning"));
    let skipped = |one: &&Finding| one.status == Status::Skipped;
    let made = report.checks.len() - report.checks.iter().filter(skipped).count();
    assert_eq!(results.len(), made);
}

#[test]
fn an_errored_run_never_looks_like_a_clean_one() {
    let mut empty = report(case_b());
    for finding in &mut empty.checks {
        finding.status = Status::Skipped;
    }
    empty.verdict = Verdict::Errored;
    let mut unstarted = case_b();
    unstarted.evidence.exit = Exit::NotStarted;
    for report in [empty, audit_of(unstarted), broken()] {
        assert_eq!(report.verdict, Verdict::Errored);
        assert!(!results(&report).is_empty());
        let run = run(&report);
        assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    }
}

#[test]
fn an_audit_has_the_rules_that_hold_for_any_program_and_a_category_of_its_own() {
    let run = run(&audit());
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let ids = rules.iter().map(|rule| rule["id"].as_str().unwrap());
    assert!(ids.eq(audit().checks.iter().map(|check| &*check.id)));
    assert_eq!(run["automationDetails"]["id"], "runner/audit/curl/");
    let failed = results(&audit());
    let expected = ["secrets/credential-not-written", "outbound/no-attempts"];
    assert_eq!(failed, expected.map(|id| (id.into(), "error".into())));
    assert_eq!(run["properties"]["findings"], 3);
}

#[test]
fn cases_and_clients_are_kept_apart_and_name_no_directory() {
    let category = |report: &Report| run(report)["automationDetails"]["id"].clone();
    let mut other = report(case_b());
    assert_eq!(category(&other), "runner/case-b/reference/built-in/");
    other.client.program = "/tmp/x7/agent cli".to_owned();
    assert_eq!(category(&other), "runner/case-b/reference/agent%20cli/");
    other.case.name = "case-a".to_owned();
    assert_eq!(category(&other), "runner/case-a/reference/agent%20cli/");
}

#[test]
fn a_fingerprint_is_of_check_case_and_profile_alone() {
    let fingerprints = |report: &Report| {
        let run = run(report);
        let results = run["results"].as_array().unwrap().iter();
        let prints: Vec<_> = results
            .map(|result| result["partialFingerprints"].to_string())
            .collect();
        prints
    };
    let one = hostile();
    let mut other = hostile();
    other.client.program = "/tmp/elsewhere/client".to_owned();
    other.case.origin.source = Source::File(PathBuf::from("/tmp/other/case.toml"));
    other.case.origin.sha256 = digest(77);
    other.evidence.wall.0 += Duration::from_secs(1);
    for finding in &mut other.checks {
        finding.found = Some("something else".to_owned());
    }
    assert_eq!(fingerprints(&one), fingerprints(&other));
    let mut distinct = fingerprints(&one);
    other.case.name = "case-a".to_owned();
    distinct.extend(fingerprints(&other));
    let number = distinct.len();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), number);
}

/// Returns every message of the log.
fn messages(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(members) => {
            let own = members.get("text").and_then(Value::as_str);
            own.into_iter()
                .chain(members.values().flat_map(messages))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(messages).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[track_caller]
fn assert_links_nowhere(report: &Report) {
    let run = run(report);
    for message in messages(&run) {
        let shown = shown(message);
        assert!(shown.is_some_and(|shown| shown.ends_with('.')), "{message}");
    }
    assert!(!run.to_string().contains("markdown"));
}

#[test]
fn no_message_links_anywhere_and_each_ends_with_a_full_stop() {
    for report in every_report() {
        assert_links_nowhere(&report);
        assert_harmless(&sarif(&report));
    }
}

#[test]
fn what_was_found_reads_back_as_it_is_shown_to_people() {
    let mut report = report(case_b());
    report.checks[0].status = Status::Failed;
    report.checks[0].found = Some(format!("[a](1) {{0}} {HOSTILE}"));
    let run = run(&report);
    let message = run["results"][0]["message"]["text"].as_str().unwrap();
    let found = escape::visible(report.checks[0].found.as_deref().unwrap());
    assert!(shown(message).unwrap().contains(&found), "{message}");
}

#[test]
fn no_prompt_stands_in_the_report_for_code_scanning() {
    let text = sarif(&report(case_b()));
    assert!(!text.contains("Say something") && !text.contains("You are synthetic"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_harmless_in_the_report_for_code_scanning(
        text in "(\\PC|\\pC|::|##|\\[a\\]\\(1\\)|\\{0\\}|\\\\|\\[|\\]|\\{|\\}|\u{fffe}|\n| ){0,60}"
    ) {
        let mut judged = report(with_text_everywhere(&text));
        let audited = audit_of(with_text_everywhere(&text));
        for finding in &mut judged.checks {
            finding.status = Status::Failed;
            finding.object = Some(text.clone());
            finding.found = Some(text.clone());
        }
        for mut report in [judged, audited] {
            report.client.program.clone_from(&text);
            assert_links_nowhere(&report);
            assert_harmless(&sarif(&report));
        }
    }
}

/// A dismissed alert covers these differences only.
#[test]
fn another_drift_is_another_alert_and_the_same_one_is_not() {
    let fingerprint = |report: &Report| run(report)["results"][0]["partialFingerprints"].clone();
    let mut nothing_compared = drifted("x-new");
    nothing_compared.baseline = None;
    let all = [drifted("x-new"), drifted("x-other"), nothing_compared];
    let [one, other, none] = all.each_ref().map(fingerprint);
    assert!(one != other && other != none && none != one);
    assert_eq!(one, fingerprint(&drifted("x-new")));
}
