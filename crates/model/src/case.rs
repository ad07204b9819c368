//! Cases: the task of the client, the answers of the stub, the rules of the sandbox, and the expectations.
//!
//! A file becomes a whole [`Case`] or an error.

use scenario::Scenario;

pub mod change;
pub mod client;
pub mod expect;

pub use change::Change;
pub use client::InlineClient;
pub use expect::Expectations;

pub use crate::policy::*;

/// A parsed case file.
#[derive(Clone, Debug)]
pub struct Case {
    /// Short name, as in reports: `case-b`.
    pub name: String,
    /// Name of another case, whose settings in a profile apply to this one too.
    pub like: Option<String>,
    /// Description in one line.
    pub summary: String,
    /// The file of the case.
    pub origin: Origin,
    /// Task of the client.
    pub invocation: Invocation,
    /// Client of the case; `None` for the client of a profile.
    pub client: Option<InlineClient>,
    /// Answers of the provider stub.
    pub stub: Scenario,
    /// Rules of the sandbox.
    pub sandbox: SandboxRules,
    /// Expected behaviour of the client.
    pub expect: Expectations,
}

impl Case {
    /// Returns the names by which a profile can refer to the case, its own first.
    pub fn names(&self) -> [&str; 2] {
        let like = self.like.as_ref().unwrap_or(&self.name);
        [&self.name, like]
    }
}
