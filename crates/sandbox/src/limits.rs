//! setrlimit(2) for the client. RLIMIT_AS is left alone: runtimes with a JIT reserve far more than they use.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::error::{At as _, SetupError, Step};
use super::plan::ResourceLimits;
use super::proc::Proc;

/// RLIMIT_CORE of the client. No core is so short, so none is written; and where the host hands cores to a
/// program (core(5): a pattern that begins with a pipe), that program is started as the host's root whatever
/// the limit is, 0 included, but for this one value, with which the kernel marks that very program. A hard limit of 0 that we
/// were started with cannot be raised to it, and stays.
pub const CORE_BYTES: u64 = 1;

/// RLIMIT_MSGQUEUE of the client: the kernel's own default, MQ_BYTES_MAX of linux/mqueue.h.
pub const QUEUE_BYTES: u64 = 819_200;

/// Makes the kernel end the client before everything else where memory runs out (proc_pid_oom_score_adj(5)): files in
/// memory and objects of the kernel, which no limit bounds, are held by its descriptors alone. Landlock keeps the client
/// from taking it back. A /proc that cannot be written leaves the choice to the kernel.
pub(super) fn prefer_as_victim(proc: &Proc) {
    let _ = proc.write("self/oom_score_adj", "1000");
}

impl ResourceLimits {
    /// Lowers each value to the hard limit of the calling process, which cannot be raised.
    pub fn within_hard_limits(self) -> Self {
        let lower = |resource, wanted: u64| {
            getrlimit(resource).map_or(wanted, |(_, hard)| wanted.min(hard))
        };
        Self {
            core_bytes: lower(Resource::RLIMIT_CORE, self.core_bytes),
            data_bytes: lower(Resource::RLIMIT_DATA, self.data_bytes),
            processes: lower(Resource::RLIMIT_NPROC, self.processes),
            cpu_seconds: lower(Resource::RLIMIT_CPU, self.cpu_seconds),
            cpu_hard_seconds: lower(Resource::RLIMIT_CPU, self.cpu_hard_seconds),
            open_files: lower(Resource::RLIMIT_NOFILE, self.open_files),
            file_bytes: lower(Resource::RLIMIT_FSIZE, self.file_bytes),
            queue_bytes: lower(Resource::RLIMIT_MSGQUEUE, self.queue_bytes),
        }
    }
}

/// Sets each limit on the calling process, soft and hard alike but for the processor time: SIGXCPU, which names the
/// cause, comes at the soft limit, and SIGKILL a second later.
pub(super) fn apply(limits: &ResourceLimits) -> Result<(), SetupError> {
    let cpu = Resource::RLIMIT_CPU;
    setrlimit(cpu, limits.cpu_seconds, limits.cpu_hard_seconds).at_object(
        Step::SetLimit,
        format_args!("{cpu:?} {}", limits.cpu_seconds),
    )?;
    for (resource, value) in [
        (Resource::RLIMIT_CORE, limits.core_bytes),
        (Resource::RLIMIT_DATA, limits.data_bytes),
        (Resource::RLIMIT_FSIZE, limits.file_bytes),
        (Resource::RLIMIT_NPROC, limits.processes),
        (Resource::RLIMIT_NOFILE, limits.open_files),
        (Resource::RLIMIT_MSGQUEUE, limits.queue_bytes),
    ] {
        setrlimit(resource, value, value)
            .at_object(Step::SetLimit, format_args!("{resource:?} {value}"))?;
    }
    Ok(())
}
