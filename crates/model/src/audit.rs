//! Audits: any program in the sandbox, without expectations.

use std::ffi::OsString;
use std::path::PathBuf;

use scenario::Scenario;

use crate::policy::{Origin, SandboxRules};
use crate::profile::{ExpectedAttempt, Variable};

/// Reason of each rule that the command line adds.
pub const ASKED_FOR: &str = "asked for on the command line";
/// Reason of a variable whose value is the caller's own.
pub const OF_CALLER: &str = "passed on from the environment of the caller";

/// The parsed policy of audits.
#[derive(Clone, Debug)]
pub struct AuditPolicy {
    /// Short name, as in reports: `audit`.
    pub name: String,
    /// The file of the policy.
    pub origin: Origin,
    /// Answers of the provider stub.
    pub stub: Scenario,
    /// Isolations, limits, and host paths that every program sees.
    pub sandbox: SandboxRules,
    /// The environment, without the additions of the command line.
    pub environment: Vec<Variable>,
}

/// One audit: the policy and the additions of the command line.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Short name of the policy.
    pub name: String,
    /// The file of the policy.
    pub origin: Origin,
    /// Answers of the provider stub; `None`: the run has no stub, and a connection to it is an ordinary attempt.
    pub stub: Option<Scenario>,
    /// Name of the scenario that the command line selects.
    pub asked_stub: Option<String>,
    /// Isolations, limits, and host paths that this program sees.
    pub sandbox: SandboxRules,
    /// The whole environment.
    pub environment: Vec<Variable>,
    /// Expected attempts, which are not findings.
    pub attempts: Vec<ExpectedAttempt>,
    /// Location of the program inside the sandbox.
    pub place: ProgramLocation,
    /// `argv`, from index 0; `{base_url}` is the placeholder for the origin of the stub.
    pub arguments: Vec<OsString>,
    /// Working directory of the program; `None`: an empty directory of the sandbox.
    pub directory: Option<PathBuf>,
}

/// Location of an audited program inside the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramLocation {
    /// Its path on the host, below a path that the sandbox shows.
    Own {
        /// Path for execve(2), which may be a symbolic link.
        path: PathBuf,
    },
    /// A copy in the program directory of the sandbox, without the files next to it.
    Alone,
}
