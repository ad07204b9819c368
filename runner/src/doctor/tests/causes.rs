//! Tests of causes and fixes.

use nix::errno::Errno;
use nix::unistd::Uid;

use super::{context, host, refused};
use crate::doctor::advice::advise;
use crate::doctor::context::{Context, Engine};
use crate::doctor::probes::ALL;
use crate::doctor::trial::Observation;

/// Each observation of each probe has a cause and a fix.
#[test]
fn everything_that_does_not_work_has_a_cause_and_a_fix() {
    let errnos = [
        Errno::EPERM,
        Errno::EACCES,
        Errno::ENOSYS,
        Errno::EINVAL,
        Errno::ENOSPC,
        Errno::EBUSY,
        Errno::EAGAIN,
        Errno::EMFILE,
        Errno::ENOENT,
        Errno::EOPNOTSUPP,
        Errno::EIO,
        Errno::ENOMEM,
    ];
    let ways = errnos.map(refused).into_iter().chain([
        Observation::Killed(libc::SIGSYS),
        Observation::Killed(libc::SIGKILL),
        Observation::Hung,
        Observation::Wrong("was not refused".to_owned()),
    ]);
    for way in ways {
        for probe in ALL {
            let tried = host(&[(probe.id, way.clone())]);
            let one = tried.iter().find(|one| one.probe.id == probe.id).unwrap();
            let advice = advise(one, &tried, &context());
            let advice = advice.unwrap_or_else(|| panic!("{} {way:?}", probe.id));
            assert!(
                advice.cause.len() > 10 && !advice.fixes.is_empty(),
                "{}",
                probe.id
            );
        }
    }
}

