//! The table of causes: steps, errnos, proof, fixes. Pure: computed from an error and the evidence.

mod conditions;

use caps::Capability;
use nix::errno::Errno;
use nix::errno::Errno::{
    E2BIG, EACCES, EAGAIN, EBUSY, EFBIG, EINVAL, EMFILE, ENFILE, ENODEV, ENOENT, ENOMEM, ENOSPC,
    ENOSYS, EOPNOTSUPP, EPERM, EROFS, ESRCH, ETIMEDOUT, EUSERS,
};
use sandbox::error::{SetupError, Step};
use sandbox::netns_check::ROUTE_THROUGH_LOOPBACK;

use self::conditions::*;
use super::Advice;
use super::evidence::{Engine, Evidence};

/// A cause of failed steps. The first row that applies is the advice.
struct Row {
    /// Steps that the cause makes fail; an empty list stands for every step.
    steps: &'static [Step],
    /// Errnos of the failed step; an empty list stands for every errno.
    errnos: &'static [Errno],
    /// Fact that proves the cause; an empty text if step and errno prove it.
    proof: fn(&Evidence, &SetupError) -> Option<String>,
    cause: &'static str,
    fixes: &'static [Fix],
}

/// A remedy.
enum Fix {
    /// A command, a setting or an instruction.
    Do(&'static str),
    /// Options of the engine that started this container, if it is known.
    Engine {
        docker: &'static str,
        podman: &'static str,
        kubernetes: &'static str,
    },
}

use Fix::Do;

const fn row(
    steps: &'static [Step],
    errnos: &'static [Errno],
    proof: fn(&Evidence, &SetupError) -> Option<String>,
    cause: &'static str,
    fixes: &'static [Fix],
) -> Row {
    Row {
        steps,
        errnos,
        proof,
        cause,
        fixes,
    }
}

/// Options that permit a container everything that a run makes.
const PERMIT: Fix = Fix::Engine {
    docker: "--security-opt seccomp=unconfined --security-opt systempaths=unconfined",
    podman: "--security-opt seccomp=unconfined --security-opt unmask=ALL",
    kubernetes: "in the pod: `securityContext: {seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}`",
};
const PERMIT_WITHOUT_APPARMOR: Fix = Fix::Engine {
    docker: "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined",
    podman: "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt unmask=ALL",
    kubernetes: "in the pod: `securityContext: {seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}`",
};
const OUTSIDE: Fix = Do("start the runner outside of that sandbox");
const PERMIT_IN_FILTER: Fix =
    Do("permit the call in that filter, or start the runner outside of it");
const ORDINARY_USER: Fix = Do("start the runner as an ordinary user");
const RAISE_LIMITS: Fix =
    Do("`ulimit -u unlimited -v unlimited -d unlimited`, and in Docker `--pids-limit 512`");

const LANDLOCK_REFUSED: &str =
    "the kernel has Landlock, and a filter around the runner refuses its calls";
const PERMIT_LANDLOCK: Fix = Do(
    "permit landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in that filter: Docker 20.10.10, Podman 4 or later do",
);
const RAISE_CGROUP_MEMORY: Fix = Do(
    "raise the limit of that cgroup to 512 MiB: `--memory 512m` of Docker and Podman, `MemoryMax=512M` of systemd",
);

/// Steps that make a namespace or need a capability in it.
const NAMESPACES: &[Step] = &[
    Step::UserAndNetworkNamespace,
    Step::WriteIdMaps,
    Step::BecomeInsideUser,
    Step::LoopbackUp,
    Step::ResolverSocket,
    Step::CloneInit,
    Step::PrivateMounts,
    Step::TakeSource,
    Step::RootFilesystem,
    Step::AttachSource,
    Step::PivotRoot,
    Step::ReadOnlyRoot,
];
const USER: &[Step] = &[Step::UserAndNetworkNamespace];
const MAKING: &[Step] = &[Step::UserAndNetworkNamespace, Step::CloneInit];
const OTHER_USER: &[Step] = &[
    Step::HandOverPipes,
    Step::DropGroups,
    Step::WriteIdMaps,
    Step::BecomeInsideUser,
];
const DENIED: &[Errno] = &[EPERM, EACCES];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(&[Step::TryOutside], &[EPERM], certain,
        "a filter around the runner ends processes for that call",
        &[Do("start the container with a seccomp profile that refuses it with an errno")]),
    row(&[Step::CompleteSetUp, Step::StartGuard, Step::TryOutside], &[ETIMEDOUT], certain,
        "a process of the sandbox is stopped, or this machine is overloaded",
        &[Do("start the runner again")]),
    row(&[Step::CompleteSetUp], &[ESRCH], |_, error| error.object.contains("SIGSYS").then(String::new),
        "a system call filter around the runner ends processes for a call of the set-up",
        &[OUTSIDE, Do("start the container with a seccomp profile that refuses calls with an errno")]),
    row(&[Step::CompleteSetUp], &[ESRCH], killed_for_memory,
        "the kernel killed a process because the memory of the runner's cgroup ran out",
        &[RAISE_CGROUP_MEMORY]),
    row(&[Step::CompleteSetUp], &[ESRCH], filters_before,
        "a process of the sandbox was killed, from outside or by a filter around the runner",
        &[Do("`sudo dmesg` lists the processes that the kernel killed when memory ran out, or for a system call")]),
    row(&[Step::CompleteSetUp], &[ESRCH], certain,
        "a process of the sandbox was killed from outside",
        &[Do("`sudo dmesg` lists the processes that the kernel killed when memory ran out, or for a system call")]),
    row(NAMESPACES, &[], filter_of_engine,
        "the seccomp profile of this container, or of the program that is its process 1, refuses a call that makes namespaces or mounts",
        &[PERMIT, Do("for isolation `inherited`: `docker run --network none …`")]),
    row(NAMESPACES, DENIED, profile_of_engine,
        "the AppArmor profile of this container refuses namespaces or mounts",
        &[PERMIT_WITHOUT_APPARMOR]),
    row(NAMESPACES, &[], filter_of_sandbox,
        "already inside a sandbox, whose system call filter refuses a call that makes namespaces or mounts",
        &[OUTSIDE]),
    row(NAMESPACES, &[], filter,
        "a system call filter around the runner refuses a call that makes namespaces or mounts",
        &[Do("start the runner outside of the program that installed the filter, such as a container without a profile for it")]),
    row(&[], &[EAGAIN], few_processes,
        "the runner's cgroup allows too few processes",
        &[Do("raise the limit of that cgroup to 512: `--pids-limit 512` of Docker and Podman, `TasksMax=512` of systemd")]),
    row(&[], &[ENOMEM], little_memory,
        "the runner's cgroup allows too little memory",
        &[RAISE_CGROUP_MEMORY]),
    row(&[], &[EAGAIN, ENOMEM], filters_before,
        "a limit on processes or memory is reached, or a filter around the runner refuses the call",
        &[RAISE_LIMITS, PERMIT_IN_FILTER]),
    row(&[], &[EAGAIN, ENOMEM], certain, "a limit on processes or memory is reached", &[RAISE_LIMITS]),
    row(&[], &[EMFILE], certain, "the limit of open files is too low for a run",
        &[Do("`ulimit -n 1024`, as root if the hard limit is lower")]),
    row(&[], &[ENFILE], certain, "the limit of open files of the whole system is reached",
        &[Do("`sudo sysctl fs.file-max=1000000`")]),
    row(&[], &[EFBIG], certain, "the limit of a file's length is reached", &[Do("`ulimit -f unlimited`")]),
    row(&[], &[ENOENT], without_proc,
        "/proc is not mounted where the runner is started",
        &[Do("`mount -t proc proc /proc`")]),
    row(&[], &[ENOENT], without_null,
        "/dev/null is missing in this root",
        &[Do("`mount --rbind /dev ROOT/dev` before the runner is started in ROOT")]),
    row(OPENING_NULL, &[EACCES],
        |evidence, _| evidence.null_without_devices.as_ref().map(|target| format!("nodev is an option of the mount {target}")),
        "the file system of /dev/null permits no devices",
        &[Do("mount it with the option `dev`, or `mount --rbind /dev ROOT/dev` before the runner is started in ROOT")]),
    row(OPENING_NULL, &[EACCES],
        |evidence, _| evidence.null_mode.map(|mode| format!("its mode is {mode:04o}")),
        "not every user may read and write /dev/null",
        &[Do("`sudo chmod 666 /dev/null`")]),
    row(OPENING_NULL, &[EACCES], in_domain,
        "already inside a sandbox, whose Landlock rules forbid writing to /dev/null",
        &[OUTSIDE]),
    row(&[Step::TakeSource], &[ENOENT],
        |_, error| error.object.starts_with("/dev/").then(String::new),
        "this root lacks a device that the policy names",
        &[Do("`mount --rbind /dev ROOT/dev` before the runner is started in ROOT")]),
    row(&[Step::WriteIdMaps], &[EROFS], certain,
        "/proc is read-only where the runner is started",
        &[Do("`mount -o remount,rw /proc`, or mount another one: `mount -t proc proc /proc`")]),

