//! Gates of an audit: `--fail-on` and `--baseline`, with their exit code.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Audit, Audited, open_directory};
use crate::kit::Run;
use crate::needs_sandbox;

/// Own exit code of each audited program here.
const OWN: i32 = 7;

/// Audit with a finding of this kind, or of the same program without it.
fn audit(kind: &str, is_finding: bool) -> Audit {
    let python =
        |code: &str| Audit::of(["/usr/bin/python3", "-c", &format!("{code}\nexit({OWN})")]);
    let shell = |code: &str| Audit::shell(&format!("{code}; exit {OWN}"));
    let key = |code: &str| shell(code).option("--env=KEY={credential}");
    match (kind, is_finding) {
        ("attempts", true) => {
            python("import socket as s\ns.socket().connect_ex(('192.0.2.1', 443))")
        }
        ("attempts", false) => python("import socket as s\ns.socket()"),
        ("names", true) => python(
            "import socket as s\ntry: s.getaddrinfo('api.example.com', 443)\nexcept OSError: pass",
        ),
        ("names", false) => python("import socket as s\ns.getaddrinfo('localhost', 443)"),
        ("credential", true) => key("echo $KEY"),
        ("credential", false) => key("echo key"),
        ("survivors", true) => shell("setsid sleep 100 >/dev/null 2>&1 & :"),
        ("survivors", false) => shell("sleep 0.01 & wait"),
        ("sensitive", true) => shell("cat /root/.aws/credentials ~/.ssh/id_rsa 2>/dev/null"),
        ("sensitive", false) => shell("cat /root/.awsome ~/.sshrc 2>/dev/null"),
        other => panic!("{other:?}"),
    }
}

const KINDS: [&str; 5] = ["attempts", "names", "credential", "survivors", "sensitive"];

fn failing_on(audit: Audit, list: &str) -> Audited {
    audit.option(format!("--fail-on={list}")).run()
}

#[track_caller]
fn assert_ended(audited: &Audited, code: i32, verdict: &str) {
    audited.assert_code(code);
    assert_eq!(audited.report["verdict"], verdict, "{}", audited.stderr);
    let word = verdict.to_ascii_uppercase();
    assert!(
        audited.stderr.contains(&format!("{word}, ")),
        "{}",
        audited.stderr
    );
}

/// Asserts that the gate of a kind fails for its finding only.
#[track_caller]
fn assert_gated(kind: &str) {
    assert_ended(&audit(kind, true).run(), OWN, "audited");
    let failed = failing_on(audit(kind, true), kind);
    assert_ended(&failed, 123, "failed");
    assert_eq!(failed.report["findings"]["count"], 1, "{}", failed.report);
    let checks = failed.report["checks"].as_array().unwrap();
    let gate = checks.iter().find(|check| check["id"] == "audit/fail-on");
    assert_eq!(gate.unwrap()["status"], "failed");
    assert_ended(&failing_on(audit(kind, true), "any"), 123, "failed");
    let twin = failing_on(audit(kind, false), "any");
    assert_ended(&twin, OWN, "passed");
    let others = KINDS.into_iter().filter(|other| *other != kind);
    let others = others.collect::<Vec<_>>().join(",");
    assert_ended(&failing_on(audit(kind, true), &others), OWN, "passed");
}

#[test]
fn attempt_fails_its_gate() {
    needs_sandbox!();
    assert_gated("attempts");
}

#[test]
fn name_fails_its_gate() {
    needs_sandbox!();
    assert_gated("names");
}

#[test]
fn printed_credential_fails_its_gate() {
    needs_sandbox!();
    assert_gated("credential");
}

#[test]
fn survivor_fails_its_gate() {
    needs_sandbox!();
    assert_gated("survivors");
}

#[test]
fn look_at_a_sensitive_path_fails_its_gate() {
    needs_sandbox!();
    assert_gated("sensitive");
    let audited = audit("sensitive", true).run();
    let places = ["/home/sandbox/.ssh/id_rsa", "/root/.aws/credentials"];
    assert_eq!(audited.report["findings"]["sensitive"], json!(places));
}

#[test]
fn question_is_a_name_and_no_attempt() {
    needs_sandbox!();
    let audited = audit("names", true).run();
    assert_eq!(audited.attempts(), [""; 0]);
    assert_eq!(audited.names(), ["api.example.com"]);
    let attempts = audited.report["evidence"]["attempts"].as_array().unwrap();
    assert!(attempts.iter().any(|one| one["kind"] == "question"));
    assert!(audited.stderr.contains("AUDITED, 1 finding: 1 name\n"));
    assert!(
        !audited.stderr.contains("let through\n"),
        "{}",
        audited.stderr
    );
}

#[test]
fn time_out_and_failed_start_come_before_the_gate() {
    needs_sandbox!();
    let late = Audit::shell("echo $KEY; sleep 1000").option("--env=KEY={credential}");
    let late = failing_on(late.option("--timeout=500ms"), "any");
    assert_ended(&late, 124, "failed");
    let directory = open_directory("/var/tmp");
    let script = script(directory.path(), "#!/no/such/interpreter\n");
    failing_on(Audit::of([script]), "any").assert_code(127);
}

#[test]
fn own_failure_comes_before_the_gate() {
    needs_sandbox!();
    let unwritten = audit("credential", true).option("--report=markdown=/dev/full");
    failing_on(unwritten, "credential").assert_code(125);
    for list in ["attempt", "", "any,"] {
        failing_on(audit("credential", true), list).assert_code(125);
    }
}

#[test]
fn unrecorded_kind_is_undecided() {
    needs_sandbox!();
    let code = |list: &str| {
        let run = Run::case("audit").argument("--fail-on").argument(list);
        let run = run.client_argument("/bin/true");
        run.on_a_host_without("network,namespaces")
            .output()
            .status
            .code()
    };
    assert_eq!(code("names"), Some(125));
    assert_eq!(code("sensitive"), Some(125));
    assert_eq!(code("attempts,credential,survivors"), Some(0));
}

/// Writes an executable script into a directory that an audit may show.
fn script(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("agent");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn changed_program_fails_its_lock_file() {
    needs_sandbox!();
    let directory = open_directory("/var/tmp");
    let place = open_directory("/tmp");
    let lock = place.path().join("agent.lock");
    let program = |line: &str| {
        script(
            directory.path(),
            &format!("#!/bin/sh\n{line}\nexit {OWN}\n"),
        )
    };
    let locked =
        |program: PathBuf| Audit::of([program]).option(format!("--baseline={}", lock.display()));
    let old = ": > ~/left";

    let missing = locked(program(old)).run();
    missing.assert_printed(125, "");
    let hint = "--update-baseline makes it from the behaviour of this run";
    assert!(missing.stderr.contains(hint), "{}", missing.stderr);

    let made = locked(program(old)).option("--update-baseline").run();
    assert_ended(&made, OWN, "audited");
    assert_eq!(made.report["baseline"]["outcome"], "made");
    let text = fs::read_to_string(&lock).unwrap();
    assert!(text.contains("\ncase = \"audit\"\n"), "{text}");

    assert_ended(&locked(program(old)).run(), OWN, "passed");
    for new in [": > ~/other", "cat ~/.aws/config 2>/dev/null; : > ~/left"] {
        let changed = locked(program(new)).run();
        assert_ended(&changed, 123, "failed");
        assert_eq!(changed.report["baseline"]["outcome"], "compared");
    }
    // The lock file holds what the program does, not what fails on it.
    let both = failing_on(locked(program(old)), "any");
    assert_ended(&both, OWN, "passed");
}
