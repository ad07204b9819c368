//! Pauses of a thread that must not disturb the client.
//!
//! The scheduling policy alone is too weak: it ranks threads of one control group or session. Kernels with autogroups
//! give the client, which has a session of its own, and the runner equal shares of a processor (sched(7)).

use std::thread;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use sys::priority;

/// Pause after each preemption. The kernel preempts a thread after one of its ticks, 10 ms at most, so that a client
/// that uses the whole processor loses 4 % of it at most.
const PAUSE: Duration = Duration::from_millis(256);

/// State of a thread that gives way to others.
#[derive(Debug)]
pub(super) struct Courtesy {
    /// Number of times that the kernel gave this thread's processor to another one.
    preemptions: i64,
}

impl Courtesy {
    /// Gives the calling thread the lowest priority.
    pub(super) fn begin() -> Self {
        // A filter may refuse it: the pauses are left then.
        let _ = priority::make_idle();
        Self {
            preemptions: preemptions(),
        }
    }

    /// Pauses if another thread wanted this processor since the last call.
    pub(super) fn give_way(&mut self) {
        if preemptions() != self.preemptions {
            thread::sleep(PAUSE);
            self.preemptions = preemptions();
        }
    }
}

/// Involuntary context switches of this thread (getrusage(2)).
fn preemptions() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
}
