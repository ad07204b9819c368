//! Layers of tier `inherited`: the container's namespaces, with Landlock and the filter as the only own layers.

use model::evidence::{Layer, LayerNeed, LayerStatus};

use super::super::identity::host_ids;
use super::{
    HostView, SelfCheck, cgroup, descriptors, dumped_core, field, layer, limits, network,
    no_new_privileges, seccomp,
};

/// Judges every layer of this tier.
pub(super) fn layers(report: &SelfCheck, outside: &HostView<'_>) -> Vec<Layer> {
    let mut layers = vec![
        namespaces(),
        network(outside.network),
        identity(report, outside),
        capabilities(report),
        no_new_privileges(report),
        landlock(report),
        seccomp(report, outside),
        descriptors(report),
        limits(report, outside),
    ];
    layers.extend(cgroup(outside));
    layers.extend(dumped_core(report, outside.plan));
    layers
}

/// Returns the layer that says that the sandbox has no namespaces.
fn namespaces() -> Layer {
    Layer {
        name: "namespaces".to_owned(),
        need: LayerNeed::IfOffered,
        status: LayerStatus::Absent,
        detail: "none: network, files and processes are the container's".to_owned(),
    }
}

fn identity(report: &SelfCheck, outside: &HostView<'_>) -> Layer {
    let (uid, gid) = host_ids(outside.plan.identity);
    let four = |id: u32| [id; 4].map(|id| id.to_string()).join("\t");
    let (uids, gids) = (field(report, "Uid"), field(report, "Gid"));
    if uids == four(uid) && gids == four(gid) {
        let groups = field(report, "Groups");
        let detail = format!(
            "uid {uid}, gid {gid} and groups {groups:?} of the container's user who started the runner"
        );
        layer("identity", true, detail)
    } else {
        layer("identity", false, format!("uids {uids:?}, gids {gids:?}"))
    }
}

/// Judges all sets but the bounding set: emptying that one needs CAP_SETPCAP, and no_new_privs makes it ineffective.
fn capabilities(report: &SelfCheck) -> Layer {
    const NONE: &str = "0000000000000000";
    let sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"];
    let left: Vec<&str> = sets
        .into_iter()
        .filter(|set| field(report, set) != NONE)
        .collect();
    let (enforced, detail) = match (left.as_slice(), field(report, "CapBnd")) {
        ([], NONE) => (true, "all five sets are empty".to_owned()),
        ([], bounding) => (
            true,
            format!(
                "all but the bounding set are empty; no_new_privs prevents the use of that set, {bounding}"
            ),
        ),
        (left, _) => (false, format!("not empty: {}", left.join(" "))),
    };
    layer("capabilities", enforced, detail)
}

fn landlock(report: &SelfCheck) -> Layer {
    let found = &report.landlock;
    let whole = found.ports && found.scopes;
    let detail = if whole {
        format!(
            "by path, TCP port and scope, for all objects of the container; kernel ABI {}",
            found.abi
        )
    } else {
        "without TCP ports or scopes".to_owned()
    };
    layer("landlock", whole, detail)
}
