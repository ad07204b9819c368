//! Choice of the isolation: its reason, and the errors if none is possible.

use serde_json::Value;

use super::{as_both, case_b};
use crate::kit::{Done, Run};
use crate::needs_sandbox;

#[track_caller]
fn assert_tier(done: &Done, tier: &str) {
    assert_eq!(done.report["tier"], tier, "{}", done.stderr);
}

fn statuses<'d>(done: &'d Done, what: &str) -> Vec<&'d str> {
    let listed = done.report["isolation"][what].as_array().unwrap();
    let status = |one: &'d Value| one["status"].as_str().unwrap();
    listed.iter().map(status).collect()
}

#[test]
fn where_namespaces_are_refused_case_b_passes_and_says_in_which_tier_and_why() {
    needs_sandbox!();
    for run in as_both(case_b) {
        let done = run.json();
        done.assert_passed();
        assert_tier(&done, "inherited");
        let because = done.report["isolation"]["because"].as_str().unwrap();
        assert!(
            because.starts_with(
                "isolation namespace is not available here: cannot make a user namespace"
            ),
            "{because}"
        );
        assert!(
            because.ends_with("EPERM, Operation not permitted"),
            "{because}"
        );
        let open = done.report["isolation"]["not_proved"].to_string();
        for sentence in [
            "Which names",
            "What it looked for",
            "acted alone",
            "removed again",
        ] {
            assert!(open.contains(sentence), "{sentence} is not in {open}");
        }
    }
}

#[test]
fn every_layer_and_every_canary_of_the_tier_holds() {
    needs_sandbox!();
    for run in as_both(case_b) {
        let done = run.json();
        // The namespaces, which the report lists as absent.
        let absent = statuses(&done, "layers");
        let absent = absent.iter().filter(|status| **status != "enforced");
        assert_eq!(Vec::from_iter(absent), [&"absent"]);
        let canaries = statuses(&done, "canaries");
        assert!(!canaries.contains(&"not-held"), "{canaries:?}");
        for name in [
            "tcp4",
            "udp6",
            "abstract-socket-inside",
            "abstract-socket-outside",
            "host-directory",
            "write-outside",
            "landlock-read",
            "neighbour",
            "signal",
            "init-memory",
            "unix-socket",
            "listener",
        ] {
            let listed = done.report["isolation"]["canaries"].as_array().unwrap();
            let mut of_name = listed.iter().filter(|canary| canary["name"] == name);
            assert!(of_name.any(|canary| canary["status"] == "held"), "{name}");
        }
    }
}

#[test]
fn where_both_tiers_are_there_the_stronger_one_is_taken_and_the_other_can_be_demanded() {
    needs_sandbox!();
    let container = || Run::case_b().on_a_host_without("network");
    for run in as_both(container) {
        let done = run.json();
        done.assert_passed();
        assert_tier(&done, "namespace");
        assert!(done.report["isolation"]["because"].is_null());
    }
    for run in as_both(container) {
        let done = run.argument("--isolation").argument("inherited").json();
        done.assert_passed();
        assert_tier(&done, "inherited");
        assert!(done.report["isolation"]["because"].is_null());
    }
}

#[test]
fn a_tier_that_is_demanded_is_never_replaced() {
    needs_sandbox!();
    for run in as_both(case_b) {
        let done = run.argument("--isolation").argument("namespace").json();
        done.assert_verdict(3, "errored");
        assert_tier(&done, "namespace");
        assert!(done.stderr.contains("namespace"), "{}", done.stderr);
        assert!(done.stderr.contains("hint:"), "{}", done.stderr);
    }
}

#[test]
fn a_case_that_accepts_one_tier_gets_no_other() {
    needs_sandbox!();
    let done = Run::changed_case(
        "case-b",
        "[\"namespace\", \"inherited\"]",
        "[\"namespace\"]",
    )
    .on_a_host_without(super::CONTAINER)
    .json();
    done.assert_verdict(3, "errored");
    assert_tier(&done, "namespace");
}

/// Asserts that a run without any possible isolation names both causes, each with its fix.
#[track_caller]
fn assert_none(words: &'static str, causes: [&str; 2], fix: &str) {
    for run in as_both(Run::case_b) {
        let done = run.on_a_host_without(words).json();
        done.assert_verdict(3, "errored");
        let said = &done.stderr;
        assert!(
            said.contains("error: cannot make a sandbox with isolation namespace"),
            "{said}"
        );
        for cause in causes {
            assert!(said.contains(cause), "{words}: {cause} is not in {said}");
        }
        assert!(said.contains(fix), "{words}: {fix} is not in {said}");
        assert_eq!(said.matches("hint:").count(), 2, "{words}: {said}");
    }
}

