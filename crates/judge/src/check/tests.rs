//! Deviations, each as one change to a perfect run, with the whole set of checks that it affects.

use std::collections::BTreeSet;

use model::evidence::fixture::{Fixture, case_a, case_b, gap};
use model::evidence::{Before, CanaryStatus, LayerStatus};
use model::finding::ids;

use super::*;

mod body;
mod expectations;
mod files;
mod headers;
mod lost;
mod outbound;
mod record_rules;
mod records;
mod requests;
mod run;

/// Ids with this status after a change to a perfect run.
fn with_status(status: Status, fixture: &Fixture) -> Vec<std::borrow::Cow<'static, str>> {
    let findings = check(&fixture.expect(), &fixture.evidence);
    findings
        .into_iter()
        .filter(|finding| finding.status == status)
        .map(|finding| finding.id)
        .collect()
}

fn finding(id: &str, fixture: &Fixture) -> Finding {
    let findings = check(&fixture.expect(), &fixture.evidence);
    findings
        .into_iter()
        .find(|finding| finding.id == id)
        .expect("a check with this id")
}

fn verdict_of(fixture: &Fixture) -> Verdict {
    let findings = check(&fixture.expect(), &fixture.evidence);
    verdict(&findings, &fixture.evidence)
}

/// Defines a test for each deviation, and the list of all ids in them.
///
/// `name: fixture, |run| change => [ids that fail];` and `… => errored [ids that are errored];`
macro_rules! deviations {
    ($($name:ident: $fixture:ident, $change:expr => $([$($failed:literal),*])? $(errored [$($errored:literal),*])?;)*) => {
        pub(super) const NAMED: &[&str] = &[$($($($failed,)*)? $($($errored,)*)?)*];
        $(
            #[test]
            fn $name() {
                let mut fixture = model::evidence::fixture::$fixture();
                let change: fn(&mut model::evidence::fixture::Fixture) = $change;
                change(&mut fixture);
                let failed: &[&str] = &[$($($failed),*)?];
                let errored: &[&str] = &[$($($errored),*)?];
                assert_eq!(super::with_status(model::finding::Status::Failed, &fixture), failed, "failed");
                assert_eq!(super::with_status(model::finding::Status::Errored, &fixture), errored, "errored");
            }
        )*
    };
}
use deviations;

#[test]
fn a_perfect_case_b_passes_all_but_what_it_does_not_ask() {
    let fixture = case_b();
    assert_eq!(
        with_status(Status::Skipped, &fixture),
        [
            "requests/sequence",
            "headers/preflight-unauthenticated",
            "headers/rules",
            "records/rules",
            "files/rules",
            "process/programs"
        ]
    );
    assert_eq!(
        with_status(Status::Passed, &fixture).len(),
        CHECKS.len() - 6
    );
    assert_eq!(verdict_of(&fixture), Verdict::Passed);
}

#[test]
fn a_perfect_case_a_passes_all_but_what_it_does_not_ask() {
    let fixture = case_a();
    assert_eq!(
        with_status(Status::Skipped, &fixture),
        [
            "requests/first-and-only",
            "headers/rules",
            "body/cache-control",
            "records/rules",
            "files/rules",
            "process/programs"
        ]
    );
    assert_eq!(
        with_status(Status::Passed, &fixture).len(),
        CHECKS.len() - 6
    );
    assert_eq!(verdict_of(&fixture), Verdict::Passed);
}

#[test]
fn checks_are_those_of_the_model_in_its_order() {
    assert!(CHECKS.iter().map(|check| check.id).eq(ids()));
    let for_any = CHECKS
        .iter()
        .filter(|check| matches!(check.rule, Rule::Any(_)));
    let for_any: Vec<&str> = for_any.map(|check| check.id).collect();
    assert_eq!(
        for_any,
        [
            "secrets/credential-not-written",
            "outbound/denied",
            "outbound/no-attempts",
            "process/no-survivors",
        ]
    );
}

#[test]
fn every_check_has_a_deviation_that_names_it() {
    let named = [
        body::NAMED,
        expectations::NAMED,
        files::NAMED,
        headers::NAMED,
        outbound::NAMED,
        record_rules::NAMED,
        records::NAMED,
        requests::NAMED,
        run::NAMED,
    ];
    let named: BTreeSet<_> = named.into_iter().flatten().copied().collect();
    assert_eq!(named, ids().collect());
}

#[test]
fn every_failed_finding_says_what_was_expected_and_what_was_found() {
    let mut fixture = case_b();
    let expect = fixture.expect();
    let evidence = &mut fixture.evidence;
    evidence.requests.clear();
    evidence.records.truncate(1);
    evidence.files.clear();
    evidence.exit = Exit::Code(1);
    let findings = check(&expect, evidence);
    for finding in findings
        .iter()
        .filter(|finding| finding.status == Status::Failed)
    {
        assert!(
            finding.expected.is_some() && finding.found.is_some(),
            "{finding:?}"
        );
    }
}

