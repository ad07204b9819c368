//! Objects that are counted when they are made, and never released from the count. Open ones cannot be listed from
//! outside: descriptors move between processes, and System V objects belong to the client's IPC namespace.

use nix::errno::Errno;

use crate::supervise::call::Call;
use crate::supervise::system_v::SystemV;

const MIB: u64 = 1 << 20;

const SYSTEM_V_BYTES: u64 = 256 * MIB;

/// Most pipes and FIFOs. All pipes of a user hold 64 MiB together, and beyond that two pages each (pipe(7)).
const MAX_PIPES: u64 = 100_000;

/// Memory of Landlock rules and their copies. A domain copies each rule of its ruleset. A descriptor does not show its
/// ruleset, so a domain counts as a copy of all rules so far.
const LANDLOCK_BYTES: u64 = 256 * MIB;
/// Memory of one rule: 65,536 rules for ports took 12 MiB on Linux 6.18.
const RULE_BYTES: u64 = 192;

/// Memory of memory files, each at its largest permitted size, and of shared anonymous mappings.
const SHARED_BYTES: u64 = 1024 * MIB;
/// Memory files that are allowed for every value of `file_size`.
const MIN_FILES: u64 = 16;

/// Remaining number or bytes of each limit.
#[derive(Debug)]
pub(super) struct Counted {
    system_v: u64,
    pipes: u64,
    /// Number of Landlock rules so far.
    rules: u64,
    /// Bytes for Landlock rules and their copies.
    landlock: u64,
    shared: u64,
    shared_limit: u64,
    /// RLIMIT_FSIZE.
    file_bytes: u64,
}

impl Counted {
    pub(super) fn new(file_bytes: u64) -> Self {
        let shared_limit = SHARED_BYTES.max(MIN_FILES.saturating_mul(file_bytes));
        Self {
            system_v: SYSTEM_V_BYTES,
            pipes: MAX_PIPES,
            rules: 0,
            landlock: LANDLOCK_BYTES,
            shared: shared_limit,
            shared_limit,
            file_bytes,
        }
    }

    /// Counts the object that a call makes, if it is of a limited kind.
    ///
    /// # Errors
    /// Errno and name of the exceeded limit.
    pub(super) fn take(&mut self, call: &Call) -> Result<(), (Errno, String)> {
        let Some((remaining, cost)) = self.remaining_and_cost(call) else {
            return Ok(());
        };
        if let Some(rest) = remaining.checked_sub(cost) {
            *remaining = rest;
            self.rules += u64::from(*call == Call::LandlockRule);
            return Ok(());
        }
        Err(self.limit(call))
    }

