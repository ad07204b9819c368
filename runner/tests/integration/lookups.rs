//! Paths that an audited program looks up: hidden and denied paths, and the option that would make each available.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{self, Run, fixture, runner};
use crate::needs_sandbox;

/// A directory of the host that is never mounted: it is outside /tmp, which the sandbox replaces.
struct Hidden(TempDir);

impl Hidden {
    fn new() -> Self {
        Self(tempfile::tempdir_in("/var/tmp").unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }
}

/// Returns the report of an audit of the seeking client with these operations.
#[track_caller]
fn audit(pairs: &[(&str, &Path)]) -> Value {
    audit_from(Path::new("/"), pairs)
}

/// Runs the audit from a directory of the host.
#[track_caller]
fn audit_from(current: &Path, pairs: &[(&str, &Path)]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.json");
    let mut command = Command::new(runner());
    command.current_dir(current);
    command.arg("audit").arg("--report");
    command.arg(format!("json={}", report.display()));
    command.arg("--").arg(fixture("seeking-client"));
    for (what, path) in pairs {
        command.arg(what).arg(path);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    kit::parsed(&fs::read(report).unwrap(), &said)
}

/// Returns kind, path, paths, count and advice of each lookup at or below `path`.
fn lookups(report: &Value, path: &Path) -> Vec<Value> {
    let all = report["evidence"]["lookups"].as_array().unwrap();
    let below = all
        .iter()
        .filter(|one| Path::new(one["path"].as_str().unwrap()).starts_with(path));
    let told = below.map(|one| {
        let keys = ["kind", "path", "paths", "count", "advice"];
        Value::from_iter(keys.map(|key| one[key].clone()))
    });
    told.collect()
}

fn option(option: &str, path: &Path) -> Value {
    json!({"option": option, "path": path, "reason": null})
}

#[test]
fn a_file_that_is_not_shown_is_told_with_the_option_that_shows_it() {
    needs_sandbox!();
    let hidden = Hidden::new();
    let file = hidden.file("a/data");
    let report = audit(&[("read", &file), ("read", &file), ("read", &file.join("no"))]);
    let expected = json!(["read", file, 1, 2, option("read", &file)]);
    assert_eq!(lookups(&report, hidden.0.path()), [expected]);
    // The positive twin: the report lists neither mounted paths nor paths that are absent on the host too.
    let report = audit(&[("list", Path::new("/usr")), ("read", Path::new("/usr/no"))]);
    assert_eq!(lookups(&report, Path::new("/usr")), [] as [Value; 0]);
}

#[test]
fn many_files_of_one_directory_are_told_as_one() {
    needs_sandbox!();
    let hidden = Hidden::new();
    let files: Vec<PathBuf> = (0..50).map(|n| hidden.file(&format!("lib/{n}"))).collect();
    let pairs: Vec<_> = files.iter().map(|file| ("read", file.as_path())).collect();
    let lib = hidden.0.path().join("lib");
    let expected = json!(["read", lib, 50, 50, option("read", &lib)]);
    assert_eq!(lookups(&audit(&pairs), hidden.0.path()), [expected]);
}

#[test]
fn a_relative_path_is_followed_from_the_programs_directory_inside() {
    needs_sandbox!();
    let hidden = Hidden::new();
    let file = hidden.file("data");
    let relative = Path::new("..").join(file.strip_prefix("/").unwrap());
    let report = audit(&[("enter", Path::new("/usr")), ("read", &relative)]);
    let expected = json!(["read", file, 1, 1, option("read", &file)]);
    assert_eq!(lookups(&report, hidden.0.path()), [expected]);
}

#[test]
fn what_lies_in_a_current_directory_that_is_not_shown_is_told_with_that_directory() {
    needs_sandbox!();
    let hidden = Hidden::new();
    let file = hidden.file("script");
    let report = audit_from(hidden.0.path(), &[("read", Path::new("script"))]);
    let expected = json!(["read", file, 1, 1, option("read", hidden.0.path())]);
    assert_eq!(lookups(&report, hidden.0.path()), [expected]);
}

#[test]
fn a_program_that_is_not_shown_is_told_as_one_to_be_executed() {
    needs_sandbox!();
    let hidden = Hidden::new();
    let program = hidden.file("bin/tool");
    let report = audit(&[("execute", &program)]);
    let told = lookups(&report, hidden.0.path());
    assert_eq!(told[0][0], "execute");
    assert_eq!(told[0][4], option("read", &program));
}

#[test]
fn what_was_to_be_written_is_told_with_the_directory_that_it_would_lie_in() {
    needs_sandbox!();
    let hidden = Hidden::new();
    let file = hidden.file("log/old");
    let new = file.with_file_name("new");
    let report = audit(&[("write", &new), ("make", &file.with_file_name("d"))]);
    let log = file.parent().unwrap();
    let expected = json!(["write", log, 2, 2, option("write", log)]);
    assert_eq!(lookups(&report, hidden.0.path()), [expected]);
    // Mounted, and read-only.
    let report = audit(&[("write", Path::new("/usr/lib/no-such-file"))]);
    let told = lookups(&report, Path::new("/usr/lib"));
    assert_eq!(told[0][4], option("write", Path::new("/usr/lib")));
    assert!(!Path::new("/usr/lib/no-such-file").exists());
    // Writes to the program's own trees are not reported.
    let report = audit(&[
        ("write", Path::new("/tmp/x")),
        ("remove", Path::new("/tmp/x")),
    ]);
    assert_eq!(lookups(&report, Path::new("/tmp")), [] as [Value; 0]);
}

#[test]
fn fifo_that_cannot_be_made_is_told() {
    needs_sandbox!();
    let hidden = Hidden::new();
    let fifo = hidden.file("run/old").with_file_name("fifo");
    let report = audit(&[("make-fifo", &fifo), ("make-fifo", Path::new("/tmp/fifo"))]);
    let run = fifo.parent().unwrap();
    let expected = json!(["write", fifo, 1, 1, option("write", run)]);
    assert_eq!(lookups(&report, hidden.0.path()), [expected]);
    // Writes to the program's own trees are not reported.
    assert_eq!(lookups(&report, Path::new("/tmp")), [] as [Value; 0]);
}

#[test]
fn what_no_option_shows_is_told_with_the_reason() {
    needs_sandbox!();
    let report = audit(&[("list", Path::new("/sys")), ("list", Path::new("/root"))]);
    for (path, reason) in [("/sys", "system"), ("/root", "broad")] {
        let told = lookups(&report, Path::new(path));
        let never = json!({"option": "never", "path": null, "reason": reason});
        assert_eq!(told[0][4], never, "{path}");
    }
}

#[test]
fn a_flood_of_lookups_is_bounded_and_told_as_a_gap() {
    needs_sandbox!();
    let report = audit(&[("flood", Path::new("/usr/no"))]);
    let gaps = report["evidence"]["gaps"].as_array().unwrap();
    let of_lookups = gaps.iter().filter(|gap| gap["what"] == "lookups");
    assert_eq!(of_lookups.count(), 1, "{gaps:?}");
}

#[test]
fn a_case_records_no_lookups() {
    needs_sandbox!();
    let done = Run::case_b().json();
    assert_eq!(done.report["evidence"]["lookups"], json!([]));
}

/// A case whose client reads a key and a hidden file. In /var/tmp: of /tmp, only the
/// caller's own files are shown.
fn seeking_case(hidden: &Path) -> TempDir {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let text = format!(
        "schema = \"runner.case/1\"\nname = \"seeker\"\n\n[client]\nprogram = \"/bin/sh\"\n\
         arguments = [\"-c\", \"read x < ~/.ssh/id_ed25519; read x < {}; exit 0\"]\n\n\
         [expect.exit]\ncode = 0\n",
        hidden.display()
    );
    fs::write(directory.path().join("seeker.toml"), text).unwrap();
    directory
}

#[test]
fn case_lists_lookups_only_if_asked() {
    needs_sandbox!();
    let hidden = Hidden::new();
    let file = hidden.file("secret");
    let case = seeking_case(&file);
    let run = || Run::case("run").argument(case.path().join("seeker.toml"));
    let not_recorded = "Which paths it looked for: only `--lookups` lists them.";

    let without = run().json();
    without.assert_passed();
    let evidence = &without.report["evidence"];
    assert_eq!(
        (&evidence["lookups"], &evidence["sensitive"]),
        (&json!([]), &json!([]))
    );
    let limits = without.report["isolation"]["not_proved"].to_string();
    assert!(limits.contains(not_recorded), "{limits}");

    let with = run().argument("--lookups").json();
    with.assert_passed();
    assert_eq!(lookups(&with.report, &file).len(), 1, "{}", with.text);
    let sensitive = with.report["evidence"]["sensitive"].to_string();
    assert!(
        sensitive.contains("/home/sandbox/.ssh/id_ed25519"),
        "{sensitive}"
    );
    let limits = with.report["isolation"]["not_proved"].to_string();
    assert!(!limits.contains(not_recorded), "{limits}");
    // The report for people names the place, and no option that a case does not have.
    assert!(
        with.stderr
            .contains("Sensitive places that it looked for: 1"),
        "{}",
        with.stderr
    );
    assert!(with.stderr.contains("a path rule for "), "{}", with.stderr);
    assert!(!with.stderr.contains("--read "), "{}", with.stderr);
}
