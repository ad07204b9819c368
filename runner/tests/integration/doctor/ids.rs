//! Root of a user namespace that has some ids of the host only, as in rootless containers.

use super::{Examined, doctor};
use crate::kit::{Done, Run, is_root};
use crate::needs_sandbox;

/// Runs case B in isolation `namespace`, without a fallback.
fn case_b(words: &'static str) -> Run {
    Run::case_b()
        .argument("--isolation=namespace")
        .on_a_host_without(words)
}

/// Asserts that a client with another user id runs in isolation `namespace`.
#[track_caller]
fn assert_made(words: &'static str) {
    let done: Done = case_b(words).json();
    done.assert_passed();
    assert_eq!(done.report["tier"], "namespace");
    let examined = Examined::of(doctor().on_a_host_without(words));
    examined.assert_tier(Some("namespace"));
}

/// Asserts the true cause, with its fix.
#[track_caller]
fn assert_without_free_id(run: Run, examined: &Examined) {
    let output = run.output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("the user namespace maps no id that is free"),
        "{said}"
    );
    assert!(
        said.contains("hint: started by the root of a user namespace with too few ids"),
        "{said}"
    );
    examined.assert_step("namespace", "hand-over-pipes");
    let cause = "started by the root of a user namespace with too few ids";
    examined.assert_refused("namespace", Some("EINVAL"), cause);
    // Without namespaces the client needs no second id.
    examined.assert_tier(Some("inherited"));
}

#[test]
fn root_of_65536_ids_has_one_for_the_client() {
    needs_sandbox!();
    if is_root() {
        assert_made("ids=0-65535,network");
    }
}

#[test]
fn root_of_two_ids_gives_the_client_the_other() {
    needs_sandbox!();
    if is_root() {
        assert_made("ids=0+5321,network");
    }
}

/// The named id is a system user's, whose files exist.
#[test]
fn root_and_a_named_id_leave_none_for_the_client() {
    needs_sandbox!();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let is_named = |line: &str| line.split(':').nth(2) == Some("1");
    if is_root() && users.lines().any(is_named) {
        let words = "ids=0-1,network";
        let examined = Examined::of(doctor().on_a_host_without(words));
        assert_without_free_id(case_b(words), &examined);
    }
}

/// `unshare --map-root-user` makes such a namespace, also for an ordinary user.
#[test]
fn root_alone_leaves_no_id_for_the_client() {
    needs_sandbox!();
    let words = "ids=0,network";
    for by in [|run: Run| run, Run::as_ordinary_user] {
        let examined = Examined::of(by(doctor().on_a_host_without(words)));
        assert_without_free_id(by(case_b(words)), &examined);
        by(Run::case_b().on_a_host_without(words))
            .json()
            .assert_passed();
    }
}