    row(MAKING, &[ENOSPC, EUSERS], zero_limit,
        "the limit of namespaces is 0",
        &[Do("sudo sysctl {limits}")]),
    row(MAKING, &[ENOSPC, EUSERS], filters_before,
        "a limit of namespaces is used up, or a filter around the runner refuses the call",
        &[PERMIT_IN_FILTER]),
    row(MAKING, &[ENOSPC, EUSERS], certain,
        "a limit of namespaces is used up, here or in a parent user namespace",
        &[Do("`sudo sysctl user.max_user_namespaces=10000 user.max_net_namespaces=10000 user.max_pid_namespaces=10000 user.max_mnt_namespaces=10000 user.max_ipc_namespaces=10000 user.max_uts_namespaces=10000 user.max_cgroup_namespaces=10000`")]),
    row(MAKING, &[EINVAL, ENOSYS], missing_kind,
        "this kernel was built without such namespaces",
        &[Do("use a kernel with CONFIG_USER_NS, CONFIG_NET_NS, CONFIG_PID_NS, CONFIG_IPC_NS, CONFIG_UTS_NS and CONFIG_CGROUPS")]),

    row(&[Step::PrivateMounts], &[EPERM], in_domain,
        "already inside a sandbox, whose Landlock rules forbid every mount",
        &[OUTSIDE]),
    row(USER, &[EPERM], |evidence, _| evidence.chroot.clone(),
        "this is a chroot, in which the kernel refuses user namespaces (user_namespaces(7))",
        &[Do("start the runner outside of it, or enter the directory by pivot_root(2), as `bwrap --dev-bind DIRECTORY /` and container engines do")]),
    row(USER, &[EPERM], |evidence, _| evidence.covered_root.clone(),
        "another mount covers this root, in which the kernel then refuses user namespaces",
        &[Do("enter the upper one as root: `nsenter --mount=/proc/self/ns/mnt runner …`")]),
    row(&[Step::UserAndNetworkNamespace, Step::HandOverPipes], &[EPERM, EINVAL], unmapped,
        "the user of this process has no id in its user namespace",
        &[Do("write the maps of that namespace, as an ordinary user: `unshare --map-current-user …`")]),
    row(USER, DENIED,
        |evidence, _| fact(evidence.debian_forbids && !evidence.capabilities.contains(&Capability::CAP_SYS_ADMIN),
            "kernel.unprivileged_userns_clone = 0"),
        "ordinary users cannot make user namespaces here",
        &[Do("`sudo sysctl kernel.unprivileged_userns_clone=1`")]),
    row(NAMESPACES, DENIED,
        |evidence, _| fact(evidence.apparmor_restricts, "kernel.apparmor_restrict_unprivileged_userns = 1"),
        "AppArmor gives a program without a profile no capabilities in a new user namespace",
        &[Do("load the profile that `runner doctor --apparmor` prints: `runner doctor --apparmor | sudo tee /etc/apparmor.d/runner && sudo apparmor_parser -r /etc/apparmor.d/runner`"),
          Do("for all programs: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`")]),