#[test]
fn a_client_that_was_never_started_passes_nothing_of_its_own() {
    let mut fixture = case_b();
    fixture.evidence.exit = Exit::NotStarted;
    assert_eq!(with_status(Status::Passed, &fixture), ["outbound/denied"]);
    assert_eq!(with_status(Status::Failed, &fixture), [""; 0]);
    assert_eq!(
        with_status(Status::Errored, &fixture),
        ["process/exit-zero"]
    );
    assert_eq!(verdict_of(&fixture), Verdict::Errored);
}

#[test]
fn an_interrupted_run_is_errored_whatever_it_lacks() {
    let mut fixture = case_b();
    fixture.evidence.exit = Exit::Interrupted;
    fixture.evidence.requests.clear();
    fixture.evidence.records.truncate(4);
    assert_eq!(with_status(Status::Failed, &fixture), [""; 0]);
    assert_eq!(with_status(Status::Passed, &fixture), ["outbound/denied"]);
    assert_eq!(verdict_of(&fixture), Verdict::Errored);
}

#[test]
fn a_gap_never_lets_a_check_pass_that_needs_what_is_missing() {
    for kind in [
        GapKind::Order,
        GapKind::Requests,
        GapKind::Records,
        GapKind::Stderr,
        GapKind::Files,
        GapKind::Processes,
        GapKind::Isolation,
        GapKind::Attempts,
        GapKind::Secrets,
    ] {
        let mut fixture = case_b();
        fixture.evidence.gaps.push(gap(kind));
        let needing = CHECKS
            .iter()
            .filter(|check| check.needs.contains(&kind))
            .map(|check| check.id);
        let not_asked = [
            "requests/sequence",
            "headers/rules",
            "records/rules",
            "files/rules",
            "process/programs",
        ];
        let asked = needing.filter(|id| !not_asked.contains(id));
        assert_eq!(
            with_status(Status::Errored, &fixture),
            asked.collect::<Vec<_>>(),
            "{kind:?}"
        );
        assert_eq!(verdict_of(&fixture), Verdict::Errored, "{kind:?}");
    }
}

#[test]
fn a_gap_does_not_hide_the_deviation_that_is_there_already() {
    let mut fixture = case_b();
    fixture.evidence.gaps.push(gap(GapKind::Files));
    fixture
        .evidence
        .files
        .retain(|entry| !entry.path.ends_with(".agent.json"));
    let finding = finding("files/state-file", &fixture);
    assert_eq!(finding.status, Status::Errored);
    assert_eq!(finding.found.as_deref(), Some("nothing"));
    assert_eq!(finding.because.as_deref(), Some("the instrument was lost"));
}

#[test]
fn a_failed_check_is_a_failed_run_and_outranks_an_errored_one() {
    let mut fixture = case_b();
    fixture.evidence.exit = Exit::Code(1);
    assert_eq!(verdict_of(&fixture), Verdict::Failed);
    fixture.evidence.gaps.push(gap(GapKind::Files));
    assert_eq!(verdict_of(&fixture), Verdict::Failed);
}

#[test]
fn a_lost_stub_or_supervisor_is_errored_unless_a_check_failed() {
    for kind in [GapKind::Requests, GapKind::Isolation] {
        let mut fixture = case_b();
        fixture.evidence.gaps.push(gap(kind));
        assert_eq!(verdict_of(&fixture), Verdict::Errored, "{kind:?}");
        fixture.evidence.exit = Exit::Code(1);
        assert_eq!(verdict_of(&fixture), Verdict::Failed, "{kind:?}");
    }
}

#[test]
fn a_lost_layer_or_canary_is_errored_although_a_check_failed() {
    let lose: [fn(&mut Evidence); 4] = [
        |evidence| evidence.layers[0].status = LayerStatus::Absent,
        |evidence| evidence.layers[0].status = LayerStatus::Partial,
        |evidence| evidence.layers.clear(),
        |evidence| evidence.canaries[7].status = CanaryStatus::NotHeld,
    ];
    for change in lose {
        let mut fixture = case_b();
        fixture.evidence.exit = Exit::Code(1);
        change(&mut fixture.evidence);
        assert_eq!(verdict_of(&fixture), Verdict::Errored);
    }
}

#[test]
fn a_layer_that_the_tier_does_not_require_may_be_absent() {
    let mut fixture = case_b();
    fixture.evidence.layers[3].status = LayerStatus::Absent;
    assert_eq!(verdict_of(&fixture), Verdict::Passed);
}

#[test]
fn a_run_in_which_nothing_passed_is_not_passed() {
    let fixture = case_b();
    assert_eq!(verdict(&[], &fixture.evidence), Verdict::Errored);
}

#[test]
fn order_is_proved_at_the_connect_and_only_seen_at_the_first_byte() {
    let mut fixture = case_b();
    assert!(
        finding("records/init-before-post", &fixture)
            .message
            .starts_with("Proved")
    );
    fixture.evidence.records[1].before = Before::Post;
    assert!(
        finding("records/init-before-post", &fixture)
            .message
            .starts_with("Seen")
    );
}
