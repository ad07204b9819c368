//! Calls that a filter outside the sandbox refuses first, as container engines do: the ledger does not list them, and
//! the report names them.

use serde_json::{Value, json};

use crate::kit::{Done, Run, runner};
use crate::needs_sandbox;

const DEMANDING: &str = "[expect.outbound]\ncomplete_ledger = true\n\n[expect.records]";

fn case_b(words: &'static str) -> Run {
    Run::case_b().on_a_host_without(words)
}

fn demanding() -> Run {
    Run::changed_case("case-b", "[expect.records]", DEMANDING)
}

fn not_proved(done: &Done) -> Vec<&str> {
    let sentences = done.report["isolation"]["not_proved"].as_array().unwrap();
    sentences
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect()
}

/// Asserts that the run passes and lists these classes in every text about the ledger.
#[track_caller]
fn assert_unseen(run: fn() -> Run, classes: &[&str]) {
    let done = run().json();
    done.assert_passed();
    assert_eq!(done.report["isolation"]["unseen"], json!(classes));
    let list = classes.join(", ");
    let message = done.check("outbound/no-attempts")["message"]
        .as_str()
        .unwrap();
    assert!(message.contains(&list), "{message}");
    let named = not_proved(&done)
        .iter()
        .filter(|text| text.contains(&list))
        .count();
    assert_eq!(named, 1, "{:?}", not_proved(&done));
    let human = run().output();
    let human = String::from_utf8_lossy(&human.stdout).into_owned();
    let claim = human
        .lines()
        .find(|line| line.contains("No other attempt was seen"))
        .unwrap_or_else(|| panic!("{human}"));
    assert!(human.contains(&list), "{human}");
    assert!(!claim.contains("is complete"), "{claim}");
}

#[test]
fn refused_ring_is_named_as_unseen() {
    needs_sandbox!();
    assert_unseen(|| case_b("io-uring"), &["io-uring"]);
}

/// The equivalent of systemd's SystemCallArchitectures=native.
#[cfg(target_arch = "x86_64")]
#[test]
fn refused_interfaces_are_named_as_unseen() {
    needs_sandbox!();
    assert_unseen(|| case_b("foreign-calls"), &["i386", "x32"]);
}

#[test]
fn filter_that_ends_callers_is_named() {
    needs_sandbox!();
    for words in ["io-uring-deadly", "io-uring-ends-thread"] {
        let done = case_b(words).json();
        done.assert_verdict(3, "errored");
        let message = "cannot run the canary outside the sandbox (io-uring: its process ";
        assert!(done.stderr.contains(message), "{}", done.stderr);
        assert!(done.stderr.contains("hint: a filter around the runner"));
    }
}

#[test]
fn refused_socket_families_are_named_as_unseen() {
    needs_sandbox!();
    assert_unseen(|| case_b("vsock,alg"), &["vsock", "alg-socket"]);
}

#[test]
fn refused_ring_is_named_in_a_shared_network() {
    needs_sandbox!();
    let run = || case_b("network,namespaces,io-uring");
    assert_unseen(run, &["io-uring"]);
    assert_unseen(
        || case_b("network,namespaces,io-uring").as_ordinary_user(),
        &["io-uring"],
    );
}

#[test]
fn demanded_complete_ledger_is_errored_with_unseen_classes() {
    needs_sandbox!();
    let done = demanding().on_a_host_without("io-uring").json();
    done.assert_verdict(3, "errored");
    assert_eq!(done.checks("errored"), ["outbound/no-attempts"]);
}

/// The positive twin: without an outer filter no class is unseen.
#[test]
fn complete_ledger_passes_without_an_outer_filter() {
    needs_sandbox!();
    for run in [demanding(), demanding().as_ordinary_user()] {
        let done = run.json();
        done.assert_passed();
        assert_eq!(done.report["isolation"]["unseen"], json!([]));
        let message = &done.check("outbound/no-attempts")["message"];
        assert_eq!(message, "No attempt was seen.");
        assert!(
            not_proved(&done)
                .iter()
                .all(|text| !text.contains("ledger"))
        );
    }
}

#[test]
fn selftest_cannot_judge_a_ring_that_is_refused_outside() {
    needs_sandbox!();
    let mut run = Run::case("selftest").on_a_host_without("io-uring");
    run = run.argument("--json");
    let output = run.command_of(runner()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut classes = answer["classes"].as_array().unwrap().iter();
    let ring = classes.find(|class| class["id"] == "sockets/io-uring");
    assert_eq!(ring.unwrap()["status"], "inconclusive", "{said}");
}
