//! The run's one clock: microseconds of CLOCK_MONOTONIC, which the stub's journal uses as well.

use std::time::SystemTime;

use nix::time::{ClockId, clock_gettime};

/// The start of a run, on the monotonic clock and on the wall.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub start_us: u64,
    pub wall: SystemTime,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self {
            start_us: monotonic_us(),
            wall: SystemTime::now(),
        }
    }

    /// Microseconds since the start.
    pub fn elapsed_us(&self) -> u64 {
        monotonic_us().saturating_sub(self.start_us)
    }
}

fn monotonic_us() -> u64 {
    // CLOCK_MONOTONIC exists on every Linux (clock_gettime(2)), so there is no failure to report.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        now.tv_sec() as u64 * 1_000_000 + now.tv_nsec() as u64 / 1_000
    })
}
