//! Tests of the table of causes: each row with its proof, and the same error without it.

mod surroundings;

use caps::Capability;
use nix::errno::Errno;
use sandbox::error::{SetupError, Step};

use super::evidence::{Engine, Evidence};
use super::table::advise;

fn error(step: Step, errno: Errno) -> SetupError {
    SetupError {
        step,
        object: String::new(),
        errno: errno as i32,
    }
}

/// A machine without any hindrance.
fn plain() -> Evidence {
    Evidence {
        kernel: "6.18.0".to_owned(),
        uid: 1000,
        uid_map: Some("0 0 4294967295".to_owned()),
        ..Evidence::default()
    }
}

fn in_engine(engine: Engine) -> Evidence {
    Evidence {
        engine: Some((engine, "/.trace".to_owned())),
        filters: 1,
        filters_of_init: Some(1),
        filtered_calls: vec!["unshare".to_owned(), "mount".to_owned()],
        ..plain()
    }
}

#[track_caller]
fn assert_cause(error: &SetupError, evidence: &Evidence, cause: &str, fix: &str) {
    let advice = advise(error, evidence);
    let found = advice.cause.unwrap();
    assert!(found.contains(cause), "{found}");
    let fixes = advice.fixes.join("\n");
    assert!(fixes.contains(fix), "{fixes}");
}

#[track_caller]
fn assert_unknown(error: &SetupError, evidence: &Evidence) {
    let cause = advise(error, evidence).cause.unwrap();
    let errno = format!("{:?}", Errno::from_raw(error.errno));
    assert!(cause.starts_with("the cause is unknown"), "{cause}");
    assert!(
        cause.contains(&errno) && cause.contains(&error.step.to_string()),
        "{cause}"
    );
}

/// Each cause of refused user namespaces, with the fact that proves it.
#[test]
fn user_namespace_cause_follows_its_proof() {
    let refused = error(Step::UserAndNetworkNamespace, Errno::EPERM);
    assert_unknown(&refused, &plain());
    let calls = vec!["unshare".to_owned()];
    let (text, fact) = (str::to_owned, plain);
    for (evidence, cause, fix) in [
        (
            Evidence {
                chroot: Some(text("no mount at /")),
                ..fact()
            },
            "this is a chroot",
            "pivot_root",
        ),
        (
            Evidence {
                filtered_calls: calls.clone(),
                filters: 1,
                ..fact()
            },
            "a system call filter around the runner",
            "that installed the filter",
        ),
        (
            Evidence {
                filtered_calls: calls,
                filters: 2,
                filters_of_init: Some(1),
                ..fact()
            },
            "already inside a sandbox",
            "outside of that sandbox",
        ),
        (
            Evidence {
                debian_forbids: true,
                ..fact()
            },
            "unprivileged_userns_clone = 0",
            "sysctl kernel.unprivileged_userns_clone=1",
        ),
        (
            Evidence {
                apparmor_restricts: true,
                ..fact()
            },
            "AppArmor",
            "runner doctor --apparmor",
        ),
        (
            Evidence {
                uid: 65_534,
                uid_map: Some(text("0 1000 1")),
                ..fact()
            },
            "has no id",
            "--map-current-user",
        ),
        (
            in_engine(Engine::Docker),
            "Docker, by /.trace",
            "docker run --security-opt seccomp",
        ),
        (
            in_engine(Engine::Podman),
            "Podman",
            "podman run --security-opt seccomp",
        ),
        (
            in_engine(Engine::Kubernetes),
            "Kubernetes",
            "seccompProfile: {type: Unconfined}",
        ),
    ] {
        assert_cause(&refused, &evidence, cause, fix);
    }
}

