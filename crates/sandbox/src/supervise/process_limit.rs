//! Limit on processes and threads of the client, for sandboxes without a user namespace. RLIMIT_NPROC cannot limit
//! them there: it counts all processes of the container's user, and does not apply to root (getrlimit(2)).

use crate::reaper;

/// The client's first process, which exists when the count begins.
const CLIENT: u64 = 1;

/// Limit, and the number of processes that may be made before the next count in /proc.
#[derive(Debug)]
pub(super) struct ProcessLimit {
    limit: u64,
    /// Threads below the runner before the client started any.
    before: u64,
    remaining: u64,
}

impl ProcessLimit {
    /// Counts the threads that exist before the client starts any.
    pub(super) fn new(limit: u64) -> Self {
        let threads = reaper::threads_below_this_process().unwrap_or(CLIENT);
        Self {
            limit,
            before: threads.saturating_sub(CLIENT),
            remaining: 0,
        }
    }

    /// Checks for room for one more process, and counts it. If /proc cannot be read, refuses.
    pub(super) fn admits_one_more(&mut self) -> bool {
        self.admits_counting(|| reaper::threads_below_this_process().ok())
    }

    fn admits_counting(&mut self, count: impl FnOnce() -> Option<u64>) -> bool {
        if self.remaining == 0 {
            let threads = count().map_or(self.limit, |all| all.saturating_sub(self.before));
            self.remaining = self.limit.saturating_sub(threads);
        }
        match self.remaining.checked_sub(1) {
            Some(remaining) => {
                self.remaining = remaining;
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

    fn of_four() -> ProcessLimit {
        ProcessLimit {
            limit: 4,
            before: OTHERS,
            remaining: 0,
        }
    }

    #[test]
    fn as_many_are_made_as_there_is_room_for_and_counted_again_then() {
        let mut offspring = of_four();
        let mut made = 1;
        while offspring.admits_counting(|| Some(OTHERS + made)) {
            made += 1;
        }
        assert_eq!(made, 4);
        // The client has two processes now.
        assert!(offspring.admits_counting(|| Some(OTHERS + 2)));
        assert!(
            offspring.admits_counting(|| None),
            "room for one is left of the last count"
        );
        assert!(!offspring.admits_counting(|| Some(OTHERS + 4)));
    }

    #[test]
    fn where_nobody_can_be_counted_nothing_is_made() {
        assert!(!of_four().admits_counting(|| None));
    }
}
