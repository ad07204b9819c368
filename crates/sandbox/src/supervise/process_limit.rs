//! Limit on processes and threads of the client, for sandboxes without a user namespace. RLIMIT_NPROC cannot limit
//! them there: it counts all processes of the container's user, and does not apply to root (getrlimit(2)).

use nix::unistd::Pid;

use crate::reaper;

/// The client's first process, which exists when the count begins.
const CLIENT: u64 = 1;
/// Init, between the stage and the client.
const INIT: u64 = 1;

/// Limit, and the number of processes that may be made before the next count in /proc.
#[derive(Debug)]
pub(super) struct ProcessLimit {
    limit: u64,
    stage: Pid,
    remaining: u64,
}

impl ProcessLimit {
    /// Limit for a client that has started no process yet. `stage` is the parent of init.
    pub(super) fn new(limit: u64, stage: Pid) -> Self {
        Self {
            limit,
            stage,
            remaining: limit.saturating_sub(CLIENT),
        }
    }

    /// Checks for room for one more process, and counts it. If /proc cannot be read, refuses.
    pub(super) fn admits_one_more(&mut self) -> bool {
        let stage = self.stage;
        self.admits_counting(|| reaper::threads_below(stage))
    }

    /// `count` counts the threads below the stage. It reads /proc/PID/stat of every process of the host.
    fn admits_counting(&mut self, count: impl FnOnce() -> Option<u64>) -> bool {
        if self.remaining == 0 {
            let threads = count().map_or(self.limit, |all| all.saturating_sub(INIT));
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

    fn of_four() -> ProcessLimit {
        ProcessLimit::new(4, Pid::from_raw(1))
    }

    #[test]
    fn as_many_are_made_as_there_is_room_for_and_counted_again_then() {
        let mut offspring = of_four();
        let mut made = 1;
        while offspring.admits_counting(|| Some(INIT + made)) {
            made += 1;
        }
        assert_eq!(made, 4);
        // The client has two processes now.
        assert!(offspring.admits_counting(|| Some(INIT + 2)));
        assert!(
            offspring.admits_counting(|| None),
            "room for one is left of the last count"
        );
        assert!(!offspring.admits_counting(|| Some(INIT + 4)));
    }

    #[test]
    fn nobody_is_counted_while_there_is_room() {
        let mut offspring = of_four();
        for _ in 0..3 {
            assert!(offspring.admits_counting(|| panic!("counted")));
        }
    }

    #[test]
    fn where_nobody_can_be_counted_nothing_more_is_made() {
        let mut offspring = of_four();
        let made = (0..5)
            .filter(|_| offspring.admits_counting(|| None))
            .count();
        assert_eq!(made, 3);
    }
}
