//! `--out` and `runner verify`: the evidence of a run, complete, and no file outside its directory.

mod hostile;
mod places;
mod whole;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::kit::{Run, runner};

/// A directory that every user may write to, in which a run creates `evidence`, with a file beside it.
struct Place {
    directory: TempDir,
}

/// Result of a run, with its bundle.
struct Made {
    code: Option<i32>,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        Self::within(std::env::temp_dir())
    }

    fn within(directory: impl AsRef<Path>) -> Self {
        let directory = tempfile::tempdir_in(directory).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(directory.path().join("beside"), "precious").unwrap();
        Self { directory }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn evidence(&self) -> PathBuf {
        self.at("evidence")
    }

    /// Makes the run write its evidence here.
    fn described(&self, run: Run) -> Run {
        run.argument("--out").argument(self.evidence())
    }

    fn run(&self, run: Run) -> Made {
        let output = self.described(run).output();
        Made {
            code: output.status.code(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts that the directory has no new file except the evidence.
    #[track_caller]
    fn assert_nothing_outside(&self) {
        let mut names: Vec<_> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "evidence")
            .collect();
        names.sort();
        assert_eq!(names, ["beside"]);
        assert_eq!(fs::read(self.at("beside")).unwrap(), b"precious");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.evidence().join(name)).unwrap()
    }

    /// Returns the reason of an exception.
    #[track_caller]
    fn reason(&self, path: &str) -> String {
        let all = self.exceptions();
        let found = all.iter().find(|one| one["path"] == path);
        let found = found.unwrap_or_else(|| panic!("{path} is not among {all:#?}"));
        found["reason"].as_str().unwrap().to_owned()
    }

    fn exceptions(&self) -> Vec<Value> {
        serde_json::from_str(&self.read("exceptions.json")).unwrap()
    }

    /// Returns what tar(1) extracts of one file of the client.
    #[track_caller]
    fn file(&self, name: impl AsRef<OsStr>) -> Vec<u8> {
        let archive = self.evidence().join("files.tar");
        let options = ["--extract", "--to-stdout", "--no-unquote", "--file"].map(OsStr::new);
        let operands = [archive.as_os_str(), OsStr::new("--"), name.as_ref()];
        command("tar", &[&options[..], &operands].concat())
    }

    /// Returns the lines of `tar --list --verbose`.
    fn listed(&self) -> Vec<String> {
        let archive = self.evidence().join("files.tar");
        let options = ["--list", "--verbose", "--file"].map(OsStr::new);
        let list = command("tar", &[&options[..], &[archive.as_os_str()]].concat());
        String::from_utf8(list)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn report(&self) -> Value {
        crate::kit::parsed(&fs::read(self.evidence().join("report.json")).unwrap(), "")
    }

    /// Asserts that `runner verify` and sha256sum(1) accept the evidence as the run's unchanged bundle.
    #[track_caller]
    fn assert_verifies(&self) {
        let (code, text) = verified(&self.evidence(), &[]);
        let count = self.read("SHA256SUMS").lines().count();
        let expected = format!("verified: {count} files, ");
        assert!(code == 0 && text.starts_with(&expected), "{code} {text}");
        let (_, sha256) = (text.trim_end().split_once("SHA-256 of SHA256SUMS ")).unwrap();
        assert_eq!(verified(&self.evidence(), &["--require-sums", sha256]).0, 0);
        let line = "cd \"$0\" && sha256sum --check --strict --quiet SHA256SUMS";
        command(
            "sh",
            &["-c".as_ref(), line.as_ref(), self.evidence().as_ref()],
        );
    }

    /// Asserts that the bundle is unchanged after tar(1) packs it and unpacks it elsewhere.
    #[track_caller]
    fn assert_an_archive_verifies(&self) {
        let (archive, into) = (self.at("archive.tar"), self.at("into"));
        fs::create_dir(&into).unwrap();
        let (evidence, whole) = (self.evidence(), OsStr::new("."));
        let [archive, evidence, into] = [&archive, &evidence, &into].map(|path| path.as_os_str());
        command(
            "tar",
            &["-cf".as_ref(), archive, "-C".as_ref(), evidence, whole],
        );
        command("tar", &["-xf".as_ref(), archive, "-C".as_ref(), into]);
        assert_eq!(verified(into.as_ref(), &[]).0, 0);
    }
}

/// Returns the exit code and the output of `runner verify`, run by a user who does not own the bundle if possible.
fn verified(directory: &Path, options: &[&str]) -> (i32, String) {
    let output = verify(directory, options);
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

fn verify(directory: &Path, options: &[&str]) -> Output {
    Command::new(runner())
        .arg("verify")
        .args(options)
        .arg(directory)
        .output()
        .unwrap()
}

/// Returns the names in a directory.
fn names(directory: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Runs a program, and returns its output.
#[track_caller]
fn command(program: impl AsRef<OsStr>, arguments: &[&OsStr]) -> Vec<u8> {
    let program = program.as_ref();
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}
