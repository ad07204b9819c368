//! Table of the probes: their order, and the isolation that needs each.
//!
//! Owns the stable ids. A probe runs after the probes that it depends on. If one of those does not work, the probe is
//! untried, because its result would have no meaning.

use model::case::Tier;

use super::trial::{Doctor, Outcome};
use super::trials::{landlock, mounts, namespaces, own_file, process, seccomp};

/// Need of an isolation for a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A run with this isolation is not possible without the feature.
    Required,
    /// A run uses the feature if it is available, and the report says so.
    Used,
    Unneeded,
}

impl Need {
    /// All needs.
    pub(super) const ALL: [Self; 3] = [Self::Required, Self::Used, Self::Unneeded];

    /// Word for the need in reports.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Used => "used",
            Self::Unneeded => "unneeded",
        }
    }
}

impl serde::Serialize for Need {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// A probe: a feature and the function that tests it.
pub(super) struct Probe {
    /// Id of the probe; it is stable.
    pub(super) id: &'static str,
    /// Feature that is tested, for people.
    pub(super) feature: &'static str,
    namespace: Need,
    inherited: Need,
    /// Ids of the probes that this probe depends on.
    pub(super) after: &'static [&'static str],
    pub(super) trial: fn(&Doctor) -> Outcome,
}

impl Probe {
    pub(super) fn need(&self, tier: Tier) -> Need {
        match tier {
            Tier::Namespace => self.namespace,
            Tier::Inherited => self.inherited,
        }
    }
}

/// Finds a probe by its id.
pub(super) fn named(id: &str) -> Option<&'static Probe> {
    ALL.iter().find(|probe| probe.id == id)
}

type Trial = fn(&Doctor) -> Outcome;
type After = &'static [&'static str];

const fn probe(
    id: &'static str,
    feature: &'static str,
    (namespace, inherited): (Need, Need),
    after: After,
    trial: Trial,
) -> Probe {
    Probe {
        id,
        feature,
        namespace,
        inherited,
        after,
        trial,
    }
}

const BOTH: (Need, Need) = (Need::Required, Need::Required);
const BOTH_IF_THERE: (Need, Need) = (Need::Used, Need::Used);
const NAMESPACE: (Need, Need) = (Need::Required, Need::Unneeded);
const NAMESPACE_IF_THERE: (Need, Need) = (Need::Used, Need::Unneeded);
/// Required by isolation `inherited`, and used by `namespace` if available.
const INHERITED_FIRST: (Need, Need) = (Need::Used, Need::Required);
const INHERITED: (Need, Need) = (Need::Unneeded, Need::Required);
const NEITHER: (Need, Need) = (Need::Unneeded, Need::Unneeded);

const SELF: After = &["own-file"];
const RULES: After = &["own-file", "landlock"];
const MAPPED: After = &["id-map"];
const IN_NETWORK: After = &["loopback"];
const SUPERVISED: After = &["notification"];