    row(&[Step::HandOverPipes], &[EINVAL], |evidence, _| Some(evidence.maps()),
        "started by the root of a user namespace with too few ids: each is root's or has a name",
        &[ORDINARY_USER,
          Do("give the namespace 65536 ids; in rootless Podman: `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`, then `podman system migrate`")]),
    row(&[Step::DropGroups], &[EPERM],
        |evidence, _| fact(evidence.denies_groups, "/proc/self/setgroups is deny"),
        "the user namespace forbids setgroups(2)",
        &[ORDINARY_USER, Do("make it with `newgidmap`, as rootless Podman does")]),
    row(OTHER_USER, &[EPERM, EINVAL], lacking_capabilities,
        "this root cannot become another user",
        &[ORDINARY_USER, Do("in a container: `--cap-add CHOWN --cap-add SETGID --cap-add SETUID --cap-add SETFCAP --cap-add DAC_OVERRIDE`")]),

    row(&[Step::Supervise], &[EACCES], lacking_file_capabilities,
        "this root cannot read the client's process, which has another user",
        &[ORDINARY_USER, Do("in a container: `--cap-add DAC_OVERRIDE`")]),

    row(&[], &[], |evidence, error| filters_before(evidence, error).filter(|_| is_refused_ioctl(error)),
        "a filter around the runner refuses ioctl(2)",
        &[PERMIT_IN_FILTER]),
    row(&[Step::Filter], &[EBUSY], |evidence, _| evidence.is_wsl.then(String::new),
        "the init of WSL holds the only listener that a chain of seccomp filters may have",
        &[Do("start the runner in a container or a virtual machine")]),
    row(&[Step::Filter], &[EBUSY], |evidence, _| Some(evidence.restrictions()),
        "already inside a sandbox: its seccomp filter has the only listener that the kernel allows",
        &[OUTSIDE]),
    row(&[Step::Filter], &[EINVAL, ENOSYS],
        |evidence, _| fact(evidence.lacks_notification, "/proc/sys/kernel/seccomp/actions_avail"),
        "this kernel has no seccomp filters with user notification",
        &[Do("use Linux 6.2 or later; gVisor has none: `docker run --runtime runc …`")]),
    row(&[Step::NoNewPrivileges], &[], filters_before,
        "a filter around the runner refuses no_new_privs",
        &[Do("permit prctl(2) in that filter, or start the runner outside of it")]),
    row(&[Step::Filter], &[], filters_before,
        "a filter around the runner refuses seccomp filters with user notification",
        &[Do("permit seccomp(2) in that filter, or start the runner outside of it")]),
    row(&[Step::Landlock, Step::LandlockAlone], &[], filtered_landlock, LANDLOCK_REFUSED, &[PERMIT_LANDLOCK]),
    row(&[Step::Landlock], &[EOPNOTSUPP], unlisted_landlock,
        "Landlock is not in the kernel's list of security modules",
        &[Do("boot with `lsm=landlock,…` in front of the modules that are listed")]),
    row(&[Step::Landlock, Step::LandlockAlone], &[EPERM, ENOSYS, EACCES], listed_landlock, LANDLOCK_REFUSED, &[PERMIT_LANDLOCK]),
    row(&[Step::Landlock, Step::LandlockAlone], &[E2BIG], certain,
        "already inside a sandbox of 16 Landlock domains, and no more can be nested",
        &[OUTSIDE]),
    row(&[Step::Landlock], &[], perhaps_filtered_landlock,
        "Landlock is missing in this kernel, or a filter around the runner refuses it",
        &[Do("use Linux 6.2 or later, with landlock in its list of security modules: boot with `lsm=landlock,…`"),
          PERMIT_LANDLOCK]),
    row(&[Step::Landlock], &[], certain,
        "Landlock is missing or older than ABI 3",
        &[Do("use Linux 6.2 or later, with landlock in its list of security modules: boot with `lsm=landlock,…`")]),
    row(&[Step::LandlockAlone], &[], perhaps_filtered_landlock,
        "without namespaces Landlock ABI 6 is needed, and this kernel lacks it or a filter around the runner refuses it",
        &[Do("use Linux 6.12 or later, with landlock in its list of security modules"), PERMIT_LANDLOCK]),
    row(&[Step::LandlockAlone], &[], certain,
        "without namespaces Landlock ABI 6 is needed",
        &[Do("use Linux 6.12 or later, with landlock in its list of security modules")]),

