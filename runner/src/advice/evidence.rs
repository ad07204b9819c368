//! Facts of this machine that prove a cause: kernel, user, container, filters, security modules, limits.
//!
//! The verdict of the doctor depends on its probes only, never on these facts.

use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::{env, fs};

use caps::{CapSet, Capability};
use model::text::count;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::geteuid;
use sandbox::cgroup::surrounding::{OuterLimit, Resource};

use super::mounts::Mounts;
use super::proofs;

/// Engine that started this container, by its traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Docker,
    Podman,
    Kubernetes,
    Other,
}

impl Engine {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
            Self::Kubernetes => "Kubernetes",
            Self::Other => "a container",
        }
    }
}

const NULL: &str = "/dev/null";

/// Limits of namespaces in /proc/sys/user that a run needs above 0.
const LIMITS: [&str; 7] = ["user", "net", "pid", "mnt", "ipc", "uts", "cgroup"];

/// Facts of this machine. Default is a machine without any hindrance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub(super) kernel: String,
    pub(super) arch: String,
    pub(super) uid: u32,
    /// Effective capabilities.
    pub(super) capabilities: Vec<Capability>,
    /// The engine, and the trace by which it was detected.
    pub(super) engine: Option<(Engine, String)>,
    pub(super) is_wsl: bool,
    /// Names of the active security modules, if the kernel lists them.
    pub(super) modules: Option<String>,
    /// True if AppArmor is active and kernel.apparmor_restrict_unprivileged_userns is 1.
    pub(super) apparmor_restricts: bool,
    /// AppArmor profile of this process.
    pub(super) apparmor_profile: Option<String>,
    /// Value of kernel.yama.ptrace_scope.
    pub(super) ptrace_scope: Option<u32>,
    /// True if kernel.unprivileged_userns_clone is 0, a sysctl of Debian.
    pub(super) debian_forbids: bool,
    /// Text of /proc/self/uid_map.
    pub(super) uid_map: Option<String>,
    /// Text of /proc/self/gid_map.
    pub(super) gid_map: Option<String>,
    /// True if the user namespace forbids setgroups(2).
    pub(super) denies_groups: bool,
    /// Namespaces whose limit in /proc/sys/user is 0.
    pub(super) zero_limits: Vec<&'static str>,
    /// Kinds of namespaces that this kernel lacks, by /proc/self/ns.
    pub(super) missing_kinds: Vec<&'static str>,
    /// Number of seccomp filters that were installed before.
    pub(super) filters: u32,
    /// Number of seccomp filters of process 1, which a container's profile covers; `None` if unknown.
    pub(super) filters_of_init: Option<u32>,
    pub(super) no_new_privileges: bool,
    /// Calls that an earlier filter refuses: the kernel would answer the arguments with another errno.
    pub(super) filtered_calls: Vec<String>,
    /// True if the kernel has no listeners for seccomp filters.
    pub(super) lacks_notification: bool,
    /// Proof that the root directory is not the root of the mount namespace.
    pub(super) chroot: Option<String>,
    /// File system type of the root.
    pub(super) root_kind: String,
    /// True if /proc has no entry of this process.
    pub(super) lacks_proc: bool,
    pub(super) lacks_null: bool,
    /// Mode of /dev/null, if not all users may read and write it.
    pub(super) null_mode: Option<u32>,
    /// Target of the mount of /dev/null, if devices do not work there.
    pub(super) null_without_devices: Option<String>,
    /// Proof that another mount covers the root directory.
    pub(super) covered_root: Option<String>,
    /// Paths below /proc that other mounts cover.
    pub(super) covered_proc: Vec<String>,
    /// Mount option of /proc that hides processes, such as `hidepid=2`.
    pub(super) hidepid: Option<String>,
    /// True if no filter refuses rulesets of Landlock.
    pub(super) answers_landlock: bool,
    /// True if a Landlock domain around this process forbids mounts.
    pub(super) in_landlock_domain: bool,
    /// Tightest limit of processes of the surrounding cgroups.
    pub(super) process_limit: Option<OuterLimit>,
    /// Tightest limit of memory of the surrounding cgroups.
    pub(super) memory_limit: Option<OuterLimit>,
}

