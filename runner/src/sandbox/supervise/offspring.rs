//! How many processes and threads there may be, where RLIMIT_NPROC does not say: without a user namespace it counts
//! whatever the container's user has running, and holds nobody who is root.

use crate::sandbox::reaper;

/// The stage, init and the guard, each with one thread.
const OURS: u64 = 3;

/// The bound, and how many more may be made before it is looked who is there.
#[derive(Debug)]
pub(super) struct Offspring {
    most: u64,
    left: u64,
}

impl Offspring {
    pub(super) fn new(most: u64) -> Self {
        Self { most, left: 0 }
    }

    /// Whether one more may be made; it counts as made then. Where nobody can be counted there are too many.
    pub(super) fn may_grow(&mut self) -> bool {
        self.may_grow_from(|| reaper::threads_below_this_process().ok())
    }

    fn may_grow_from(&mut self, count: impl FnOnce() -> Option<u64>) -> bool {
        if self.left == 0 {
            let there = count().map_or(self.most, |all| all.saturating_sub(OURS));
            self.left = self.most.saturating_sub(there);
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_made_as_there_is_room_for_and_counted_again_then() {
        let mut offspring = Offspring::new(4);
        let mut made = 1;
        while offspring.may_grow_from(|| Some(OURS + made)) {
            made += 1;
        }
        assert_eq!(made, 4);
        // Two have ended.
        assert!(offspring.may_grow_from(|| Some(OURS + 2)));
        assert!(
            offspring.may_grow_from(|| None),
            "one is left of the last count"
        );
        assert!(!offspring.may_grow_from(|| Some(OURS + 4)));
    }

    #[test]
    fn where_nobody_can_be_counted_nothing_is_made() {
        assert!(!Offspring::new(4).may_grow_from(|| None));
    }
}
