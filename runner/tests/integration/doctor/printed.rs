//! Output of the doctor and its destination; the doctor leaves no remains.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use super::{as_both, doctor};
use crate::kit::{self, runner};
use crate::needs_sandbox;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_verdict_is_the_first_and_the_last_line() {
    needs_sandbox!();
    for (words, word, code) in [
        ("network", "NAMESPACE  ", 0),
        ("network,namespaces", "INHERITED  ", 1),
        ("network,listener", "NONE  ", 3),
    ] {
        for run in as_both(|| doctor().on_a_host_without(words)) {
            let output = run.output();
            assert_eq!(output.status.code(), Some(code));
            let said = text(&output.stdout);
            let lines: Vec<_> = said.lines().collect();
            assert!(lines[0].starts_with(word), "{said}");
            assert_eq!(lines.first(), lines.last());
            assert!(!said.contains('\u{1b}'), "{said}");
            assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        }
    }
}

#[test]
fn what_is_in_the_way_comes_first_with_its_cause_and_its_fix() {
    needs_sandbox!();
    let said = text(
        &doctor()
            .on_a_host_without("network,namespaces")
            .output()
            .stdout,
    );
    let at = |words: &str| {
        said.find(words)
            .unwrap_or_else(|| panic!("no {words}: {said}"))
    };
    let places = [
        "Missing for isolation namespace",
        "refused     namespace",
        "    cause     already inside a sandbox",
        "    fix       ",
        "Required by isolation namespace",
        "Required by isolation inherited",
        "Required by every run",
        "Required by audits",
    ];
    assert!(places.is_sorted_by_key(|words| at(words)), "{said}");
    // With the stronger isolation, the features of the weaker one are not listed.
    let said = text(
        &doctor()
            .on_a_host_without("network,temporary")
            .output()
            .stdout,
    );
    assert!(!said.contains("Missing for"), "{said}");
}

/// The trial of a hung call still has a directory when it is killed, so its guard must remove the directory.
#[test]
fn temporary_directory_is_empty_afterwards() {
    needs_sandbox!();
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let hung = || doctor().on_a_host_without("network,truncate-hanging");
    for run in as_both(doctor).into_iter().chain([hung()]) {
        run.variable("TMPDIR", directory.path()).output();
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn an_examination_that_nobody_gets_is_none() {
    let output = Command::new("/bin/sh")
        .args(["-c", "exec \"$0\" doctor --apparmor >&-"])
        .arg(runner())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(
        said.starts_with("error: cannot write the output\n"),
        "{said}"
    );
}

#[test]
fn unknown_trial_fails_in_silence() {
    for arguments in [&["__trial"][..], &["__trial", "no-such-probe"]] {
        let mut trial = Command::new(runner());
        let output = trial.args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty() && output.stderr.is_empty());
    }
}

#[test]
fn the_profile_for_apparmor_names_this_program() {
    for run in as_both(doctor) {
        let output = run.argument("--apparmor").output();
        assert_eq!(output.status.code(), Some(0));
        let profile = text(&output.stdout);
        let own = fs::canonicalize(runner()).unwrap();
        let line = format!("profile runner \"{}\" flags=(unconfined) {{", own.display());
        assert!(profile.lines().any(|one| one == line), "{profile}");
        assert!(profile.lines().any(|one| one == "  userns,"), "{profile}");
    }
}

/// With APPARMOR_MUST_WORK=1 a machine without the parser fails.
#[test]
fn the_profile_for_apparmor_is_one_to_its_parser() {
    let parse = |profile: &str| {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("runner");
        fs::write(&file, profile).unwrap();
        // The parser loads the profile neither into the kernel nor into the cache.
        let mut parser = Command::new("apparmor_parser");
        parser.args(["-Q", "-K"]).arg(file).output()
    };
    let known = match parse("profile known { }\n") {
        Ok(output) => output,
        Err(error) => {
            let must = std::env::var_os("APPARMOR_MUST_WORK").is_some();
            assert!(!must, "no apparmor_parser: {error}");
            eprintln!("skipped, no apparmor_parser here: {error}");
            return;
        }
    };
    assert!(known.status.success(), "{}", text(&known.stderr));
    let mut profile = text(&doctor().argument("--apparmor").output().stdout);
    let knows_rule = parse("profile known { userns, }\n")
        .unwrap()
        .status
        .success();
    if !knows_rule {
        // Before version 4.0, which introduced the restriction that the rule is for.
        eprintln!("this apparmor_parser knows no userns rule: the rest is checked");
        for line in ["abi <abi/4.0>,\n", "  userns,\n"] {
            assert!(profile.contains(line), "{profile}");
            profile = profile.replace(line, "");
        }
    }
    let output = parse(&profile).unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!parse(&profile.replace('{', "")).unwrap().status.success());
}

#[test]
fn the_schema_of_an_examination_is_printed() {
    let output = Command::new(kit::runner())
        .args(["policy", "schema", "doctor"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("\"$id\": \"urn:runner:doctor/1\""));
}
