//! Conditions of rows: each returns the fact that proves a cause, or `None`. An empty text stands for a cause that step
//! and errno prove.

use caps::Capability;
use nix::errno::Errno::{EACCES, ENOTTY};
use sandbox::error::{SetupError, Step};

use crate::advice::evidence::Evidence;

/// Steps that open /dev/null, for the process itself or for a child.
pub(super) const OPENING_NULL: &[Step] = &[Step::StartGuard, Step::TryOutside, Step::StandardInput];

pub(super) fn certain(_: &Evidence, _: &SetupError) -> Option<String> {
    Some(String::new())
}

pub(super) fn fact(holds: bool, proof: &str) -> Option<String> {
    holds.then(|| proof.to_owned())
}

pub(super) fn without_proc(evidence: &Evidence, error: &SetupError) -> Option<String> {
    let is_below = error.object.starts_with("/proc") || error.object.is_empty();
    fact(evidence.lacks_proc && is_below, "/proc/self does not exist")
}

pub(super) fn without_null(evidence: &Evidence, error: &SetupError) -> Option<String> {
    let is_about_devices = error.object.starts_with("/dev/") || OPENING_NULL.contains(&error.step);
    (evidence.lacks_null && is_about_devices).then(String::new)
}

pub(super) fn in_domain(evidence: &Evidence, _: &SetupError) -> Option<String> {
    let proof = "mount(2) fails with EPERM where open_tree(2) works";
    fact(evidence.in_landlock_domain, proof)
}

pub(super) fn zero_limit(evidence: &Evidence, _: &SetupError) -> Option<String> {
    let names = evidence.zero_limits.iter();
    let names: Vec<String> = names
        .map(|kind| format!("user.max_{kind}_namespaces"))
        .collect();
    (!names.is_empty()).then(|| format!("{} = 0", names.join(", ")))
}

pub(super) fn missing_kind(evidence: &Evidence, _: &SetupError) -> Option<String> {
    let kinds = &evidence.missing_kinds;
    (!kinds.is_empty()).then(|| format!("/proc/self/ns has no {}", kinds.join(", ")))
}

/// Text about an earlier filter that refuses the call of this step.
pub(super) fn filter(evidence: &Evidence, error: &SetupError) -> Option<String> {
    const CALLS: [(Step, &str); 9] = [
        (Step::UserAndNetworkNamespace, "unshare"),
        (Step::CloneInit, "clone"),
        (Step::LoopbackUp, "ioctl"),
        (Step::TakeSource, "open_tree"),
        (Step::PivotRoot, "pivot_root"),
        (Step::PrivateMounts, "mount"),
        (Step::RootFilesystem, "mount"),
        (Step::AttachSource, "mount"),
        (Step::ReadOnlyRoot, "mount"),
    ];
    let call = CALLS.into_iter().find(|(step, _)| *step == error.step);
    let (_, call) = call?;
    let mut refused = evidence.filtered_calls.iter();
    refused
        .any(|one| one == call)
        .then(|| evidence.restrictions())
}

pub(super) fn filter_of_engine(evidence: &Evidence, error: &SetupError) -> Option<String> {
    let (engine, trace) = evidence.engine.as_ref()?;
    let found = filter(evidence, error)?;
    if evidence.filters_of_init != Some(evidence.filters) {
        return None;
    }
    Some(format!("{}, by {trace}; {found}", engine.word()))
}

pub(super) fn filter_of_sandbox(evidence: &Evidence, error: &SetupError) -> Option<String> {
    filter(evidence, error).and_then(|_| later_filter(evidence, error))
}

/// AppArmor refuses with EACCES if a profile does not name the operation; seccomp filters use EPERM.
pub(super) fn profile_of_engine(evidence: &Evidence, error: &SetupError) -> Option<String> {
    let profile = evidence.engines_profile()?;
    (error.errno == EACCES as i32).then(|| profile.to_owned())
}

pub(super) fn unmapped(evidence: &Evidence, _: &SetupError) -> Option<String> {
    let proof = || format!("/proc/self/uid_map does not have user {}", evidence.uid);
    (!evidence.is_mapped()).then(proof)
}

