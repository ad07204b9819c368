//! Where this is: the kernel, the user, the container, the security modules. Lines for people, and grounds for the
//! wording of a fix; never for a verdict, which rests on what was tried.

use std::path::Path;
use std::{env, fs};

use nix::unistd::{Uid, geteuid};
use sandbox::verify::own_filters;

/// What kind of engine started us, as far as it can be told.
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

/// The surroundings that matter for a cause or a fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) kernel: String,
    pub(super) arch: String,
    pub(super) uid: Uid,
    /// With what it was told by.
    pub(super) engine: Option<(Engine, String)>,
    pub(super) is_wsl: bool,
    /// Names of the active security modules, where the kernel tells.
    pub(super) modules: Option<String>,
    /// kernel.apparmor_restrict_unprivileged_userns, with AppArmor there.
    pub(super) apparmor_restricts: bool,
    /// Our own AppArmor profile.
    pub(super) apparmor_profile: Option<String>,
    /// kernel.yama.ptrace_scope.
    pub(super) ptrace_scope: Option<u32>,
    /// kernel.unprivileged_userns_clone is 0: Debian's own switch.
    pub(super) debian_forbids: bool,
    /// Some ids of the parent user namespace are not in ours.
    pub(super) in_user_namespace: bool,
    /// Filters that are installed already.
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

    /// Our own AppArmor profile, where it is one that an engine gives to its containers, and holds.
    pub(super) fn engines_profile(&self) -> Option<&str> {
        /// Docker, containerd, Podman, CRI-O, LXC: some add a version.
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

    /// Each line for people: what, and what was found.
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
        let place = if self.in_user_namespace {
            ", in a user namespace with fewer ids than its parent"
        } else {
            ""
        };
        format!("{user}, id {}{place}", self.uid)
    }

    fn container(&self) -> String {
        match &self.engine {
            Some((engine, by)) => format!("{}, by {by}", engine.word()),
            None => "none that leaves a trace".to_owned(),
        }
    }
}

/// By the marks that engines leave.
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

/// The map of the first user namespace: every id is itself.
fn is_whole(map: &str) -> bool {
    map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"]
}

/// The text of a small file; `None` where there is none, or it is empty.
fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim_matches(['\0', '\n', ' ']);
    (!text.is_empty()).then(|| text.to_owned())
}

fn number(path: &str) -> Option<u64> {
    read(path)?.parse().ok()
}
