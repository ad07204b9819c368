//! Rules of a profile, each with a client that does exactly what the rule permits, and one that does something similar.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::escapes::attempt::{EVERY_DEVICE, said, with_attempts};
use crate::kit::{Done, Run, fixture};
use crate::needs_sandbox;

mod settings;

/// A rule for a request beside the turn.
fn side_request(method: &str, path: &str, keys: &str, expected: bool) -> String {
    format!(
        "[[side_requests]]\nname = \"aside\"\nmethod = \"{method}\"\npath = \"{path}\"\n{keys}\n\
         expected = {expected}\nreason = \"known\"\n"
    )
}

/// A rule for the fixture's title request.
fn title(expected: bool) -> String {
    let keys = "with = [\"output_config.format\"]\nwithout = [\"context_management\"]";
    side_request("POST", "/v1/messages", keys, expected)
}

/// `[class, side]` of each request.
fn classes(done: &Done) -> Vec<Value> {
    let requests = done.report["evidence"]["requests"].as_array().unwrap();
    let row = |request: &Value| json!([request["class"], request["side"]]);
    requests.iter().map(row).collect()
}

#[test]
fn a_request_that_the_profile_expects_is_no_finding_where_others_may_come() {
    needs_sandbox!();
    let run = |run: Run, expected| {
        let rule = side_request("GET", "/version", "", expected);
        run.knowing(&rule).deviating("unknown-get").json()
    };
    let done = run(Run::case_a(), true);
    done.assert_passed();
    let aside = json!(["side", "aside"]);
    assert_eq!(classes(&done).last(), Some(&aside));
    // The twins: a known request that is not expected, and a case in which the message must be the only request.
    let unexpected = run(Run::case_a(), false);
    unexpected.assert_fails(&["requests/sequence"]);
    assert_eq!(classes(&unexpected).last(), Some(&aside));
    run(Run::case_b(), true).assert_fails(&["requests/first-and-only"]);
}

#[test]
fn what_a_profile_expects_beside_the_turn_is_told_as_a_wider_rule() {
    needs_sandbox!();
    let told = |run: Run, expected| {
        let rule = side_request("GET", "/version", "", expected);
        let output = run.knowing(&rule).output();
        String::from_utf8(output.stdout).unwrap()
    };
    let rule = "the request aside (GET /version) is no finding";
    assert!(told(Run::case_a(), true).contains(rule));
    assert!(!told(Run::case_a(), false).contains(rule));
    // If the action is also a finding, the report does not list it as allowed.
    assert!(!told(Run::case_b(), true).contains(rule));
}

#[test]
fn lists_of_the_init_record_are_wider_rules() {
    needs_sandbox!();
    let list =
        |names| format!("[[records.init_lists]]\nfield = \"agents\"\n{names}reason = \"known\"\n");
    for (names, rule) in [
        ("", "agents of the init record may have any entry"),
        (
            "names = [\"a\", \"b\"]\n",
            "agents of the init record may have a, b",
        ),
    ] {
        let output = Run::case_b().knowing(&list(names)).output();
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(told.contains(rule), "{told}");
    }
    let told = String::from_utf8(Run::case_b().output().stdout).unwrap();
    assert!(!told.contains("of the init record may have"));
}

#[test]
fn a_message_beside_the_turn_leaves_body_and_records_of_the_turn_to_be_judged() {
    needs_sandbox!();
    for deviation in ["title", "title-first"] {
        let run = |run: Run, expected| run.knowing(&title(expected)).deviating(deviation).json();
        let case_b = run(Run::case_b(), true);
        case_b.assert_fails(&["requests/first-and-only", "requests/post-count"]);
        assert!(classes(&case_b).contains(&json!(["side", "aside"])));
        assert!(classes(&case_b).contains(&json!(["message", null])));
        run(Run::case_a(), true).assert_fails(&["requests/post-count"]);
        run(Run::case_a(), false).assert_fails(&["requests/sequence", "requests/post-count"]);
    }
}

