//! The identity of the runner, and the SHA-256 of a client's program: read, known from an earlier run, or neither.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use object::Object as _;
use serde_json::Value;
use tempfile::TempDir;

use crate::kit::{self, Done, Run, runner};
use crate::{needs_program, needs_sandbox};

/// A program of more than 256 KiB that was installed long ago.
const GIT: &str = "/usr/bin/git";

/// A home of the user who runs.
struct Home {
    directory: TempDir,
    is_ordinary: bool,
}

impl Home {
    /// On a file system that can be cached, unlike /tmp on some machines.
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        Self {
            directory,
            is_ordinary: false,
        }
    }

    fn of_ordinary_user() -> Self {
        let mut home = Self::new();
        home.is_ordinary = true;
        if kit::is_root() {
            chown(home.directory.path(), Some(1000), Some(1000)).unwrap();
        }
        home
    }

    fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    fn entries(&self) -> usize {
        let entries = fs::read_dir(self.path().join(".cache/runner"));
        entries.map_or(0, Iterator::count)
    }

    /// An audit with these options.
    fn audit(&self, options: &[&str], program: &Path) -> Run {
        let mut run = Run::case("audit");
        for option in options {
            run = run.argument(option);
        }
        // An empty value is as none.
        run = run
            .variable("HOME", self.path())
            .variable("XDG_CACHE_HOME", "");
        let run = run.client_argument(program).client_argument("--version");
        if self.is_ordinary {
            run.as_ordinary_user()
        } else {
            run
        }
    }

    /// Source of the digest of an audited program.
    #[track_caller]
    fn source(&self, options: &[&str], program: &Path) -> String {
        source(&report_of(&self.audit(options, program)))
    }
}

/// Report of an audit, in a file, because the program has standard output.
#[track_caller]
fn report_of(run: &Run) -> Value {
    let (mut command, report) = reporting(run);
    let output = command.output().unwrap();
    read_report(&report, &String::from_utf8_lossy(&output.stderr))
}

