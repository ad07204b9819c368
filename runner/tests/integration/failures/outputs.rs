//! Destinations of reports, and the errors if a report cannot be written.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::interrupts::client_of;
use super::{after, assert_refused};
use crate::kit::{Run, parsed, runner};
use crate::needs_sandbox;

#[test]
fn without_a_place_for_its_report_nothing_is_run() {
    let directory = tempfile::tempdir().unwrap();
    let run = Run::case_b()
        .argument("--keep-home")
        .argument("--report")
        .argument(format!(
            "json={}/absent/report.json",
            directory.path().display()
        ))
        .variable("TMPDIR", directory.path());
    assert_refused(
        &run.output(),
        2,
        &[
            "error: cannot open the report file",
            "caused by: No such file",
        ],
    );
    // A run would leave its home in this directory.
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn the_json_report_is_whole_in_its_file_and_the_human_one_on_standard_output() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let output = Run::case_b()
        .argument("--report")
        .argument(format!("json={}", path.display()))
        .argument("--report")
        .argument("human")
        .output();
    let report = parsed(&fs::read(&path).unwrap(), "");
    assert_eq!(
        (report["schema"].as_str(), report["verdict"].as_str()),
        (Some("runner.report/1"), Some("passed"))
    );
    assert_eq!(
        report["checks"].as_array().unwrap().len(),
        model::finding::ids().count()
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let human = String::from_utf8(output.stdout).unwrap();
    let (first, last) = (human.lines().next().unwrap(), human.lines().last().unwrap());
    assert!(
        first.starts_with("PASSED  case-b: ") && first == last,
        "{human}"
    );
    assert_eq!(output.status.code(), Some(0));
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_failed_runs_json_report_is_in_its_file_as_well() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let json = format!("json={}", path.display());
    let run = Run::case_b()
        .argument("--report")
        .argument(json)
        .deviating("unknown-get");
    assert_eq!(run.output().status.code(), Some(1));
    let report = parsed(&fs::read(&path).unwrap(), "");
    assert_eq!(report["verdict"], "failed");
}

#[test]
fn a_run_whose_standard_input_is_closed_passes() {
    needs_sandbox!();
    assert_eq!(after("exec <&-", &Run::case_b()).status.code(), Some(0));
}

/// Rust opens /dev/null in place of a closed stream: the report would be lost without an error.
#[test]
fn a_report_to_a_standard_output_that_is_closed_is_an_error() {
    needs_sandbox!();
    for run in [
        Run::case_b(),
        Run::case_b().argument("--report").argument("json"),
    ] {
        let output = after("exec >&-", &run);
        assert_refused(
            &output,
            3,
            &[
                "error: cannot write the report to standard output",
                "caused by: Bad file descriptor",
            ],
        );
    }
    let silent = after("exec <&- >&- 2>&-", &Run::case_b());
    assert_eq!(silent.status.code(), Some(3));
}

#[test]
fn a_closed_standard_output_is_no_matter_where_no_report_goes_there() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let json = format!("json={}", path.display());
    let human = format!("human={}", directory.path().join("report.txt").display());
    let run = Run::case_b().argument("--report").argument(json);
    let both = run.argument("--report").argument(human);
    // The human report still has standard output as its destination; its loss does not affect any other report.
    assert_eq!(after("exec >&-", &both).status.code(), Some(3));
    assert_eq!(parsed(&fs::read(&path).unwrap(), "")["verdict"], "passed");
    // /dev/null is the caller's choice, so no report is lost.
    let quiet = after("exec >/dev/null", &both);
    assert_eq!(quiet.status.code(), Some(0));
}

#[test]
fn a_report_that_would_replace_what_the_run_reads_is_wrong_use() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let [case, profile, client, other] = ["c.toml", "p.toml", "client", "other"].map(place);
    for (file, name) in [(&case, "case-b"), (&profile, "reference")] {
        fs::write(file, policy::text(name).unwrap()).unwrap();
    }
    fs::copy("/bin/true", &client).unwrap();
    fs::hard_link(&client, &other).unwrap();
    for (report, what) in [
        (&case, "the case"),
        (&profile, "the profile"),
        (&client, "the client"),
        (&other, "the client"),
    ] {
        let before = fs::read(report).unwrap();
        let run = Run::case("run").argument(&case).client(&client);
        let run = run.argument("--profile").argument(&profile);
        let json = format!("json={}", report.display());
        let output = run.argument("--report").argument(json).output();
        let told = format!("error: the report file would replace {what}");
        assert_refused(
            &output,
            2,
            &[&told, "hint: give the report a file of its own"],
        );
        assert!(fs::read(report).unwrap() == before, "{what} was changed");
    }
}

