//! Independence of the claims: evidence that changes one claim does not change another.

use model::evidence::fixture::{Fixture, case_a, case_b, connect, gap};
use model::evidence::{Attempt, CanaryMode, CanaryStatus, Exit, GapKind, Outcome, RequestClass};
use model::profile::{Destination, ExpectedAttempt, SideRequest};

use super::*;
use crate::tests::report;

const SERVED: &str = "No other request was served";
const SEEN: &str = "No other attempt was seen";
const IMPOSSIBLE: &str = "Other attempts were impossible";
const ORDER: &str = "The init and status records";

/// Returns the strength of three claims after a change to a perfect run: served, seen, impossible.
fn standings(change: fn(&mut Fixture)) -> [Strength; 3] {
    let mut run = case_b();
    change(&mut run);
    let claims = claims(&report(run));
    [SERVED, SEEN, IMPOSSIBLE].map(|text| claim(&claims, text).strength)
}

fn claim<'a>(claims: &'a [Claim], text: &str) -> &'a Claim {
    claims
        .iter()
        .find(|claim| claim.text.starts_with(text))
        .expect("the claim")
}

use Strength::{NotProved, Proved, Refuted, Seen};

#[test]
fn a_perfect_run_proves_two_claims_and_sees_the_third() {
    assert_eq!(standings(|_| ()), [Proved, Seen, Proved]);
}

#[test]
fn an_attempt_refutes_only_that_none_was_seen() {
    let change = |run: &mut Fixture| {
        let attempt = connect("inet", "192.0.2.1", Some(443));
        run.evidence.attempts.push(attempt);
    };
    assert_eq!(standings(change), [Proved, Refuted, Proved]);
}

#[test]
fn an_incomplete_ledger_leaves_only_open_whether_one_was_seen() {
    let change = |run: &mut Fixture| run.evidence.gaps.push(gap(GapKind::Attempts));
    assert_eq!(standings(change), [Proved, NotProved, Proved]);
}

/// Requests and attempts that the profile names do not refute a claim.
#[test]
fn attempts_not_listed_leave_open_whether_one_was_seen() {
    let change = |run: &mut Fixture| {
        run.profile.attempts.push(ExpectedAttempt {
            destination: Destination::Unix("/run/own".to_owned()),
            reason: "known".to_owned(),
        });
        run.evidence.unlisted.denied = 1;
    };
    assert_eq!(standings(change), [Proved, NotProved, Proved]);
}

#[test]
fn an_unseen_class_is_said_with_the_claim() {
    for (demanded, strength) in [(false, Seen), (true, NotProved)] {
        let mut run = case_b();
        run.evidence.canaries[0].unseen = true;
        run.case.expect.complete_ledger = demanded;
        let claims = claims(&report(run));
        let claim = claim(&claims, SEEN);
        assert_eq!(claim.strength, strength);
        assert!(!claim.text.contains("is complete"), "{}", claim.text);
        assert!(
            claim.text.ends_with("refuses them first: tcp4."),
            "{}",
            claim.text
        );
    }
}

#[test]
fn an_attempt_in_an_incomplete_ledger_is_one() {
    let change = |run: &mut Fixture| {
        let attempt = connect("inet", "192.0.2.1", Some(443));
        run.evidence.attempts.push(attempt);
        run.evidence.gaps.push(gap(GapKind::Attempts));
    };
    assert_eq!(standings(change), [Proved, Refuted, Proved]);
}

#[test]
fn a_canary_leaves_only_open_whether_others_were_possible() {
    let change = |run: &mut Fixture| {
        let canary = &mut run.evidence.canaries[0];
        assert_eq!(canary.mode, CanaryMode::Continued);
        canary.status = CanaryStatus::NotApplicable;
    };
    assert_eq!(standings(change), [Proved, Seen, NotProved]);
}

#[test]
fn what_the_supervisor_let_out_leaves_open_whether_others_were_possible() {
    let change = |run: &mut Fixture| {
        run.evidence.attempts.push(Attempt {
            outcome: Outcome::Allowed,
            ..connect("inet", "192.0.2.1", Some(443))
        });
    };
    assert_eq!(standings(change), [Proved, Refuted, NotProved]);
}

#[test]
fn a_client_that_was_never_started_proves_nothing_of_its_own() {
    let change = |run: &mut Fixture| run.evidence.exit = Exit::NotStarted;
    assert_eq!(standings(change), [NotProved, NotProved, Proved]);
}

#[test]
fn what_the_profile_names_is_said_with_the_claim() {
    let mut run = case_b();
    run.profile.attempts.push(ExpectedAttempt {
        destination: Destination::Unix("/run/x".to_owned()),
        reason: "known".to_owned(),
    });
    let attempt = connect("unix", "/run/x", None);
    run.evidence.attempts.push(attempt);
    let claims = claims(&report(run));
    let claim = claim(&claims, SEEN);
    assert_eq!(claim.strength, Seen);
    assert!(
        claim.text.ends_with("1 kind that the profile names."),
        "{}",
        claim.text
    );
}

#[test]
fn a_request_that_the_profile_expects_is_said_with_the_claim() {
    let mut run = case_a();
    let mut side = run.evidence.requests[1].clone();
    side.class = RequestClass::Side;
    side.side = Some("models".to_owned());
    run.evidence.requests.push(side);
    run.profile.side_requests.push(SideRequest {
        name: "models".to_owned(),
        method: "GET".to_owned(),
        path: "/v1/models".to_owned(),
        with: Vec::new(),
        without: Vec::new(),
        expected: true,
        reason: "known".to_owned(),
    });
    let claims = claims(&report(run));
    let claim = claim(&claims, SERVED);
    assert_eq!(claim.strength, Proved);
    let text =
        "No other request was served but 1 that the profile names: 3 requests on 2 connections.";
    assert_eq!(claim.text, text);
}

#[test]
fn the_order_is_proved_at_the_connection_and_seen_at_the_first_byte() {
    for (before, strength, end) in [
        (
            Before::Connect,
            Proved,
            "before the connection of the POST was made.",
        ),
        (
            Before::Post,
            Seen,
            "within 50 ms of the first byte of the POST.",
        ),
    ] {
        let mut run = case_b();
        run.evidence.records[0].before = before;
        let claims = claims(&report(run));
        let claim = claim(&claims, ORDER);
        assert_eq!(claim.strength, strength);
        assert!(claim.text.ends_with(end), "{}", claim.text);
    }
}

#[test]
fn the_sentences_that_are_not_proved_hold_the_open_claims_and_no_others() {
    let mut run = case_b();
    assert_eq!(not_proved(&report(case_b())).len(), NEVER_PROVED.len());
    run.evidence.gaps.push(gap(GapKind::Attempts));
    let sentences = not_proved(&report(run));
    assert_eq!(sentences.len(), NEVER_PROVED.len() + 1);
    assert!(sentences[0].starts_with(SEEN), "{sentences:?}");
}
