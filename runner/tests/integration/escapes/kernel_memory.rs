//! Kernel memory that belongs to no process: each kind reaches its limit, and use below the limit is allowed.

use serde_json::Value;

use super::attempt::{
    Made, inside, inside_of, outside, refused_inside, refused_inside_of, said, with_attempts,
};
use crate::kit::{Done, Run};
use crate::needs_sandbox;

/// Returns net.core.wmem_default of this machine.
fn default_buffer() -> usize {
    let text = std::fs::read_to_string("/proc/sys/net/core/wmem_default").unwrap();
    text.trim().parse().unwrap()
}

fn bytes(made: &Made) -> usize {
    made.detail.parse().unwrap()
}

fn inherited() -> Run {
    Run::case_b().on_a_host_without("network,namespaces")
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

/// The twin: outside, with an equal limit for open files.
#[test]
fn so_many_sockets_can_be_made_outside() {
    for attempt in ["unix-pairs 700", "inet-sockets 2500"] {
        assert_eq!(outside(attempt).outcome, "ok", "{attempt}");
    }
}

#[test]
fn a_refused_socket_is_in_the_ledger_with_its_limit() {
    needs_sandbox!();
    let attempts = ["unix-pairs 700"];
    let done = with_attempts(Run::case_b(), &attempts).json();
    assert_eq!(said(&done, &attempts)[0].outcome, "ENFILE");
    let limit = "limit of 2400 sockets, unix ones twice, connections by both ends";
    let line = line_of(&done, limit);
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
        let outside = bytes(&outside(attempt));
        assert!(outside > bytes(&made[1]), "{attempt}: {outside}");
    }
}

#[test]
fn without_namespaces_the_same_limits_hold() {
    needs_sandbox!();
    let run = inherited;
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
fn pipes_are_limited_by_number() {
    needs_sandbox!();
    let ordinary = inherited().as_ordinary_user();
    for run in [Run::case_b(), ordinary] {
        let attempts = ["pipes 99000", "fifos 1000", "fifos 1", "pipes 1"];
        let done = with_attempts(run.argument("--timeout=600s"), &attempts).json();
        let said = said(&done, &attempts);
        let outcomes = Vec::from_iter(said.iter().map(|one| &one.outcome));
        assert_eq!(outcomes, ["ok", "ok", "ENFILE", "ENFILE"]);
        let ledger = done.report["evidence"]["attempts"].as_array().unwrap();
        let limit = "limit of 100000 pipes";
        let listed = ledger.iter().filter(|line| line["address"] == limit);
        for line in listed.clone() {
            assert_eq!(
                (&line["kind"], &line["errno"]),
                (&"setup".into(), &"ENFILE".into())
            );
            assert_ne!(line["program"], "", "{line}");
        }
        assert_eq!(listed.count(), 2);
    }
}

/// The twin.
#[test]
fn so_many_pipes_can_be_made_outside() {
    for attempt in ["pipes 100001", "fifos 1001"] {
        assert_eq!(outside(attempt).outcome, "ok", "{attempt}");
    }
}

/// When memory runs out, the kernel kills the client first, and the client cannot change its score.
#[test]
fn the_kernel_ends_the_client_before_others() {
    needs_sandbox!();
    for run in [Run::case_b, inherited] {
        let made = inside_of(run, &["read /proc/self/oom_score_adj"]);
        assert_eq!(made[0].detail.trim(), "1000", "{made:?}");
        refused_inside_of(run, &[("open-write /proc/self/oom_score_adj", "EACCES")]);
    }
}

/// Asserts refusals at these limits, of which the ledger has the second: the attempts in turn, and the result of each.
fn limited(run: Run, cases: &[(&str, &str)], limit: &str) {
    let attempts = Vec::from_iter(cases.iter().map(|(attempt, _)| *attempt));
    let done = with_attempts(run.argument("--timeout=600s"), &attempts).json();
    for (said, (attempt, outcome)) in said(&done, &attempts).iter().zip(cases) {
        assert_eq!(said.outcome, *outcome, "{attempt}");
    }
    let line = line_of(&done, limit);
    assert_eq!(
        (&line["kind"], &line["errno"]),
        (&"setup".into(), &"ENOMEM".into())
    );
}

/// Returns the ledger's entry for this limit.
#[track_caller]
fn line_of<'a>(done: &'a Done, limit: &str) -> &'a Value {
    let ledger = done.report["evidence"]["attempts"].as_array().unwrap();
    let line = ledger.iter().find(|line| line["address"] == limit);
    line.unwrap_or_else(|| panic!("{ledger:?}"))
}

#[test]
fn landlock_rules_and_copies_are_limited() {
    needs_sandbox!();
    let cases = [
        ("landlock-domains 20000 68", "ok"),
        ("landlock-domains 1 1", "ENOMEM"),
    ];
    for run in [Run::case_b(), inherited().as_ordinary_user()] {
        limited(run, &cases, "limit of 256 MiB of Landlock rules");
    }
}

#[test]
fn memory_files_and_shared_mappings_are_limited() {
    needs_sandbox!();
    let cases = [
        ("memory-files 8", "ok"),
        ("shared-mappings 8 64", "ok"),
        ("memory-files 1", "ENOMEM"),
        ("shared-mappings 1 1", "ENOMEM"),
    ];
    for run in [Run::case_b(), inherited().as_ordinary_user()] {
        let limit = "limit of 1024 MiB of shared memory, files by file_size";
        limited(run, &cases, limit);
    }
}

#[test]
fn memory_beyond_every_limit_is_refused() {
    needs_sandbox!();
    let attempts = [("secret-memory", "ENOSYS"), ("stack-mapping", "EINVAL")];
    for run in [Run::case_b, inherited] {
        refused_inside_of(run, &attempts);
    }
    let twin = outside("secret-memory").outcome;
    assert!(["ok", "ENOSYS"].contains(&twin.as_str()), "{twin}");
    assert_eq!(outside("stack-mapping").outcome, "ok");
}

/// The twin.
#[test]
fn so_much_shared_memory_can_be_had_outside() {
    for attempt in [
        "landlock-domains 20000 70",
        "memory-files 17",
        "shared-mappings 17 64",
    ] {
        assert_eq!(outside(attempt).outcome, "ok", "{attempt}");
    }
}

#[test]
fn pages_of_a_process_are_not_put_into_pipes() {
    needs_sandbox!();
    refused_inside(&[("pages-into-pipe", "ENOSYS")]);
    assert_eq!(outside("pages-into-pipe").outcome, "ok");
}