/// A trace of an engine alone, a filter that permits the call, or a later filter proves nothing about the engine.
#[test]
fn engine_without_refused_call_is_no_cause() {
    let refused = error(Step::UserAndNetworkNamespace, Errno::EPERM);
    let evidence = Evidence {
        filtered_calls: Vec::new(),
        ..in_engine(Engine::Docker)
    };
    assert_unknown(&refused, &evidence);
    let evidence = Evidence {
        filters_of_init: Some(0),
        ..in_engine(Engine::Docker)
    };
    assert_cause(&refused, &evidence, "already inside a sandbox", "outside");
    let evidence = Evidence {
        debian_forbids: true,
        capabilities: vec![Capability::CAP_SYS_ADMIN],
        ..plain()
    };
    assert_unknown(&refused, &evidence);
}

/// Filters answer with any errno, so that errno alone proves no limit.
#[test]
fn filter_that_imitates_a_limit_is_named() {
    let filtered = Evidence {
        filters: 1,
        ..plain()
    };
    let refusing = Evidence {
        filtered_calls: vec!["unshare".to_owned()],
        ..filtered.clone()
    };
    let unknown_init = Evidence {
        engine: Some((Engine::Docker, "/.trace".to_owned())),
        ..refusing.clone()
    };
    for errno in [Errno::EAGAIN, Errno::ENOMEM, Errno::ENOSPC, Errno::EPERM] {
        let refused = error(Step::UserAndNetworkNamespace, errno);
        let cause = "a system call filter around the runner refuses a call";
        assert_cause(&refused, &refusing, cause, "that installed the filter");
        assert_cause(&refused, &unknown_init, cause, "that installed the filter");
    }
    let limit = error(Step::CloneClient, Errno::EAGAIN);
    assert_cause(
        &limit,
        &filtered,
        "or a filter around the runner",
        "ulimit -u",
    );
    assert_cause(&limit, &plain(), "memory is reached", "ulimit -u");
}

#[test]
fn killed_process_names_a_filter_by_its_signal() {
    let killed = |object: &str| SetupError {
        object: object.to_owned(),
        ..error(Step::CompleteSetUp, Errno::ESRCH)
    };
    let by_filter = killed("the stage was ended by SIGSYS");
    assert_cause(&by_filter, &plain(), "ends processes for a call", "outside");
    assert_cause(
        &killed("the stage has ended"),
        &plain(),
        "killed from outside",
        "dmesg",
    );
}

#[test]
fn refused_mount_cause_follows_its_proof() {
    let refused = error(Step::PrivateMounts, Errno::EPERM);
    assert_unknown(&refused, &plain());
    let domain = Evidence {
        in_landlock_domain: true,
        ..plain()
    };
    assert_cause(
        &refused,
        &domain,
        "Landlock rules forbid every mount",
        "outside",
    );
    let filtered = Evidence {
        filtered_calls: vec!["mount".to_owned()],
        ..plain()
    };
    assert_cause(&refused, &filtered, "a system call filter", "outside");
    let profile = Evidence {
        apparmor_profile: Some("docker-default (enforce)".to_owned()),
        apparmor_restricts: true,
        filtered_calls: Vec::new(),
        ..in_engine(Engine::Docker)
    };
    let denied = error(Step::PrivateMounts, Errno::EACCES);
    assert_cause(&denied, &profile, "docker-default", "apparmor=unconfined");
    let complaining = Evidence {
        apparmor_profile: Some("docker-default (complain)".to_owned()),
        ..profile
    };
    assert_cause(
        &denied,
        &complaining,
        "AppArmor gives",
        "runner doctor --apparmor",
    );
}

#[test]
fn used_up_limits_of_namespaces_are_told_from_zero() {
    for step in [Step::UserAndNetworkNamespace, Step::CloneInit] {
        let full = error(step, Errno::ENOSPC);
        assert_cause(
            &full,
            &plain(),
            "is used up",
            "sysctl user.max_user_namespaces",
        );
        let zero = Evidence {
            zero_limits: vec!["pid"],
            ..plain()
        };
        assert_cause(
            &full,
            &zero,
            "user.max_pid_namespaces = 0",
            "sysctl user.max_pid_namespaces=10000",
        );
    }
    let absent = error(Step::UserAndNetworkNamespace, Errno::EINVAL);
    assert_unknown(&absent, &plain());
    let kernel = Evidence {
        missing_kinds: vec!["net"],
        ..plain()
    };
    assert_cause(&absent, &kernel, "has no net", "CONFIG_NET_NS");
}