    row(&[Step::CanaryTarget], DENIED, later_filter,
        "already inside a sandbox, which refuses the sockets of the canary",
        &[OUTSIDE]),

    row(&[Step::InheritedNetwork], &[],
        |_, error| error.object.starts_with(ROUTE_THROUGH_LOOPBACK).then(|| error.object.clone()),
        "connections to other addresses would wait in loopback instead of being refused",
        &[Do("`sudo ip route del DESTINATION dev lo`, for IPv6 with `ip -6`")]),
    row(&[Step::InheritedNetwork], &[], certain,
        "this network namespace has more than loopback, so it cannot isolate a run",
        &[Do("docker run --network none …"), Do("podman run --network none …")]),
    row(&[Step::ReadNetwork], &[], filters_before,
        "a filter around the runner refuses sockets of the family netlink",
        &[Do("permit them in the seccomp profile")]),
    row(&[Step::ListSockets], &[], certain,
        "sock_diag(7) is missing or refused",
        &[Do("use a kernel with CONFIG_INET_DIAG: `sudo modprobe tcp_diag`"),
          Do("in a container: an engine that permits socket(2) with NETLINK_SOCK_DIAG")]),
    row(&[Step::LoopbackUp], &[Errno::ENETDOWN], certain,
        "loopback is down in this network namespace",
        &[Do("`sudo ip link set lo up`")]),
    row(&[Step::LoopbackUp], &[ENODEV], certain,
        "this network namespace has no loopback device",
        &[Do("use a kernel with CONFIG_NET, or another container")]),
    row(&[Step::MakeTrees], &[ENOSPC], certain,
        "each temporary directory is full or read-only",
        &[Do("name a directory with free space in TMPDIR")]),
    row(&[Step::MakeTrees], &[], certain,
        "no temporary directory is writable",
        &[Do("name a writable directory in TMPDIR"),
          Fix::Engine { docker: "--tmpfs /tmp", podman: "--tmpfs /tmp", kubernetes: "mount an `emptyDir` at /tmp" }]),
    row(&[Step::RootFilesystem], &[ENOENT], certain,
        "this root has no directory on which the new root could be mounted",
        &[Do("make a directory /tmp")]),
    row(&[Step::TakeSource], &[EACCES], certain,
        "the user who starts the runner may not read a path that the policy names",
        &[Do("permit it, or start the runner as another user")]),
    row(&[Step::TakeSource], &[ENOSYS], old_kernel,
        "open_tree(2) and mount_setattr(2) need Linux 5.12",
        &[Do("use Linux 6.2 or later")]),
    row(&[Step::PivotRoot], &[EINVAL],
        |evidence, _| fact(evidence.root_kind == "rootfs", "its file system is rootfs"),
        "the root is the initial RAM file system, which pivot_root(2) cannot leave",
        &[Do("start the runner from a mounted root file system: `switch_root`, or in a container")]),
];

