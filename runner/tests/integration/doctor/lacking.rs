//! Hosts that lack one feature: the failed step of a run has the exact errno, and the doctor reports the remaining
//! isolation. In the first test, the twin, every probe works.

use super::{Examined, as_both, doctor};
use crate::kit::is_root;
use crate::needs_sandbox;

#[test]
fn host_with_every_feature_has_no_refused_probe() {
    needs_sandbox!();
    for run in as_both(|| doctor().on_a_host_without("network")) {
        let examined = Examined::of(run);
        examined.assert_tier(Some("namespace"));
        let working = examined.with_status("works");
        let probes = examined.document["probes"].as_array().unwrap();
        assert_eq!(working.len(), probes.len(), "{probes:#?}");
        for id in [
            "inherited",
            "audit",
            "audit-lookups",
            "audit-watch",
            "mounts",
            "seccomp",
            "landlock-abi-1",
            "landlock-abi-6",
            "pidfd",
        ] {
            assert!(working.contains(&id), "{id}: {working:?}");
        }
    }
}

/// Words of the fixture, the step that fails in isolation `namespace`, and the errno.
type Missing = (&'static str, &'static str, &'static str);

/// Asserts the failed step and the remaining isolation.
#[track_caller]
fn assert_left(missing: &[Missing], tier: Option<&str>) {
    for (words, step, errno) in missing {
        for run in as_both(|| doctor().on_a_host_without(words)) {
            let examined = Examined::of(run);
            examined.assert_step("namespace", step);
            examined.assert_refused("namespace", Some(errno), "");
            examined.assert_tier(tier);
        }
    }
}

#[test]
fn refused_namespaces_leave_the_containers_network() {
    needs_sandbox!();
    let both = "user-and-network-namespace";
    assert_left(
        &[
            ("network,namespaces", both, "EPERM"),
            ("network,user-namespaces", both, "ENOSPC"),
            ("network,network-namespaces", both, "ENOSPC"),
            ("network,pid-namespaces", "clone-init", "ENOSPC"),
            ("network,mount-namespaces", "clone-init", "ENOSPC"),
            ("network,loopback", "loopback-up", "EPERM"),
            ("network,mounts", "private-mounts", "EPERM"),
            ("network,mount-descriptors", "take-source", "ENOSYS"),
            ("network,pivot-root", "pivot-root", "EINVAL"),
        ],
        Some("inherited"),
    );
}

#[test]
fn requirement_of_every_run_leaves_no_isolation() {
    needs_sandbox!();
    assert_left(
        &[
            ("network,landlock", "landlock", "EOPNOTSUPP"),
            ("network,landlock-absent", "landlock", "EOPNOTSUPP"),
            ("network,listener", "filter", "EBUSY"),
            ("network,seccomp", "filter", "EINVAL"),
            ("network,notification", "filter", "EINVAL"),
            ("network,no-new-privileges", "no-new-privileges", "EINVAL"),
        ],
        None,
    );
}

#[test]
fn requirement_of_inherited_leaves_no_isolation() {
    needs_sandbox!();
    for (words, step, errno, cause) in [
        (
            "network,namespaces,temporary",
            "make-trees",
            "EROFS",
            "no temporary directory is writable",
        ),
        (
            "network,namespaces,netlink",
            "read-network",
            "EAFNOSUPPORT",
            "refuses sockets of the family netlink",
        ),
        (
            "links,namespaces",
            "loopback-up",
            "ENETDOWN",
            "loopback is down",
        ),
        (
            "wide-route,namespaces",
            "inherited-network",
            "ENOTUNIQ",
            "a route leads through lo to 0.0.0.0/0",
        ),
    ] {
        for run in as_both(|| doctor().on_a_host_without(words)) {
            let examined = Examined::of(run);
            examined.assert_step("inherited", step);
            examined.assert_refused("inherited", Some(errno), cause);
            examined.assert_tier(None);
        }
    }
}

#[test]
fn optional_feature_costs_no_isolation() {
    needs_sandbox!();
    for (words, id, errno) in [
        ("network,memory-reading", "process-vm-readv", "EPERM"),
        ("network,descriptor-copying", "descriptor-copy", "EPERM"),
        ("network,pidfd", "pidfd", "ENOSYS"),
        ("network,inotify", "inotify", "EMFILE"),
    ] {
        for run in as_both(|| doctor().on_a_host_without(words)) {
            let examined = Examined::of(run);
            examined.assert_refused(id, Some(errno), "");
            examined.assert_tier(Some("namespace"));
        }
    }
    for run in as_both(|| doctor().on_a_host_without("network,namespaces,descriptor-copying")) {
        Examined::of(run).assert_tier(Some("inherited"));
    }
}

/// Podman's filter permits the namespace and refuses the call; its engine covers files of /proc.
#[test]
fn absent_optional_layer_costs_no_isolation() {
    needs_sandbox!();
    for (words, id) in [("host-name", "host-name"), ("network,proc", "fresh-proc")] {
        for run in as_both(|| doctor().on_a_host_without(words)) {
            let examined = Examined::of(run);
            assert_eq!(examined.probe(id)["status"], "refused");
            examined.assert_tier(Some("namespace"));
            let reason = examined.document["verdict"]["reason"].as_str().unwrap();
            let is_proc = id == "fresh-proc";
            assert_eq!(reason.contains("without a fresh /proc"), is_proc);
        }
    }
}

/// Root of a container that may create namespaces has these capabilities.
#[test]
fn harmless_surroundings_cost_no_isolation() {
    needs_sandbox!();
    for (words, tier) in [
        ("network,most-capabilities", "namespace"),
        ("network,namespaces,most-capabilities", "inherited"),
        ("network,read-only-root", "namespace"),
        ("network,namespaces,read-only-root", "inherited"),
        ("network,temporary", "namespace"),
        ("set-id", "namespace"),
        ("network,open-files=256", "namespace"),
        ("network,data=8000000", "namespace"),
    ] {
        for run in as_both(|| doctor().on_a_host_without(words)) {
            Examined::of(run).assert_tier(Some(tier));
        }
    }
}

/// Without a writable directory, the doctor tests the file rights on a tmpfs of its own, as a run's home is one.
#[test]
fn landlock_is_tested_without_a_writable_directory() {
    needs_sandbox!();
    for run in as_both(|| doctor().on_a_host_without("network,temporary")) {
        let examined = Examined::of(run);
        for id in ["landlock-abi-1", "landlock-abi-2", "landlock-abi-3"] {
            assert_eq!(examined.probe(id)["status"], "works");
        }
    }
}

#[test]
fn filter_that_ends_the_caller_is_a_result() {
    needs_sandbox!();
    for run in as_both(|| doctor().on_a_host_without("network,landlock-deadly")) {
        let examined = Examined::of(run);
        examined.assert_refused("landlock-abi-1", None, "kills the caller");
        let observed = &examined.probe("landlock-abi-1")["observed"];
        assert_eq!(observed, "ended by SIGSYS");
        examined.assert_tier(None);
    }
}

#[test]
fn call_that_never_returns_is_a_result() {
    needs_sandbox!();
    let examined = Examined::of(doctor().on_a_host_without("network,truncate-hanging"));
    examined.assert_refused("landlock-abi-3", None, "does not answer");
    assert_eq!(
        examined.probe("landlock-abi-3")["observed"],
        "did not return"
    );
    // Later probes still run.
    assert_eq!(examined.probe("inotify")["status"], "works");
}

/// The limit of processes does not apply to root.
#[test]
fn exhausted_limit_is_named() {
    needs_sandbox!();
    let limited = doctor().on_a_host_without("processes=1").as_ordinary_user();
    let mut runs = vec![(limited, "case", "EAGAIN", "a limit on processes")];
    for (words, id, errno, cause) in [
        ("no-proc", "case", "ENOENT", "/proc is not mounted"),
        (
            "network,file-size=1000",
            "namespace",
            "EFBIG",
            "file's length",
        ),
        ("network,data=1000000", "namespace", "EAGAIN", "memory"),
    ] {
        runs.push((doctor().on_a_host_without(words), id, errno, cause));
    }
    for (run, id, errno, cause) in runs {
        let examined = Examined::of(run);
        examined.assert_refused(id, Some(errno), cause);
        examined.assert_tier(None);
    }
    let examined = Examined::of(doctor().on_a_host_without("network,open-files=255"));
    let cause = "the limit of open files is too low for a run";
    examined.assert_refused("run", None, cause);
    let observed = examined.probe("run")["observed"].as_str().unwrap();
    assert!(
        observed.starts_with("no more than 255 open files"),
        "{observed}"
    );
    examined.assert_tier(None);
}

#[test]
fn root_without_capabilities_cannot_change_its_user() {
    needs_sandbox!();
    if is_root() {
        let examined = Examined::of(doctor().on_a_host_without("network,capabilities"));
        examined.assert_step("namespace", "hand-over-pipes");
        examined.assert_refused("namespace", Some("EPERM"), "it lacks CAP_CHOWN");
        examined.assert_tier(Some("inherited"));
    }
}

#[test]
fn root_without_file_capabilities_has_no_supervisor() {
    needs_sandbox!();
    if is_root() {
        let examined = Examined::of(doctor().on_a_host_without("network,file-capabilities"));
        examined.assert_step("namespace", "supervise");
        let cause = "it lacks CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH";
        examined.assert_refused("namespace", Some("EACCES"), cause);
        examined.assert_tier(Some("inherited"));
    }
}
