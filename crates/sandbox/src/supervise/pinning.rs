//! Processor of the canary and the supervisor.
//!
//! Each probe of the canary waits for an answer. With both threads on one processor, that is a switch between them
//! instead of the wake-up of another, idle processor, which costs a virtual machine ten times as much.

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

/// Pinning of the supervisor during the canary.
#[derive(Debug)]
pub(super) enum Pinning {
    /// No call was notified yet.
    Before,
    /// Both threads are on one processor. The supervisor may use these afterwards.
    Pinned(CpuSet),
    /// The supervisor runs where the kernel puts it.
    Over,
}

impl Pinning {
    /// Follows the run with each call of a thread: pins the first one and the supervisor, and frees the supervisor when
    /// the client has been launched. A host that refuses leaves both as they are.
    pub(super) fn follow(&mut self, thread: i32, launched: bool) {
        match self {
            Self::Before if !launched => {
                *self = pinned(Pid::from_raw(thread)).map_or(Self::Over, Self::Pinned);
            }
            Self::Pinned(before) if launched => {
                // A processor that is gone by now leaves the kernel's own choice.
                let _ = sched_setaffinity(Pid::from_raw(0), before);
                *self = Self::Over;
            }
            Self::Before | Self::Pinned(_) | Self::Over => {}
        }
    }
}

/// Pins a thread and the calling one to the processor of the latter. Returns the processors before.
fn pinned(thread: Pid) -> Option<CpuSet> {
    let own = Pid::from_raw(0);
    let before = sched_getaffinity(own).ok()?;
    let mut one = CpuSet::new();
    one.set(sched_getcpu().ok()?).ok()?;
    sched_setaffinity(thread, &one).ok()?;
    sched_setaffinity(own, &one).ok()?;
    Some(before)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use nix::unistd::gettid;

    use super::*;

    fn processors(thread: Pid) -> Vec<usize> {
        let allowed = sched_getaffinity(thread).unwrap();
        let all = 0..CpuSet::count();
        all.filter(|one| allowed.is_set(*one).unwrap()).collect()
    }

    #[test]
    fn supervisor_is_free_after_the_launch() {
        let before = processors(Pid::from_raw(0));
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let canary = thread::spawn(move || {
            tell.send(gettid()).unwrap();
            ended.recv().unwrap_err();
        });
        let thread = told.recv().unwrap();
        let mut pinning = Pinning::Before;
        pinning.follow(thread.as_raw(), false);
        let own = processors(Pid::from_raw(0));
        assert_eq!(own.len(), 1);
        assert_eq!(processors(thread), own);
        pinning.follow(thread.as_raw(), true);
        assert_eq!(processors(Pid::from_raw(0)), before);
        drop(end);
        canary.join().unwrap();
    }

    #[test]
    fn thread_that_is_gone_pins_nothing() {
        let before = processors(Pid::from_raw(0));
        let mut pinning = Pinning::Before;
        pinning.follow(i32::MAX, false);
        assert!(matches!(pinning, Pinning::Over));
        assert_eq!(processors(Pid::from_raw(0)), before);
    }
}
