//! Limits: each is reached inside, at its value and with its errno, and use below the limit is allowed.

use std::process::Command;

use super::attempt::{said, with_attempts};
use crate::kit::{Run, runner};
use crate::needs_sandbox;

/// Case B with smaller limits.
fn outcome(attempt: &str) -> String {
    let shown = Command::new(runner())
        .args(["policy", "show", "case-b"])
        .output()
        .unwrap();
    let mut text = String::from_utf8(shown.stdout).unwrap();
    for (from, to) in [
        ("home_size = \"256 MiB\"", "home_size = \"2 MiB\""),
        ("home_files = 20000", "home_files = 100"),
        ("processes = 512", "processes = 20"),
        ("open_files = 4096", "open_files = 32"),
        ("file_size = \"64 MiB\"", "file_size = \"1 MiB\""),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(directory.path(), Some(1000), None).ok();
    let file = directory.path().join("small.toml");
    std::fs::write(&file, text).unwrap();
    let run = || {
        let run = Run::case("run").argument(&file).with_devices("\"null\"");
        with_attempts(run, &[attempt])
    };
    let own = said(&run().json(), &[attempt]).remove(0).outcome;
    let ordinary = said(&run().as_ordinary_user().json(), &[attempt]).remove(0);
    assert_eq!(own, ordinary.outcome);
    own
}

#[test]
fn the_size_of_home_and_tmp_is_limited() {
    needs_sandbox!();
    assert_eq!(outcome("fill /home/sandbox"), "ENOSPC");
    assert_eq!(outcome("fill /tmp"), "ENOSPC");
    assert_eq!(outcome("long-file /tmp/file 1000000"), "ok");
}

#[test]
fn the_number_of_files_is_limited() {
    needs_sandbox!();
    assert_eq!(outcome("fill-names /home/sandbox 101"), "ENOSPC");
    assert_eq!(outcome("fill-names /tmp 101"), "ENOSPC");
    assert_eq!(outcome("fill-names /tmp 90"), "ok");
}

#[test]
fn the_length_of_a_file_is_limited() {
    needs_sandbox!();
    assert_eq!(outcome("long-file /tmp/file 1048577"), "EFBIG");
    assert_eq!(outcome("long-file /tmp/file 1048576"), "ok");
}

#[test]
fn processes_and_descriptors_are_limited() {
    needs_sandbox!();
    assert_eq!(outcome("fork-bomb 20"), "EAGAIN");
    assert_eq!(outcome("fork-bomb 10"), "ok");
    assert_eq!(outcome("open-many 32"), "EMFILE");
    assert_eq!(outcome("open-many 20"), "ok");
}