#[test]
fn the_cause_and_the_fix_are_those_of_the_surroundings() {
    let plain = context();
    let docker = Context {
        engine: Some((Engine::Docker, "/.dockerenv".to_owned())),
        ..context()
    };
    let podman = Context {
        engine: Some((Engine::Podman, "/run/.containerenv".to_owned())),
        ..context()
    };
    let kubernetes = Context {
        engine: Some((Engine::Kubernetes, "$KUBERNETES_SERVICE_HOST".to_owned())),
        ..context()
    };
    let ubuntu = Context {
        apparmor_restricts: true,
        ..context()
    };
    let debian = Context {
        debian_forbids: true,
        ..context()
    };
    let wsl = Context {
        is_wsl: true,
        ..context()
    };
    let yama = Context {
        ptrace_scope: Some(2),
        ..context()
    };
    let root = Context {
        uid: Uid::from_raw(0),
        ..context()
    };
    for (id, errno, surroundings, cause, fix) in [
        (
            "user-namespace",
            Errno::EPERM,
            &docker,
            "a container",
            "docker run --security-opt seccomp=unconfined",
        ),
        (
            "user-namespace",
            Errno::EPERM,
            &podman,
            "a container",
            "podman run --security-opt seccomp=unconfined",
        ),
        (
            "user-namespace",
            Errno::EPERM,
            &kubernetes,
            "a container",
            "seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}`",
        ),
        (
            "user-namespace",
            Errno::EPERM,
            &debian,
            "unprivileged_userns_clone = 0",
            "sudo sysctl kernel.unprivileged_userns_clone=1",
        ),
        (
            "user-namespace",
            Errno::EACCES,
            &ubuntu,
            "AppArmor",
            "runner doctor --apparmor",
        ),
        (
            "user-namespace",
            Errno::EPERM,
            &plain,
            "a filter or a security module",
            "elsewhere: start the runner outside",
        ),
        (
            "user-namespace",
            Errno::ENOSPC,
            &plain,
            "limit of namespaces",
            "sudo sysctl user.max_user_namespaces=10000 user.max_net_namespaces=10000",
        ),
        (
            "other-namespaces",
            Errno::ENOSPC,
            &plain,
            "limit of namespaces",
            "sudo sysctl user.max_pid_namespaces=10000 user.max_mnt_namespaces=10000",
        ),
        (
            "user-namespace",
            Errno::ENOSYS,
            &plain,
            "built without",
            "CONFIG_USER_NS",
        ),
        (
            "id-map",
            Errno::EPERM,
            &ubuntu,
            "AppArmor",
            "runner doctor --apparmor",
        ),
        ("id-map", Errno::EPERM, &root, "CAP_SETUID", "ordinary user"),
        (
            "loopback",
            Errno::EPERM,
            &ubuntu,
            "AppArmor",
            "apparmor_parser -r",
        ),
        (
            "private-mounts",
            Errno::EACCES,
            &ubuntu,
            "AppArmor",
            "apparmor_restrict_unprivileged_userns=0",
        ),
        (
            "private-mounts",
            Errno::EPERM,
            &plain,
            "security module",
            "docker run",
        ),
        (
            "fresh-proc",
            Errno::EPERM,
            &docker,
            "covered",
            "--security-opt systempaths=unconfined",
        ),
        (
            "fresh-proc",
            Errno::EPERM,
            &podman,
            "covered",
            "--security-opt unmask=ALL",
        ),
        ("seccomp-listener", Errno::EBUSY, &wsl, "WSL", "outside"),
        (
            "seccomp-listener",
            Errno::EBUSY,
            &plain,
            "surrounding sandbox",
            "outside",
        ),
        (
            "seccomp-listener",
            Errno::EINVAL,
            &plain,
            "5.19",
            "Linux 6.2",
        ),
        (
            "memory-here",
            Errno::EACCES,
            &yama,
            "ptrace_scope = 2",
            "sudo sysctl kernel.yama.ptrace_scope=1",
        ),
        (
            "memory-here",
            Errno::EACCES,
            &plain,
            "CAP_SYS_PTRACE",
            "SYS_PTRACE",
        ),
        (
            "landlock",
            Errno::EOPNOTSUPP,
            &plain,
            "list of security modules",
            "lsm=landlock,",
        ),
        (
            "landlock",
            Errno::ENOSYS,
            &plain,
            "no Landlock",
            "Linux 6.2",
        ),
        (
            "landlock-scopes",
            Errno::EOPNOTSUPP,
            &plain,
            "ABI 6",
            "6.12",
        ),
        (
            "open-files",
            Errno::EMFILE,
            &plain,
            "open files",
            "--ulimit nofile=1024:1024",
        ),
        (
            "own-file",
            Errno::EAGAIN,
            &plain,
            "process limit",
            "ulimit -u",
        ),
        (
            "own-file",
            Errno::ENOENT,
            &plain,
            "/proc/self/exe",
            "mount -t proc",
        ),
        (
            "temporary-directory",
            Errno::EROFS,
            &plain,
            "temporary directory",
            "--tmpfs /tmp",
        ),
        (
            "other-user",
            Errno::EPERM,
            &root,
            "CAP_CHOWN",
            "--user 1000",
        ),
        (
            "new-root",
            Errno::EINVAL,
            &plain,
            "initial RAM file system",
            "switch_root",
        ),
    ] {
        let tried = host(&[(id, refused(errno))]);
        let one = tried.iter().find(|one| one.probe.id == id).unwrap();
        let advice = advise(one, &tried, surroundings).unwrap();
        assert!(advice.cause.contains(cause), "{id}: {}", advice.cause);
        let fixes = advice.fixes.join("\n");
        assert!(fixes.contains(fix), "{id}: {fixes}");
    }
}

#[test]
fn the_network_of_a_container_is_closed_by_the_engine() {
    let tried = host(&[(
        "loopback-only",
        Observation::Wrong("the link eth0 is up".to_owned()),
    )]);
    let one = tried
        .iter()
        .find(|one| one.probe.id == "loopback-only")
        .unwrap();
    let advice = advise(one, &tried, &context()).unwrap();
    assert_eq!(
        advice.fixes,
        ["docker run --network none …", "podman run --network none …"]
    );
}

/// gVisor has neither Landlock nor listeners, and refuses them with these two errnos.
#[test]
fn gvisor_is_told_by_what_it_refuses() {
    let tried = host(&[
        ("landlock", refused(Errno::ENOSYS)),
        ("seccomp-listener", refused(Errno::EINVAL)),
    ]);
    for id in ["landlock", "seccomp-listener"] {
        let one = tried.iter().find(|one| one.probe.id == id).unwrap();
        let advice = advise(one, &tried, &context()).unwrap();
        assert!(advice.cause.contains("gVisor"), "{id}: {}", advice.cause);
    }
}

