//! Limits of one answer.

/// Largest text of one answer, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Largest number of deltas in one block.
pub const MAX_DELTAS: usize = 10_000;
/// Largest number of blocks in one answer.
pub const MAX_BLOCKS: usize = 100;
/// Largest number of `ping` events in one answer, and of events of an unknown kind.
pub const MAX_PINGS: u32 = 100;
