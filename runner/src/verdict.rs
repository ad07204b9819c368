//! What a run comes to: the result of each check, and the one word for all of them.

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable: `requests/first-and-only`.
    pub id: &'static str,
    pub status: Status,
    /// One sentence for people.
    pub message: String,
    /// What was looked at: `request 2`, `.agent/.agent.json`.
    pub object: Option<String>,
    pub expected: Option<String>,
    pub found: Option<String>,
    /// Why a check was skipped or could not be made.
    pub because: Option<String>,
    /// Section of the specification: `2.1`.
    pub spec: &'static str,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Passed,
    Failed,
    /// Evidence that it needs is missing.
    Errored,
    /// Its object is not there, or the case does not ask for it.
    Skipped,
}

/// The word for the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed,
    Errored,
}
