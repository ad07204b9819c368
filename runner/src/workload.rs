//! The workload of a run: a client judged by a case, or an audited program. Both are started in the same way.

use std::ffi::OsString;
use std::path::Path;

use model::audit::{ASKED_FOR, Audit};
use model::case::{Case, Device, Origin, PathRule, SandboxRules};
use model::profile::{
    ExpectedAttempt, Files, PLACEHOLDERS, Profile, Settings, SideRequest, Variable,
};
use model::report::Purpose;
use scenario::Scenario;

/// The workload of one run.
#[derive(Debug)]
pub(crate) enum Workload {
    /// A client that a case judges. The profile spells the task of the case for this client.
    Client {
        /// Task, limits and expectations.
        case: Box<Case>,
        /// Command line and names of the client. It spells each option that the case asks for.
        profile: Profile,
        /// Selects the profile's variables to set.
        settings: Settings,
        /// Name of the stub's scenario, if `--stub` gives one.
        asked_stub: Option<String>,
        /// Arguments after those of the profile.
        further: Vec<OsString>,
    },
    /// An audited program.
    Program(Audit),
}

impl Workload {
    /// Name of the case or of the policy, such as `case-b` or `audit`.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Client { case, .. } => &case.name,
            Self::Program(audit) => &audit.name,
        }
    }

    /// Header that carries the credential, as the profile names it; `None` in an audit.
    pub(crate) fn credential_header(&self) -> Option<&str> {
        match self {
            Self::Client { profile, .. } => Some(&profile.headers.credential),
            Self::Program(_) => None,
        }
    }

    /// Purpose of the run.
    pub(crate) fn purpose(&self) -> Purpose {
        match self {
            Self::Client { .. } => Purpose::Judge,
            Self::Program(_) => Purpose::Audit,
        }
    }

    /// File of the case, or of the policy of audits.
    pub(crate) fn origin(&self) -> &Origin {
        match self {
            Self::Client { case, .. } => &case.origin,
            Self::Program(audit) => &audit.origin,
        }
    }

    /// Accepted kinds of isolation, and limits.
    pub(crate) fn sandbox(&self) -> &SandboxRules {
        match self {
            Self::Client { case, .. } => &case.sandbox,
            Self::Program(audit) => &audit.sandbox,
        }
    }

    /// Paths of the host to show, apart from the program itself.
    pub(crate) fn path_rules(&self) -> Vec<&PathRule> {
        match self {
            Self::Client { case, profile, .. } => {
                case.sandbox.paths.iter().chain(&profile.paths).collect()
            }
            Self::Program(audit) => audit.sandbox.paths.iter().collect(),
        }
    }

    /// Scenario of the stub. An audit without a stub has the default scenario.
    pub(crate) fn scenario(&self) -> Scenario {
        match self {
            Self::Client { case, .. } => case.stub.clone(),
            Self::Program(audit) => audit.stub.clone().unwrap_or_default(),
        }
    }

    /// Name of the stub's scenario, if `--stub` gives one.
    pub(crate) fn asked_stub(&self) -> Option<&str> {
        match self {
            Self::Client { asked_stub, .. } => asked_stub.as_deref(),
            Self::Program(audit) => audit.asked_stub.as_deref(),
        }
    }

    /// True if the workload gets the address of the stub.
    pub(crate) fn knows_stub(&self) -> bool {
        match self {
            Self::Client { .. } => true,
            Self::Program(audit) => audit.stub.is_some(),
        }
    }

    /// Attempts that are no finding.
    pub(crate) fn expected_attempts(&self) -> &[ExpectedAttempt] {
        match self {
            Self::Client { profile, .. } => &profile.attempts,
            Self::Program(audit) => &audit.attempts,
        }
    }

    /// All variables of the environment, with their placeholders.
    pub(crate) fn variables(&self) -> Vec<&Variable> {
        match self {
            Self::Client {
                case,
                profile,
                settings,
                ..
            } => profile.variables(case.names(), *settings).collect(),
            Self::Program(audit) => audit.environment.iter().collect(),
        }
    }

    /// Names and values of the variables that `--env` sets, which may be secrets. Excludes values with a placeholder:
    /// they are made for the run, and the placeholder's value is public or redacted anyway.
    pub(crate) fn asked_values(&self) -> Vec<(&str, &str)> {
        let asked = |variable: &Variable| {
            let mut placeholders = PLACEHOLDERS.into_iter();
            variable.reason == ASKED_FOR && !placeholders.any(|one| variable.value.contains(one))
        };
        self.variables()
            .iter()
            .filter(|variable| asked(variable))
            .map(|variable| (variable.name.as_str(), variable.value.as_str()))
            .collect()
    }

    /// Variables of the profile for this case that `--plain` leaves out.
    pub(crate) fn left_out(&self) -> Vec<&Variable> {
        match self {
            Self::Client {
                case,
                profile,
                settings,
                ..
            } => profile.left_out(case.names(), *settings).collect(),
            Self::Program(_) => Vec::new(),
        }
    }

    /// Device nodes of the host that the workload sees.
    pub(crate) fn devices(&self) -> Vec<Device> {
        match self {
            Self::Client { profile, .. } => profile.devices.clone(),
            Self::Program(_) => Device::ALL.into(),
        }
    }

    /// Requests that the profile knows by name.
    pub(crate) fn side_requests(&self) -> &[SideRequest] {
        match self {
            Self::Client { profile, .. } => &profile.side_requests,
            Self::Program(_) => &[],
        }
    }

    /// Files that the profile knows; `None` in an audit.
    pub(crate) fn known_files(&self) -> Option<&Files> {
        match self {
            Self::Client { profile, .. } => Some(&profile.files),
            Self::Program(_) => None,
        }
    }

    /// Prompts for the client, which reports leave out.
    pub(crate) fn prompts(&self) -> Vec<&str> {
        match self {
            Self::Client { case, .. } => case.invocation.prompts(),
            Self::Program(_) => Vec::new(),
        }
    }

    /// Working directory of the workload; `None` selects a directory made for the run.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Client { .. } => None,
            Self::Program(audit) => audit.directory.as_deref(),
        }
    }
}
