//! Judgement of the sandbox's layers, outside, from the values that the self-check read back inside.

mod inherited;
mod mounts;

use std::collections::BTreeMap;
use std::path::Path;

use model::case::{Device, Root, Tier};
use model::evidence::{Canary, CanaryStatus, Layer, LayerNeed, LayerStatus};
use model::layout::{HOME, HOST_NAME, INSIDE_ID, TMP, WORK};
use model::text::count;
use sys::read::kernel_text;

use self::mounts::{Mount, parse_mounts};
use super::core_dumps::{self, Receiver};
use super::netns_check::{Network, TCP_BUFFER};
use super::plan::Plan;
use super::proc::HARMLESS;
use super::self_check::{NAMESPACES, SelfCheck};

pub use super::canary::{self, Kind};

/// Judged layers and probes of one run.
#[derive(Clone, Debug, Default)]
pub struct Isolation {
    /// Layers of the sandbox.
    pub layers: Vec<Layer>,
    /// Probes of the canary.
    pub canaries: Vec<Canary>,
}

impl Isolation {
    /// Describes all layers and probes that do not hold, for people; `None` if the client may be started.
    pub fn broken(&self) -> Option<String> {
        let lost = |layer: &&Layer| {
            layer.need == LayerNeed::Required && layer.status != LayerStatus::Enforced
        };
        let absent = self.layers.iter().filter(lost);
        let through = self
            .canaries
            .iter()
            .filter(|canary| canary.status == CanaryStatus::NotHeld);
        let all: Vec<String> = absent
            .map(|layer| format!("{}: {}", layer.name, layer.detail))
            .chain(through.map(|canary| {
                let mode = canary.mode.word();
                format!(
                    "probe {} ({mode}): expected {}, found {}",
                    canary.name, canary.expected, canary.observed
                )
            }))
            .collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Facts that the runner knows from outside.
pub struct HostView<'a> {
    /// Plan of the sandbox.
    pub plan: &'a Plan,
    /// Links and routes of the client's network namespace.
    pub network: &'a Network,
    /// Links of /proc/self/ns of the runner, by name.
    pub namespaces: &'a BTreeMap<String, String>,
    /// Number of seccomp filters of the runner itself.
    pub filters: u32,
    /// Limits of the sandbox's cgroup, or the reason for its absence.
    pub cgroup: &'a Result<String, String>,
}

/// Judges the layers.
pub fn layers(report: &SelfCheck, outside: &HostView<'_>) -> Vec<Layer> {
    match outside.plan.tier {
        Tier::Namespace => own_layers(report, outside),
        Tier::Inherited => inherited::layers(report, outside),
    }
}

/// Judges the layers of a sandbox with its own namespaces.
fn own_layers(report: &SelfCheck, outside: &HostView<'_>) -> Vec<Layer> {
    let mounts = parse_mounts(&report.surroundings.mounts);
    let namespaces = NAMESPACES.iter();
    let mut layers: Vec<Layer> = namespaces
        .map(|name| namespace(name, report, outside))
        .collect();
    layers.extend([
        network(outside.network),
        identity(report),
        root(&mounts),
        writable(&mounts, HOME, may_execute(outside, Root::Home)),
        writable(&mounts, TMP, may_execute(outside, Root::Tmp)),
        writable(&mounts, WORK, may_execute(outside, Root::Work)),
        mounts::layer(report, &mounts, outside.plan),
        capabilities(report),
        no_new_privileges(report),
        landlock(report),
        landlock_scopes(report),
        seccomp(report, outside),
        descriptors(report),
        limits(report, outside),
    ]);
    layers.extend(cgroup(outside));
    layers.extend((!report.shows_proc).then(without_proc));
    layers.extend(wide_tcp_buffers(outside.network));
    layers.extend(dumped_core(report, outside.plan));
    layers.extend(without_terminals(&mounts, outside.plan));
    layers.extend((report.surroundings.host_name != HOST_NAME).then(without_host_name));
    layers
}

/// Name of the layer that only a sandbox without a fresh /proc has.
pub const FRESH_PROC: &str = "fresh /proc";

/// Returns the layer of a sandbox without a fresh /proc.
fn without_proc() -> Layer {
    let files = HARMLESS.join(", ");
    Layer {
        need: LayerNeed::IfOffered,
        ..layer(
            FRESH_PROC,
            false,
            format!(
                "this container covers files of its own /proc, so the client has only {files} of it; Docker mounts one with `--security-opt systempaths=unconfined`, Podman with `--security-opt unmask=ALL`"
            ),
        )
    }
}

fn dumped_core(report: &SelfCheck, plan: &Plan) -> Option<Layer> {
    let filter = report.surroundings.dump_filter.as_deref();
    core_dumps::layer(Receiver::read(), plan.limits.core_bytes, filter)
}

/// Returns the layer of a network whose TCP buffers could not be limited.
fn wide_tcp_buffers(network: &Network) -> Option<Layer> {
    if network.tcp_buffer == Some(TCP_BUFFER) {
        return None;
    }
    Some(Layer {
        need: LayerNeed::IfOffered,
        ..layer(
            "TCP buffers",
            false,
            "/proc/sys is read-only here, so connections inside may buffer as much as net.ipv4.tcp_mem of this machine allows",
        )
    })
}

/// Returns the layer of a sandbox without the pseudo-terminals that the plan asks for.
fn without_terminals(mounts: &[Mount], plan: &Plan) -> Option<Layer> {
    let is_mounted = mounts.iter().any(|mount| mount.kind == "devpts");
    if is_mounted || !plan.root.devices.contains(&Device::Ptmx) {
        return None;
    }
    Some(Layer {
        need: LayerNeed::IfOffered,
        ..layer(
            "pseudo-terminals",
            false,
            "this host refuses a devpts of the run's own, so the client can make no terminal",
        )
    })
}

/// Returns the layer of a sandbox with the container's host name: Podman's filter refuses sethostname(2).
fn without_host_name() -> Layer {
    Layer {
        need: LayerNeed::IfOffered,
        ..layer(
            "host name",
            false,
            "this container refuses sethostname(2), so the client sees the container's name",
        )
    }
}

/// Counts the seccomp filters of the calling process; the client has one more.
pub(crate) fn own_filters() -> u32 {
    let status = kernel_text("/proc/self/status").unwrap_or_default();
    let found = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp_filters:"));
    found
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

fn layer(name: impl Into<String>, enforced: bool, detail: impl Into<String>) -> Layer {
    let status = if enforced {
        LayerStatus::Enforced
    } else {
        LayerStatus::Absent
    };
    Layer {
        name: name.into(),
        need: LayerNeed::Required,
        status,
        detail: detail.into(),
    }
}

fn namespace(name: &str, report: &SelfCheck, outside: &HostView<'_>) -> Layer {
    let (inside, host) = (
        report.surroundings.namespaces.get(name),
        outside.namespaces.get(name),
    );
    let own = inside.is_some() && host.is_some() && inside != host;
    let long = match name {
        "net" => "network",
        "mnt" => "mount",
        other => other,
    };
    let detail = if own {
        "its own"
    } else {
        "shared with the host"
    };
    layer(format!("{long} namespace"), own, detail)
}

fn network(network: &Network) -> Layer {
    match network.more_than_loopback() {
        None => layer("network silence", true, network.describe()),
        Some(what) => layer("network silence", false, what),
    }
}

/// Returns a field of /proc/self/status, or an empty string for a missing one.
fn field<'a>(report: &'a SelfCheck, name: &str) -> &'a str {
    report
        .status
        .get(name)
        .map(String::as_str)
        .unwrap_or_default()
}

