//! Kernel, user, container and security modules. They are shown, and they select the wording of a fix. The verdict
//! depends on probes only.

use std::path::Path;
use std::{env, fs};

use nix::unistd::{Uid, geteuid};
use sandbox::verify::own_filters;

/// Engine that started this container, by its traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Docker,
    Podman,
    Kubernetes,
    Other,
}

impl Engine {
    fn word(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
            Self::Kubernetes => "Kubernetes",
            Self::Other => "a container",
        }
    }
}

/// Properties of the machine that select a cause or a fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) kernel: String,
    pub(super) arch: String,
    pub(super) uid: Uid,
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
    /// True if some ids of the parent user namespace are missing in ours.
    pub(super) in_user_namespace: bool,
    /// Number of seccomp filters that were installed before.
    pub(super) filters: u32,
}

impl Context {
    pub(super) fn read() -> Self {
        let name = nix::sys::utsname::uname().ok();
        let text = |value: Option<&std::ffi::OsStr>| {
            value.map_or("unknown".to_owned(), |one| {
                one.to_string_lossy().into_owned()
            })
        };
        let kernel = text(name.as_ref().map(|name| name.release()));
        let lower = kernel.to_lowercase();
        Self {
            arch: text(name.as_ref().map(|name| name.machine())),
            uid: geteuid(),
            engine: engine(),
            is_wsl: lower.contains("microsoft") || lower.contains("wsl"),
            modules: read("/sys/kernel/security/lsm"),
            apparmor_restricts: Path::new("/sys/kernel/security/apparmor").exists()
                && number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            apparmor_profile: read("/proc/self/attr/apparmor/current"),
            ptrace_scope: number("/proc/sys/kernel/yama/ptrace_scope")
                .and_then(|scope| u32::try_from(scope).ok()),
            debian_forbids: number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0),
            in_user_namespace: read("/proc/self/uid_map").is_some_and(|map| !is_whole(&map)),
            filters: own_filters(),
            kernel,
        }
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
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
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
        if let Some(scope) = self.ptrace_scope {
            lines.push(("yama", format!("kernel.yama.ptrace_scope = {scope}")));
        }
        if self.filters > 0 {
            let text = format!(
                "system call filters that are installed already: {}",
                self.filters
            );
            lines.push(("seccomp", text));
        }
        lines
    }

    fn user(&self) -> String {
        let user = if self.uid.is_root() {
            "root"
        } else {
            "an ordinary user"
        };
        let namespace = if self.in_user_namespace {
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

fn number(path: &str) -> Option<u64> {
    read(path)?.parse().ok()
}
