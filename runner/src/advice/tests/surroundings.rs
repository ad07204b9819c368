//! Causes in the surroundings: limits of cgroups, mounts and devices.

use nix::errno::Errno;
use sandbox::cgroup::surrounding::OuterLimit;
use sandbox::error::{SetupError, Step};

use super::{assert_cause, assert_unknown, error, plain};
use crate::advice::evidence::Evidence;

fn outer_limit(limit: u64, used: u64, kills: u64) -> Option<OuterLimit> {
    Some(OuterLimit {
        file: "/sys/fs/cgroup/a/max".into(),
        limit,
        used,
        kills,
    })
}

#[test]
fn limit_of_the_cgroup_is_named_if_it_leaves_too_little() {
    let few = error(Step::CloneClient, Errno::EAGAIN);
    let with = |process_limit| Evidence {
        process_limit,
        ..plain()
    };
    let tight = with(outer_limit(7, 3, 0));
    let cause = "/sys/fs/cgroup/a/max is 7, 3 in use";
    assert_cause(&few, &tight, cause, "--pids-limit");
    let wide = with(outer_limit(512, 3, 0));
    assert_cause(&few, &wide, "a limit on processes or memory", "ulimit -u");
    let memory = error(Step::CloneClient, Errno::ENOMEM);
    assert_cause(&memory, &tight, "processes or memory", "ulimit -u");
    let little = |limit, kills| Evidence {
        memory_limit: outer_limit(limit, 1 << 20, kills),
        ..plain()
    };
    let cause = "allows too little memory";
    assert_cause(&memory, &little(3 << 20, 0), cause, "--memory 512m");
    assert_cause(&memory, &little(1 << 30, 0), "processes or", "ulimit -u");
}

/// A count of killed processes proves nothing under a limit that leaves enough, and neither does a limit without kills.
#[test]
fn kill_for_memory_of_the_cgroup_is_named() {
    let killed = error(Step::CompleteSetUp, Errno::ESRCH);
    let with = |limit, kills| Evidence {
        memory_limit: outer_limit(limit, 1 << 20, kills),
        ..plain()
    };
    let cause = "memory of the runner's cgroup ran out";
    assert_cause(&killed, &with(3 << 20, 2), cause, "--memory 512m");
    for evidence in [with(3 << 20, 0), with(1 << 30, 2)] {
        assert_cause(&killed, &evidence, "killed from outside", "dmesg");
    }
}

#[test]
fn null_device_that_does_not_open_names_its_reason() {
    for step in [Step::StartGuard, Step::TryOutside, Step::StandardInput] {
        let refused = error(step, Errno::EACCES);
        assert_unknown(&refused, &plain());
        let mode = Evidence {
            null_mode: Some(0o600),
            ..plain()
        };
        assert_cause(&refused, &mode, "its mode is 0600", "chmod 666");
        let nodev = Evidence {
            null_without_devices: Some("/dev".to_owned()),
            ..plain()
        };
        assert_cause(&refused, &nodev, "option of the mount /dev", "--rbind");
        let domain = Evidence {
            in_landlock_domain: true,
            ..plain()
        };
        assert_cause(&refused, &domain, "forbid writing to /dev/null", "outside");
    }
    let other = Evidence {
        null_mode: Some(0o600),
        ..plain()
    };
    assert_unknown(&error(Step::OpenTrees, Errno::EACCES), &other);
}

#[test]
fn missing_device_of_a_rule_is_told_from_a_path() {
    let at = |path: &str| SetupError {
        object: path.to_owned(),
        ..error(Step::TakeSource, Errno::ENOENT)
    };
    assert_cause(&at("/dev/zero"), &plain(), "lacks a device", "--rbind /dev");
    assert_unknown(&at("/opt/zero"), &plain());
}

#[test]
fn covered_root_and_frozen_proc_are_named() {
    let refused = error(Step::UserAndNetworkNamespace, Errno::EPERM);
    let covered = Evidence {
        covered_root: Some("mount 9 covers it, mount 7".to_owned()),
        ..plain()
    };
    assert_cause(&refused, &covered, "mount 9 covers it", "nsenter");
    let frozen = error(Step::WriteIdMaps, Errno::EROFS);
    assert_cause(&frozen, &plain(), "/proc is read-only", "remount,rw");
    assert_unknown(&error(Step::HostName, Errno::EROFS), &plain());
}
