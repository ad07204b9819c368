//! Limits of one answer.

/// Longest text of one answer, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Most deltas of one block.
pub const MAX_DELTAS: usize = 10_000;
/// Most blocks of one answer.
pub const MAX_BLOCKS: usize = 100;
/// Most `ping` events of one answer, and most events of an unknown kind.
pub const MAX_PINGS: u32 = 100;
