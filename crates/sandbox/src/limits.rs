//! Resource limits of the client (setrlimit(2)). RLIMIT_AS is not set: runtimes with a JIT reserve far more address
//! space than they use.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::error::{At as _, SetupError, Step};
use super::plan::ResourceLimits;
use super::proc::Proc;

/// RLIMIT_CORE of the client: too small for any core file, so the kernel writes none.
///
/// With a core_pattern that begins with a pipe (core(5)), the kernel starts the host's core program as root, for any
/// limit but 1. The kernel uses 1 to mark that program itself. An inherited hard limit of 0 cannot be raised and stays.
pub const CORE_BYTES: u64 = 1;

/// RLIMIT_MSGQUEUE of the client: the kernel's default, MQ_BYTES_MAX of linux/mqueue.h.
pub const QUEUE_BYTES: u64 = 819_200;

/// Makes the client the first victim of the OOM killer (proc_pid_oom_score_adj(5)).
///
/// The descriptors of the client keep memory files and kernel objects alive, which RLIMIT_DATA does not count. Landlock
/// prevents the client from lowering the score. If /proc is not writable, the kernel chooses.
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

/// Sets each limit on the calling process, with equal soft and hard values except for the processor time.
///
/// At the soft limit of the processor time the kernel sends SIGXCPU, which names the cause, and at the hard limit
/// SIGKILL.
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
