//! setrlimit(2) for the client. RLIMIT_AS is left alone: runtimes with a JIT reserve far more than they use.

use nix::sys::resource::{Resource, setrlimit};

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