#[test]
fn root_that_cannot_change_users_has_a_cause() {
    let few = error(Step::HandOverPipes, Errno::EINVAL);
    let root = || Evidence { uid: 0, ..plain() };
    let map = Evidence {
        uid_map: Some("0 1000 1".to_owned()),
        ..root()
    };
    assert_cause(&few, &map, "too few ids", "--add-subuids");
    let unmapped = Evidence {
        uid: 65_534,
        ..map.clone()
    };
    assert_cause(&few, &unmapped, "has no id", "--map-current-user");
    let refused = error(Step::DropGroups, Errno::EPERM);
    assert_cause(&refused, &root(), "lacks CAP_CHOWN", "--cap-add CHOWN");
    assert_unknown(&refused, &plain());
    let denied = Evidence {
        denies_groups: true,
        ..root()
    };
    assert_cause(&refused, &denied, "forbids setgroups", "ordinary user");
    let able = Evidence {
        capabilities: vec![
            Capability::CAP_CHOWN,
            Capability::CAP_SETGID,
            Capability::CAP_SETUID,
            Capability::CAP_SETFCAP,
        ],
        ..root()
    };
    assert_unknown(&refused, &able);
}

#[test]
fn supervisor_that_cannot_read_names_its_reason() {
    let step = Step::Supervise;
    let unreadable = SetupError {
        object: "/proc/PID/mem".to_owned(),
        ..error(step, Errno::EACCES)
    };
    assert_unknown(&unreadable, &plain());
    let with = |capabilities: &[Capability]| Evidence {
        uid: 0,
        capabilities: capabilities.to_vec(),
        ..plain()
    };
    let cause = "it lacks CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH";
    assert_cause(
        &unreadable,
        &with(&[]),
        cause,
        "an ordinary user\nin a container: `--cap-add",
    );
    for one in [
        Capability::CAP_DAC_OVERRIDE,
        Capability::CAP_DAC_READ_SEARCH,
    ] {
        assert_unknown(&unreadable, &with(&[one]));
    }
}

#[test]
fn refused_ioctl_names_an_earlier_filter() {
    let filtered = Evidence {
        filters: 1,
        ..plain()
    };
    let request = SetupError {
        object: "SECCOMP_IOCTL_NOTIF_SEND".to_owned(),
        ..error(Step::Supervise, Errno::EPERM)
    };
    for refused in [error(Step::StartStage, Errno::ENOTTY), request] {
        assert_cause(&refused, &filtered, "refuses ioctl(2)", "outside");
        assert_unknown(&refused, &plain());
    }
    assert_unknown(&error(Step::Supervise, Errno::EPERM), &filtered);
}

#[test]
fn wide_route_of_loopback_is_told_from_a_link() {
    let linked = error(Step::InheritedNetwork, Errno::ENOTUNIQ);
    assert_cause(&linked, &plain(), "more than loopback", "--network none");
    let routed = SetupError {
        object: "a route leads through lo to 0.0.0.0/0".to_owned(),
        ..linked
    };
    assert_cause(&routed, &plain(), "lo to 0.0.0.0/0", "ip route del");
}