#[test]
fn a_message_beside_the_turn_carries_the_key_as_any_other() {
    needs_sandbox!();
    let run = Run::case_b().knowing(&title(true));
    let done = run.deviating("title-without-key-first").json();
    done.assert_fails(&[
        "requests/first-and-only",
        "requests/post-count",
        "headers/api-key-present",
    ]);
}

#[test]
fn a_body_that_does_not_fit_the_keys_is_the_turns() {
    needs_sandbox!();
    let keys = "with = [\"output_config.format\", \"tools\"]";
    let rule = side_request("POST", "/v1/messages", keys, true);
    let done = Run::case_b().knowing(&rule).deviating("title").json();
    let message = json!(["message", null]);
    assert_eq!(classes(&done), [message.clone(), message]);
}

/// A rule for a file.
fn file(list: &str, root: &str, path: &str) -> String {
    format!("[[files.{list}]]\nin = \"{root}\"\npath = \"{path}\"\nreason = \"known\"\n")
}

#[test]
fn a_directory_that_the_profile_names_may_be_left_and_nothing_in_it() {
    needs_sandbox!();
    let run = |root, path, deviation| {
        let run = Run::case_b().knowing(&file("expected", root, path));
        run.deviating(deviation).json()
    };
    run("tmp", "{app}-{uid}", "directory-in-tmp").assert_passed();
    run("tmp", "{app}-{digits}", "directory-of-another-user-in-tmp").assert_passed();
    for (root, path, deviation) in [
        ("tmp", "{app}-{uid}", "directory-of-another-user-in-tmp"),
        ("tmp", "{app}-{uid}", "file-in-directory-in-tmp"),
        ("tmp", "{app}", "directory-in-tmp"),
        ("home", "{app}-{uid}", "directory-in-tmp"),
    ] {
        run(root, path, deviation).assert_fails(&["files/nothing-else"]);
    }
}

#[test]
fn what_is_there_for_a_time_is_marked_as_known_or_not_and_not_judged() {
    needs_sandbox!();
    let known = Run::case_b().knowing(&file("transient", "tmp", "scratch"));
    let done = known.client(fixture("asking-client")).json();
    let files = done.report["evidence"]["files"].as_array().unwrap();
    let transient = files.iter().filter(|file| file["transient"] == true);
    let marks: Vec<_> = transient
        .map(|file| json!([file["path"], file["expected"]]))
        .collect();
    assert_eq!(
        marks,
        [json!(["scratch", "known"]), json!(["state.tmp", null])]
    );
    // A file that the rule permits temporarily is a finding if it stays.
    let stays = Run::case_b().knowing(&file("transient", "tmp", "notes"));
    let done = stays.deviating("file-in-tmp").json();
    done.assert_fails(&["files/nothing-else"]);
}

/// Returns the report's file with this path.
fn reported<'d>(done: &'d Done, path: &str) -> &'d Value {
    let files = done.report["evidence"]["files"].as_array().unwrap();
    files.iter().find(|file| file["path"] == path).unwrap()
}

#[test]
fn each_file_is_reported_with_the_reason_that_makes_it_no_surprise() {
    needs_sandbox!();
    let known = Run::case_b().knowing(&file("expected", "tmp", "{app}-{uid}"));
    let done = known.deviating("directory-in-tmp").json();
    let state = &reported(&done, ".agent/.agent.json")["expected"];
    assert_eq!(state, "the application state file");
    assert_eq!(reported(&done, "agent-1000")["expected"], "known");
    let done = Run::case_b().deviating("directory-in-tmp").json();
    assert_eq!(reported(&done, "agent-1000")["expected"], Value::Null);
}

