//! Processor of the supervisor during the canary, whose probes each wait for an answer.

use nix::sched::CpuSet;
use nix::unistd::Pid;
use sys::processors;

/// Pinning of the supervisor to one processor with the canary.
#[derive(Debug)]
pub(super) enum Pinning {
    /// No call was notified yet.
    Before,
    /// Both are on one processor. The supervisor may use these afterwards.
    Pinned(CpuSet),
    /// The supervisor runs where the kernel puts it.
    Over,
}

impl Pinning {
    /// Follows the run with each call of a thread: pins both at the first one, and frees the supervisor at the first one
    /// after the client's launch.
    pub(super) fn follow(&mut self, thread: i32, launched: bool) {
        match self {
            Self::Before if !launched => {
                let pinned = processors::share(Pid::from_raw(thread));
                *self = pinned.map_or(Self::Over, Self::Pinned);
            }
            Self::Pinned(before) if launched => {
                processors::free(before);
                *self = Self::Over;
            }
            Self::Before | Self::Pinned(_) | Self::Over => {}
        }
    }
}
