//! Findings: the result of each check, and the verdict of the run.

use std::borrow::Cow;

use scenario::closed_set;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

mod meaning;

pub use meaning::{Meaning, ids, meaning};

/// Id of the check that compares a run with its lock file. The specification does not have it, so [`ids`] excludes it.
pub const BASELINE: &str = "baseline/unchanged";

/// Id of the check of `--fail-on`. Made by an audit with that option only, so [`ids`] excludes it.
pub const FAIL_ON: &str = "audit/fail-on";

/// Reason of each check that needs a client, if there was none.
pub const NEVER_STARTED: &str = "the client was never started";

/// Reason of each check that an interruption leaves undecided.
pub const INTERRUPTED: &str = "the run was interrupted";

/// Beginning of the reason of each check that depends on the end of a client by the runner.
pub const ENDED_BY_RUNNER: &str = "ended by the runner";

/// Section of an expectation that the lock file has, and not the specification.
const NO_SECTION: &str = "-";
/// Section of an expectation that only a case can have.
const OF_CASE: &str = "case";
/// Section of an expectation that the command line has.
const COMMAND_LINE: &str = "--fail-on";

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable id: `requests/first-and-only`.
    #[schemars(with = "CheckId")]
    pub id: Cow<'static, str>,
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
    /// Reason why the check was skipped or errored. A failed check has the end of the client by the runner, if the client
    /// might still have produced what is missing.
    pub because: Option<String>,
    /// Changes of the case that accept the finding, as TOML below comments on their place; null if no rule can.
    pub accept: Option<String>,
    /// Source of the expectation: a section of the specification, such as `2.1`, `case` for a table that only
    /// a case can have, `-` for the lock file, or `--fail-on`.
    #[serde(rename = "spec")]
    #[schemars(with = "String")]
    pub asked_by: AskedBy,
}

/// Source of an expectation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum AskedBy {
    /// A section of the specification: `2.1`.
    Specification(Cow<'static, str>),
    /// A table that only a case can have; the specification has no such section.
    Case,
    /// The lock file of `--baseline`.
    LockFile,
    /// The option `--fail-on`.
    CommandLine,
}

impl AskedBy {
    /// Returns the section of the specification, `case` for a table of the case, `-` for the lock file, or the option of
    /// the command line.
    pub fn section(&self) -> &str {
        match self {
            Self::Specification(section) => section,
            Self::Case => OF_CASE,
            Self::LockFile => NO_SECTION,
            Self::CommandLine => COMMAND_LINE,
        }
    }
}

impl From<AskedBy> for String {
    fn from(asked_by: AskedBy) -> Self {
        asked_by.section().to_owned()
    }
}

impl From<String> for AskedBy {
    fn from(section: String) -> Self {
        match section.as_str() {
            NO_SECTION => Self::LockFile,
            OF_CASE => Self::Case,
            COMMAND_LINE => Self::CommandLine,
            _ => Self::Specification(section.into()),
        }
    }
}

/// Schema of [`Finding::id`].
#[derive(Debug)]
enum CheckId {}

impl JsonSchema for CheckId {
    fn schema_name() -> Cow<'static, str> {
        "CheckId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The stable id of a check. A later version may have more.",
            "type": "string",
            "pattern": "^[a-z-]+/[a-z-]+$",
            "examples": Vec::from_iter(ids()),
        })
    }
}

closed_set! {
    /// Result of a check.
    pub enum Status {
        /// The evidence meets the expectation.
        Passed = "passed",
        /// The evidence contradicts the expectation.
        Failed = "failed",
        /// Evidence that the check needs is missing.
        Errored = "errored",
        /// The object does not exist, or the case does not need the check.
        Skipped = "skipped",
    }
}

closed_set! {
    /// Result of the whole run.
    pub enum Verdict {
        /// Every check that the case asks for was made and passed; for an audit, each gate of the command line.
        Passed = "passed",
        /// The run is sound, and a check failed; for an audit, a gate of the command line.
        Failed = "failed",
        /// The run does not judge the client: isolation or evidence was lost.
        Errored = "errored",
        /// A sound audit without a gate: nothing was asked of the program.
        Audited = "audited",
    }
}

impl Verdict {
    /// Returns the exit code of a run with this verdict; an audit exits with the code of its program.
    pub const fn exit_code(self) -> u8 {
        match self {
            Verdict::Passed | Verdict::Audited => 0,
            Verdict::Failed => 1,
            Verdict::Errored => 3,
        }
    }
}
