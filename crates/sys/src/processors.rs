//! Processors of the processes of a set-up, which run at once or wait for each other.
//!
//! The kernel spreads processes over the processors later than a set-up of milliseconds needs, and some kernels pack
//! them on one to save energy. So the runner divides its processors in two for the set-up. A host that refuses this, or
//! has one processor, leaves all processes where the kernel puts them.

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::{Pid, getppid};

/// The calling thread.
pub const SELF: Pid = Pid::from_raw(0);

/// Processors that two parts of a set-up divide between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors {
    all: CpuSet,
    /// Those of the parent.
    first: CpuSet,
}

impl Processors {
    /// Keeps the calling thread on its present processor, and a new child on the others.
    pub fn divide(child: Pid) -> Option<Self> {
        let all = sched_getaffinity(SELF).ok()?;
        let mut first = CpuSet::new();
        first.set(sched_getcpu().ok()?).ok()?;
        let divided = Self { all, first };
        // Without another processor, the kernel refuses the empty set with EINVAL.
        sched_setaffinity(child, &divided.rest()).ok()?;
        sched_setaffinity(SELF, &first).ok()?;
        Some(divided)
    }

    /// Returns the division that the parent made for this process; `None` without one.
    pub fn divided_by_parent() -> Option<Self> {
        let own = sched_getaffinity(SELF).ok()?;
        let first = sched_getaffinity(getppid()).ok()?;
        let mut all = own;
        for number in numbers(&first) {
            if own.is_set(number) != Ok(false) {
                return None;
            }
            all.set(number).ok()?;
        }
        Some(Self { all, first })
    }

    /// Keeps a process on the parent's processor.
    pub fn give_first(&self, process: Pid) {
        let _ = sched_setaffinity(process, &self.first);
    }

    /// Keeps the calling thread on the other processors.
    pub fn take_rest(&self) {
        let _ = sched_setaffinity(SELF, &self.rest());
    }

    /// Lets a process use all processors again.
    ///
    /// # Errors
    /// `ESRCH` for a process that has ended, and `EINVAL` if none of the processors is left.
    pub fn free(&self, process: Pid) -> Result<(), Errno> {
        sched_setaffinity(process, &self.all)
    }

    fn rest(&self) -> CpuSet {
        let mut rest = self.all;
        for number in numbers(&self.first) {
            // Each number came from such a set.
            let _ = rest.unset(number);
        }
        rest
    }
}

fn numbers(set: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::count()).filter(|number| set.is_set(*number) == Ok(true))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use nix::unistd::gettid;

    use super::*;

    fn of(thread: Pid) -> Vec<usize> {
        numbers(&sched_getaffinity(thread).unwrap()).collect()
    }

    /// Calls `test` in a thread of its own, with another thread as the child.
    fn beside_child(test: impl FnOnce(Pid) + Send + 'static) {
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let child = thread::spawn(move || {
            tell.send(gettid()).unwrap();
            ended.recv().unwrap_err();
        });
        let child_id = told.recv().unwrap();
        thread::spawn(move || test(child_id)).join().unwrap();
        drop(end);
        child.join().unwrap();
    }

    #[test]
    fn divided_processors_are_given_back() {
        beside_child(|child| {
            let all = of(SELF);
            let Some(divided) = Processors::divide(child) else {
                assert_eq!(all.len(), 1);
                return;
            };
            let (first, rest) = (of(SELF), of(child));
            assert_eq!(first.len(), 1);
            let mut both = [first.as_slice(), &rest].concat();
            both.sort_unstable();
            assert_eq!(both, all);
            divided.give_first(child);
            assert_eq!(of(child), first);
            divided.take_rest();
            assert_eq!(of(SELF), rest);
            divided.free(child).unwrap();
            divided.free(SELF).unwrap();
            assert_eq!((of(child), of(SELF)), (all.clone(), all));
        });
    }

    #[test]
    fn child_that_is_gone_divides_nothing() {
        beside_child(|_| {
            let all = of(SELF);
            assert_eq!(Processors::divide(Pid::from_raw(i32::MAX)), None);
            assert_eq!(of(SELF), all);
        });
    }

    #[test]
    fn parent_on_the_same_processors_has_divided_none() {
        assert_eq!(Processors::divided_by_parent(), None);
    }
}