#[test]
fn an_attempt_and_a_name_are_reported_with_the_reason_that_makes_them_no_finding() {
    needs_sandbox!();
    let expected = |rules: &[&str], deviation: &str| {
        let rule = |destination: &&str| {
            format!("[[attempts]]\ndestination = \"{destination}\"\nreason = \"known\"\n")
        };
        let rules: String = rules.iter().map(rule).collect();
        let done = Run::case_b().knowing(&rules).deviating(deviation).json();
        let of = |list: &str| -> Vec<Value> {
            let list = done.report["evidence"][list].as_array().unwrap();
            let unjudged = [json!("setup"), json!("question")];
            let judged = list.iter().filter(|one| !unjudged.contains(&one["kind"]));
            judged.map(|one| one["expected"].clone()).collect()
        };
        (of("attempts"), of("names"))
    };
    let known = json!("known");
    let (attempts, names) = expected(&["name:api.example.com"], "asks-for-a-name");
    assert!(!names.is_empty() && names.iter().all(|one| *one == known));
    assert_eq!(attempts, [""; 0]);
    let (attempts, names) = expected(&["name:other.example.com"], "asks-for-a-name");
    assert!(!names.is_empty() && names.iter().all(Value::is_null));
    assert_eq!(attempts, [""; 0]);
    let (attempts, _) = expected(&["inet:127.0.0.1:1"], "connects-to-a-dead-proxy");
    assert_eq!(attempts, [known]);
    let (attempts, _) = expected(&["inet:127.0.0.1:2"], "connects-to-a-dead-proxy");
    assert_eq!(attempts, [Value::Null]);
}

const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

#[test]
fn dev_holds_the_devices_that_the_profile_lists_and_no_other() {
    needs_sandbox!();
    let attempts = DEVICES.map(|device| format!("open-write /dev/{device}"));
    let attempts = attempts.each_ref().map(String::as_str);
    let outcomes = |run: Run, listed: &str| {
        let run = with_attempts(run.with_devices(listed), &attempts);
        let made = said(&run.json(), &attempts);
        made.into_iter().map(|one| one.outcome).collect::<Vec<_>>()
    };
    let only = |there: &str| DEVICES.map(|device| if device == there { "ok" } else { "ENOENT" });
    assert_eq!(outcomes(Run::case_b(), EVERY_DEVICE), ["ok"; 5]);
    assert_eq!(outcomes(Run::case_b(), ""), ["ENOENT"; 5]);
    assert_eq!(
        outcomes(Run::case_b().as_ordinary_user(), ""),
        ["ENOENT"; 5]
    );
    for device in DEVICES {
        let listed = format!("\"{device}\"");
        assert_eq!(outcomes(Run::case_b(), &listed), only(device));
    }
}

#[test]
fn standard_input_is_empty_whether_or_not_its_device_is_shown() {
    needs_sandbox!();
    for listed in ["", "\"null\""] {
        let run = with_attempts(Run::case_b().with_devices(listed), &["standard-input"]);
        let made = said(&run.json(), &["standard-input"]).remove(0);
        assert_eq!(made.detail, "device 1:3, 0 bytes", "{listed}");
    }
}

/// A rule for a path of the host.
fn path(path: &str, if_present: bool) -> String {
    format!(
        "[[paths]]\npath = \"{path}\"\naccess = \"read\"\nif_present = {if_present}\n\
         reason = \"known\"\n"
    )
}

#[test]
fn a_path_of_another_layout_is_passed_over_and_any_other_absent_one_is_an_error() {
    needs_sandbox!();
    let absent = "/usr/lib/of-another-layout/libc.so";
    Run::case_b()
        .knowing(&path(absent, true))
        .json()
        .assert_passed();
    let output = Run::case_b().knowing(&path(absent, false)).output();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("cannot resolve {absent}")), "{said}");
}

#[test]
fn a_path_that_is_present_is_shown_and_told() {
    needs_sandbox!();
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let file = directory.path().join("there");
    fs::write(&file, "here").unwrap();
    let there = file.to_str().unwrap();
    let attempt = format!("read {there}");
    let outcome = |run: Run| {
        let run = with_attempts(run, &[&attempt]);
        said(&run.json(), &[&attempt]).remove(0).outcome
    };
    let rule = path(there, true);
    assert_eq!(outcome(Run::case_b().knowing(&rule)), "ok");
    assert_eq!(outcome(Run::case_b()), "ENOENT");
    let told = Run::case_b().knowing(&rule).output().stdout;
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains("read /"), "{told}");
}
