//! Findings: the result of each check, and the verdict of the run.

use crate::schema::values::closed_sets;

mod meaning;

pub use meaning::{Meaning, holds_for_any_program, ids, meaning};

/// Id of the check that compares a run with its lock file. The specification does not have it, so [`ids`] excludes it.
pub const BASELINE: &str = "baseline/unchanged";

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable id: `requests/first-and-only`.
    pub id: &'static str,
    /// Result of the check.
    pub status: Status,
    /// Message in one sentence.
    pub message: String,
    /// Object of the check: `request 2`, `.agent/.agent.json`.
    pub object: Option<String>,
    /// Expected value, from the specification.
    pub expected: Option<String>,
    /// Value in the evidence; may contain text of the client.
    pub found: Option<String>,
    /// Reason why the check was skipped or errored.
    pub because: Option<String>,
    /// Source of the expectation.
    pub asked_by: AskedBy,
}

/// Source of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedBy {
    /// A section of the specification: `2.1`.
    Specification(&'static str),
    /// The lock file of `--baseline`.
    LockFile,
}

impl AskedBy {
    /// Returns the section of the specification, or `-` for the lock file.
    pub fn section(self) -> &'static str {
        match self {
            Self::Specification(section) => section,
            Self::LockFile => "-",
        }
    }
}

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The evidence meets the expectation.
    Passed,
    /// The evidence contradicts the expectation.
    Failed,
    /// Evidence that the check needs is missing.
    Errored,
    /// The object does not exist, or the case does not need the check.
    Skipped,
}

/// Result of the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every check that the case asks for was made and passed.
    Passed,
    /// The run is sound, and a check failed.
    Failed,
    /// The run does not judge the client: isolation or evidence was lost.
    Errored,
}

impl Status {
    /// All results.
    pub const ALL: [Self; 4] = [Self::Passed, Self::Failed, Self::Errored, Self::Skipped];

    /// Returns the word in every report.
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
    /// All verdicts.
    pub const ALL: [Self; 3] = [Self::Passed, Self::Failed, Self::Errored];

    /// Returns the exit code of a run with this verdict; an audit exits with the code of its program.
    pub const fn exit_code(self) -> u8 {
        match self {
            Verdict::Passed => 0,
            Verdict::Failed => 1,
            Verdict::Errored => 3,
        }
    }

    /// Returns the word in every report.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Errored => "errored",
        }
    }
}

closed_sets! {
    /// Result of a check.
    Status of ALL,

    /// Result of a whole run.
    Verdict of ALL,
}