/// All probes, in the order of execution.
#[rustfmt::skip]
pub(super) const ALL: &[Probe] = &[
    probe("own-file", "this program, started again", BOTH, &[], own_file),
    probe("open-files", "256 open files", BOTH, SELF, process::open_files),
    probe("processes", "a dozen processes", BOTH, SELF, process::processes),
    probe("memory", "4.7 MB of memory", BOTH, SELF, process::memory),
    probe("file-size", "a file of 1 MiB", BOTH, SELF, process::file_size),
    probe("no-new-privileges", "no_new_privs", BOTH, SELF, process::no_new_privileges),
    probe("seccomp-filter", "a system call filter", BOTH, &["no-new-privileges"], seccomp::filter),
    probe("seccomp-listener", "a listener of a filter", BOTH, &["seccomp-filter"], seccomp::listener),
    probe("notification", "calls received and answered", BOTH, &["seccomp-listener"], seccomp::notification),
    probe("landlock", "Landlock", BOTH, &["own-file", "no-new-privileges"], landlock::present),
    probe("landlock-files", "Landlock ABI 1: files and directories", BOTH, RULES, landlock::files),
    probe("landlock-refer", "Landlock ABI 2: across directories", BOTH, RULES, landlock::refer),
    probe("landlock-truncate", "Landlock ABI 3: truncation", BOTH, RULES, landlock::truncation),
    probe("landlock-tcp", "Landlock ABI 4: TCP ports", INHERITED_FIRST, RULES, landlock::tcp),
    probe("landlock-device-ioctl", "Landlock ABI 5: ioctl on devices", INHERITED_FIRST, RULES, landlock::device_ioctl),
    probe("landlock-scopes", "Landlock ABI 6: abstract sockets, signals", INHERITED_FIRST, RULES, landlock::scopes),
    probe("landlock-log", "Landlock ABI 7: flags of the audit log", BOTH_IF_THERE, RULES, landlock::log),

    probe("other-user", "another user for the client, as root", NAMESPACE, SELF, namespaces::other_user),
    probe("user-namespace", "a user namespace", NAMESPACE, SELF, namespaces::user),
    probe("id-map", "its user and group map", NAMESPACE, &["other-user", "user-namespace"], namespaces::id_map),
    probe("network-namespace", "a network namespace", NAMESPACE, MAPPED, namespaces::network),
    probe("loopback", "loopback set up in it", NAMESPACE, &["network-namespace"], namespaces::loopback),
    probe("network-silence", "no other link in it, by netlink", NAMESPACE, IN_NETWORK, namespaces::silence),
    probe("resolver-port", "127.0.0.1:53 in it", NAMESPACE, IN_NETWORK, namespaces::resolver_port),
    probe("other-namespaces", "pid, mount, ipc, uts, cgroup namespaces", NAMESPACE, MAPPED, namespaces::others),
    probe("private-mounts", "mounts of its own", NAMESPACE, &["other-namespaces"], mounts::private),
    probe("sealed-mounts", "paths cloned and made read-only", NAMESPACE, &["private-mounts"], mounts::sealed),
    probe("tmpfs", "a tmpfs", NAMESPACE, &["sealed-mounts"], mounts::tmpfs),
    probe("fresh-proc", "a fresh /proc", NAMESPACE_IF_THERE, &["tmpfs"], mounts::proc),
    probe("new-root", "a new root, by pivot_root", NAMESPACE, &["tmpfs"], mounts::pivot),
    probe("host-name", "a host name of its own", NAMESPACE_IF_THERE, &["other-namespaces"], mounts::host_name),
    probe("capabilities", "capability sets emptied", NAMESPACE, MAPPED, process::capabilities),
    probe("memory-inside", "/proc/PID/mem of a process in a user namespace", NAMESPACE, &["notification", "id-map", "capabilities"], seccomp::memory_inside),

    probe("loopback-only", "nothing but loopback in this network namespace", INHERITED, SELF, namespaces::is_loopback_only),
    probe("loopback-here", "loopback carries connections here", INHERITED, SELF, namespaces::loopback_here),
    probe("memory-here", "/proc/PID/mem of a child process", INHERITED, SUPERVISED, seccomp::memory_here),
    probe("pidfd", "a descriptor of a process", BOTH_IF_THERE, SELF, process::pidfd),
    probe("temporary-directory", "a writable temporary directory", INHERITED, SELF, process::temporary_directory),

    probe("process-vm-readv", "memory by process_vm_readv", BOTH_IF_THERE, SUPERVISED, seccomp::direct_memory),
    probe("descriptor-copy", "a copy of a descriptor by pidfd_getfd", BOTH_IF_THERE, &["notification", "pidfd"], seccomp::descriptor),
    probe("inotify", "inotify", BOTH_IF_THERE, SELF, process::inotify),
    probe("core-dumps", "core dumps kept from the host", BOTH_IF_THERE, SELF, process::core_dumps),
    probe("locked-memory", "locked memory", NEITHER, SELF, process::locked_memory),
    probe("cgroup-delegation", "a cgroup of its own", BOTH_IF_THERE, SELF, process::cgroup),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_probes_have_one_id() {
        let ids: std::collections::BTreeSet<_> = ALL.iter().map(|probe| probe.id).collect();
        assert_eq!(ids.len(), ALL.len());
    }

    #[test]
    fn a_probe_is_tried_after_those_that_it_builds_on() {
        for (at, probe) in ALL.iter().enumerate() {
            for earlier in probe.after {
                let found = ALL[..at].iter().any(|one| one.id == *earlier);
                assert!(found, "{} is before {earlier}", probe.id);
            }
        }
    }

    #[test]
    fn what_a_tier_requires_builds_on_nothing_that_it_does_not() {
        for tier in Tier::ALL {
            for probe in ALL.iter().filter(|one| one.need(tier) == Need::Required) {
                for earlier in probe.after.iter().filter_map(|id| named(id)) {
                    assert_eq!(earlier.need(tier), Need::Required, "{}", probe.id);
                }
            }
        }
    }
}
