//! Causes and fixes of probes that do not work. A fix is a command, a flag of an engine, or a setting of the kernel.
//! Pure: computed from an observation and the context.

use nix::errno::Errno;

use super::context::{Context, Engine};
use super::judge::{ProbeResult, Status};
use super::trial::Observation;

/// A cause in one sentence, and each fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    pub(super) cause: String,
    pub(super) fixes: Vec<String>,
}

impl Advice {
    fn new<const N: usize>(cause: impl Into<String>, fixes: [&str; N]) -> Self {
        Self {
            cause: cause.into(),
            fixes: fixes.map(str::to_owned).to_vec(),
        }
    }
}

const FILTER: &str = "--security-opt seccomp=unconfined";
const APPARMOR_OF_ENGINE: &str = "--security-opt apparmor=unconfined";
const DOCKER_PROC: &str = "--security-opt systempaths=unconfined";
const PODMAN_PROC: &str = "--security-opt unmask=ALL";
const KUBERNETES: &str = "in the pod: `securityContext: {seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}`";
const KUBERNETES_PROC: &str =
    "`securityContext: {procMount: Unmasked}` in the container, with `hostUsers: false` in the pod";
const KUBERNETES_USER: &str =
    "as an ordinary user: `securityContext: {runAsNonRoot: true, runAsUser: 65532}`";
const NO_NETWORK: [&str; 2] = ["docker run --network none …", "podman run --network none …"];
const KERNEL: &str = "use Linux 6.2 or later, which a run needs for Landlock";
/// Fix for this program alone, then the fix for all programs.
const APPARMOR: [&str; 2] = [
    "runner doctor --apparmor | sudo tee /etc/apparmor.d/runner && sudo apparmor_parser -r /etc/apparmor.d/runner",
    "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
];
const LSM: &str =
    "boot with `lsm=landlock,…` in front of the modules that /sys/kernel/security/lsm lists";
const NAMESPACES: &str = "sudo sysctl user.max_user_namespaces=10000 user.max_net_namespaces=10000";
const OTHER_NAMESPACES: &str = "sudo sysctl user.max_pid_namespaces=10000 user.max_mnt_namespaces=10000 user.max_ipc_namespaces=10000 user.max_uts_namespaces=10000 user.max_cgroup_namespaces=10000";

/// Advice for a refused probe; `None` for any other status.
pub(super) fn advise(one: &ProbeResult, all: &[ProbeResult], context: &Context) -> Option<Advice> {
    if one.status() != Status::Refused {
        return None;
    }
    let id = one.probe.id;
    let mut advice = match &one.observation {
        Observation::Killed(signal) if *signal == libc::SIGSYS => Advice::new(
            "a system call filter kills the caller of this system call",
            [
                "allow the call where the filter is made: `SystemCallFilter=` of a systemd unit, the engine's seccomp profile",
            ],
        ),
        Observation::Killed(signal) if *signal == libc::SIGXFSZ => file_size(),
        Observation::Killed(signal) => Advice::new(
            format!("signal {signal} ended the process that tried it"),
            ["look for the sender in the kernel's log (`dmesg`)"],
        ),
        Observation::Hung => Advice::new(
            "the call does not return: the process that answers it, such as a supervisor of a surrounding sandbox, does not",
            ["start the runner outside of that sandbox"],
        ),
        Observation::Wrong(_) => wrong(id),
        Observation::Refused { errno, .. } => refused(id, Errno::from_raw(*errno), all, context),
        Observation::Works(_) | Observation::Untried(_) | Observation::NotNeeded(_) => return None,
    };
    advice.fixes = of_the_engine(advice.fixes, context);
    Some(advice)
}

/// Rewrites commands of another engine for the known engine. Docker and Podman spell these options in the same way.
fn of_the_engine(fixes: Vec<String>, context: &Context) -> Vec<String> {
    let (own, other) = match context.engine {
        Some((Engine::Docker, _)) => ("docker run", "podman run"),
        Some((Engine::Podman, _)) => ("podman run", "docker run"),
        Some((Engine::Kubernetes | Engine::Other, _)) | None => return fixes,
    };
    let mut kept: Vec<String> = Vec::new();
    for fix in fixes {
        let fix = fix.replace(other, own);
        if !kept.contains(&fix) {
            kept.push(fix);
        }
    }
    kept
}

