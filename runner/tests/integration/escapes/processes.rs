//! Other processes: init, which runs beside the client, and all others, which are invisible.

use super::attempt::{hostile, inside_one, outside, refused_inside};
use crate::needs_sandbox;

#[test]
fn only_the_sandbox_can_be_seen() {
    needs_sandbox!();
    assert_eq!(inside_one("processes").detail, "[1, 2]");
    assert_ne!(outside("processes").detail, "[1, 2]");
}

/// Calls that are refused on init are allowed on a child.
#[test]
fn own_child_is_signalled_and_slowed_down() {
    needs_sandbox!();
    refused_inside(&[
        ("signal child 9", "ok"),
        ("signal-by-descriptor child 9", "ok"),
        ("limits-of 0", "ok"),
        ("priority-of child", "ok"),
        ("scheduler-of child", "ok"),
        ("io-priority-of child", "ok"),
    ]);
    // Attributes of a process that every user may read contain no secret.
    assert_eq!(
        inside_one("read /proc/1/cmdline").detail.trim(),
        "runner-stage __stage user+network"
    );
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
