//! Usable directories, and the errors for a directory that is unusable or becomes so.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Output, Stdio};

use super::{Place, names, verified};
use crate::kit::{Run, runner};
use crate::needs_sandbox;

/// Asserts that the runner refuses before the run: a run would have written its JSON report.
#[track_caller]
fn assert_refused(place: &Place, run: Run, words: &[&str]) {
    let output = run.argument("--report").argument("json").output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty(), "it was run");
    for word in words {
        assert!(said.contains(word), "no `{word}` in: {said}");
    }
    assert_eq!(fs::read(place.at("beside")).unwrap(), b"precious");
}

#[test]
fn unusable_directory_prevents_the_run() {
    let place = Place::new();
    fs::create_dir_all(place.at("full/inside")).unwrap();
    fs::create_dir(place.at("empty")).unwrap();
    symlink("empty", place.at("link")).unwrap();
    symlink("absent", place.at("dangling")).unwrap();
    for (name, told) in [
        ("beside", "found a file"),
        ("beside/evidence", "cannot make the directory"),
        ("full", "found inside in it"),
        ("link", "found a symbolic link"),
        ("link/", "found a symbolic link"),
        ("dangling", "found a symbolic link"),
        ("absent/evidence", "No such file or directory"),
    ] {
        let run = Run::case_b().argument("--out").argument(place.at(name));
        assert_refused(&place, run, &["error: ", told, "hint: "]);
    }
    assert_eq!(names(place.at("empty")), [""; 0]);
    assert_eq!(
        names(place.directory.path()),
        ["beside", "dangling", "empty", "full", "link"]
    );
}

#[test]
fn unwritable_directory_prevents_the_run() {
    let place = Place::new();
    fs::create_dir(place.evidence()).unwrap();
    fs::set_permissions(place.evidence(), fs::Permissions::from_mode(0o555)).unwrap();
    // Root may write anywhere.
    let run = place.described(Run::case_b().as_ordinary_user());
    assert_refused(
        &place,
        run,
        &["cannot make the directory", "Permission denied"],
    );
    assert_eq!(names(place.evidence()), [""; 0]);
}