#[test]
fn a_report_on_a_full_disk_is_an_error() {
    needs_sandbox!();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = Run::case_b().command().stdout(full).output().unwrap();
    assert_refused(
        &output,
        3,
        &["error: cannot write the report", "No space left on device"],
    );
}

/// Returns the human report on a terminal, by script(1) of util-linux; `None` if script is not installed.
fn on_a_terminal(variables: &[(&str, &str)]) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let command = format!("{} case-b", crate::kit::runner().display());
    let mut script = Command::new("script");
    script
        .args(["--quiet", "--return", "--command", &command])
        .arg(directory.path().join("typescript"));
    script
        .stdin(Stdio::null())
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied());
    let output = script.output().ok()?;
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_terminal_gets_colour_unless_no_color_says_otherwise() {
    needs_sandbox!();
    let (Some(plain), Some(coloured), Some(empty)) = (
        on_a_terminal(&[("NO_COLOR", "1")]),
        on_a_terminal(&[]),
        on_a_terminal(&[("NO_COLOR", "")]),
    ) else {
        return eprintln!("skipped, no script(1) here");
    };
    assert!(
        plain.contains("PASSED") && !plain.contains('\x1b'),
        "{plain}"
    );
    assert!(coloured.contains("\x1b[1;32mPASSED"), "{coloured}");
    assert!(empty.contains("\x1b[1;32mPASSED"), "{empty}");
}

#[test]
fn a_pipe_gets_no_colour() {
    needs_sandbox!();
    let human = String::from_utf8(Run::case_b().output().stdout).unwrap();
    assert!(
        human.contains("PASSED") && !human.contains('\x1b'),
        "{human}"
    );
}

#[test]
fn keep_home_leaves_a_copy_for_its_owner_alone_and_says_where() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    let run = Run::case_b()
        .argument("--keep-home")
        .variable("TMPDIR", directory.path());
    let output = run.output();
    let said = String::from_utf8(output.stderr).unwrap();
    let home = said
        .strip_prefix("note: the home is kept in ")
        .unwrap()
        .trim_end();
    assert_eq!(Path::new(home).parent(), Some(directory.path()));
    assert_eq!(fs::metadata(home).unwrap().mode() & 0o7777, 0o700);
    let app = Path::new(home).join(".agent");
    let backups: Vec<_> = fs::read_dir(app.join("backups"))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let [backup] = backups.as_slice() else {
        panic!("{backups:?}")
    };
    for path in [app.join(".agent.json"), backup.path()] {
        let status = fs::metadata(&path).unwrap();
        assert!(
            status.is_file() && status.mode() & 0o7777 == 0o600,
            "{path:?} {status:?}"
        );
    }
}

#[test]
fn without_a_place_for_the_copy_of_the_home_nothing_is_run() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = directory.path().join("evidence");
    let run = Run::case_b()
        .argument("--keep-home")
        .argument("--out")
        .argument(&bundle)
        .variable("TMPDIR", directory.path().join("absent"));
    let words = [
        "error: cannot make a directory for the copy of the home",
        "caused by: No such file",
        "hint: set TMPDIR to a directory that you may write",
    ];
    assert_refused(&run.output(), 2, &words);
    assert!(!bundle.exists());
}

/// The directory is removed while the client runs.
#[test]
fn a_copy_of_the_home_that_cannot_be_made_costs_nothing_else() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    let (homes, bundle) = (
        directory.path().join("homes"),
        directory.path().join("evidence"),
    );
    fs::create_dir(&homes).unwrap();
    let run = Run::case_b()
        .deviating("stays")
        .argument("--keep-home")
        .argument("--out")
        .argument(&bundle)
        .variable("TMPDIR", &homes);
    let mut command = run.command();
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let run = command.spawn().unwrap();
    client_of(&run);
    fs::remove_dir(&homes).unwrap();
    kill(Pid::from_raw(run.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    let lost = "cannot make a directory for the copy of the home\n  caused by: No such file";
    assert!(said.contains(lost), "{said}");
    assert!(said.contains("note: the evidence is in "), "{said}");
    let verified = Command::new(runner()).arg("verify").arg(&bundle).output();
    assert_eq!(verified.unwrap().status.code(), Some(0), "{said}");
}

#[test]
fn without_keep_home_nothing_is_left() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    let run = Run::case_b().variable("TMPDIR", directory.path());
    assert_eq!(run.output().status.code(), Some(0));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
