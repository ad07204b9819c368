//! Hosts that lack one feature: its probe reports the exact errno, the doctor reports the remaining isolation, and a
//! real run agrees. In the first test, the twin, every probe works.

use super::{Examined, as_both, doctor};
use crate::kit::is_root;
use crate::needs_sandbox;

#[test]
fn where_case_b_passes_everything_that_it_needs_works() {
    needs_sandbox!();
    for run in as_both(|| doctor().on_a_host_without("network")) {
        let examined = Examined::of(run);
        examined.assert_tier(Some("namespace"));
        let probes = examined.document["probes"].as_array().unwrap();
        for probe in probes
            .iter()
            .filter(|one| one["needed"]["namespace"] == "required")
        {
            let status = probe["status"].as_str().unwrap();
            assert!(["works", "not-needed"].contains(&status), "{probe:#}");
        }
        assert!(
            examined.with_status("refused").is_empty(),
            "{:?}",
            examined.with_status("refused")
        );
        let observed = &examined.probe("landlock-files")["observed"];
        assert!(
            observed.as_str().unwrap().starts_with("13 rights denied"),
            "{observed}"
        );
    }
}

/// A missing feature, its probe, and the errno.
type Missing = (&'static str, &'static str, Option<&'static str>);

/// Asserts the missing features and the remaining isolation on a host with a loopback-only network.
#[track_caller]
fn assert_left(missing: &[Missing], tier: Option<&str>) {
    for (words, id, errno) in missing {
        for run in as_both(|| doctor().on_a_host_without(words)) {
            let examined = Examined::of(run);
            examined.assert_refused(id, *errno);
            examined.assert_tier(tier);
        }
    }
}

#[test]
fn without_namespaces_there_is_the_network_of_the_container() {
    needs_sandbox!();
    assert_left(
        &[
            ("network,namespaces", "user-namespace", Some("EPERM")),
            ("network,user-namespaces", "user-namespace", Some("ENOSPC")),
            (
                "network,network-namespaces",
                "network-namespace",
                Some("ENOSPC"),
            ),
            ("network,pid-namespaces", "other-namespaces", Some("ENOSPC")),
            (
                "network,mount-namespaces",
                "other-namespaces",
                Some("ENOSPC"),
            ),
        ],
        Some("inherited"),
    );
}

/// AppArmor on Ubuntu 24.04 permits the namespace but refuses its root every operation.
#[test]
fn a_namespace_without_its_capabilities_is_told_from_one_that_is_refused() {
    needs_sandbox!();
    for (words, id) in [
        ("network,loopback", "loopback"),
        ("network,mounts", "private-mounts"),
    ] {
        assert_left(&[(words, id, Some("EPERM"))], Some("inherited"));
        let examined = Examined::of(doctor().on_a_host_without(words));
        assert_eq!(examined.probe("user-namespace")["status"], "works");
        let cause = examined.probe(id)["cause"].as_str().unwrap();
        assert!(cause.starts_with("the namespace was made"), "{cause}");
    }
}

/// Podman's filter permits the namespace and refuses the call.
#[test]
fn a_host_name_that_cannot_be_set_costs_no_tier() {
    needs_sandbox!();
    assert_left(
        &[("host-name", "host-name", Some("EPERM"))],
        Some("namespace"),
    );
}

#[test]
fn mount_calls_that_a_kernel_has_not_are_named() {
    needs_sandbox!();
    assert_left(
        &[
            ("network,mount-descriptors", "sealed-mounts", Some("ENOSYS")),
            ("network,pivot-root", "new-root", Some("EINVAL")),
        ],
        Some("inherited"),
    );
}

#[test]
fn what_every_run_needs_leaves_no_tier() {
    needs_sandbox!();
    assert_left(
        &[
            ("network,landlock", "landlock", Some("EOPNOTSUPP")),
            ("network,landlock-absent", "landlock", Some("ENOSYS")),
            ("network,listener", "seccomp-listener", Some("EBUSY")),
            ("network,seccomp", "seccomp-filter", Some("EINVAL")),
            ("network,notification", "seccomp-listener", Some("EINVAL")),
            (
                "network,no-new-privileges",
                "no-new-privileges",
                Some("EINVAL"),
            ),
            ("network,open-files=64", "open-files", Some("EMFILE")),
        ],
        None,
    );
}

#[test]
fn what_the_weaker_tier_needs_is_missed_where_it_is_the_only_one() {
    needs_sandbox!();
    assert_left(
        &[
            (
                "network,namespaces,landlock",
                "landlock",
                Some("EOPNOTSUPP"),
            ),
            (
                "network,namespaces,temporary",
                "temporary-directory",
                Some("EROFS"),
            ),
            (
                "network,namespaces,netlink",
                "loopback-only",
                Some("EAFNOSUPPORT"),
            ),
        ],
        None,
    );
}

#[test]
fn what_is_convenient_takes_no_tier_away() {
    needs_sandbox!();
    assert_left(
        &[
            ("network,memory-reading", "process-vm-readv", Some("EPERM")),
            (
                "network,descriptor-copying",
                "descriptor-copy",
                Some("EPERM"),
            ),
            ("network,pidfd", "pidfd", Some("ENOSYS")),
            ("network,inotify", "inotify", Some("EMFILE")),
            ("network,temporary", "temporary-directory", Some("EROFS")),
        ],
        Some("namespace"),
    );
    assert_left(
        &[(
            "network,namespaces,descriptor-copying",
            "descriptor-copy",
            Some("EPERM"),
        )],
        Some("inherited"),
    );
}

/// Root of a container that may create namespaces has these capabilities.
#[test]
fn the_capabilities_of_a_container_are_enough() {
    needs_sandbox!();
    for (words, tier) in [
        ("network,most-capabilities", "namespace"),
        ("network,namespaces,most-capabilities", "inherited"),
    ] {
        for run in as_both(|| doctor().on_a_host_without(words)) {
            Examined::of(run).assert_tier(Some(tier));
        }
    }
}

#[test]
fn a_read_only_root_changes_nothing() {
    needs_sandbox!();
    for (words, tier) in [
        ("network,read-only-root", "namespace"),
        ("network,namespaces,read-only-root", "inherited"),
    ] {
        for run in as_both(|| doctor().on_a_host_without(words)) {
            Examined::of(run).assert_tier(Some(tier));
        }
    }
}

/// Without a writable directory, the doctor tests the file rights on its own tmpfs, as a run's home is one.
#[test]
fn landlocks_rights_are_tried_where_nothing_can_be_written_too() {
    needs_sandbox!();
    for run in as_both(|| doctor().on_a_host_without("network,temporary")) {
        let examined = Examined::of(run);
        for id in ["landlock-files", "landlock-refer", "landlock-truncate"] {
            assert_eq!(
                examined.probe(id)["status"],
                "works",
                "{:#}",
                examined.probe(id)
            );
        }
    }
}

#[test]
fn a_covered_proc_is_found_and_takes_no_tier_away() {
    needs_sandbox!();
    for run in as_both(|| doctor().on_a_host_without("network,proc")) {
        let examined = Examined::of(run);
        examined.assert_refused("fresh-proc", Some("EPERM"));
        examined.assert_tier(Some("namespace"));
        assert_eq!(examined.document["verdict"]["fresh_proc"], false);
        let cause = examined.probe("fresh-proc")["cause"].as_str().unwrap();
        assert!(cause.contains("covered"), "{cause}");
    }
}

#[test]
fn a_filter_that_ends_the_caller_is_a_result() {
    needs_sandbox!();
    for run in as_both(|| doctor().on_a_host_without("network,landlock-deadly")) {
        let examined = Examined::of(run);
        examined.assert_refused("landlock", None);
        assert_eq!(examined.probe("landlock")["observed"], "ended by SIGSYS");
        examined.assert_tier(None);
    }
}

#[test]
fn a_call_that_never_returns_is_a_result() {
    needs_sandbox!();
    let examined = Examined::of(doctor().on_a_host_without("network,pidfd-hanging"));
    examined.assert_refused("pidfd", None);
    assert_eq!(examined.probe("pidfd")["observed"], "did not return");
    // Later probes still run.
    assert_eq!(examined.probe("temporary-directory")["status"], "works");
}

#[test]
fn a_root_without_capabilities_cannot_become_another_user() {
    needs_sandbox!();
    if !is_root() {
        return;
    }
    assert_left_for_root("network,capabilities", "other-user");
    assert_left_for_root("network,namespaces,capabilities", "user-namespace");
}

#[track_caller]
fn assert_left_for_root(words: &'static str, id: &str) {
    let examined = Examined::of(doctor().on_a_host_without(words));
    examined.assert_refused(id, Some("EPERM"));
    assert_eq!(examined.document["verdict"]["possible"], "inherited");
    // An ordinary user cannot change its id.
    let examined = Examined::of(doctor().as_ordinary_user());
    assert_eq!(examined.probe("other-user")["status"], "not-needed");
}

/// The limit of processes does not apply to root.
#[test]
fn a_limit_of_processes_is_told_from_a_file_that_is_not_there() {
    needs_sandbox!();
    let limited = doctor().on_a_host_without("processes=1").as_ordinary_user();
    let examined = Examined::of(limited);
    examined.assert_refused("own-file", Some("EAGAIN"));
    let cause = examined.probe("own-file")["cause"].as_str().unwrap();
    assert!(cause.contains("process limit"), "{cause}");
    examined.assert_tier(None);
    for run in as_both(|| doctor().on_a_host_without("no-proc")) {
        let examined = Examined::of(run);
        examined.assert_refused("own-file", Some("ENOENT"));
        let cause = examined.probe("own-file")["cause"].as_str().unwrap();
        assert!(cause.contains("/proc/self/exe"), "{cause}");
        examined.assert_tier(None);
    }
}

#[test]
fn a_limit_of_a_files_length_is_named() {
    needs_sandbox!();
    let examined = Examined::of(doctor().on_a_host_without("network,file-size=1000"));
    examined.assert_refused("file-size", Some("EFBIG"));
    examined.assert_tier(None);
}

/// The doctor accepts the smallest limits that a run needs, down to the last file.
#[test]
fn limits_that_leave_enough_are_found_to() {
    needs_sandbox!();
    for (words, id) in [
        ("network,open-files=256", "open-files"),
        ("network,data=8000000", "memory"),
        ("network,data=20000000", "memory"),
    ] {
        for run in as_both(|| doctor().on_a_host_without(words)) {
            let examined = Examined::of(run);
            assert_eq!(examined.probe(id)["status"], "works", "{words}");
            examined.assert_tier(Some("namespace"));
        }
    }
    let examined = Examined::of(doctor().on_a_host_without("network,open-files=255"));
    examined.assert_refused("open-files", Some("EMFILE"));
    examined.assert_tier(None);
}

/// The other probes do not need the missing memory, so they still work.
#[test]
fn a_limit_of_memory_is_told_from_one_of_a_files_length() {
    needs_sandbox!();
    for run in as_both(|| doctor().on_a_host_without("network,data=1000000")) {
        let examined = Examined::of(run);
        examined.assert_refused("memory", Some("ENOMEM"));
        assert_eq!(examined.probe("file-size")["status"], "works");
        examined.assert_tier(None);
    }
}