    /// Checks for a frequent call within its limit. Such a call is not listed, so /proc of its caller need not be read.
    pub(super) fn passes_unlisted(&mut self, call: &Call) -> bool {
        let is_frequent = matches!(call, Call::Pipe | Call::LandlockRule);
        is_frequent
            && self
                .remaining_and_cost(call)
                .is_some_and(|(remaining, cost)| *remaining >= cost)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "any other call")]
    fn remaining_and_cost(&mut self, call: &Call) -> Option<(&mut u64, u64)> {
        Some(match call {
            Call::SystemV(SystemV { bytes }) => (&mut self.system_v, *bytes),
            Call::Pipe => (&mut self.pipes, 1),
            Call::LandlockRule => (&mut self.landlock, RULE_BYTES),
            Call::LandlockDomain => (&mut self.landlock, self.rules * RULE_BYTES),
            Call::MemoryFile => (&mut self.shared, self.file_bytes),
            Call::SharedMapping { bytes } => (&mut self.shared, *bytes),
            _ => return None,
        })
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the calls of remaining_and_cost"
    )]
    fn limit(&self, call: &Call) -> (Errno, String) {
        let mib = |bytes| format!("limit of {} MiB", bytes / MIB);
        match call {
            Call::Pipe => (Errno::ENFILE, format!("limit of {MAX_PIPES} pipes")),
            Call::LandlockRule | Call::LandlockDomain => {
                let limit = format!("{} of Landlock rules", mib(LANDLOCK_BYTES));
                (Errno::ENOMEM, limit)
            }
            Call::MemoryFile | Call::SharedMapping { .. } => {
                let limit = format!(
                    "{} of shared memory, files by file_size",
                    mib(self.shared_limit)
                );
                (Errno::ENOMEM, limit)
            }
            _ => (Errno::ENOSPC, mib(SYSTEM_V_BYTES)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervise::system_v::QUEUE_BYTES;

    fn new() -> Counted {
        Counted::new(64 * MIB)
    }

    fn over(errno: Errno, limit: &str) -> Result<(), (Errno, String)> {
        Err((errno, limit.to_owned()))
    }

    #[test]
    fn system_v_objects_are_bounded_together() {
        let mut counted = new();
        let segment = |size| Call::SystemV(SystemV::segment(&[0, size, 0, 0, 0, 0]));
        let largest = segment(SYSTEM_V_BYTES - QUEUE_BYTES);
        assert_eq!(counted.take(&largest), Ok(()));
        let queue = |key, flags| Call::SystemV(SystemV::queue(&[key, flags, 0, 0, 0, 0]));
        assert_eq!(counted.take(&queue(7, 0)), Ok(()), "it is there");
        let made = queue(7, libc::IPC_CREAT as u64);
        assert_eq!(counted.take(&made), Ok(()));
        for call in [
            queue(0, 0),
            segment(1),
            segment(u64::MAX),
            Call::SystemV(SystemV::semaphores(&[0, 1, 0, 0, 0, 0])),
        ] {
            assert_eq!(counted.take(&call), over(Errno::ENOSPC, "limit of 256 MiB"));
        }
    }

    #[test]
    fn pipes_are_bounded_by_number() {
        let mut counted = new();
        counted.pipes = 1;
        assert!(counted.passes_unlisted(&Call::Pipe));
        assert_eq!(counted.take(&Call::Pipe), Ok(()));
        assert!(!counted.passes_unlisted(&Call::Pipe));
        let expected = over(Errno::ENFILE, "limit of 100000 pipes");
        assert_eq!(counted.take(&Call::Pipe), expected);
    }

    #[test]
    fn landlock_rules_and_copies_are_bounded() {
        let mut counted = new();
        counted.landlock = 7 * RULE_BYTES;
        for call in [
            Call::LandlockDomain,
            Call::LandlockRule,
            Call::LandlockRule,
            Call::LandlockDomain,
            Call::LandlockDomain,
        ] {
            assert_eq!(counted.take(&call), Ok(()));
        }
        let expected = over(Errno::ENOMEM, "limit of 256 MiB of Landlock rules");
        assert_eq!(counted.take(&Call::LandlockDomain), expected);
        assert_eq!(counted.take(&Call::LandlockRule), Ok(()));
        assert_eq!(counted.take(&Call::LandlockRule), expected);
    }

    #[test]
    fn memory_files_and_shared_mappings_are_bounded_together() {
        let mut counted = new();
        let mapping = |bytes| Call::SharedMapping { bytes };
        assert_eq!(counted.take(&mapping(15 * 64 * MIB)), Ok(()));
        assert_eq!(counted.take(&Call::MemoryFile), Ok(()));
        let text = "limit of 1024 MiB of shared memory, files by file_size";
        for call in [Call::MemoryFile, mapping(1), mapping(u64::MAX)] {
            assert_eq!(counted.take(&call), over(Errno::ENOMEM, text));
        }
    }

    #[test]
    fn large_files_raise_the_limit_of_shared_memory() {
        let mut counted = Counted::new(1024 * MIB);
        for _ in 0..MIN_FILES {
            assert_eq!(counted.take(&Call::MemoryFile), Ok(()));
        }
        assert!(counted.take(&Call::MemoryFile).is_err());
        let mut unlimited = Counted::new(u64::MAX);
        assert_eq!(unlimited.take(&Call::MemoryFile), Ok(()));
    }

    #[test]
    fn other_calls_take_nothing() {
        assert_eq!(new().take(&Call::Connected), Ok(()));
        assert!(!new().passes_unlisted(&Call::Connected));
    }
}
