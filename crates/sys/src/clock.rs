//! The single clock of a run: microseconds of CLOCK_MONOTONIC, which the journal of the stub uses too.

use std::time::SystemTime;

use nix::time::{ClockId, clock_gettime};

/// Start of a run, on the monotonic clock and on the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Microseconds of CLOCK_MONOTONIC at the start.
    pub start_us: u64,
    /// Wall-clock time at the start.
    pub wall: SystemTime,
}

impl Clock {
    /// Starts the clock now.
    pub fn start() -> Self {
        Self {
            start_us: monotonic_us(),
            wall: SystemTime::now(),
        }
    }

    /// Returns the microseconds since the start.
    pub fn elapsed_us(&self) -> u64 {
        monotonic_us().saturating_sub(self.start_us)
    }
}

fn monotonic_us() -> u64 {
    // CLOCK_MONOTONIC exists on every Linux (clock_gettime(2)), so the call cannot fail.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        now.tv_sec() as u64 * 1_000_000 + now.tv_nsec() as u64 / 1_000
    })
}
