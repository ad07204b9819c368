//! Files that `runner policy init` prints, as a new user would use them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::kit::{Run, runner};
use crate::needs_sandbox;

/// Writes the output of `runner policy init` with these words to a file.
fn printed(words: &[&str]) -> (TempDir, PathBuf) {
    let mut command = Command::new(runner());
    let output = command
        .args(["policy", "init"])
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("printed.toml");
    fs::write(&path, output.stdout).unwrap();
    (directory, path)
}

#[test]
fn the_reference_client_passes_the_case_and_the_profile_that_are_printed() {
    needs_sandbox!();
    let (_case, case) = printed(&["case", "mine"]);
    let (_profile, profile) = printed(&["profile", "mine"]);
    let run = Run::case("run").argument(case);
    let done = run.argument("--profile").argument(profile).json();
    done.assert_passed();
    let names = (
        &done.report["case"]["name"],
        &done.report["client"]["profile"]["name"],
    );
    assert_eq!(names, (&"mine".into(), &"mine".into()));
}

/// Without its loader the program would not start.
#[test]
fn a_dynamic_program_starts_with_the_profile_that_is_printed_for_it() {
    needs_sandbox!();
    for program in ["/bin/true", "/usr/bin/sort"] {
        let (_directory, profile) = printed(&["profile", "mine", "--client", program]);
        let run = Run::case_a().client(program);
        let done = run.argument("--profile").argument(profile).json();
        done.assert_verdict(1, "failed");
        let code = &done.report["client"]["exit"]["code"];
        // The loader exits with 127 if a library is missing.
        assert!(code.is_i64() && code != 127, "{program}: {code}");
    }
}

#[test]
fn what_is_printed_to_nobody_is_an_error() {
    for words in ["init case mine", "schema report", "list"] {
        let script = format!("exec >&-; exec \"$0\" policy {words}");
        let mut shell = Command::new("/bin/sh");
        let output = shell
            .args(["-c", &script])
            .arg(runner())
            .stdin(Stdio::null());
        let output = output.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("error: cannot write the output"), "{said}");
    }
}