/// Returns the advice of the first row that applies, or the evidence at hand with an unknown cause.
pub(super) fn advise(error: &SetupError, evidence: &Evidence) -> Advice {
    let errno = Errno::from_raw(error.errno);
    let mut rows = ROWS.iter().filter(|row| {
        (row.steps.is_empty() || row.steps.contains(&error.step))
            && (row.errnos.is_empty() || row.errnos.contains(&errno))
    });
    let found = rows.find_map(|row| Some((row, (row.proof)(evidence, error)?)));
    let Some((row, proof)) = found else {
        return unknown(error, evidence);
    };
    let cause = if proof.is_empty() {
        row.cause.to_owned()
    } else {
        format!("{} ({proof})", row.cause)
    };
    let mut fixes: Vec<String> = Vec::new();
    for fix in row.fixes.iter().filter_map(|fix| text(fix, evidence)) {
        if !fixes.contains(&fix) {
            fixes.push(fix);
        }
    }
    Advice {
        cause: Some(cause),
        fixes,
    }
}

/// Formats a fix for the known engine. Docker and Podman spell most options in the same way.
fn text(fix: &Fix, evidence: &Evidence) -> Option<String> {
    let engine = evidence.engine.as_ref().map(|(engine, _)| *engine);
    Some(match (fix, engine) {
        (Do(text), Some(Engine::Docker)) if text.contains(" run ") => {
            text.replace("podman run", "docker run")
        }
        (Do(text), Some(Engine::Podman)) if text.contains(" run ") => {
            text.replace("docker run", "podman run")
        }
        (Do(text), _) => text.replace("{limits}", &limits(evidence)),
        (Fix::Engine { docker, .. }, Some(Engine::Docker)) => format!("docker run {docker} …"),
        (Fix::Engine { podman, .. }, Some(Engine::Podman)) => format!("podman run {podman} …"),
        (Fix::Engine { kubernetes, .. }, Some(Engine::Kubernetes)) => (*kubernetes).to_owned(),
        (Fix::Engine { .. }, Some(Engine::Other) | None) => return None,
    })
}

fn limits(evidence: &Evidence) -> String {
    let settings = evidence.zero_limits.iter();
    let settings: Vec<String> = settings
        .map(|kind| format!("user.max_{kind}_namespaces=10000"))
        .collect();
    settings.join(" ")
}

fn unknown(error: &SetupError, evidence: &Evidence) -> Advice {
    let lines = evidence.lines();
    let at_hand = lines.iter().filter(|(label, _)| *label != "modules");
    let at_hand: Vec<String> = at_hand
        .map(|(label, text)| format!("{label}: {text}"))
        .collect();
    let errno = Errno::from_raw(error.errno);
    Advice {
        cause: Some(format!(
            "the cause is unknown: the kernel answered {errno:?} to the attempt to {}; {}",
            error.step,
            at_hand.join("; ")
        )),
        fixes: vec!["please report it, with the output of `runner doctor`".to_owned()],
    }
}
