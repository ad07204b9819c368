//! Probes outside of the sandbox, in a child process, because a seccomp filter around `runner` may kill the caller.

use std::sync::atomic::{AtomicUsize, Ordering};

use model::case::Tier;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, alarm};
use probes::canary::{CanaryTargets, ProbeEnv};
use probes::probe::{Call, Kind, Probe};
use probes::table;
use sys::process::run_in_shared_memory;

use crate::error::{At as _, SetupError, Step};

/// Maximum time for all probes together.
const LIMIT_SECONDS: u32 = 5;

/// Makes the probes outside in a child, and returns the names of those that are refused here too.
///
/// # Errors
/// The probe that ended the child, `ETIMEDOUT` at the limit of time, or the errno of starting the child.
pub fn refused(tier: Tier, targets: &CanaryTargets) -> Result<Vec<&'static str>, SetupError> {
    let attempts: Vec<_> = attempts(tier).collect();
    // Atomic, because a call that ends the child is unknown to the compiler, which may drop a plain assignment.
    let done = AtomicUsize::new(0);
    let mut refused = Vec::new();
    let child = run_in_shared_memory(|| {
        // Without this, a stopped child would outlive the runner.
        let _ = prctl::set_pdeathsig(Signal::SIGKILL);
        alarm::set(LIMIT_SECONDS);
        let env = ProbeEnv {
            plan: targets,
            init: Pid::this(),
            stub_port: 0,
        };
        for (name, probe, call) in &attempts {
            if call.make(&env.targets(probe)).is_err() {
                refused.push(*name);
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
        0
    });
    let status = child.and_then(|child| waitpid(child, None));
    let status = status.at(Step::TryOutside)?;
    // The probe during which the child ended; SECCOMP_RET_KILL_THREAD ends it with status 0.
    let last = attempts.get(done.into_inner()).map(|(name, ..)| *name);
    let how = match (status, last) {
        (WaitStatus::Exited(_, 0), None) => return Ok(refused),
        (WaitStatus::Signaled(_, Signal::SIGALRM, _), _) => {
            return Err(Errno::ETIMEDOUT).at(Step::TryOutside);
        }
        (WaitStatus::Signaled(_, signal, _), _) => format!("was ended by {signal}"),
        (_, _) => "ended during the call".to_owned(),
    };
    let last = last.unwrap_or("none");
    Err(Errno::EPERM).at_object(Step::TryOutside, format!("{last}: its process {how}"))
}

/// Lists the probes that have an outside variant. They do not use /proc.
fn attempts(tier: Tier) -> impl Iterator<Item = (&'static str, &'static Probe, Call)> {
    table::canary(Kind::of(tier, true))
        .filter_map(|(probe, canary)| Some((canary.name, probe, canary.outside?)))
}
