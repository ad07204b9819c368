//! Reports to standard streams by name, and to paths that a rename cannot replace.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::assert_refused;
use crate::kit::{Run, is_root, parsed, runner};
use crate::needs_sandbox;

const EARLIER: &str = "of an earlier step\n";

/// Creates a directory with a user's file in it.
fn log() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("job.log");
    fs::write(&path, EARLIER).unwrap();
    (directory, path)
}

fn appending(path: &Path) -> File {
    OpenOptions::new().append(true).open(path).unwrap()
}

fn reporting(reports: &[&str]) -> Command {
    let with = |run: Run, report: &&str| run.argument("--report").argument(*report);
    reports.iter().fold(Run::case_b(), with).command()
}

#[test]
fn a_name_of_standard_output_is_standard_output() {
    needs_sandbox!();
    let (_directory, path) = log();
    let its_own_name = format!("json={}", path.display());
    for report in ["json=/dev/stdout", "json=/dev/fd/1", &its_own_name] {
        fs::write(&path, EARLIER).unwrap();
        let mut command = reporting(&[report]);
        let output = command.stdout(appending(&path)).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{report}");
        let text = fs::read_to_string(&path).unwrap();
        let json = text.strip_prefix(EARLIER).unwrap();
        assert_eq!(parsed(json.as_bytes(), "")["verdict"], "passed", "{report}");
        // The human report uses the other stream, as without a name.
        assert!(output.stderr.starts_with(b"PASSED"), "{report}");
    }
    let piped = reporting(&["json=/dev/stdout"]).output().unwrap();
    assert_eq!(parsed(&piped.stdout, "")["verdict"], "passed");
}

#[test]
fn two_reports_or_a_report_and_a_program_share_standard_output_by_no_name() {
    let (_directory, path) = log();
    let refused = |mut command: Command, code: i32, words: &str| {
        for stdout in [Stdio::piped(), appending(&path).into()] {
            let output = command.stdout(stdout).output().unwrap();
            assert_refused(&output, code, &[words]);
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), EARLIER);
    };
    refused(
        reporting(&["human", "json=/dev/stdout"]),
        2,
        "cannot write two reports to standard output: human and json",
    );
    let audit = Run::case("audit")
        .argument("--report")
        .argument("json=/dev/stdout");
    refused(
        audit.argument("--").argument("true").command(),
        125,
        "cannot write the report json to standard output: the program writes there",
    );
}

#[test]
fn a_report_replaces_no_file_that_standard_error_goes_to() {
    let (_directory, path) = log();
    let mut command = reporting(&["markdown=/dev/stderr"]);
    let output = command.stderr(appending(&path)).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = fs::read_to_string(&path).unwrap();
    let told = text.strip_prefix(EARLIER).unwrap();
    let words =
        "error: cannot write the report file /dev/stderr: standard error goes to the same file\n";
    assert!(told.starts_with(words), "{told}");
}

