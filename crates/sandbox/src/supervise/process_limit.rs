//! How many processes and threads there may be, where RLIMIT_NPROC does not say: without a user namespace it counts
//! whatever the container's user has running, and holds nobody who is root.

use crate::reaper;

/// The client's own process, which is there when the count begins.
const CLIENT: u64 = 1;

/// The bound, and how many more may be made before it is looked who is there.
#[derive(Debug)]
pub(super) struct Offspring {
    most: u64,
    /// Threads below the runner that are not the client's.
    others: u64,
    left: u64,
}

impl Offspring {
    /// Counts who is there before the client starts anything.
    pub(super) fn new(most: u64) -> Self {
        let there = reaper::threads_below_this_process().unwrap_or(CLIENT);
        Self {
            most,
            others: there.saturating_sub(CLIENT),
            left: 0,
        }
    }

    /// Whether one more may be made; it counts as made then. Where nobody can be counted there are too many.
    pub(super) fn may_grow(&mut self) -> bool {
        self.may_grow_from(|| reaper::threads_below_this_process().ok())
    }

    fn may_grow_from(&mut self, count: impl FnOnce() -> Option<u64>) -> bool {
        if self.left == 0 {
            let there = count().map_or(self.most, |all| all.saturating_sub(self.others));
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

    const OTHERS: u64 = 3;

    fn of_four() -> Offspring {
        Offspring {
            most: 4,
            others: OTHERS,
            left: 0,
        }
    }

    #[test]
    fn as_many_are_made_as_there_is_room_for_and_counted_again_then() {
        let mut offspring = of_four();
        let mut made = 1;
        while offspring.may_grow_from(|| Some(OTHERS + made)) {
            made += 1;
        }
        assert_eq!(made, 4);
        // Two have ended.
        assert!(offspring.may_grow_from(|| Some(OTHERS + 2)));
        assert!(
            offspring.may_grow_from(|| None),
            "one is left of the last count"
        );
        assert!(!offspring.may_grow_from(|| Some(OTHERS + 4)));
    }

    #[test]
    fn where_nobody_can_be_counted_nothing_is_made() {
        assert!(!of_four().may_grow_from(|| None));
    }
}