fn wrong(id: &str) -> Advice {
    match id {
        "loopback-only" => Advice::new(
            "this network namespace has more than loopback, so it cannot isolate a run",
            NO_NETWORK,
        ),
        "other-user" => Advice::new(
            "each id of this user namespace is root or has a name in /etc/passwd or /etc/group, so there is no unused id for the client",
            [
                "give the container more ids: `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`, then `podman system migrate`",
                "start the runner as an ordinary user: `docker run --user 1000 …`",
            ],
        ),
        "core-dumps" => Advice::new(
            "the kernel ignores RLIMIT_CORE if it writes core dumps to a socket (Linux 6.16 and later)",
            ["sudo sysctl kernel.core_pattern=core"],
        ),
        _ => Advice::new(
            "the kernel accepted the call and does not enforce it",
            [
                "this is a fault of the kernel, of its configuration or of this program: please report it",
            ],
        ),
    }
}

fn refused(id: &str, errno: Errno, all: &[ProbeResult], context: &Context) -> Advice {
    match (id, errno) {
        ("own-file" | "processes", Errno::EAGAIN) => Advice::new(
            "the process limit of this user or control group is reached",
            ["ulimit -u 4096", "docker run --pids-limit 512 …"],
        ),
        ("own-file" | "memory", Errno::ENOMEM) => Advice::new(
            "the memory limit is lower than the runner itself needs",
            ["ulimit -d unlimited; ulimit -v unlimited"],
        ),
        ("own-file", _) => Advice::new(
            "this program cannot be started again from /proc/self/exe",
            ["mount /proc where the runner is started: `mount -t proc proc /proc`"],
        ),
        ("open-files", _) => Advice::new(
            "the hard limit of open files is lower than a run needs",
            [
                "as root, or where the limit is set: `ulimit -Hn 1024`",
                "docker run --ulimit nofile=1024:1024 …",
                "`LimitNOFILE=1024` in a systemd unit",
            ],
        ),
        ("file-size", _) => file_size(),
        ("no-new-privileges", _) => Advice::new(
            "no_new_privs is refused, by a filter that is installed already or a kernel before Linux 3.5",
            ["start the runner outside of the sandbox that refuses it"],
        ),
        ("seccomp-filter" | "seccomp-listener" | "notification", _) => {
            seccomp(id, errno, all, context)
        }
        ("memory-inside" | "memory-here", _) => memory(errno, context),
        ("process-vm-readv", _) => Advice::new(
            "the call is refused, as by older profiles of Docker; /proc/PID/mem is read instead",
            ["no fix is needed; `docker run --cap-add SYS_PTRACE …` allows it"],
        ),
        ("descriptor-copy", _) => Advice::new(
            "the call is refused, as by Docker's profile, or not in this kernel",
            ["no fix is needed; `docker run --cap-add SYS_PTRACE …` allows it"],
        ),
        ("pidfd", _) => Advice::new(
            "descriptors of processes are refused, or this kernel is older than Linux 5.3; a run does without",
            [
                "no fix is needed; Linux 5.3 or later with a seccomp profile that allows pidfd_open has them",
            ],
        ),
        ("temporary-directory", _) => Advice::new(
            "no temporary directory is writable",
            [
                "set TMPDIR to a writable directory",
                "docker run --tmpfs /tmp …",
                "podman run --tmpfs /tmp …",
            ],
        ),
        ("loopback-here", _) => Advice::new(
            "loopback does not work in this network namespace: it is down, or the calls are refused",
            ["sudo ip link set lo up"],
        ),
        ("inotify", Errno::EMFILE) => Advice::new(
            "this user's inotify instances are used up; short-lived files are then not noticed",
            ["sudo sysctl fs.inotify.max_user_instances=1024"],
        ),
        ("inotify", _) => Advice::new(
            "inotify is refused; short-lived files are then not noticed",
            ["allow inotify_init1 and inotify_add_watch in the seccomp profile"],
        ),
        ("network-silence" | "loopback-only", _) => Advice::new(
            "the links and routes cannot be listed: netlink is refused, by a filter that is installed already",
            ["allow sockets of the family netlink in the engine's seccomp profile"],
        ),
        _ if id.starts_with("landlock") => landlock(id, errno, all, context),
        _ => namespaces(id, errno, context),
    }
}

fn file_size() -> Advice {
    Advice::new(
        "the file size limit is lower than a report needs",
        ["ulimit -f unlimited"],
    )
}

fn seccomp(id: &str, errno: Errno, all: &[ProbeResult], context: &Context) -> Advice {
    match (id, errno) {
        (_, Errno::EBUSY) => Advice::new(
            if context.is_wsl {
                "the init of WSL holds the only listener that a chain of filters may have"
            } else {
                "a surrounding sandbox holds the only listener that a chain of filters may have"
            },
            [
                "start the runner outside of that sandbox; on WSL run it in a container or a virtual machine",
            ],
        ),
        (_, Errno::EINVAL | Errno::ENOSYS) if looks_like_gvisor(all, id) => Advice::new(
            "this looks like gVisor, which has neither Landlock nor listeners",
            ["use another runtime for this container: `docker run --runtime runc …`"],
        ),
        ("seccomp-filter", Errno::EINVAL | Errno::ENOSYS) => Advice::new(
            "this kernel has no system call filters",
            ["use a kernel with CONFIG_SECCOMP_FILTER=y"],
        ),
        (_, Errno::EINVAL | Errno::ENOSYS) => Advice::new(
            "this kernel is older than Linux 5.19, so a signal can interrupt a call that waits for its supervisor",
            [KERNEL],
        ),
        _ => Advice::new(
            "system call filters are refused by a filter that is installed already, or by a security module",
            ["allow seccomp(2) in the engine's seccomp profile"],
        ),
    }
}