fn reporting(run: &Run) -> (Command, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let mut option = std::ffi::OsString::from("--report=json=");
    option.push(directory.path().join("report.json"));
    let mut command = Command::new(runner());
    let made = run.command();
    let mut arguments = made.get_args();
    command
        .args(arguments.by_ref().take(1))
        .arg(option)
        .args(arguments);
    command.envs(
        made.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    run.with_user(&mut command);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    (command, directory)
}

#[track_caller]
fn read_report(directory: &TempDir, said: &str) -> Value {
    let text = fs::read(directory.path().join("report.json")).unwrap_or_default();
    kit::parsed(&text, said)
}

#[track_caller]
fn source(report: &Value) -> String {
    let from = report["client"]["from"].as_str().unwrap();
    assert_eq!(
        report["client"]["sha256"].is_string(),
        from != "built-in",
        "{from}"
    );
    from.to_owned()
}

#[test]
fn build_id_is_that_of_the_file() {
    let file = fs::read(runner()).unwrap();
    let elf = object::File::parse(&*file).unwrap();
    let id = model::digest::hex(elf.build_id().unwrap().unwrap());
    let asked = |arguments: &[&str]| {
        let output = Command::new(runner()).args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let whole = asked(&["--version", "--verbose"]);
    assert!(whole.contains(&format!("\nbuild id: {id}\n")), "{whole}");
    assert_eq!(asked(&["-V", "-v"]), whole);
    assert_eq!(
        asked(&["--version"]),
        format!("runner {}\n", env!("CARGO_PKG_VERSION"))
    );
    needs_sandbox!();
    let report = Run::case_b().json().report;
    assert_eq!(report["runner"]["build_id"], id);
    let commit = report["runner"]["commit"].as_str().unwrap();
    assert!(whole.contains(&format!("\ncommit: {commit}\n")), "{whole}");
    assert_eq!(report["runner"].get("sha256"), None);
}

#[test]
fn client_in_the_executable_is_not_hashed() {
    needs_sandbox!();
    let home = Home::new();
    let run = Run::case_b()
        .variable("HOME", home.path())
        .variable("XDG_CACHE_HOME", "");
    let done: Done = run.json();
    done.assert_passed();
    assert_eq!(source(&done.report), "built-in");
    assert_eq!(home.entries(), 0);
}

#[test]
fn unchanged_program_is_read_once() {
    needs_program!("/usr/bin/git");
    let git = Path::new(GIT);
    for home in [Home::new(), Home::of_ordinary_user()] {
        let first = report_of(&home.audit(&[], git));
        assert_eq!(source(&first), "read");
        let sha256 = model::digest::of_bytes(&fs::read(GIT).unwrap());
        assert_eq!(first["client"]["sha256"], sha256);
        let second = report_of(&home.audit(&[], git));
        assert_eq!(source(&second), "cache");
        assert_eq!(second["client"]["sha256"], sha256);
        assert_eq!(home.source(&["--no-cache"], git), "read");
        assert_eq!(home.entries(), 1);
    }
}

#[test]
fn nothing_is_kept_without_the_cache() {
    needs_program!("/usr/bin/git");
    let home = Home::new();
    for _ in 0..2 {
        assert_eq!(home.source(&["--no-cache"], Path::new(GIT)), "read");
    }
    assert!(!home.path().join(".cache").exists());
}

#[test]
fn concurrent_runs_agree() {
    needs_program!("/usr/bin/git");
    let home = Home::new();
    let run = home.audit(&[], Path::new(GIT));
    let started: Vec<_> = (0..3)
        .map(|_| {
            let (mut command, report) = reporting(&run);
            (command.spawn().unwrap(), report)
        })
        .collect();
    let sha256 = model::digest::of_bytes(&fs::read(GIT).unwrap());
    for (child, report) in started {
        let output = child.wait_with_output().unwrap();
        let report = read_report(&report, &String::from_utf8_lossy(&output.stderr));
        assert_eq!(report["client"]["sha256"], sha256);
    }
    assert_eq!(home.source(&[], Path::new(GIT)), "cache");
    assert_eq!(home.entries(), 1);
}

#[test]
fn program_that_was_just_changed_is_read_again() {
    needs_program!("/usr/bin/git");
    let home = Home::new();
    let program = home.path().join("program");
    fs::copy(GIT, &program).unwrap();
    // In the future, so that the change is young however slow the machine is.
    let tomorrow = SystemTime::now() + Duration::from_secs(24 * 60 * 60);
    File::options()
        .append(true)
        .open(&program)
        .unwrap()
        .set_modified(tomorrow)
        .unwrap();
    for _ in 0..2 {
        assert_eq!(home.source(&[], &program), "read");
    }
    assert_eq!(home.entries(), 0);
}

#[test]
fn client_never_sees_a_cache_that_is_used() {
    needs_program!("/usr/bin/git");
    // As root, the program would run as a user without rights here.
    let home = Home::of_ordinary_user();
    let git = Path::new(GIT);
    assert_eq!(home.source(&[], git), "read");
    let (whole, cache) = (home.path(), home.path().join(".cache/runner"));
    for shown in [&whole, &cache] {
        let read = format!("--read={}", shown.display());
        assert_eq!(home.source(&[&read], git), "read", "{read}");
        for further in [&[][..], &["--no-cache"]] {
            let write = format!("--write={}", shown.display());
            let options = [&[write.as_str()], further].concat();
            let output = home.audit(&options, git).output();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(125), "{said}");
            let cause = "where the runner keeps digests that later runs trust";
            assert!(said.contains(cause), "{said}");
        }
    }
    let project = whole.join("project");
    fs::create_dir(&project).unwrap();
    fs::set_permissions(&project, Permissions::from_mode(0o777)).unwrap();
    let write = format!("--write={}", project.display());
    assert_eq!(home.source(&[&write], git), "cache");
}

#[test]
fn cache_in_the_home_of_another_user_is_not_used() {
    needs_program!("/usr/bin/git");
    // Only root can enter the home of another user here.
    if !kit::is_root() {
        return;
    }
    let home = Home::of_ordinary_user();
    let git = Path::new(GIT);
    assert_eq!(home.source(&[], git), "read");
    assert_eq!(home.source(&[], git), "cache");
    let as_root = Home {
        is_ordinary: false,
        ..home
    };
    assert_eq!(as_root.source(&[], git), "read");
    fs::remove_dir_all(as_root.path().join(".cache")).unwrap();
    assert_eq!(as_root.source(&[], git), "read");
    assert!(!as_root.path().join(".cache").exists());
    assert_eq!(fs::metadata(as_root.path()).unwrap().uid(), 1000);
}
