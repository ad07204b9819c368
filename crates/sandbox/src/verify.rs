//! The layers as the kernel tells them: what the probe read back, judged outside.

mod inherited;
mod mounts;

use std::collections::BTreeMap;
use std::path::Path;

use model::case::Tier;
use model::evidence::{Attempt, Canary, CanaryMode, CanaryStatus, Layer, LayerNeed, LayerStatus};
use model::layout::{HOME, HOST_NAME, INSIDE_ID, TMP, WORK};

use self::mounts::{Mount, parse_mounts};
use super::core_dumps::{self, Receiver};
use super::netns_check::{Network, TCP_BUFFER};
use super::plan::Plan;
use super::proc::HARMLESS;
use super::self_check::{NAMESPACES, SelfCheck};

pub use super::canary::{self, Kind};

/// Layers and canaries of one run.
#[derive(Clone, Debug, Default)]
pub struct Isolation {
    pub layers: Vec<Layer>,
    pub canaries: Vec<Canary>,
}

impl Isolation {
    /// What does not hold, for people; `None` where the client may be started.
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
                let mode = match canary.mode {
                    CanaryMode::Answered => "answered",
                    CanaryMode::Continued => "continued",
                };
                format!(
                    "canary {} ({mode}): {} instead of {}",
                    canary.name, canary.observed, canary.expected
                )
            }))
            .collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// What the runner knows from outside.
pub struct Outside<'a> {
    pub plan: &'a Plan,
    pub network: &'a Network,
    pub stub_port: u16,
    /// /proc/self/ns of the runner.
    pub namespaces: &'a BTreeMap<String, String>,
    /// Seccomp filters of the runner itself.
    pub filters: u32,
    /// Canaries that are refused to the runner as well.
    pub refused: &'a [&'static str],
    /// What the supervisor recorded of the canaries.
    pub recorded: &'a [Attempt],
    /// Limits of the sandbox's cgroup, or why it has none.
    pub cgroup: &'a Result<String, String>,
}

/// Judges what was read back.
pub fn judge(report: &SelfCheck, outside: &Outside<'_>) -> Isolation {
    let layers = match outside.plan.tier {
        Tier::Namespace => own_layers(report, outside),
        Tier::Inherited => inherited::layers(report, outside),
    };
    let ground = canary::Context {
        kind: Kind::of(outside.plan.tier, report.shows_proc),
        stub_port: outside.stub_port,
        observed: &report.observations,
        recorded: outside.recorded,
        refused_outside: outside.refused,
        scopes: report.landlock.scopes,
    };
    Isolation {
        layers,
        canaries: ground.judge(),
    }
}

/// The layers of a sandbox with namespaces of its own.
fn own_layers(report: &SelfCheck, outside: &Outside<'_>) -> Vec<Layer> {
    let namespaces = NAMESPACES.iter();
    let mut layers: Vec<Layer> = namespaces
        .map(|name| namespace(name, report, outside))
        .collect();
    layers.extend([
        network(outside.network),
        identity(report),
        root(report),
        writable(report, HOME),
        writable(report, TMP),
        writable(report, WORK),
        mounts::layer(report, outside.plan),
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
    layers.extend((report.host_name != HOST_NAME).then(without_host_name));
    layers
}

/// Only listed where it is not there.
fn without_proc() -> Layer {
    let files = HARMLESS.join(", ");
    Layer {
        need: LayerNeed::IfOffered,
        ..layer(
            "fresh /proc",
            false,
            format!(
                "this container covers its own, so the client has only {files} of it; Docker mounts one with `--security-opt systempaths=unconfined`, Podman with `--security-opt unmask=ALL`"
            ),
        )
    }
}

fn dumped_core(report: &SelfCheck, plan: &Plan) -> Option<Layer> {
    let filter = report.dump_filter.as_deref();
    core_dumps::layer(Receiver::read(), plan.limits.core_bytes, filter)
}

/// Only listed where it is not there.
fn wide_tcp_buffers(network: &Network) -> Option<Layer> {
    if network.tcp_buffer == Some(TCP_BUFFER) {
        return None;
    }
    Some(Layer {
        need: LayerNeed::IfOffered,
        ..layer(
            "TCP buffers",
            false,
            "/proc/sys is read-only here, so connections inside may hold as much as net.ipv4.tcp_mem of this machine allows",
        )
    })
}

/// Only listed where it is not there: Podman's filter allows the namespace and refuses the call.
fn without_host_name() -> Layer {
    Layer {
        need: LayerNeed::IfOffered,
        ..layer(
            "host name",
            false,
            "this container lets no name be set, so the client sees the container's",
        )
    }
}

/// Seccomp filters of the calling process, which the client's are one more than.
pub fn own_filters() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
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

fn namespace(name: &str, report: &SelfCheck, outside: &Outside<'_>) -> Layer {
    let (inside, host) = (report.namespaces.get(name), outside.namespaces.get(name));
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

/// One field of /proc/self/status; empty where it is not there.
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

fn root(report: &SelfCheck) -> Layer {
    let mounts = parse_mounts(&report.mounts);
    let sealed = mounts
        .iter()
        .filter(|mount| mount.target == Path::new("/"))
        .map(|mount| mount.kind == "tmpfs" && mount.has_all(&["ro", "nosuid", "nodev"]));
    if sealed.eq([true]) {
        layer("root", true, "a tmpfs of its own, read-only")
    } else {
        layer("root", false, "not one read-only tmpfs")
    }
}

fn writable(report: &SelfCheck, path: &str) -> Layer {
    let mounts = parse_mounts(&report.mounts);
    let found: Vec<&Mount> = mounts
        .iter()
        .filter(|mount| mount.target == Path::new(path))
        .collect();
    let (sealed, detail) = match found.as_slice() {
        [mount] => (
            mount.kind == "tmpfs"
                && mount.has_all(&["rw", "nosuid", "nodev", "noexec"])
                && mount.super_options.contains("size=")
                && mount.super_options.contains("nr_inodes="),
            format!("tmpfs, nothing executable, {}", mount.super_options),
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
        "and every newer one that was asked for"
    } else {
        "newer ones as far as it has them"
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

/// Came with ABI 6; without it the network and pid namespaces stand alone.
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

/// A container may have a filter of its own: ours comes on top of what the runner has.
fn seccomp(report: &SelfCheck, outside: &Outside<'_>) -> Layer {
    let filters: u32 = field(report, "Seccomp_filters").parse().unwrap_or(0);
    let ours = field(report, "Seccomp") == "2" && filters == outside.filters + 1;
    layer(
        "seccomp",
        ours,
        format!(
            "mode {}, {filters} filter(s), {} of them outside",
            field(report, "Seccomp"),
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

/// Only listed where there is one.
fn cgroup(outside: &Outside<'_>) -> Option<Layer> {
    let limits = outside.cgroup.as_ref().ok()?;
    Some(Layer {
        need: LayerNeed::IfOffered,
        ..layer("cgroup", true, limits.as_str())
    })
}

fn limits(report: &SelfCheck, outside: &Outside<'_>) -> Layer {
    let wanted = &outside.plan.limits;
    let together = match outside.cgroup {
        Ok(_) => String::new(),
        Err(reason) => format!(", of each process alone (no cgroup: {reason})"),
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
