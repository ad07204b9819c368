//! What a run comes to: the result of each check, and the one word for all of them.

use crate::schema::values::closed_sets;

mod meaning;

pub use meaning::{Meaning, holds_for_any_program, ids, meaning};

/// Id of the check that compares a run with its lock file. No specification asks for it: it is none of [`ids`].
pub const BASELINE: &str = "baseline/unchanged";

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable: `requests/first-and-only`.
    pub id: &'static str,
    /// How it came out.
    pub status: Status,
    /// One sentence for people.
    pub message: String,
    /// What was looked at: `request 2`, `.agent/.agent.json`.
    pub object: Option<String>,
    /// What the specification asks for.
    pub expected: Option<String>,
    /// What the evidence shows; may hold text of the client.
    pub found: Option<String>,
    /// Why a check was skipped or could not be made.
    pub because: Option<String>,
    /// Who asks for it.
    pub asked_by: AskedBy,
}

/// Who asks for what a check looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedBy {
    /// A section of the specification: `2.1`.
    Specification(&'static str),
    /// The lock file of `--baseline`.
    LockFile,
}

impl AskedBy {
    /// The section, or `-` where the specification does not ask for it.
    pub fn section(self) -> &'static str {
        match self {
            Self::Specification(section) => section,
            Self::LockFile => "-",
        }
    }
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The evidence shows it.
    Passed,
    /// The evidence shows the contrary.
    Failed,
    /// Evidence that it needs is missing.
    Errored,
    /// Its object is not there, or the case does not ask for it.
    Skipped,
}

/// The word for the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every check that the case asks for was made and passed.
    Passed,
    /// The run is sound and a check failed.
    Failed,
    /// The run says nothing: isolation or evidence was lost.
    Errored,
}

impl Status {
    /// Every one there is.
    pub const ALL: [Self; 4] = [Self::Passed, Self::Failed, Self::Errored, Self::Skipped];

    /// The word in every report.
    pub fn word(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Errored => "errored",
            Status::Skipped => "skipped",
        }
    }
}

impl Verdict {
    /// Every one there is.
    pub const ALL: [Self; 3] = [Self::Passed, Self::Failed, Self::Errored];

    /// The exit code of a run with this verdict; an audit has its program's own.
    pub const fn exit_code(self) -> u8 {
        match self {
            Verdict::Passed => 0,
            Verdict::Failed => 1,
            Verdict::Errored => 3,
        }
    }

    /// The word in every report.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Errored => "errored",
        }
    }
}

closed_sets! {
    /// How a check came out.
    Status of ALL,

    /// The word for a whole run.
    Verdict of ALL,
}
