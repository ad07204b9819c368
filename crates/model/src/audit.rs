//! An audit: any program in the same sandbox, with nothing expected of it.

use std::ffi::OsString;
use std::path::PathBuf;

use scenario::Scenario;

use crate::case::{Origin, SandboxRules};
use crate::profile::{ExpectedAttempt, Variable};

/// The reason of whatever the command line adds.
pub const ASKED_FOR: &str = "asked for on the command line";

/// The parsed policy of audits.
#[derive(Clone, Debug)]
pub struct AuditPolicy {
    /// Short name, as in reports: `audit`.
    pub name: String,
    /// The file that it was read from.
    pub origin: Origin,
    /// What the provider stub answers.
    pub stub: Scenario,
    /// Tiers, limits, and what of the host every program is shown.
    pub sandbox: SandboxRules,
    /// The whole environment, but for what the command line adds.
    pub environment: Vec<Variable>,
}

/// One audit: the policy with what the command line adds to it.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Short name of the policy, and its file.
    pub name: String,
    /// The file that the policy was read from.
    pub origin: Origin,
    /// What the provider stub answers; `None`: a connection to it is an attempt as any other.
    pub stub: Option<Scenario>,
    /// The name of the scenario, where the command line has one.
    pub asked_stub: Option<String>,
    /// Tiers, limits, and what of the host this program is shown.
    pub sandbox: SandboxRules,
    /// The whole environment.
    pub environment: Vec<Variable>,
    /// Attempts that are no finding.
    pub attempts: Vec<ExpectedAttempt>,
    /// Where the program lies inside.
    pub place: ProgramLocation,
    /// `argv`, from 0; `{base_url}` stands for the stub's origin.
    pub arguments: Vec<OsString>,
    /// Directory that the program starts in; `None`: one of its own.
    pub directory: Option<PathBuf>,
}

/// Where an audited program lies inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramLocation {
    /// Where it lies on the host, below a path that is shown.
    Own {
        /// Given to execve(2); perhaps a link to the file.
        path: PathBuf,
    },
    /// By itself, in the directory of the sandbox for that: nothing around it is shown.
    Alone,
}