impl Evidence {
    /// Reads the facts.
    pub(crate) fn read() -> Self {
        let name = nix::sys::utsname::uname().ok();
        let text = |value: Option<&std::ffi::OsStr>| {
            value.map_or("unknown".to_owned(), |one| {
                one.to_string_lossy().into_owned()
            })
        };
        let kernel = text(name.as_ref().map(|name| name.release()));
        let lower = kernel.to_lowercase();
        let mounts = Mounts::of("self");
        let proofs = proofs::find();
        let is_proved = |line: &str| proofs.iter().any(|one| one == line);
        let calls = proofs::CALLS.into_iter().filter(|call| is_proved(call));
        let limits = LIMITS.into_iter();
        let zero =
            |kind: &&str| number(&format!("/proc/sys/user/max_{kind}_namespaces")) == Some(0);
        let lacks_proc = !Path::new("/proc/self/ns").exists();
        let is_missing =
            |kind: &&str| !lacks_proc && !Path::new("/proc/self/ns").join(kind).exists();
        Self {
            arch: text(name.as_ref().map(|name| name.machine())),
            uid: geteuid().as_raw(),
            capabilities: caps::read(None, CapSet::Effective)
                .unwrap_or_default()
                .into_iter()
                .collect(),
            engine: engine(),
            is_wsl: lower.contains("microsoft") || lower.contains("wsl"),
            modules: read("/sys/kernel/security/lsm"),
            apparmor_restricts: Path::new("/sys/kernel/security/apparmor").exists()
                && number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            apparmor_profile: read("/proc/self/attr/apparmor/current"),
            ptrace_scope: number("/proc/sys/kernel/yama/ptrace_scope")
                .and_then(|scope| u32::try_from(scope).ok()),
            debian_forbids: number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0),
            uid_map: read("/proc/self/uid_map"),
            gid_map: read("/proc/self/gid_map"),
            denies_groups: read("/proc/self/setgroups").is_some_and(|word| word == "deny"),
            zero_limits: limits.clone().filter(zero).collect(),
            missing_kinds: limits.filter(is_missing).collect(),
            filters: filters_of("self").unwrap_or(0),
            filters_of_init: filters_of("1"),
            no_new_privileges: nix::sys::prctl::get_no_new_privs() == Ok(true),
            answers_landlock: is_proved(proofs::LANDLOCK_ANSWERS),
            in_landlock_domain: is_proved(proofs::LANDLOCK_DOMAIN),
            process_limit: Resource::Processes.outer_limit(),
            memory_limit: Resource::Memory.outer_limit(),
            filtered_calls: calls.map(str::to_owned).collect(),
            lacks_notification: read("/proc/sys/kernel/seccomp/actions_avail")
                .is_some_and(|actions| !actions.contains("user_notif")),
            chroot: mounts.chroot().or_else(|| {
                let proof = "setns(2) leads to another root";
                is_proved(proofs::CHROOT).then(|| proof.to_owned())
            }),
            root_kind: mounts.root_kind(),
            covered_proc: mounts.below("/proc"),
            hidepid: mounts.hidepid(),
            lacks_proc,
            lacks_null: !Path::new(NULL).exists(),
            null_mode: fs::metadata(NULL)
                .ok()
                .map(|null| null.mode() & 0o777)
                .filter(|mode| mode & 0o006 != 0o006),
            null_without_devices: mounts.without_devices(NULL),
            covered_root: root_id().and_then(|id| mounts.cover(&id)),
            kernel,
        }
    }

    /// Major and minor number of the kernel's version.
    pub(super) fn version(&self) -> (u32, u32) {
        let mut numbers = self
            .kernel
            .split(['.', '-'])
            .map_while(|part| part.parse().ok());
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }

    /// True if a filter was installed after those of process 1, so it is not the container's.
    pub(super) fn has_more_filters_than_init(&self) -> bool {
        self.filters_of_init
            .is_some_and(|filters| self.filters > filters)
    }

    /// True if an earlier filter refuses rulesets of Landlock; `None` if that is unknown.
    pub(crate) fn is_landlock_filtered(&self) -> Option<bool> {
        if self.filters == 0 || self.answers_landlock {
            return Some(false);
        }
        let mut calls = self.filtered_calls.iter();
        calls
            .any(|call| call == proofs::LANDLOCK_CALL)
            .then_some(true)
    }

    /// Both maps of ids, on one line.
    pub(super) fn maps(&self) -> String {
        let words = |map: &Option<String>| {
            let map = map.as_deref().unwrap_or("empty");
            map.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let (users, groups) = (words(&self.uid_map), words(&self.gid_map));
        format!("uid_map {users}, gid_map {groups}")
    }

    /// True if the map gives the user of this process an id.
    pub(super) fn is_mapped(&self) -> bool {
        let Some(map) = &self.uid_map else {
            // The kernel shows an empty map for a namespace whose map is not written yet.
            return self.lacks_proc;
        };
        map.lines().any(|line| {
            let mut numbers = line.split_whitespace().map(str::parse::<u64>);
            let (Some(Ok(first)), Some(Ok(count))) = (numbers.next(), numbers.nth(1)) else {
                return false;
            };
            (first..first.saturating_add(count)).contains(&u64::from(self.uid))
        })
    }

    /// AppArmor profile of this process, if it is an engine's default profile in enforce mode.
    pub(super) fn engines_profile(&self) -> Option<&str> {
        /// Profiles of Docker, containerd, Podman, CRI-O and LXC. Some names end with a version.
        const NAMES: [&str; 5] = [
            "docker-default",
            "cri-containerd.apparmor.d",
            "containers-default-",
            "crio-default",
            "lxc-container-default",
        ];
        let profile = self.apparmor_profile.as_deref()?;
        let name = profile.strip_suffix(" (enforce)")?;
        NAMES
            .iter()
            .any(|known| name.starts_with(known))
            .then_some(name)
    }

    /// Lines for people: a label and a text.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            ("kernel", format!("Linux {} {}", self.kernel, self.arch)),
            ("user", self.user()),
            ("container", self.container()),
        ];
        if self.is_wsl {
            lines.push(("wsl", "Windows Subsystem for Linux".to_owned()));
        }
        if let Some(modules) = &self.modules {
            lines.push(("modules", modules.replace(',', " ")));
        }
        if let Some(profile) = &self.apparmor_profile {
            lines.push((
                "apparmor",
                format!("this process has the profile {profile}"),
            ));
        }
        if self.apparmor_restricts {
            let text = "user namespaces of programs without a profile get no capabilities \
                        (kernel.apparmor_restrict_unprivileged_userns = 1)";
            lines.push(("apparmor", text.to_owned()));
        }
        if let Some(proof) = &self.chroot {
            lines.push(("root", format!("in a chroot: {proof}")));
        }
        if !self.covered_proc.is_empty() {
            let paths = self.covered_proc.join(" ");
            lines.push(("proc", format!("covered by other mounts: {paths}")));
        }
        if let Some(option) = &self.hidepid {
            lines.push(("proc", format!("mounted with {option}")));
        }
        if let Some(scope) = self.ptrace_scope {
            lines.push(("yama", format!("kernel.yama.ptrace_scope = {scope}")));
        }
        if self.filters > 0 || self.no_new_privileges {
            lines.push(("seccomp", self.restrictions()));
        }
        lines
    }

    /// Filters and no_new_privs that this process has inherited, for people.
    pub(super) fn restrictions(&self) -> String {
        let filters = count(self.filters as usize, "system call filter");
        let mut text = format!("{filters} installed before");
        if self.has_more_filters_than_init() {
            text.push_str(", not all by the start of process 1");
        }
        if !self.filtered_calls.is_empty() {
            text.push_str(&format!(", refusing {}", self.filtered_calls.join(", ")));
        }
        if self.no_new_privileges {
            text.push_str("; no_new_privs is set");
        }
        text
    }

    fn user(&self) -> String {
        let user = if self.uid == 0 {
            "root"
        } else {
            "an ordinary user"
        };
        let has_fewer = |map: &String| !is_whole(map);
        let namespace = if self.uid_map.as_ref().is_some_and(has_fewer) {
            ", in a user namespace with fewer ids than its parent"
        } else {
            ""
        };
        format!("{user}, id {}{namespace}", self.uid)
    }

    fn container(&self) -> String {
        match &self.engine {
            Some((engine, by)) => format!("{}, by {by}", engine.word()),
            None => "none detected".to_owned(),
        }
    }
}