/// True if Landlock is missing and a listener is invalid, as in gVisor.
fn looks_like_gvisor(all: &[ProbeResult], id: &str) -> bool {
    let has = |wanted: &str, errno: Errno| {
        all.iter().any(|one| {
            one.probe.id == wanted
                && matches!(&one.observation, Observation::Refused { errno: found, .. } if *found == errno as i32)
        })
    };
    id == "seccomp-listener"
        && has("landlock", Errno::ENOSYS)
        && has("seccomp-listener", Errno::EINVAL)
}

fn memory(errno: Errno, context: &Context) -> Advice {
    match context.ptrace_scope {
        Some(scope) if scope >= 2 => Advice::new(
            format!("Yama forbids reading other processes (kernel.yama.ptrace_scope = {scope})"),
            ["sudo sysctl kernel.yama.ptrace_scope=1"],
        ),
        _ if errno == Errno::ENOENT => Advice::new(
            "/proc is not mounted, or hides other processes",
            ["mount /proc without hidepid: `sudo mount -o remount,hidepid=0 /proc`"],
        ),
        _ => Advice::new(
            "reading the memory of an own child process is refused, by a security module or for lack of CAP_SYS_PTRACE",
            [
                "start the runner as an ordinary user",
                "docker run --cap-add SYS_PTRACE …",
            ],
        ),
    }
}

fn landlock(id: &str, errno: Errno, all: &[ProbeResult], context: &Context) -> Advice {
    match (id, errno) {
        ("landlock", Errno::EOPNOTSUPP) => Advice::new(
            "this kernel has Landlock, but its list of security modules does not",
            [LSM],
        ),
        ("landlock", Errno::ENOSYS) if looks_like_gvisor(all, "seccomp-listener") => {
            seccomp("seccomp-listener", Errno::EINVAL, all, context)
        }
        ("landlock", Errno::ENOSYS) => Advice::new(
            "this kernel has no Landlock, or a seccomp profile does not know it",
            [
                "use Linux 6.2 or later with CONFIG_SECURITY_LANDLOCK=y",
                "use an engine whose profile knows Landlock: Docker 20.10.10, Podman 4 or later",
            ],
        ),
        ("landlock", _) => Advice::new(
            "Landlock is refused by a filter that is installed already",
            [
                "allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in the seccomp profile",
            ],
        ),
        ("landlock-files", _) => Advice::new("Landlock cannot be applied", [LSM]),
        ("landlock-refer", _) => older("2", KERNEL),
        ("landlock-truncate", _) => older("3", KERNEL),
        ("landlock-tcp", _) => older("4", "use Linux 6.7 or later"),
        ("landlock-device-ioctl", _) => older("5", "use Linux 6.10 or later"),
        ("landlock-scopes", _) => older("6", "use Linux 6.12 or later"),
        _ => older("7", "use Linux 6.15 or later"),
    }
}

fn older(abi: &str, fix: &str) -> Advice {
    Advice::new(
        format!("this kernel's Landlock is older than ABI {abi}"),
        [fix],
    )
}

