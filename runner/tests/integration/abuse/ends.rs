//! Limits that end a client: the message names each, with its value and the case's key that raises it.

use std::process::{Command, Stdio};

use super::Abuse;
use crate::kit::Done;
use crate::needs_sandbox;
use crate::teardown::watch::Place;

#[test]
fn each_end_by_a_limit_is_named() {
    needs_sandbox!();
    for (abuse, key, value, limit) in [
        ("stop-itself", "timeout", "\"1s\"", "timeout = \"1s\""),
        (
            "one-long-line",
            "output_size",
            "\"1 MiB\"",
            "output_size = \"1 MiB\"",
        ),
        (
            "endless-errors",
            "output_size",
            "\"1 MiB\"",
            "output_size = \"1 MiB\"",
        ),
        ("empty-lines", "output_lines", "1000", "output_lines = 1000"),
        (
            "requests-on-one-connection",
            "requests",
            "50",
            "requests = 50",
        ),
        (
            "all-processor-time",
            "cpu_time",
            "\"1s\"",
            "cpu_time = \"1s\"",
        ),
        (
            "file-without-end",
            "file_size",
            "\"1 MiB\"",
            "file_size = \"1 MiB\"",
        ),
    ] {
        let ended = Abuse::of(abuse).limit(key, value).run();
        assert_eq!(ended.report["client"]["limit"], limit, "{abuse}");
        let found = ended.report["checks"].as_array().unwrap().iter();
        let exit = found
            .clone()
            .find(|check| check["id"] == "process/exit-zero");
        let exit = exit.unwrap()["found"].as_str().unwrap().to_owned();
        assert!(exit.ends_with(&format!("(limit: {limit})")), "{exit}");
    }
}

#[test]
fn lines_below_the_limit_are_kept() {
    needs_sandbox!();
    let ended = Abuse::of("one-byte-writes")
        .limit("output_lines", "1000")
        .run();
    ended.assert_passed();
    assert!(ended.report["client"]["limit"].is_null());
}

#[test]
fn the_limit_of_lines_is_named_in_its_gap() {
    needs_sandbox!();
    let ended = Abuse::of("empty-lines").limit("output_lines", "1000").run();
    assert!(
        ended
            .gaps()
            .contains("standard output went over its limit, output_lines = 1000"),
        "{}",
        ended.gaps()
    );
}

/// Runs the abuse after `ulimit`.
fn after(ulimit: &str, abuse: &Abuse) -> Done {
    let place = Place::new();
    let run = place.command(abuse.described(&place));
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("ulimit {ulimit} && exec \"$0\" \"$@\"")]);
    shell.arg(run.get_program()).args(run.get_args());
    Done::of(&shell.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn a_low_soft_limit_on_files_holds_no_connection_back() {
    needs_sandbox!();
    let done = after("-S -n 300", &Abuse::of("idle-connections"));
    assert_eq!(
        done.checks("failed"),
        ["requests/connections"],
        "{}",
        done.stderr
    );
    assert_eq!(done.checks("errored"), [""; 0]);
}

/// The hard limit reduces the stub's connections, and a gap reports the number.
#[test]
fn a_low_hard_limit_on_files_is_named_with_the_connections() {
    needs_sandbox!();
    let done = after("-n 320", &Abuse::of("idle-connections"));
    let gaps = done.report["evidence"]["gaps"].to_string();
    assert!(
        gaps.contains("RLIMIT_NOFILE on this machine leaves 224 at one time of connections = 1000"),
        "{gaps}"
    );
    // The client always ends with its own error.
    done.assert_verdict(1, "failed");
}
