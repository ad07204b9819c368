//! Kernel memory that belongs to no process: each kind is met at its limit, and what lies below it is allowed.

use super::attempt::{
    Made, inside, inside_of, outside, refused, refused_inside, refused_inside_of, said,
    with_attempts,
};
use crate::kit::Run;
use crate::needs_sandbox;

/// net.core.wmem_default of this machine, and room for what is read meanwhile.
fn default_buffer() -> usize {
    let text = std::fs::read_to_string("/proc/sys/net/core/wmem_default").unwrap();
    text.trim().parse().unwrap()
}

fn bytes(made: &Made) -> usize {
    made.detail.parse().unwrap()
}

#[test]
fn sockets_are_limited_by_number() {
    needs_sandbox!();
    refused_inside(&[
        ("unix-pairs 400", "ok"),
        ("unix-pairs 700", "ENFILE"),
        ("unix-pairs-in-turn 3000", "ok"),
        ("inet-sockets 2000", "ok"),
        ("inet-sockets 2500", "ENFILE"),
        ("connections-to-itself 900", "ok"),
        ("connections-to-itself 1300", "ENFILE"),
    ]);
}

/// The twin: outside, where the limit for open files is as large.
#[test]
fn so_many_sockets_can_be_made_outside() {
    for attempt in ["unix-pairs 700", "inet-sockets 2500"] {
        assert_eq!(outside("", attempt).outcome, "ok", "{attempt}");
    }
}

#[test]
fn a_refused_socket_is_in_the_ledger_with_its_limit() {
    needs_sandbox!();
    let attempts = ["unix-pairs 700"];
    let done = with_attempts(Run::case_b(), &attempts).json();
    assert_eq!(said(&done, &attempts)[0].outcome, "ENFILE");
    let ledger = done.report["evidence"]["attempts"].as_array().unwrap();
    let limit = "limit of 2400 sockets, unix ones twice";
    let line = ledger.iter().find(|line| line["address"] == limit);
    let line = line.unwrap_or_else(|| panic!("{ledger:?}"));
    assert_eq!(line["syscall"], "socketpair");
    assert_eq!(line["kind"], "setup");
    assert_eq!(line["errno"], "ENFILE");
}

#[test]
fn buffers_keep_their_size() {
    needs_sandbox!();
    let made = inside(&[
        "fill-pair",
        "fill-pair wide",
        "fill-connection",
        "fill-connection wide",
    ]);
    for one in &made {
        assert_eq!(one.outcome, "ok");
        let most = 3 * default_buffer();
        assert!((16_384..=most).contains(&bytes(one)), "{made:?}");
    }
    for attempt in ["fill-pair wide", "fill-connection wide"] {
        let outside = bytes(&outside("", attempt));
        assert!(outside > bytes(&made[1]), "{attempt}: {outside}");
    }
}

#[test]
fn without_namespaces_the_same_limits_hold() {
    needs_sandbox!();
    let run = || Run::case_b().on_a_host_without("network,namespaces");
    refused_inside_of(
        run,
        &[
            ("unix-pairs 400", "ok"),
            ("unix-pairs 700", "ENFILE"),
            ("unix-pairs-in-turn 3000", "ok"),
            ("inet-sockets 2000", "ok"),
            ("inet-sockets 2500", "ENFILE"),
            ("message-queues 1", "EPERM"),
            ("pages-into-pipe", "ENOSYS"),
        ],
    );
    for one in inside_of(run, &["fill-pair", "fill-pair wide"]) {
        assert!(bytes(&one) <= 3 * default_buffer(), "{one:?}");
    }
}

#[test]
fn system_v_objects_are_limited_by_what_they_hold() {
    needs_sandbox!();
    refused_inside(&[("message-queues 20", "ok"), ("message-queues 60", "ENOSPC")]);
    refused_inside(&[
        ("semaphores 20 32000", "ok"),
        ("semaphores 200 32000", "ENOSPC"),
    ]);
    refused_inside(&[
        ("segments 8 16777216", "ok"),
        ("segments 32 16777216", "ENOSPC"),
    ]);
}

#[test]
fn landlock_rulesets_are_limited_by_number() {
    needs_sandbox!();
    refused_inside(&[("rulesets 24", "ok"), ("rulesets 40", "ENOMEM")]);
}

/// The twin: outside, where nobody counts them.
#[test]
fn so_many_rulesets_can_be_made_outside() {
    needs_sandbox!();
    assert_eq!(outside("", "rulesets 40").outcome, "ok");
}

#[test]
fn pages_of_a_process_are_not_put_into_pipes() {
    needs_sandbox!();
    refused(&[("pages-into-pipe", "ENOSYS", "")]);
}