#[test]
fn filter_and_landlock_causes_follow_their_proof() {
    let busy = error(Step::Filter, Errno::EBUSY);
    assert_cause(&busy, &plain(), "already inside a sandbox", "outside");
    let wsl = Evidence {
        is_wsl: true,
        ..plain()
    };
    assert_cause(&busy, &wsl, "WSL", "virtual machine");
    let invalid = error(Step::Filter, Errno::EINVAL);
    assert_unknown(&invalid, &plain());
    let old = Evidence {
        lacks_notification: true,
        ..plain()
    };
    assert_cause(&invalid, &old, "no seccomp filters", "Linux 6.2");
    let filtered = Evidence {
        filters: 1,
        ..plain()
    };
    assert_cause(
        &invalid,
        &filtered,
        "a filter around the runner",
        "seccomp(2)",
    );

    let missing = error(Step::Landlock, Errno::EOPNOTSUPP);
    assert_cause(&missing, &plain(), "missing or older", "Linux 6.2");
    let modules = |list: &str| Evidence {
        modules: Some(list.to_owned()),
        ..filtered.clone()
    };
    assert_cause(
        &missing,
        &modules("yama"),
        "list of security modules",
        "lsm=landlock,",
    );
    let unknown = error(Step::Landlock, Errno::ENOSYS);
    assert_cause(
        &unknown,
        &modules("landlock,yama"),
        "refuses its calls",
        "permit landlock",
    );
    for (step, errno) in [
        (Step::Landlock, Errno::EOPNOTSUPP),
        (Step::LandlockAlone, Errno::ENOSYS),
    ] {
        let missing = error(step, errno);
        let hedge = "a filter around the runner refuses it";
        assert_cause(&missing, &filtered, hedge, "permit landlock");
        let refusing = Evidence {
            filtered_calls: vec!["landlock_create_ruleset".to_owned()],
            ..filtered.clone()
        };
        let cause = "the kernel has Landlock, and a filter";
        assert_cause(&missing, &refusing, cause, "permit landlock");
        let answering = Evidence {
            answers_landlock: true,
            ..filtered.clone()
        };
        let advice = advise(&missing, &answering);
        assert_eq!(advice, advise(&missing, &plain()));
    }
    let trees = error(Step::TakeSource, Errno::ENOSYS);
    assert_unknown(&trees, &plain());
    let unknown_call = Evidence {
        filtered_calls: vec!["open_tree".to_owned()],
        ..filtered.clone()
    };
    assert_cause(&trees, &unknown_call, "a system call filter", "outside");
    let kernel = Evidence {
        kernel: "5.10.0-9-amd64".to_owned(),
        ..plain()
    };
    assert_cause(&trees, &kernel, "5.10.0-9", "Linux 6.2");
}

#[test]
fn refused_target_of_the_canary_names_a_sandbox() {
    let refused = error(Step::CanaryTarget, Errno::EACCES);
    assert_unknown(&refused, &plain());
    let inside = Evidence {
        filters: 1,
        filters_of_init: Some(0),
        ..plain()
    };
    assert_cause(&refused, &inside, "already inside a sandbox", "outside");
}

#[test]
fn minimal_root_lacks_a_named_file() {
    let gone = error(Step::StandardInput, Errno::ENOENT);
    assert_unknown(&gone, &plain());
    let null = Evidence {
        lacks_null: true,
        ..plain()
    };
    assert_cause(&gone, &null, "/dev/null is missing", "--rbind /dev");
    let proc = Evidence {
        lacks_proc: true,
        uid_map: None,
        ..plain()
    };
    let start = error(Step::StartStage, Errno::ENOENT);
    assert_cause(&start, &proc, "/proc is not mounted", "mount -t proc");
    let initial = error(Step::PivotRoot, Errno::EINVAL);
    assert_unknown(&initial, &plain());
    let ram = Evidence {
        root_kind: "rootfs".to_owned(),
        ..plain()
    };
    assert_cause(&initial, &ram, "initial RAM file system", "switch_root");
}

/// Docker and Podman spell the option in the same way, so a known engine gets one command.
#[test]
fn known_engine_gets_its_own_command_once() {
    let linked = error(Step::InheritedNetwork, Errno::ENOTUNIQ);
    let fixes = advise(&linked, &in_engine(Engine::Podman)).fixes;
    assert_eq!(fixes, ["podman run --network none …"]);
    let full = error(Step::MakeTrees, Errno::EROFS);
    let fixes = advise(&full, &in_engine(Engine::Docker)).fixes;
    let tmp = "docker run --tmpfs /tmp …";
    assert_eq!(fixes, ["name a writable directory in TMPDIR", tmp]);
    assert_eq!(advise(&full, &plain()).fixes.len(), 1);
}
