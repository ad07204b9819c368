//! Other processes: init, which runs beside the client, and all others, which are invisible.

use super::attempt::{hostile, inside_one, outside, refused, refused_inside};
use crate::needs_sandbox;

#[test]
fn init_is_out_of_reach_of_calls() {
    needs_sandbox!();
    refused_inside(&[
        ("trace 1", "EPERM"),
        ("read-memory 1", "EPERM"),
        ("write-memory 1", "EPERM"),
        ("steal-descriptor 1", "EPERM"),
        ("compare 1", "EPERM"),
        ("limits-of 1", "EPERM"),
        ("signal 1 0", "EPERM"),
        ("signal 1 9", "EPERM"),
        ("signal 1 15", "EPERM"),
        ("signal 1 17", "EPERM"),
        ("signal 1 19", "EPERM"),
        ("signal-by-descriptor 1 9", "EPERM"),
    ]);
}

/// The twins: the same calls on a child. Some are refused inside for every target.
#[test]
fn the_calls_that_do_not_reach_init_reach_a_child_outside() {
    needs_sandbox!();
    refused(&[
        ("trace child", "EPERM", ""),
        ("read-memory child", "EPERM", ""),
        ("write-memory child", "EPERM", ""),
        ("steal-descriptor child", "EPERM", ""),
        ("compare child", "EPERM", ""),
        ("limits-of child", "EPERM", ""),
    ]);
    refused_inside(&[
        ("signal child 9", "ok"),
        ("signal-by-descriptor child 9", "ok"),
        ("limits-of 0", "ok"),
    ]);
}

/// The twins: the same calls on a child, inside.
#[test]
fn init_is_not_slowed_down() {
    needs_sandbox!();
    refused_inside(&[
        ("priority-of 1", "EPERM"),
        ("scheduler-of 1", "EPERM"),
        ("io-priority-of 1", "EPERM"),
        ("priority-of child", "ok"),
        ("scheduler-of child", "ok"),
        ("io-priority-of child", "ok"),
    ]);
}

#[test]
fn init_is_out_of_reach_of_proc() {
    needs_sandbox!();
    refused(&[
        ("read /proc/1/environ", "EACCES", SELF),
        ("read /proc/1/maps", "EACCES", SELF),
        ("read /proc/1/auxv", "EACCES", SELF),
        ("open-write /proc/1/mem", "EACCES", SELF),
        ("open-write /proc/1/comm", "EACCES", SELF),
        ("open-write /proc/1/oom_score_adj", "EACCES", SELF),
        ("list /proc/1/fd", "EACCES", SELF),
        ("list /proc/1/root/", "EACCES", SELF),
        ("list /proc/1/cwd/", "EACCES", SELF),
        ("list /proc/1/map_files", "EACCES", SELF),
    ]);
    refused_inside(&[
        ("read /proc/1/mem", "EACCES"),
        ("open-write /proc/1/exe", "EACCES"),
        ("execute /proc/1/exe", "EACCES"),
    ]);
    // Attributes of a process that every user may read contain no secret.
    assert_eq!(
        inside_one("read /proc/1/cmdline").detail.trim(),
        "runner-stage __stage"
    );
}

/// Reads the same file of the fixture's own process.
const SELF: &str = "--self";

#[test]
fn only_the_sandbox_can_be_seen() {
    needs_sandbox!();
    assert_eq!(inside_one("processes").detail, "[1, 2]");
    let own = std::process::id();
    refused(&[(&format!("signal {own} 0"), "ESRCH", "")]);
    assert_ne!(outside("", "processes").detail, "[1, 2]");
}

/// kill(2) of -1 reaches every visible process except init and the caller. The run still reaches its verdict.
#[test]
fn killing_everything_kills_the_clients_own_processes() {
    needs_sandbox!();
    let made = inside_one("kill-everything");
    assert_eq!(
        (made.outcome.as_str(), made.detail.as_str()),
        ("ok", "the child was killed")
    );
    refused_inside(&[("signal -1 0", "ESRCH")]);
}

/// A descriptor limit on init would prevent it from listing processes, and no survivor would be named.
#[test]
fn a_client_cannot_keep_init_from_naming_what_it_leaves() {
    needs_sandbox!();
    for run in [
        hostile(&["leave-daemons-unseen"]),
        hostile(&["leave-daemons-unseen"]).as_ordinary_user(),
    ] {
        let done = run.json();
        assert!(
            done.checks("failed").contains(&"process/no-survivors"),
            "{}",
            done.stderr
        );
    }
}
