//! Calls that no client needs, and syscall numbers that a filter might miss.

use super::attempt::{hostile, inside, inside_of, outside, refused_inside};
use crate::kit::Run;
use crate::needs_sandbox;

/// Asserts that the call is refused inside with this errno. Outside, the kernel's answer differs, unless the kernel
/// lacks the call by build or configuration; that is printed.
fn filtered(cases: &[(&str, &str)]) {
    refused_inside(cases);
    for (attempt, errno) in cases {
        let twin = outside("", attempt);
        if twin.outcome == *errno {
            eprintln!("{attempt}: this kernel refuses it outside as well ({errno})");
        }
    }
}

#[test]
fn input_is_not_pushed_into_a_terminal() {
    needs_sandbox!();
    filtered(&[
        ("terminal-input", "EPERM"),
        ("terminal-input 1", "EPERM"),
        ("terminal-input 0xffffffff", "EPERM"),
        ("terminal-paste", "EPERM"),
        ("terminal-paste 1", "EPERM"),
    ]);
    // EIO where dev.tty.legacy_tiocsti is 0.
    for attempt in ["terminal-input", "terminal-input 1"] {
        let twin = outside("", attempt).outcome;
        assert!(["ok", "EIO"].contains(&twin.as_str()), "{twin}");
    }
    // No terminal supports the paste, but the kernel receives the request.
    assert_eq!(outside("", "terminal-paste").outcome, "ENOTTY");
    refused_inside(&[
        ("open-write /dev/ptmx", "ENOENT"),
        ("open-write /dev/tty", "ENOENT"),
        ("open-write /dev/console", "ENOENT"),
    ]);
}

#[test]
fn a_ring_that_makes_calls_is_not_there() {
    needs_sandbox!();
    filtered(&[("io-uring", "ENOSYS")]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_of_a_32_bit_machine_kills() {
    needs_sandbox!();
    let attempt = "getpid-32";
    for run in [hostile(&[attempt]), hostile(&[attempt]).as_ordinary_user()] {
        let done = run.json();
        assert_eq!(done.report["client"]["exit"]["signal"], libc::SIGSYS);
        assert_eq!(done.report["evidence"]["stderr"]["tail"], "");
    }
    let twin = outside("", attempt).outcome;
    assert_eq!(twin, "ok", "a kernel without 32-bit calls?");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn outward_calls_of_other_interfaces_are_attempts() {
    use super::attempt::said;
    use crate::inherited::CONTAINER;

    needs_sandbox!();
    let attempts = ["socketcall-32 2", "socketcall-32 17", "socket-x32"];
    for run in [
        hostile(&attempts),
        hostile(&attempts).as_ordinary_user(),
        hostile(&attempts).on_a_host_without(CONTAINER),
    ] {
        let done = run.json();
        assert!(
            said(&done, &attempts)
                .iter()
                .all(|said| said.outcome == "ENOSYS")
        );
        for (interface, call, count) in [("i386", "socketcall", 2), ("x32", "socket", 1)] {
            let ledger = done.report["evidence"]["attempts"].as_array().unwrap();
            let line = ledger.iter().find(|line| line["syscall"] == interface);
            let line = line.unwrap_or_else(|| panic!("{ledger:?}"));
            assert_eq!(
                (&line["kind"], &line["count"]),
                (&"attempt".into(), &count.into())
            );
            assert_eq!(
                (&line["address"], &line["errno"]),
                (&call.into(), &"ENOSYS".into())
            );
        }
    }
    let twin = outside("", attempts[0]).outcome;
    assert_eq!(twin, "ok", "a kernel without 32-bit calls?");
}

/// Kernels without x32 return the same errno, so only the simulator's test of the filter tests every number.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_of_the_x32_abi_does_not_exist() {
    needs_sandbox!();
    filtered(&[("socket-x32", "ENOSYS")]);
}

#[test]
fn a_call_that_nobody_has_reviewed_does_not_exist() {
    needs_sandbox!();
    refused_inside(&[
        ("unknown-call 470", "ENOSYS"),
        ("unknown-call 1000", "ENOSYS"),
    ]);
}

#[test]
fn keys_of_the_host_are_out_of_reach() {
    needs_sandbox!();
    filtered(&[
        ("add-key", "EPERM"),
        ("session-keyring", "EPERM"),
        ("request-key", "EPERM"),
    ]);
    assert_eq!(outside("", "request-key").outcome, "ENOKEY");
}

#[test]
fn large_parts_of_the_kernel_are_out_of_reach() {
    needs_sandbox!();
    filtered(&[
        ("bpf", "EPERM"),
        ("perf-event", "EPERM"),
        ("userfaultfd", "EPERM"),
        ("fanotify", "EPERM"),
        ("kernel-log", "EPERM"),
        #[cfg(target_arch = "x86_64")]
        ("port-access", "EPERM"),
    ]);
}

#[test]
fn files_are_not_opened_by_handle() {
    needs_sandbox!();
    filtered(&[("handle-of", "EPERM"), ("open-by-handle", "EPERM")]);
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
    assert_ne!(outside("", attempt).detail.trim(), "00000000");
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
    let twin = outside("", "core-limit-zero");
    assert_eq!((twin.outcome.as_str(), twin.detail.as_str()), ("ok", "0 0"));
}
