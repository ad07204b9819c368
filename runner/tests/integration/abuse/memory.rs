//! Memory of every kind.

use super::{Abuse, abuses};
use crate::needs_sandbox;

abuses! {
    memory_without_end_is_refused: "endless-memory" with memory = "32 MiB" => ["process/exit-zero"], &[];
    mappings_without_end_are_refused: "endless-mappings" with memory = "32 MiB" => [], &[];
}

/// RLIMIT_DATA counts private memory. Shared memory has its own limit, unless there is a cgroup.
#[test]
fn shared_memory_is_not_counted_without_a_cgroup() {
    needs_sandbox!();
    for (abuse, said) in [
        ("shared-mappings", "shared true\n"),
        ("memory-files", "written true\n"),
    ] {
        let ended = Abuse::of(abuse)
            .limit("memory", "\"32 MiB\"")
            .limit("file_size", "\"256 MiB\"")
            .run();
        ended.assert_found(&[], &[]);
        assert_eq!(ended.said(), said);
    }
}