#[test]
fn an_empty_directory_will_do_and_keeps_its_mode() {
    needs_sandbox!();
    let place = Place::new();
    fs::create_dir(place.evidence()).unwrap();
    fs::set_permissions(place.evidence(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(place.run(Run::case_b()).code, Some(0));
    place.assert_verifies();
    let mode = fs::metadata(place.evidence()).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    // The directory is no longer empty.
    let again = place.described(Run::case_b());
    assert_refused(
        &place,
        again,
        &["expected a new or an empty directory, found "],
    );
    place.assert_verifies();
}

#[test]
fn a_report_is_not_written_into_the_evidence() {
    let place = Place::new();
    fs::create_dir(place.evidence()).unwrap();
    let report = format!("human={}/mine.txt", place.evidence().display());
    let run = Run::case_b().argument("--report").argument(report);
    assert_refused(
        &place,
        place.described(run),
        &["would lie in the directory of the evidence"],
    );
    assert_eq!(names(place.evidence()), [""; 0]);
}

#[test]
fn the_evidence_is_not_shown_to_the_program() {
    // Directories below /tmp are never mounted.
    let place = Place::within("/var/tmp");
    let all = [("--read", ""), ("--write", ""), ("--read", "evidence")];
    for (option, shown) in all {
        let was_there = !shown.is_empty();
        if was_there {
            fs::create_dir(place.evidence()).unwrap();
        }
        let run = Run::case("audit")
            .argument(option)
            .argument(place.at(shown));
        let run = place.described(run).client_argument("/bin/true");
        let output = run.output();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{said}");
        let told = "where this run writes a report or its evidence";
        assert!(said.contains(told), "{said}");
        // The runner removes its partial output.
        assert_eq!(place.evidence().exists(), was_there);
        assert!(!was_there || names(place.evidence()).is_empty());
    }
}

#[test]
fn of_two_runs_into_one_directory_one_is_refused() {
    needs_sandbox!();
    for is_there in [false, true] {
        let place = Place::new();
        if is_there {
            fs::create_dir(place.evidence()).unwrap();
        }
        let start = || {
            let mut command = place.described(Run::case_b()).command();
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        };
        let mut codes = [start(), start(), start()].map(|mut run| run.wait().unwrap().code());
        codes.sort();
        assert_eq!(codes, [Some(0), Some(2), Some(2)]);
        place.assert_verifies();
    }
}

/// RLIMIT_FSIZE acts as a full disk, for each file. In the shell's blocks of 512 or 1024 bytes the limit is more than
/// set-up and the client write, and less than the largest reports.
#[test]
fn unwritable_evidence_is_an_error_without_sums() {
    needs_sandbox!();
    let place = Place::new();
    let output = Command::new("/bin/sh")
        .args(["-c", "ulimit -f 32; exec \"$@\"", "sh"])
        .arg(runner())
        .args(["case-b", "--out"])
        .arg(place.evidence())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    // The run itself was complete, and its verdict is reported.
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.starts_with("PASSED  case-b: "), "{report}{said}");
    let records = fs::read_to_string(place.evidence().join("stdout.jsonl")).unwrap();
    assert!(records.lines().count() > 1, "{records}");
    let told = [
        "is incomplete: cannot write report.",
        "caused by: File too large",
    ];
    assert!(told.iter().all(|word| said.contains(word)), "{said}");
    assert!(!said.contains("note: the evidence is in"), "{said}");
    let left = names(place.evidence());
    assert!(!left.contains(&"SHA256SUMS".to_owned()), "{left:?}");
    assert!(left.contains(&".unfinished".to_owned()), "{left:?}");
    assert_eq!(verified(&place.evidence(), &[]).0, 2);
}

/// The soft limit applies to the runner only, and the hard one to the client.
#[test]
fn unwritable_archive_is_an_error_without_sums() {
    needs_sandbox!();
    let place = Place::new();
    let output = Command::new("/bin/sh")
        .args(["-c", "ulimit -S -f 100; exec \"$@\"", "sh"])
        .arg(runner())
        .args(["audit", "--out"])
        .arg(place.evidence())
        .args(["--", "/bin/sh", "-c", "yes | head -c 200000 > $HOME/large"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{said}");
    let told = "is incomplete: cannot write the client's files\n  caused by: ";
    assert!(said.contains(told), "{said}");
    let left = names(place.evidence());
    assert!(!left.contains(&"SHA256SUMS".to_owned()), "{left:?}");
    assert!(
        !left.iter().any(|name| name.contains("files.tar")),
        "{left:?}"
    );
    // The reports are written in spite of that.
    assert!(left.contains(&"report.txt".to_owned()), "{left:?}");
}

/// Makes 99 directories, each in the one before, and a file in the last.
const DEEP: &str =
    "d=$HOME; i=0; while [ $i -lt 99 ]; do d=$d/d; mkdir $d || exit 9; i=$((i+1)); done
    echo text > $d/f; ulimit -S -n; ulimit -H -n";

/// The run of that client behind a limit on open files, with these options.
fn deep(limit: &str, options: &[&OsStr]) -> Output {
    Command::new("/bin/sh")
        .args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh"])
        .arg(runner())
        .arg("audit")
        .args(options)
        .args(["--", "/bin/sh", "-c", DEEP])
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn deepest_tree_is_copied_despite_a_soft_limit() {
    needs_sandbox!();
    let place = Place::new();
    let evidence = place.evidence();
    let out = ["--out".as_ref(), evidence.as_os_str()];
    let made = deep("-S -n 256", &out);
    let said = String::from_utf8(made.stderr).unwrap();
    assert_eq!(made.status.code(), Some(0), "{said}");
    assert!(!said.contains("not in the evidence"), "{said}");
    place.assert_verifies();
    let bottom = format!("home/{}f", "d/".repeat(99));
    assert_eq!(place.file(bottom), b"text\n");
    // The runner's own limit does not apply to the client.
    let without = deep("-S -n 256", &[]);
    assert_eq!(without.status.code(), Some(0));
    assert_eq!(made.stdout, without.stdout);
}

#[test]
fn low_hard_limit_on_files_prevents_the_run() {
    needs_sandbox!();
    let place = Place::new();
    let evidence = place.evidence();
    let out = ["--out".as_ref(), evidence.as_os_str()];
    let made = deep("-n 256", &out);
    let said = String::from_utf8(made.stderr).unwrap();
    assert_eq!(made.status.code(), Some(125), "{said}");
    let told = "error: no more than 256 open files are allowed here, and this run needs ";
    assert!(
        said.starts_with(told) && said.contains("hint: the limit of open files is too low"),
        "{said}"
    );
    assert!(made.stdout.is_empty() && !evidence.exists());
    assert_eq!(deep("-n 256", &[]).status.code(), Some(0));
}
