//! The named cause of refused namespaces: each by its proof on a host that has it, and unknown without a proof. A run
//! has the same cause in its hint.

use super::{Examined, as_both, doctor};
use crate::kit::{Run, is_root, runner};
use crate::needs_sandbox;

/// Asserts cause and exit code of the doctor, and the hint of a run.
#[track_caller]
fn assert_cause(
    by: fn(Run) -> Run,
    words: &'static str,
    errno: &str,
    cause: &str,
    tier: Option<&str>,
) {
    let examined = Examined::of(by(doctor().on_a_host_without(words)));
    examined.assert_refused("namespace", Some(errno), cause);
    examined.assert_tier(tier);
    let run = Run::case_b().argument("--isolation=namespace");
    let output = by(run.on_a_host_without(words)).output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let hint = format!(
        "  hint: {}",
        examined.probe("namespace")["cause"].as_str().unwrap()
    );
    let hint = without_ids_of_mounts(&hint);
    assert!(
        without_ids_of_mounts(&said)
            .lines()
            .any(|line| line.starts_with(&hint)),
        "{hint}\nis not in {said}"
    );
}

/// Removes the ids of mounts, which each of two hosts has of its own.
fn without_ids_of_mounts(text: &str) -> String {
    let parts = text.split_inclusive("mount ").enumerate();
    let parts = parts.map(|(place, part)| match place {
        0 => part,
        _ => part.trim_start_matches(|c: char| c.is_ascii_digit()),
    });
    parts.collect()
}

const ROOT: fn(Run) -> Run = |run| run;
const USER: fn(Run) -> Run = Run::as_ordinary_user;

#[test]
fn chroot_is_named_by_its_root() {
    needs_sandbox!();
    let cause = "this is a chroot";
    for by in [ROOT, USER] {
        assert_cause(
            by,
            "network,chroot=directory",
            "EPERM",
            cause,
            Some("inherited"),
        );
    }
    if is_root() {
        assert_cause(ROOT, "chroot=mount", "EPERM", cause, None);
    }
}

/// An ordinary user cannot compare its root with that of the mount namespace.
#[test]
fn chroot_without_a_proof_has_an_unknown_cause() {
    needs_sandbox!();
    let cause =
        "the cause is unknown: the kernel answered EPERM to the attempt to make a user namespace";
    assert_cause(USER, "chroot=mount", "EPERM", cause, None);
}

#[test]
fn landlock_domain_around_the_runner_is_named() {
    needs_sandbox!();
    let cause = "already inside a sandbox, whose Landlock rules forbid every mount";
    for by in [ROOT, USER] {
        assert_cause(
            by,
            "network,landlock-domain",
            "EPERM",
            cause,
            Some("inherited"),
        );
    }
}

#[test]
fn filter_around_the_runner_is_named_with_its_call() {
    needs_sandbox!();
    for (words, errno, call) in [
        ("namespaces", "EPERM", "refusing unshare, clone"),
        ("loopback", "EPERM", "refusing ioctl"),
        ("loopback-typed", "ENOTTY", "refusing ioctl"),
        ("mounts", "EPERM", "refusing mount"),
        ("mount-descriptors", "ENOSYS", "refusing open_tree"),
        ("pivot-root", "EINVAL", "refusing pivot_root"),
    ] {
        for by in [ROOT, USER] {
            assert_cause(by, words, errno, call, None);
        }
    }
}

#[test]
fn filter_that_types_no_descriptor_is_named() {
    needs_sandbox!();
    let cause = "a filter around the runner refuses ioctl(2)";
    for words in ["notification-receiving", "notification-answering"] {
        for by in [ROOT, USER] {
            assert_cause(by, words, "ENOTTY", cause, None);
        }
    }
}

/// The kernel of this machine has Landlock: it knows the calls that the filter lets through.
#[test]
fn filter_that_hides_landlock_is_named() {
    needs_sandbox!();
    let cause = "the kernel has Landlock, and a filter around the runner refuses its calls";
    let errno = "EOPNOTSUPP";
    for words in ["landlock", "landlock-absent"] {
        for by in [ROOT, USER] {
            assert_cause(by, words, errno, cause, None);
            let examined = Examined::of(by(doctor().on_a_host_without(words)));
            for abi in 1..=7 {
                examined.assert_refused(&format!("landlock-abi-{abi}"), Some(errno), cause);
            }
        }
    }
}

/// Such a root has no trace of an engine.
#[test]
fn container_without_a_name_is_no_docker() {
    needs_sandbox!();
    for run in as_both(|| doctor().on_a_host_without("root=proc+dev+usr,namespaces")) {
        let examined = Examined::of(run);
        let probe = examined.probe("namespace");
        assert_eq!(probe["status"], "refused");
        let text = probe.to_string().to_lowercase();
        assert!(
            !text.contains("docker") && !text.contains("podman"),
            "{text}"
        );
        examined.assert_tier(None);
    }
}

#[test]
fn limit_of_namespaces_is_named() {
    needs_sandbox!();
    let cause = "user.max_user_namespaces = 0";
    for by in [ROOT, USER] {
        assert_cause(by, "user-namespaces", "ENOSPC", cause, None);
        assert_cause(
            by,
            "pid-namespaces",
            "ENOSPC",
            "user.max_pid_namespaces = 0",
            None,
        );
    }
}

#[test]
fn user_without_an_id_is_named() {
    needs_sandbox!();
    assert_cause(
        ROOT,
        "maps",
        "EINVAL",
        "has no id in its user namespace",
        None,
    );
}

#[test]
fn root_without_devices_is_named() {
    needs_sandbox!();
    for run in as_both(|| doctor().on_a_host_without("root=proc+tmp+usr")) {
        let examined = Examined::of(run);
        let cause = "/dev/null is missing";
        examined.assert_refused("namespace", Some("ENOENT"), cause);
        examined.assert_tier(None);
    }
}

#[test]
fn unusual_mount_is_named() {
    needs_sandbox!();
    for (words, errno, cause) in [
        ("writable-proc", "EROFS", "/proc is read-only"),
        ("devices", "EACCES", "nodev is an option of the mount /dev"),
        ("uncovered-root", "EPERM", "another mount covers this root"),
    ] {
        for by in [ROOT, USER] {
            assert_cause(by, words, errno, cause, None);
        }
    }
}

/// The positive twin: a root without /tmp, /etc and the rest is enough.
#[test]
fn minimal_root_is_enough_for_a_run() {
    needs_sandbox!();
    for run in as_both(|| doctor().on_a_host_without("root=proc+dev+usr")) {
        Examined::of(run).assert_tier(Some("namespace"));
    }
}

#[test]
fn hidden_processes_cost_no_isolation() {
    needs_sandbox!();
    if is_root() {
        let examined = Examined::of(doctor().on_a_host_without("hidepid"));
        examined.assert_tier(Some("namespace"));
        let context = examined.document["context"].to_string();
        assert!(context.contains("mounted with hidepid="), "{context}");
    }
}

#[test]
fn runner_inside_a_runner_names_the_sandbox() {
    needs_sandbox!();
    for run in as_both(|| {
        Run::case("audit")
            .client_argument(runner())
            .client_argument("doctor")
    }) {
        let output = run.output();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(3), "{said}");
        let text = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("cause already inside a sandbox"), "{said}");
    }
}