/// Detects the engine by its environment variables, files and control groups.
fn engine() -> Option<(Engine, String)> {
    let file = |path: &str, engine| Path::new(path).exists().then(|| (engine, path.to_owned()));
    let variable = |name: &str, engine| env::var_os(name).map(|_| (engine, format!("${name}")));
    let by_group = || {
        let groups = read("/proc/self/cgroup").unwrap_or_default();
        let init = read("/proc/1/cgroup").unwrap_or_default();
        [
            ("kubepods", Engine::Kubernetes),
            ("docker", Engine::Docker),
            ("libpod", Engine::Podman),
            ("lxc", Engine::Other),
            ("containerd", Engine::Other),
        ]
        .into_iter()
        .find(|(word, _)| groups.contains(word) || init.contains(word))
        .map(|(word, engine)| (engine, format!("a control group with {word} in its name")))
    };
    variable("KUBERNETES_SERVICE_HOST", Engine::Kubernetes)
        .or_else(|| file("/var/run/secrets/kubernetes.io", Engine::Kubernetes))
        .or_else(|| file("/run/.containerenv", Engine::Podman))
        .or_else(|| file("/.dockerenv", Engine::Docker))
        .or_else(by_group)
        .or_else(|| variable("container", Engine::Other))
}

/// True for the id map of the initial user namespace, which maps each id to itself.
fn is_whole(map: &str) -> bool {
    map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"]
}

/// Text of a small file; `None` if it cannot be read or is empty.
fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim_matches(['\0', '\n', ' ']);
    (!text.is_empty()).then(|| text.to_owned())
}

/// Id of the mount at the root directory of this process, which another mount may cover.
fn root_id() -> Option<String> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let root = open("/", flags, Mode::empty()).ok()?;
    let info = read(&format!("/proc/self/fdinfo/{}", root.as_raw_fd()))?;
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    Some(id.trim().to_owned())
}

/// Number of seccomp filters of a process.
fn filters_of(process: &str) -> Option<u32> {
    let status = read(&format!("/proc/{process}/status"))?;
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("Seccomp_filters:"))?;
    count.trim().parse().ok()
}

fn number(path: &str) -> Option<u64> {
    read(path)?.parse().ok()
}
