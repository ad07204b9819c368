//! Entries of the ledger besides outbound attempts: the connection to the stub, the calling processes, the started
//! programs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::world::going;
use super::{assert_judged, entries, listed, one, plain, said_inside, several};
use crate::inherited::CONTAINER;
use crate::kit::{Done, Run};
use crate::needs_sandbox;

fn run(class: &str) -> Done {
    going(Run::case_b(), class).json()
}

/// Returns the calls of this kind's entries, with their addresses.
fn calls(done: &Done, kind: &str) -> Vec<Value> {
    let attempts = listed(done, "attempts").iter();
    let of_kind = attempts.filter(|attempt| attempt["kind"] == kind);
    of_kind
        .map(|attempt| json!([attempt["syscall"], attempt["address"], attempt["outcome"]]))
        .collect()
}

#[test]
fn a_client_that_tries_nothing_has_an_empty_ledger() {
    needs_sandbox!();
    let done = run("nothing");
    assert_eq!(listed(&done, "attempts"), [Value::Null; 0]);
    assert_judged(&done, false);
}

#[test]
fn what_libraries_do_first_is_listed_and_not_judged() {
    needs_sandbox!();
    let done = run("setup");
    assert_eq!(said_inside(&done, "setup"), one("ok"));
    assert_eq!(
        calls(&done, "setup"),
        [
            json!(["socket", null, "allowed"]),
            json!(["bind", "0", "allowed"]),
            json!(["sendto", "0", "allowed"]),
            json!(["socket", null, "allowed"]),
            json!(["connect", "127.0.0.1", "allowed"]),
            json!(["connect", null, "allowed"]),
            json!(["socket", null, "allowed"]),
            json!(["bind", "127.0.0.1", "allowed"]),
            json!(["socket", null, "allowed"]),
            json!(["connect", "/var/run/nscd/socket", "allowed"]),
        ]
    );
    assert_eq!(entries(&done, "attempt"), [Value::Null; 0]);
    assert_judged(&done, false);
}

#[test]
fn a_message_with_an_empty_name_goes_where_its_socket_is_connected_to() {
    needs_sandbox!();
    let done = run("empty-name");
    assert_eq!(said_inside(&done, "empty-name"), one("ok"));
    assert_eq!(listed(&done, "attempts"), [Value::Null; 0]);
    assert_judged(&done, false);
}

#[test]
fn beyond_a_thousand_entries_a_gap_says_how_many_are_missing() {
    needs_sandbox!();
    let done = run("many-ports");
    assert_eq!(
        said_inside(&done, "many-ports"),
        several("ENETUNREACH", 1500)
    );
    // One entry belongs to the socket.
    assert_eq!(listed(&done, "attempts").len(), 1000);
    let detail = "501 calls by programs or to destinations beyond those that are listed";
    let gap = json!({"what": "cut", "detail": detail});
    assert_eq!(listed(&done, "gaps"), [gap]);
    // Every listed attempt is a finding, even with other findings.
    assert_eq!(done.check(super::NO_ATTEMPTS)["status"], "failed");
    done.assert_verdict(1, "failed");
}

#[test]
fn the_stub_itself_is_no_attempt() {
    needs_sandbox!();
    let done = run("stub");
    assert_eq!(said_inside(&done, "stub"), one("ok"));
    assert_eq!(
        calls(&done, "setup"),
        [
            json!(["socket", null, "allowed"]),
            json!(["connect", "127.0.0.1", "allowed"])
        ]
    );
    assert_eq!(listed(&done, "connections").len(), 1);
    assert_judged(&done, false);
}

#[test]
fn the_stub_by_the_unspecified_address_is_an_attempt_and_a_connection() {
    needs_sandbox!();
    let done = run("stub-unspecified");
    assert_eq!(said_inside(&done, "stub-unspecified"), one("ok"));
    assert_eq!(
        calls(&done, "attempt"),
        [json!(["connect", "0.0.0.0", "allowed"])]
    );
    assert_eq!(listed(&done, "connections").len(), 1);
    assert_judged(&done, true);
}

#[test]
fn the_stubs_port_on_another_loopback_address_is_an_attempt_and_no_connection() {
    needs_sandbox!();
    let done = run("stub-other-loopback");
    assert_eq!(
        said_inside(&done, "stub-other-loopback"),
        one("ECONNREFUSED")
    );
    assert_eq!(
        calls(&done, "attempt"),
        [json!(["connect", "127.0.0.2", "allowed"])]
    );
    assert_eq!(listed(&done, "connections"), [Value::Null; 0]);
    assert_judged(&done, true);
}

#[test]
fn a_thread_with_its_own_descriptors_reaches_the_stub_as_every_other() {
    needs_sandbox!();
    let class = "thread-with-its-own-descriptors";
    for user in [Run::case_b(), Run::case_b().as_ordinary_user()] {
        let done = going(user, class).json();
        assert_eq!(said_inside(&done, class), one("ok"));
        assert_eq!(listed(&done, "connections").len(), 1);
        assert_judged(&done, false);
    }
}

#[test]
fn a_process_that_asks_not_to_be_read_is_told_that_it_is_so() {
    needs_sandbox!();
    for user in [Run::case_b(), Run::case_b().as_ordinary_user()] {
        let done = going(user, "undumpable").json();
        assert_eq!(said_inside(&done, "undumpable"), one("ENETUNREACH"));
        assert_eq!(entries(&done, "setup")[0], plain("prctl"));
        // The flag stays set, so the supervisor can still read the address of this connect.
        assert_eq!(
            calls(&done, "attempt"),
            [json!(["connect", "192.0.2.2", "denied"])]
        );
    }
}