/// Advice for the probes that need namespaces.
fn namespaces(id: &str, errno: Errno, context: &Context) -> Advice {
    match (id, errno) {
        (_, Errno::ENOSPC | Errno::EUSERS) => Advice::new(
            "the limit of namespaces is 0 or reached",
            [if id == "other-namespaces" {
                OTHER_NAMESPACES
            } else {
                NAMESPACES
            }],
        ),
        ("user-namespace" | "network-namespace" | "other-namespaces", Errno::EINVAL | Errno::ENOSYS) => {
            Advice::new(
                "this kernel was built without such namespaces",
                ["use a kernel with CONFIG_USER_NS, CONFIG_NET_NS, CONFIG_PID_NS, CONFIG_IPC_NS, CONFIG_UTS_NS and CONFIG_CGROUPS"],
            )
        }
        ("user-namespace", _) if context.debian_forbids => Advice::new(
            "ordinary users cannot make user namespaces here (kernel.unprivileged_userns_clone = 0)",
            ["sudo sysctl kernel.unprivileged_userns_clone=1"],
        ),
        ("user-namespace", _) if context.apparmor_restricts && context.engine.is_none() => Advice::new(
            "user namespaces are refused to programs without a profile: AppArmor does so \
             (kernel.apparmor_restrict_unprivileged_userns = 1)",
            APPARMOR,
        ),
        ("user-namespace", _) => user_namespace(context),
        ("other-user", _) => Advice::new(
            "this root cannot become another user: it lacks CAP_CHOWN, CAP_SETGID or CAP_SETUID",
            [
                "start the runner as an ordinary user: `docker run --user 1000 …`",
                "docker run --cap-add CHOWN --cap-add SETGID --cap-add SETUID …",
            ],
        ),
        ("fresh-proc", Errno::EPERM) => Advice {
            cause: "parts of /proc are covered here, as container engines do; the kernel then refuses to mount a new one".to_owned(),
            fixes: fresh_proc(context),
        },
        ("sealed-mounts", Errno::ENOSYS) => Advice::new(
            "this kernel is older than Linux 5.12, or a seccomp profile does not know open_tree and mount_setattr",
            [KERNEL, "use an engine whose profile knows the calls"],
        ),
        ("new-root", Errno::EINVAL) => Advice::new(
            "the root is the initial RAM file system, which pivot_root cannot leave",
            ["start the runner from a mounted root file system: `switch_root`, or in a container"],
        ),
        ("id-map", _) if context.uid.is_root() && !context.apparmor_restricts => Advice::new(
            "the map of a user namespace cannot be written: this root lacks CAP_SETUID, or does not have all ids",
            ["start the runner as an ordinary user", "docker run --cap-add SETUID --cap-add SETGID --cap-add SETFCAP …"],
        ),
        // AppArmor refuses with EACCES if the profile does not name the operation; seccomp filters use EPERM.
        (_, Errno::EACCES) if context.engines_profile().is_some() => Advice {
            cause: format!(
                "the AppArmor profile of the container refuses it: {}",
                context.engines_profile().unwrap_or_default()
            ),
            fixes: all_of_engine(context),
        },
        (_, Errno::EPERM | Errno::EACCES) if context.apparmor_restricts => Advice::new(
            "the namespace was made without capabilities: AppArmor does so to programs without a profile \
             (kernel.apparmor_restrict_unprivileged_userns = 1)",
            APPARMOR,
        ),
        (_, Errno::EPERM | Errno::EACCES) => Advice {
            cause: "the namespace was made, but privileged calls in it are refused, by a filter or a security module"
                .to_owned(),
            fixes: all_of_engine(context),
        },
        _ => Advice::new(
            format!("the kernel answers: {}", errno.desc()),
            ["please report it, with this whole output"],
        ),
    }
}

fn user_namespace(context: &Context) -> Advice {
    Advice {
        cause: match context.engine {
            Some(_) => {
                "user namespaces are refused, as the seccomp profile of a container does".to_owned()
            }
            None => "user namespaces are refused, by a filter or a security module".to_owned(),
        },
        fixes: all_of_engine(context),
    }
}

/// Options that allow a container everything that a run makes.
fn all_of_engine(context: &Context) -> Vec<String> {
    let mut options = vec![FILTER];
    if context.engines_profile().is_some() {
        options.push(APPARMOR_OF_ENGINE);
    }
    by_engine(
        context,
        &[&options[..], &[DOCKER_PROC]].concat(),
        &[&options[..], &[PODMAN_PROC]].concat(),
        KUBERNETES,
    )
}

/// Options that uncover /proc. In Kubernetes, they need a user namespace of the pod and an ordinary user.
fn fresh_proc(context: &Context) -> Vec<String> {
    let mut fixes = by_engine(context, &[DOCKER_PROC], &[PODMAN_PROC], KUBERNETES_PROC);
    let is_pod = matches!(context.engine, Some((Engine::Kubernetes, _)));
    if is_pod && context.uid.is_root() {
        fixes = fixes
            .iter()
            .map(|fix| format!("{KUBERNETES_USER}, and {fix}"))
            .collect();
    }
    fixes
}

/// Options or settings of the known engine, or of all engines.
fn by_engine(context: &Context, docker: &[&str], podman: &[&str], kubernetes: &str) -> Vec<String> {
    let docker = format!("docker run {} …", docker.join(" "));
    let podman = format!("podman run {} …", podman.join(" "));
    match context.engine {
        Some((Engine::Docker, _)) => vec![docker],
        Some((Engine::Podman, _)) => vec![podman],
        Some((Engine::Kubernetes, _)) => vec![kubernetes.to_owned()],
        Some((Engine::Other, _)) | None => vec![
            format!("in a container: {docker}"),
            format!("in a container: {podman}"),
            "elsewhere: start the runner outside of the sandbox that refuses it".to_owned(),
        ],
    }
}