#[test]
fn what_stands_for_no_file_takes_a_report_beside_a_stream() {
    needs_sandbox!();
    let mut command = reporting(&["human=/dev/null", "json"]);
    let output = command.stderr(Stdio::null()).output().unwrap();
    assert_eq!(parsed(&output.stdout, "")["verdict"], "passed");
    let mut command = reporting(&["human=/dev/null", "json"]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.unwrap();
    assert_eq!(status.code(), Some(0));
}

/// Runs as an ordinary user, if root runs the tests, in a directory that root made.
fn by_another_user(directory: &Path, report: &str) -> Output {
    let run = Run::case_b().as_ordinary_user();
    let run = run.argument("--report").argument(report);
    run.command().current_dir(directory).output().unwrap()
}

#[test]
fn a_place_that_can_only_be_written_in_is_refused_before_the_run() {
    if !is_root() {
        eprintln!("only root can make files of two users");
        return;
    }
    let (directory, path) = log();
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(&path, 0o666);
    let because = "caused by: Permission denied";
    set(directory.path(), 0o755);
    let told = "error: cannot replace job.log in ";
    let output = by_another_user(directory.path(), "json=job.log");
    assert_refused(&output, 2, &[told, because, "hint: "]);
    // inode(7): with the sticky bit only an owner may rename or replace.
    set(directory.path(), 0o1777);
    let because = "caused by: Operation not permitted";
    let output = by_another_user(directory.path(), "json=job.log");
    assert_refused(&output, 2, &[told, because, "hint: "]);
    assert_eq!(fs::read_to_string(&path).unwrap(), EARLIER);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    // The twin: the user's own file.
    needs_sandbox!();
    chown(&path, Some(1000), None).unwrap();
    let output = by_another_user(directory.path(), "json=job.log");
    assert_eq!(output.status.code(), Some(0));
    let report = parsed(&fs::read(&path).unwrap(), "");
    assert_eq!(report["verdict"], "passed");
}

/// A container has such a mount if it was given a single file. rename(2) cannot replace a mount point.
#[test]
fn a_file_that_is_a_mount_is_written_where_it_lies() {
    needs_sandbox!();
    if !is_root() {
        eprintln!("only root can mount");
        return;
    }
    let (directory, path) = log();
    let [given, lock, given_lock] =
        ["given", "agent.lock", "given.lock"].map(|name| directory.path().join(name));
    // Longer than the lock file, so that a missing truncation would show.
    fs::write(&given, "x".repeat(200_000)).unwrap();
    let made = Run::case_b()
        .argument("--baseline")
        .argument(&lock)
        .argument("--update-baseline");
    assert_eq!(made.output().status.code(), Some(0));
    let text = fs::read(&lock).unwrap();
    fs::write(&given_lock, [&text, &b"\n".repeat(50_000)[..]].concat()).unwrap();
    let script = r#"mount --bind "$1" "$2" && mount --bind "$3" "$4" && shift 4 && exec "$@""#;
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        script,
        "sh",
    ]);
    command.args([&given, &path, &given_lock, &lock]);
    command.arg(runner()).arg("case-b").arg("--report");
    command.arg(format!("json={}", path.display()));
    command
        .arg("--baseline")
        .arg(&lock)
        .arg("--update-baseline");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(
        parsed(&fs::read(&given).unwrap(), &said)["verdict"],
        "passed"
    );
    assert_eq!(fs::read(&given_lock).unwrap(), text);
    // The file under the mounts is unchanged.
    assert_eq!(fs::read_to_string(&path).unwrap(), EARLIER);
}

#[test]
fn lost_output_has_the_same_answer_closed_or_full() {
    needs_sandbox!();
    for (arguments, code) in [
        ("--help", 2),
        ("--version", 2),
        ("--version --verbose", 2),
        ("policy list", 2),
        ("audit --help", 125),
        ("case-b", 3),
        ("audit -- echo text", 125),
        // Nothing is lost.
        ("audit -- true", 0),
    ] {
        for redirection in [">&-", ">/dev/full", ">/dev/null"] {
            let line = format!("exec \"$0\" {arguments} {redirection}");
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &line]).arg(runner());
            let output = shell.output().unwrap();
            let expected = if redirection == ">/dev/null" { 0 } else { code };
            assert_eq!(
                output.status.code(),
                Some(expected),
                "{arguments} {redirection}"
            );
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(stderr.contains("error: "), expected != 0, "{stderr}");
        }
    }
}

/// A reader such as head(1) that ends before the first byte is no error of any command.
#[test]
fn reader_that_ends_early_is_no_error() {
    needs_sandbox!();
    for (words, code) in [
        (&["--help"][..], 0),
        (&["policy", "list"], 0),
        (&["policy", "schema", "report"], 0),
        (&["case-b"], 0),
        (&["case-b", "--report", "json"], 0),
        (&["case-b", "--", "--no-such-option"], 1),
        (&["audit", "--", "echo", "x"], 0),
    ] {
        let mut command = Command::new(runner());
        command.args(words).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = command.spawn().unwrap();
        drop(run.stdout.take());
        let output = run.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(!said.contains("error:"), "{words:?}: {said}");
    }
}