pub(super) fn lacking_capabilities(evidence: &Evidence, _: &SetupError) -> Option<String> {
    let needed = [
        Capability::CAP_CHOWN,
        Capability::CAP_SETGID,
        Capability::CAP_SETUID,
        Capability::CAP_SETFCAP,
    ];
    let missing = needed
        .iter()
        .filter(|one| !evidence.capabilities.contains(one));
    let missing: Vec<String> = missing.map(ToString::to_string).collect();
    let is_lacking = evidence.uid == 0 && !missing.is_empty();
    is_lacking.then(|| format!("it lacks {}", missing.join(", ")))
}

pub(super) fn lacking_file_capabilities(evidence: &Evidence, _: &SetupError) -> Option<String> {
    let either = [
        Capability::CAP_DAC_OVERRIDE,
        Capability::CAP_DAC_READ_SEARCH,
    ];
    let has_one = either.iter().any(|one| evidence.capabilities.contains(one));
    let [first, second] = either;
    (evidence.uid == 0 && !has_one).then(|| format!("it lacks {first} and {second}"))
}

/// Checks for an ioctl(2) that a filter answers: the kernel knows each request, and refuses none of the runner's as this
/// error tells.
pub(super) fn is_refused_ioctl(error: &SetupError) -> bool {
    error.errno == ENOTTY as i32 || error.object.starts_with("SECCOMP_IOCTL_")
}

/// Filters around the runner.
pub(super) fn filters_before(evidence: &Evidence, _: &SetupError) -> Option<String> {
    (evidence.filters > 0).then(|| evidence.restrictions())
}

/// Processes and threads of a run and of the doctor around it, with a reserve.
const RUN_PROCESSES: u64 = 24;
/// Memory of a run with the reference client, in bytes, with a reserve.
const RUN_MEMORY: u64 = 16 << 20;

pub(super) fn few_processes(evidence: &Evidence, _: &SetupError) -> Option<String> {
    let limit = evidence.process_limit.as_ref()?;
    let is_few = limit.limit.saturating_sub(limit.used) < RUN_PROCESSES;
    is_few.then(|| limit.to_string())
}

pub(super) fn little_memory(evidence: &Evidence, _: &SetupError) -> Option<String> {
    let limit = evidence.memory_limit.as_ref()?;
    let is_little = limit.limit.saturating_sub(limit.used) < RUN_MEMORY;
    is_little.then(|| limit.to_string())
}

/// The count of killed processes may be of another time, so the limit must be too low now.
pub(super) fn killed_for_memory(evidence: &Evidence, error: &SetupError) -> Option<String> {
    let kills = evidence.memory_limit.as_ref()?.kills;
    let proof = little_memory(evidence, error).filter(|_| kills > 0)?;
    Some(format!("{proof}, {kills} killed"))
}

pub(super) fn old_kernel(evidence: &Evidence, _: &SetupError) -> Option<String> {
    (evidence.version() < (5, 12)).then(|| format!("this is {}", evidence.kernel))
}

/// Filters around the runner, if pid 1 has fewer: one was installed by a sandbox or a service, not by the engine.
pub(super) fn later_filter(evidence: &Evidence, error: &SetupError) -> Option<String> {
    filters_before(evidence, error).filter(|_| evidence.has_more_filters_than_init())
}

pub(super) fn has_landlock(evidence: &Evidence) -> Option<bool> {
    let modules = evidence.modules.as_ref()?;
    Some(modules.split(',').any(|module| module == "landlock"))
}

pub(super) fn unlisted_landlock(evidence: &Evidence, _: &SetupError) -> Option<String> {
    (has_landlock(evidence) == Some(false)).then(|| evidence.modules.clone())?
}

pub(super) fn listed_landlock(evidence: &Evidence, error: &SetupError) -> Option<String> {
    perhaps_filtered_landlock(evidence, error).filter(|_| has_landlock(evidence) == Some(true))
}

pub(super) fn filtered_landlock(evidence: &Evidence, _: &SetupError) -> Option<String> {
    (evidence.is_landlock_filtered() == Some(true)).then(|| evidence.restrictions())
}

pub(super) fn perhaps_filtered_landlock(evidence: &Evidence, _: &SetupError) -> Option<String> {
    (evidence.is_landlock_filtered() != Some(false)).then(|| evidence.restrictions())
}
