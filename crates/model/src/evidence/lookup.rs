//! Lookups: paths that the program used but does not see as they are on the host, and the option that would show them.
//!
//! Types only. The supervisor records the lookups; the runner derives the advice.

/// Paths of one kind that the same option would show, or that no option would show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The path, or a directory that contains all paths; hostile.
    pub path: String,
    /// Number of paths.
    pub paths: u64,
    /// The strongest use of any of the paths.
    pub kind: LookupKind,
    /// Number of lookups of all paths together.
    pub count: u64,
    /// Time of the first lookup.
    pub at_us: u64,
    /// Option that would show the paths.
    pub advice: Advice,
}

/// Use of a path, in the order of strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LookupKind {
    /// The path was opened for reading, queried, or entered.
    Read,
    /// The path was opened as a directory.
    List,
    /// The path was passed to execve(2) and did not exist.
    Execute,
    /// The path was opened for writing, created, removed, renamed or changed.
    Write,
}

/// Change of the command line that would show a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Advice {
    /// Show this path.
    Read(String),
    /// Show this path as writable.
    Write(String),
    /// No option would show the path.
    Never(Reason),
}

/// Reason why no option would show a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The path is below /proc, /sys, /dev or /run.
    System,
    /// The path is a device, a socket, a pipe, or a directory whose names lead to other machines.
    Special,
    /// The path is the root, a home directory, or a parent of one: too much to show as a whole.
    Broad,
    /// The sandbox has its own object at the path.
    Own,
    /// The path has characters that cannot be typed.
    Unspelt,
    /// The path is in the home of the sandbox, which starts empty.
    Absent,
}

/// Largest number of kept lookups; a gap reports more.
pub const MAX_LOOKUPS: usize = 20_000;
/// Largest total length of the kept paths, in bytes.
pub const MAX_LOOKUP_BYTES: usize = 4 << 20;