#[test]
fn a_known_engine_gets_its_own_command_once() {
    let podman = Context {
        engine: Some((Engine::Podman, "/run/.containerenv".to_owned())),
        ..context()
    };
    let wrong = Observation::Wrong("the link eth0 is up".to_owned());
    for (id, observation, fixes) in [
        ("loopback-only", wrong, &["podman run --network none …"][..]),
        (
            "temporary-directory",
            refused(Errno::EROFS),
            &[
                "set TMPDIR to a writable directory",
                "podman run --tmpfs /tmp …",
            ],
        ),
    ] {
        let tried = host(&[(id, observation)]);
        let one = tried.iter().find(|one| one.probe.id == id).unwrap();
        assert_eq!(advise(one, &tried, &podman).unwrap().fixes, fixes);
    }
}

fn fixes(id: &str, errno: Errno, surroundings: &Context) -> Vec<String> {
    let tried = host(&[(id, refused(errno))]);
    let one = tried.iter().find(|one| one.probe.id == id).unwrap();
    advise(one, &tried, surroundings).unwrap().fixes
}

#[test]
fn the_profile_that_apparmor_has_for_containers_is_lifted_where_it_holds() {
    let in_docker = |profile: Option<&str>| Context {
        engine: Some((Engine::Docker, "/.dockerenv".to_owned())),
        apparmor_profile: profile.map(str::to_owned),
        ..context()
    };
    let without =
        "docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined …";
    let with = "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
                --security-opt systempaths=unconfined …";
    for (profile, fix) in [
        (None, without),
        (Some("unconfined"), without),
        (Some("docker-default (complain)"), without),
        (Some("runner (unconfined)"), without),
        (Some("docker-default (enforce)"), with),
        (Some("containers-default-0.62.2 (enforce)"), with),
    ] {
        for (id, errno) in [
            ("user-namespace", Errno::EPERM),
            ("private-mounts", Errno::EACCES),
        ] {
            assert_eq!(
                fixes(id, errno, &in_docker(profile)),
                [fix],
                "{profile:?} {id}"
            );
        }
    }
    // The profile of the engine is the cause, not Ubuntu's missing profile.
    let both = Context {
        apparmor_restricts: true,
        ..in_docker(Some("docker-default (enforce)"))
    };
    assert_eq!(fixes("private-mounts", Errno::EACCES, &both), [with]);
    let tried = host(&[("private-mounts", refused(Errno::EACCES))]);
    let one = tried.iter().find(|one| one.probe.id == "private-mounts");
    let cause = advise(one.unwrap(), &tried, &both).unwrap().cause;
    assert!(cause.ends_with("docker-default"), "{cause}");
}

#[test]
fn a_pod_gets_two_profiles_and_for_a_fresh_proc_two_settings() {
    let pod = |user| Context {
        engine: Some((Engine::Kubernetes, "$KUBERNETES_SERVICE_HOST".to_owned())),
        uid: Uid::from_raw(user),
        ..context()
    };
    for user in [0, 1000] {
        let [fix] = &fixes("user-namespace", Errno::EPERM, &pod(user))[..] else {
            panic!("more than one")
        };
        assert!(
            !fix.contains("procMount") && !fix.contains("hostUsers"),
            "{fix}"
        );
    }
    let pair = "`securityContext: {procMount: Unmasked}` in the container, with `hostUsers: false` in the pod";
    assert_eq!(fixes("fresh-proc", Errno::EPERM, &pod(1000)), [pair]);
    let [fix] = &fixes("fresh-proc", Errno::EPERM, &pod(0))[..] else {
        panic!("more than one")
    };
    assert!(
        fix.starts_with("as an ordinary user") && fix.ends_with(pair),
        "{fix}"
    );
}

#[test]
fn where_apparmor_wants_a_profile_that_comes_before_the_setting_for_all_programs() {
    let ubuntu = Context {
        apparmor_restricts: true,
        ..context()
    };
    for id in ["user-namespace", "id-map", "loopback", "private-mounts"] {
        let fixes = fixes(id, Errno::EPERM, &ubuntu);
        assert!(
            fixes[0].starts_with("runner doctor --apparmor"),
            "{fixes:?}"
        );
        assert_eq!(
            fixes[1],
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        );
    }
}