#[test]
fn an_attempt_names_the_process_that_made_it() {
    needs_sandbox!();
    let done = run("child");
    let attempt = listed(&done, "attempts").last().unwrap();
    let client = &listed(&done, "processes")[0];
    assert_ne!(attempt["pid"], client["pid"]);
    assert_eq!(attempt["program"], client["program"]);
}

#[test]
fn names_are_read_from_questions_wherever_they_go() {
    needs_sandbox!();
    for class in ["dns-resolver", "dns-elsewhere"] {
        let done = run(class);
        let attempt = listed(&done, "attempts").last().unwrap();
        assert_eq!(attempt["names"], json!(["outgoing.example"]), "{class}");
    }
    let asked = run("dns-resolver");
    let name = json!({"name": "outgoing.example", "type": "A", "count": 1, "expected": null});
    assert_eq!(listed(&asked, "names"), [name]);
    assert_eq!(
        listed(&run("dns-elsewhere"), "names"),
        [Value::Null; 0],
        "nobody was asked who could answer"
    );
}

/// Returns `[parent is the client, arguments after the profile's own]` of each started program.
fn started(done: &Done) -> Vec<(bool, Vec<&str>)> {
    let processes = listed(done, "processes");
    let client = &processes[0]["pid"];
    processes
        .iter()
        .map(|process| {
            let args = process["args"].as_array().unwrap();
            let from = args.iter().position(|arg| arg == "--go").unwrap();
            let words = args[from + 1..].iter().map(|arg| arg.as_str().unwrap());
            (process["ppid"] == *client, words.collect())
        })
        .collect()
}

#[test]
fn a_program_that_becomes_another_is_listed_once_for_each() {
    needs_sandbox!();
    let done = run("exec-self");
    assert_eq!(
        started(&done),
        [(false, vec!["exec-self"]), (false, vec!["tcp-connect"])]
    );
    let processes = listed(&done, "processes");
    assert_eq!(processes[0]["pid"], processes[1]["pid"]);
    // The supervisor follows the process through exec, so the later attempt is listed.
    assert_eq!(said_inside(&done, "tcp-connect"), one("ENETUNREACH"));
    assert_judged(&done, true);
}

#[test]
fn programs_that_were_looked_for_and_are_not_there_are_not_listed() {
    needs_sandbox!();
    let done = run("exec-search");
    assert_eq!(
        started(&done),
        [(false, vec!["exec-search"]), (false, vec!["nothing"])]
    );
    assert_judged(&done, false);
}

/// A program that is absent when the supervisor checks is refused, so the kernel cannot start one that was created in
/// between.
#[test]
fn a_program_made_during_the_look_is_listed() {
    needs_sandbox!();
    let class = "exec-vanishing";
    for tier in [Run::case_b(), Run::case_b().on_a_host_without(CONTAINER)] {
        let done = going(tier, class)
            .client_argument("--seconds")
            .client_argument("4")
            .json();
        let said = said_inside(&done, class);
        assert!(said.contains_key("ENOENT"), "{said:?}");
        let tail = done.report["evidence"]["stderr"]["tail"].as_str().unwrap();
        let ran = tail.lines().find_map(|line| line.strip_prefix("ran: "));
        let processes = listed(&done, "processes");
        let listed: BTreeSet<u64> = processes
            .iter()
            .filter_map(|process| process["args"].as_array()?.last()?.as_str()?.parse().ok())
            .collect();
        // Programs start one after another, and a full list ends with the last one that fits.
        let is_full = processes.len() == 1000;
        let last = listed.last().copied().filter(|_| is_full);
        let ran: BTreeSet<u64> = ran
            .unwrap()
            .split(' ')
            .filter_map(|number| number.parse().ok())
            .filter(|number| last.is_none_or(|last| *number <= last))
            .collect();
        let missing: Vec<_> = ran.difference(&listed).collect();
        assert!(ran.len() > 5 && missing.is_empty(), "{missing:?}, {said:?}");
    }
}

#[test]
fn each_child_that_becomes_a_program_is_listed_with_its_parent() {
    needs_sandbox!();
    let done = run("exec-three");
    assert_eq!(said_inside(&done, "exec-three"), several("ok", 3));
    let child = (true, vec!["nothing"]);
    assert_eq!(
        started(&done),
        [
            (false, vec!["exec-three"]),
            child.clone(),
            child.clone(),
            child
        ]
    );
    assert_judged(&done, false);
}

#[test]
fn records_before_the_connection_are_proved_to_be_earlier() {
    needs_sandbox!();
    let done = Run::case_b().json();
    done.assert_passed();
    assert_eq!(before_the_message(&done), ["connect", "connect"]);
    assert!(message_of_order(&done).starts_with("Proved: "));
}

#[test]
fn records_after_an_early_connection_are_only_seen_to_be_earlier() {
    needs_sandbox!();
    let done = Run::case_b().deviating("early-connection").json();
    done.assert_passed();
    assert_eq!(before_the_message(&done), ["post", "post"]);
    assert!(message_of_order(&done).starts_with("Seen: "));
}

/// Returns the `before` field of the first two records, init and status.
fn before_the_message(done: &Done) -> [&str; 2] {
    let records = listed(done, "records");
    [0, 1].map(|index: usize| records[index]["before"].as_str().unwrap())
}

fn message_of_order(done: &Done) -> &str {
    done.check("records/init-before-post")["message"]
        .as_str()
        .unwrap()
}
