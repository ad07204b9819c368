//! Calls that no client needs, and syscall numbers that a filter might miss.

use super::attempt::{hostile, inside, inside_of, outside, refused_inside};
use crate::kit::Run;
use crate::needs_sandbox;

/// Calls that no machine, or only root, can make outside, so that the table of probes has none of them.
#[test]
fn call_without_a_twin_is_refused() {
    needs_sandbox!();
    refused_inside(&[
        ("unknown-call 470", "ENOSYS"),
        ("unknown-call 1000", "ENOSYS"),
        ("kernel-log", "EPERM"),
        #[cfg(target_arch = "x86_64")]
        ("port-access", "EPERM"),
        ("open-write /dev/ptmx", "ENOENT"),
        ("open-write /dev/tty", "ENOENT"),
        ("open-write /dev/console", "ENOENT"),
        ("open-write /dev/net/tun", "ENOENT"),
        ("open-write /proc/sys/kernel/core_pattern", "EACCES"),
        ("open-write /proc/sys/net/ipv4/ip_forward", "EACCES"),
        ("open-write /proc/self/uid_map", "EACCES"),
        ("open-write /proc/self/setgroups", "EACCES"),
    ]);
}

/// A receiver that the limit does not cover, a socket since Linux 6.16, gets no memory.
#[test]
fn a_dump_holds_no_memory() {
    needs_sandbox!();
    let attempt = "read /proc/self/coredump_filter";
    let container = || Run::case_b().on_a_host_without("network,namespaces");
    for run in [Run::case_b, container] {
        assert_eq!(inside_of(run, &[attempt])[0].detail.trim(), "00000000");
    }
    assert_ne!(outside(attempt).detail.trim(), "00000000");
}

#[test]
fn a_crash_leaves_no_core() {
    needs_sandbox!();
    for run in [hostile(&["core"]), hostile(&["core"]).as_ordinary_user()] {
        let done = run.json();
        assert_eq!(done.report["client"]["exit"]["signal"], libc::SIGABRT);
        assert_eq!(done.report["evidence"]["files"], serde_json::json!([]));
    }
    // A limit of 0 would not stop the kernel from starting the host's core dump program, but 1 does (core(5)). A client
    // that sets 0 therefore gets a success, and the limit stays 1.
    let made = inside(&["core-limit-zero"]);
    assert_eq!(
        (made[0].outcome.as_str(), made[0].detail.as_str()),
        ("ok", "1 1")
    );
    let twin = outside("core-limit-zero");
    assert_eq!((twin.outcome.as_str(), twin.detail.as_str()), ("ok", "0 0"));
}