fn identity(report: &SelfCheck) -> Layer {
    let id = format!("{INSIDE_ID}\t{INSIDE_ID}\t{INSIDE_ID}\t{INSIDE_ID}");
    let (uid, gid) = (field(report, "Uid"), field(report, "Gid"));
    if uid == id && gid == id {
        let detail = format!("uid {INSIDE_ID}, gid {INSIDE_ID}, never the host's root");
        layer("identity", true, detail)
    } else {
        layer("identity", false, format!("uids {uid:?}, gids {gid:?}"))
    }
}

fn root(mounts: &[Mount]) -> Layer {
    let sealed = mounts
        .iter()
        .filter(|mount| mount.target == Path::new("/"))
        .map(|mount| mount.kind == "tmpfs" && mount.has_all(&["ro", "nosuid", "nodev"]));
    if sealed.eq([true]) {
        layer("root", true, "a tmpfs of its own, read-only")
    } else {
        layer("root", false, "expected one read-only tmpfs at /")
    }
}

/// Rights to execute the files of a writable tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exec {
    Forbidden,
    Allowed,
}

fn may_execute(outside: &HostView<'_>, tree: Root) -> Exec {
    if outside.plan.root.exec.contains(&tree) {
        Exec::Allowed
    } else {
        Exec::Forbidden
    }
}

