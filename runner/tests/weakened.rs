//! Each protection switched off in a test build: the run refuses to start the client, and says which layer or
//! canary misses it.
//!
//! `cargo build -p runner --features weaken --examples && cargo test -p runner --features weaken --test weakened`
#![allow(clippy::unwrap_used, reason = "all of this is test code")]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fixture(name: &str) -> PathBuf {
    let runner = Path::new(env!("CARGO_BIN_EXE_runner"));
    runner.with_file_name("examples").join(name)
}

/// Exit code, and the line of the error with what does not hold, in tier `namespace`.
fn case_b(weakened: &str, ordinary_user: bool) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command.args(["case-b", "--isolation", "namespace"]);
    said(command, weakened, ordinary_user)
}

/// The same in tier `inherited`, in a network that has loopback only.
fn shared(weakened: &str, ordinary_user: bool) -> (Option<i32>, String) {
    let mut command = Command::new(fixture("hindered-host"));
    command.args(["network", "--", env!("CARGO_BIN_EXE_runner")]);
    command.args(["case-b", "--isolation", "inherited"]);
    said(command, weakened, ordinary_user)
}

fn said(mut command: Command, weakened: &str, ordinary_user: bool) -> (Option<i32>, String) {
    command.env("RUNNER_WEAKEN", weakened);
    if ordinary_user && nix::unistd::Uid::current().is_root() {
        command.uid(1000).gid(1000);
    }
    let output = command.output().unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[track_caller]
fn misses(weakened: &str, what: &[&str]) {
    missed(case_b, weakened, what);
}

#[track_caller]
fn missed(run: fn(&str, bool) -> (Option<i32>, String), weakened: &str, what: &[&str]) {
    for ordinary_user in [false, true] {
        let (code, said) = run(weakened, ordinary_user);
        assert_eq!(code, Some(3), "without {weakened}: {said}");
        for one in what {
            assert!(
                said.contains(one),
                "without {weakened}, {one} is not in: {said}"
            );
        }
        assert!(
            said.contains("the client was not started") || said.contains("cannot set up"),
            "{said}"
        );
    }
}

#[test]
fn with_every_protection_the_case_passes() {
    for run in [case_b, shared] {
        for ordinary_user in [false, true] {
            let (code, said) = run("", ordinary_user);
            assert_eq!(code, Some(0), "{said}");
        }
    }
}

#[test]
fn without_landlock_each_of_its_canaries_tells_where_it_stands_alone() {
    missed(
        shared,
        "landlock",
        &[
            "canary host-directory (continued): ok instead of EACCES",
            "canary write-outside (continued): ok instead of EACCES",
            "canary landlock-read (continued): ok instead of EACCES",
            "canary neighbour (continued): ok instead of EACCES",
            "canary abstract-socket-outside (continued): ok instead of EPERM",
            "canary abstract-socket-inside (continued): ok instead of EPERM",
            "canary signal (continued): ok instead of EPERM",
        ],
    );
}

#[test]
fn without_the_supervisors_refusals_unix_sockets_and_listeners_tell_where_the_network_is_shared() {
    missed(
        shared,
        "refusals",
        &[
            "canary unix-socket (answered): ok instead of EACCES",
            "canary udp4 (answered): ENETUNREACH instead of EACCES",
            "canary io-uring (answered): ok instead of ENOSYS",
        ],
    );
}

#[test]
fn without_the_filters_own_refusals_its_canaries_tell_where_nothing_is_its_own() {
    missed(
        shared,
        "filter",
        &["canary terminal-input (continued): ENOTTY instead of EPERM"],
    );
}

#[test]
fn with_a_dumpable_init_and_no_landlock_a_shared_init_is_read_by_its_user() {
    let (code, said) = shared("landlock,hidden-init", true);
    assert_eq!(code, Some(3));
    let told = "canary init-memory (continued): ok instead of EACCES";
    assert!(said.contains(told), "{said}");
    let (_, said) = shared("landlock", true);
    assert!(!said.contains("init-memory"), "{said}");
}

#[test]
fn without_a_network_namespace_there_is_no_loopback_to_set_up() {
    misses(
        "network-namespace",
        &["cannot set the loopback device up: EPERM"],
    );
}

/// In a namespace from which the outside can be reached, with a client that tries to.
#[test]
fn without_what_seals_the_network_nothing_is_started_that_could_reach_the_world() {
    let directory = tempfile::tempdir().unwrap();
    for weakened in ["network-namespace", "refusals", "records"] {
        let counts = directory.path().join(weakened);
        let mut world = Command::new(fixture("outside-world"));
        world.arg("--counts").arg(&counts).arg("--");
        world.arg(env!("CARGO_BIN_EXE_runner")).arg("case-b");
        world.args(["--isolation", "namespace", "--client"]);
        world.arg(fixture("outgoing-client"));
        world.args(["--", "--go", "tcp-connect"]);
        let output = world.env("RUNNER_WEAKEN", weakened).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "without {weakened}: {said}");
        assert!(!said.contains("tcp-connect: "), "{said}");
        assert_eq!(fs::read_to_string(&counts).unwrap(), "", "{weakened}");
    }
}

#[test]
fn without_a_read_only_root_the_read_back_and_its_canary_tell() {
    misses(
        "read-only-root",
        &[
            "root: ",
            "canary write-root (continued): EACCES instead of EROFS",
        ],
    );
}

#[test]
fn without_noexec_the_read_back_tells() {
    misses("no-exec", &["writable /home/sandbox", "writable /tmp"]);
}

#[test]
fn with_capabilities_the_read_back_tells() {
    misses(
        "capabilities",
        &["capabilities: not empty: CapPrm CapEff CapBnd"],
    );
}

#[test]
fn without_limits_the_read_back_tells() {
    misses("limits", &["resource limits"]);
}

#[test]
fn without_landlock_its_two_canaries_tell() {
    misses(
        "landlock",
        &[
            "canary landlock-read (continued): ok instead of EACCES",
            "canary abstract-socket-inside (continued): ok instead of EPERM",
        ],
    );
}

/// Landlock alone hides it as well, and so does root's change of user.
#[test]
fn with_a_dumpable_init_and_no_landlock_its_memory_can_be_read_by_its_own_user() {
    let (code, said) = case_b("landlock,hidden-init", true);
    assert_eq!(code, Some(3));
    assert!(
        said.contains("canary init-memory (continued): ok instead of EACCES"),
        "{said}"
    );
    let (_, said) = case_b("landlock", true);
    assert!(!said.contains("init-memory"), "{said}");
}

#[test]
fn without_the_filters_own_refusals_its_canaries_tell() {
    misses(
        "filter",
        &[
            "canary unshare (continued): ok instead of EPERM",
            "canary terminal-input (continued): ENOTTY instead of EPERM",
        ],
    );
}

#[test]
fn without_the_supervisors_refusals_its_canaries_tell() {
    misses(
        "refusals",
        &["canary io-uring (answered): ok instead of ENOSYS"],
    );
}

#[test]
fn without_the_supervisors_records_every_network_canary_tells() {
    let ways = ["tcp4", "tcp6", "udp4", "udp6", "broadcast", "multicast"];
    let told: Vec<String> = ways
        .iter()
        .flat_map(|way| {
            ["answered", "continued"]
                .map(|mode| format!("canary {way} ({mode}): ENETUNREACH, not recorded"))
        })
        .collect();
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    misses("records", &told);
}