/// The runner reads only the list of links from this machine's network.
#[test]
fn a_network_with_more_than_loopback_is_no_seal() {
    needs_sandbox!();
    let up = |link: &str| {
        let flags =
            std::fs::read_to_string(format!("/sys/class/net/{link}/flags")).unwrap_or_default();
        let digits = flags.trim().trim_start_matches("0x");
        u32::from_str_radix(digits, 16).is_ok_and(|flags| flags & libc::IFF_UP as u32 != 0)
    };
    let links = std::fs::read_dir("/sys/class/net").unwrap();
    let names = links.map(|link| link.unwrap().file_name().into_string().unwrap());
    if !names.into_iter().any(|link| link != "lo" && up(&link)) {
        eprintln!("this machine has no other link that is up");
        return;
    }
    assert_none(
        "namespaces",
        ["cannot make a user namespace", "it has more than loopback"],
        "--network none",
    );
}

#[test]
fn landlock_is_no_option_without_namespaces() {
    needs_sandbox!();
    assert_none(
        "network,namespaces,landlock",
        [
            "cannot make a user namespace",
            "Landlock rules without namespaces",
        ],
        "permit landlock_create_ruleset",
    );
}

#[test]
fn the_home_needs_a_directory_that_can_be_written() {
    needs_sandbox!();
    assert_none(
        "network,namespaces,temporary",
        [
            "cannot make a user namespace",
            "cannot make a temporary directory",
        ],
        "--tmpfs /tmp",
    );
}

#[test]
fn a_root_that_is_read_only_is_enough_where_namespaces_are_made() {
    needs_sandbox!();
    for run in as_both(|| Run::case_b().on_a_host_without("read-only-root")) {
        let done = run.json();
        done.assert_passed();
        assert_tier(&done, "namespace");
    }
}

#[test]
fn a_listener_that_is_taken_is_named_with_its_cause() {
    needs_sandbox!();
    for run in as_both(|| Run::case_b().on_a_host_without("network,listener")) {
        let done = run.json();
        done.assert_verdict(3, "errored");
        assert!(done.stderr.contains("EBUSY"), "{}", done.stderr);
        let cause = "only listener that the kernel allows";
        assert!(done.stderr.contains(cause), "{}", done.stderr);
        // The other isolation would fail for the same reason.
        assert_eq!(done.stderr.matches("error:").count(), 1, "{}", done.stderr);
    }
}

#[test]
fn without_a_filter_there_is_no_run() {
    needs_sandbox!();
    for words in [
        "network,seccomp",
        "network,notification",
        "network,namespaces,notification",
    ] {
        for run in as_both(Run::case_b) {
            let done = run.on_a_host_without(words).json();
            done.assert_verdict(3, "errored");
            assert!(
                done.stderr.contains("system call filter"),
                "{}",
                done.stderr
            );
        }
    }
}

/// A container may refuse optional calls: reading memory by a call, copying descriptors.
#[test]
fn what_a_container_refuses_besides_changes_nothing() {
    needs_sandbox!();
    for words in [
        "network,namespaces,memory-reading,descriptor-copying",
        "network,memory-reading,descriptor-copying",
        "network,namespaces,capabilities",
    ] {
        for run in as_both(Run::case_b) {
            run.on_a_host_without(words).json().assert_passed();
        }
    }
}

/// Engines cover files of /proc, which prevents a fresh mount of it.
#[test]
fn where_no_fresh_proc_can_be_mounted_the_tier_is_the_same_and_the_report_names_what_is_missing() {
    needs_sandbox!();
    for run in as_both(|| Run::case_b().on_a_host_without("proc")) {
        let done = run.json();
        done.assert_passed();
        assert_tier(&done, "namespace");
        assert!(done.report["isolation"]["because"].is_null());
        let layers = done.report["isolation"]["layers"].as_array().unwrap();
        let proc = layers.iter().find(|layer| layer["name"] == "fresh /proc");
        let proc = proc.unwrap();
        assert_eq!(proc["status"], "absent");
        let detail = proc["detail"].as_str().unwrap();
        for flag in ["systempaths=unconfined", "unmask=ALL"] {
            assert!(detail.contains(flag), "{detail}");
        }
        let canaries = statuses(&done, "canaries");
        assert!(!canaries.contains(&"not-held"), "{canaries:?}");
    }
    let with_one = Run::case_b().json();
    let layers = with_one.report["isolation"]["layers"].as_array().unwrap();
    assert!(layers.iter().all(|layer| layer["name"] != "fresh /proc"));
}

/// A limit that is too low for one isolation is too low for the other.
#[test]
fn a_limit_that_is_too_low_is_named_with_the_command_that_raises_it() {
    needs_sandbox!();
    let said = |run: Run, words| {
        let output = run.on_a_host_without(words).output();
        assert_eq!(output.status.code(), Some(3), "{words}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let few = said(Run::case_b(), "network,open-files=100");
    assert!(few.contains("ulimit -n"), "{few}");
    let short = said(Run::case_b(), "network,file-size=1000");
    assert!(short.contains("ulimit -f"), "{short}");
    // The limit of processes does not apply to root.
    for words in ["network,processes=1", "network,processes=3"] {
        let few = said(Run::case_b().as_ordinary_user(), words);
        assert!(few.contains("ulimit -u"), "{words}: {few}");
        assert_eq!(few.matches("error:").count(), 1, "{words}: {few}");
    }
}