fn writable(mounts: &[Mount], path: &str, exec: Exec) -> Layer {
    let found: Vec<&Mount> = mounts
        .iter()
        .filter(|mount| mount.target == Path::new(path))
        .collect();
    let noexec = match exec {
        Exec::Forbidden => "noexec",
        Exec::Allowed => "with programs, as asked for",
    };
    let (sealed, detail) = match found.as_slice() {
        [mount] => (
            mount.kind == "tmpfs"
                && mount.has_all(&["rw", "nosuid", "nodev"])
                && (mount.has_all(&["noexec"]) == (exec == Exec::Forbidden))
                && mount.super_options.contains("size=")
                && mount.super_options.contains("nr_inodes="),
            format!("tmpfs, {noexec}, {}", mount.super_options),
        ),
        other => (false, format!("{} mounts at {path}", other.len())),
    };
    layer(format!("writable {path}"), sealed, detail)
}

fn capabilities(report: &SelfCheck) -> Layer {
    let left: Vec<&str> = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
        .into_iter()
        .filter(|set| report.status.get(*set).map(String::as_str) != Some("0000000000000000"))
        .collect();
    match left.as_slice() {
        [] => layer("capabilities", true, "all five sets are empty"),
        left => layer(
            "capabilities",
            false,
            format!("not empty: {}", left.join(" ")),
        ),
    }
}

fn no_new_privileges(report: &SelfCheck) -> Layer {
    let set = field(report, "NoNewPrivs") == "1";
    layer("no_new_privs", set, if set { "set" } else { "not set" })
}

fn landlock(report: &SelfCheck) -> Layer {
    let found = &report.landlock;
    let newer = if found.full {
        "and all newer requested rights"
    } else {
        "and newer rights as far as the kernel has them"
    };
    layer(
        "landlock",
        true,
        format!(
            "by path; kernel ABI {}: all file system rights of ABI 3, {newer}",
            found.abi
        ),
    )
}

/// Judges the scopes of Landlock ABI 6. Without scopes the network and pid namespaces are the only layer.
fn landlock_scopes(report: &SelfCheck) -> Layer {
    let scopes = layer(
        "landlock scopes",
        report.landlock.scopes,
        "abstract sockets and signals",
    );
    Layer {
        need: LayerNeed::IfOffered,
        ..scopes
    }
}

/// Judges the filter: the client must have one seccomp filter more than the runner, which may have a container's.
fn seccomp(report: &SelfCheck, outside: &HostView<'_>) -> Layer {
    let filters: u32 = field(report, "Seccomp_filters").parse().unwrap_or(0);
    let ours = field(report, "Seccomp") == "2" && filters == outside.filters + 1;
    layer(
        "seccomp",
        ours,
        format!(
            "mode {}, {}, {} of them from outside of the sandbox",
            field(report, "Seccomp"),
            count(filters, "filter"),
            outside.filters
        ),
    )
}

fn descriptors(report: &SelfCheck) -> Layer {
    match report.inherited.as_slice() {
        [] => layer("descriptors", true, "0, 1 and 2 only"),
        more => layer("descriptors", false, format!("also {more:?}")),
    }
}

/// Returns the layer of the cgroup, if there is one.
fn cgroup(outside: &HostView<'_>) -> Option<Layer> {
    let limits = outside.cgroup.as_ref().ok()?;
    Some(Layer {
        need: LayerNeed::IfOffered,
        ..layer("cgroup", true, limits.as_str())
    })
}

fn limits(report: &SelfCheck, outside: &HostView<'_>) -> Layer {
    let wanted = &outside.plan.limits;
    let together = match outside.cgroup {
        Ok(_) => String::new(),
        Err(reason) => format!(", for each process separately (no cgroup: {reason})"),
    };
    let all = [
        ("RLIMIT_CORE", wanted.core_bytes),
        ("RLIMIT_DATA", wanted.data_bytes),
        ("RLIMIT_FSIZE", wanted.file_bytes),
        ("RLIMIT_NPROC", wanted.processes),
        ("RLIMIT_NOFILE", wanted.open_files),
        ("RLIMIT_MSGQUEUE", wanted.queue_bytes),
    ];
    let cpu = ("RLIMIT_CPU", wanted.cpu_seconds, wanted.cpu_hard_seconds);
    let wrong = all
        .map(|(name, value)| (name, value, value))
        .into_iter()
        .chain([cpu])
        .find(|(name, soft, hard)| report.limits.get(*name) != Some(&(*soft, *hard)));
    match wrong {
        None => layer(
            "resource limits",
            true,
            format!("memory, processes, CPU, files, file size{together}; no core dumps"),
        ),
        Some((name, value, _)) => layer("resource limits", false, format!("{name} is not {value}")),
    }
}
