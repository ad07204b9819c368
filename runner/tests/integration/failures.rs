//! Runs that cannot start, end early, or cannot write their reports.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::kit::{Run, parsed};
use crate::needs_sandbox;

mod fifos;
mod for_ci;
mod formats;
pub(crate) mod interrupts;
mod outputs;
mod streams;
mod surroundings;

pub(crate) use interrupts::client_of;

/// Creates a file with this content and mode in a temporary directory.
fn file(content: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("client");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    (directory, path)
}

/// Asserts this exit code, an empty standard output, and these words on standard error.
#[track_caller]
fn assert_refused(output: &Output, code: i32, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(output.stdout.is_empty(), "{said}");
    for word in words {
        assert!(said.contains(word), "no `{word}` in: {said}");
    }
}

#[test]
fn a_client_that_is_not_executable_is_wrong_use() {
    let (_directory, path) = file("", 0o644);
    assert_refused(
        &Run::case_b().client(&path).output(),
        2,
        &["error:", "client", "hint:"],
    );
}

#[test]
fn a_client_that_is_not_there_is_wrong_use() {
    let output = Run::case_b().client("/no/such/client").output();
    assert_refused(&output, 2, &["error:", "/no/such/client"]);
}

/// Asserts that the client never started, that its own checks are skipped, and that the hint names the likely cause.
#[track_caller]
fn assert_not_executed(client: &Path, hint: &str) {
    let done = Run::case_b().client(client).json();
    done.assert_verdict(3, "errored");
    assert_eq!(done.checks("errored"), ["process/exit-zero"]);
    assert_eq!(done.checks("passed"), ["outbound/denied"]);
    assert_eq!(done.report["client"]["exit"]["not_started"], true);
    assert!(
        done.stderr.contains("error: cannot execute the client"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains(hint), "{}", done.stderr);
}

#[test]
fn a_script_without_its_interpreter_is_errored_with_a_hint() {
    needs_sandbox!();
    let (_directory, path) = file("#!/bin/sh\nexit 0\n", 0o755);
    assert_not_executed(&path, "hint: a dynamic program needs its loader");
}

#[test]
fn a_dynamic_program_without_its_loader_is_errored_with_a_hint() {
    needs_sandbox!();
    assert_not_executed(
        Path::new("/bin/true"),
        "hint: a dynamic program needs its loader",
    );
}

#[test]
fn a_file_that_is_no_program_is_errored() {
    needs_sandbox!();
    let (_directory, path) = file("no program", 0o755);
    assert_not_executed(&path, "Exec format error");
}

#[test]
fn an_unknown_profile_is_wrong_use() {
    let output = Run::case_b()
        .argument("--profile")
        .argument("no-such")
        .output();
    assert_refused(
        &output,
        2,
        &[
            "no built-in profile",
            "hint: known here: `claude-code`, `reference`",
        ],
    );
}

#[test]
fn only_the_required_case_is_run() {
    needs_sandbox!();
    let other = Run::case_b()
        .argument("--require-case")
        .argument("0".repeat(64));
    assert_refused(
        &other.output(),
        2,
        &["error: the case has the SHA-256", "hint:"],
    );
    let done = Run::case_b().json();
    let digest = done.report["case"]["sha256"].as_str().unwrap();
    let same = Run::case_b().argument("--require-case").argument(digest);
    same.json().assert_passed();
}

#[test]
fn four_runs_at_once_do_not_disturb_each_other() {
    needs_sandbox!();
    let runs: Vec<_> = (0..4)
        .map(|_| {
            Run::case_a()
                .argument("--report")
                .argument("json")
                .command()
        })
        .map(|mut command| {
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for run in runs {
        let output = run.wait_with_output().unwrap();
        let report = parsed(&output.stdout, "");
        assert_eq!(report["verdict"], "passed", "{report}");
    }
}

/// Runs the commands `words` in a shell, then the run.
fn after(words: &str, run: &Run) -> Output {
    let run = run.command();
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(format!("{words}; exec \"$0\" \"$@\""));
    shell.arg(run.get_program()).args(run.get_args());
    shell.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_low_soft_limit_on_open_files_is_no_obstacle() {
    needs_sandbox!();
    let output = after("ulimit -S -n 64", &Run::case_b());
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn too_few_open_files_for_a_run_are_named_before_it_starts() {
    needs_sandbox!();
    for few in [8, 100] {
        let output = after(&format!("ulimit -n {few}"), &Run::case_b());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        let expected = format!("error: no more than {few} open files are allowed here");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn a_hard_limit_of_ours_below_the_one_of_the_case_is_the_clients_too() {
    needs_sandbox!();
    let output = after("ulimit -n 1024", &Run::case_b());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}
