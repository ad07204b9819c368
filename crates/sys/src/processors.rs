//! Processors of threads that wait for each other, or that could run at once.
//!
//! The kernel moves a thread later than a short set-up needs: its balancing is for longer runs (sched-domains of the
//! kernel's documentation). A host that refuses to place a thread, or has one processor, leaves all as they are.

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread.
const SELF: Pid = Pid::from_raw(0);

/// Binds a thread and the calling one to the processor of the latter: an exchange between them is then a switch of
/// threads instead of the wake-up of another, idle processor. Returns the processors of the calling thread before.
pub fn share(thread: Pid) -> Option<CpuSet> {
    let before = sched_getaffinity(SELF).ok()?;
    let mut own = CpuSet::new();
    own.set(sched_getcpu().ok()?).ok()?;
    sched_setaffinity(thread, &own).ok()?;
    sched_setaffinity(SELF, &own).ok()?;
    Some(before)
}

/// Lets the calling thread run on these processors again.
pub fn free(before: &CpuSet) {
    // A processor that is gone by now leaves the kernel's own choice.
    let _ = sched_setaffinity(SELF, before);
}

/// Moves a new process to another processor than the caller's, so that both run at once. It may use the same ones as
/// before.
pub fn spread(child: Pid) {
    let (Ok(all), Ok(own)) = (sched_getaffinity(SELF), sched_getcpu()) else {
        return;
    };
    let mut others = all;
    // Without any other processor, the kernel refuses the empty set with EINVAL.
    if others.unset(own).is_ok() && sched_setaffinity(child, &others).is_ok() {
        let _ = sched_setaffinity(child, &all);
    }
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

    fn beside_thread(test: impl FnOnce(Pid)) {
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let thread = thread::spawn(move || {
            tell.send(gettid()).unwrap();
            ended.recv().unwrap_err();
        });
        test(told.recv().unwrap());
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn shared_processor_is_left_again() {
        beside_thread(|thread| {
            let all = processors(SELF);
            let before = share(thread).unwrap();
            let own = processors(SELF);
            assert_eq!(own.len(), 1);
            assert_eq!(processors(thread), own);
            free(&before);
            assert_eq!(processors(SELF), all);
        });
    }

    #[test]
    fn moved_thread_keeps_its_processors() {
        beside_thread(|thread| {
            let all = processors(thread);
            spread(thread);
            assert_eq!(processors(thread), all);
            assert_eq!(processors(SELF), all);
        });
    }

    #[test]
    fn thread_that_is_gone_changes_nothing() {
        let all = processors(SELF);
        let gone = Pid::from_raw(i32::MAX);
        assert!(share(gone).is_none());
        spread(gone);
        assert_eq!(processors(SELF), all);
    }
}
