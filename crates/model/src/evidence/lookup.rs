//! Lookups: paths that the program used but does not see as they are on the host, and the option that would show them.
//!
//! Types only. The supervisor records the lookups; the runner derives the advice.

use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::form;

/// Paths of one kind that the same option would show, or that no option would show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lookup {
    /// The strongest use of any of the paths.
    pub kind: LookupKind,
    /// The path, or a directory that contains all paths; hostile.
    pub path: String,
    /// Number of paths.
    pub paths: u64,
    /// Number of lookups of all paths together.
    pub count: u64,
    /// Time of the first lookup.
    pub at_us: u64,
    /// Option that would show the paths.
    pub advice: Advice,
}

closed_set! {
    /// Use of a path, in the order of strength.
    pub enum LookupKind {
        /// The path was opened for reading, queried, or entered.
        Read = "read",
        /// The path was opened as a directory.
        List = "list",
        /// The path was passed to execve(2) and did not exist.
        Execute = "execute",
        /// The path was opened for writing, created, removed, renamed or changed.
        Write = "write",
    }
}

/// Change of the command line that would show a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "form::AdviceForm", into = "form::AdviceForm")]
pub enum Advice {
    /// Show this path.
    Read(String),
    /// Show this path as writable.
    Write(String),
    /// No option would show the path.
    Never(Reason),
}

closed_set! {
    /// Reason why no option would show a path.
    pub enum Reason {
        /// The path is below /proc, /sys, /dev or /run.
        System = "system",
        /// The path is a device, a socket, a pipe, or a directory whose names lead to other machines.
        Special = "special",
        /// The path is the root, a home directory, or a parent of one: too much to show as a whole.
        Broad = "broad",
        /// The sandbox has its own object at the path.
        Own = "own",
        /// The path has characters that cannot be typed.
        Unspelt = "unspelt",
        /// The path is in the home of the sandbox, which starts empty.
        Absent = "absent",
    }
}

/// Largest number of kept lookups; a gap reports more.
pub const MAX_LOOKUPS: usize = 20_000;
/// Largest total length of the kept paths, in bytes.
pub const MAX_LOOKUP_BYTES: usize = 4 << 20;
