//! Paths that the program looked for and did not find as they are on the host, with what would change that.
//!
//! Types only. The supervisor sees the lookups, and they are weighed against what is shown in `lookups`.

/// Paths of one kind that one option would show, or that none would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The path, or the directory below which they all lie; hostile.
    pub path: String,
    /// How many paths this stands for.
    pub paths: u64,
    /// The strongest thing that was wanted of any of them.
    pub kind: LookupKind,
    /// How often, all of them together.
    pub count: u64,
    /// The first time.
    pub at_us: u64,
    /// What would show them.
    pub advice: Advice,
}

/// What was wanted of a path. In the order of strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LookupKind {
    /// It was opened to be read, asked about, or entered.
    Read,
    /// It was opened as a directory.
    List,
    /// It was given to execve(2) and was not there.
    Execute,
    /// It was opened to be written, made, removed, renamed or changed.
    Write,
}

/// What would let the program have what it looked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Advice {
    /// To show this path.
    Read(String),
    /// To show this path and let it be written.
    Write(String),
    /// Nothing would.
    Never(Reason),
}

/// Why no option would show a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It lies below /proc, /sys, /dev or /run.
    System,
    /// It is a device, a socket or a pipe, or a place whose names lead to other machines.
    Special,
    /// It is the root, somebody's home, or what holds such: too much to show as a whole.
    Broad,
    /// The sandbox has an object of its own there.
    Own,
    /// Its name cannot be typed.
    Unspelt,
    /// It is a name of the home, which was empty.
    Absent,
}

/// Lookups that are kept; beyond them a gap says so.
pub const MOST_LOOKUPS: usize = 20_000;
/// Bytes of all paths that are kept together.
pub const LOOKUP_BYTES: usize = 4 << 20;
