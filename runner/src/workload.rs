//! What a run is about, as far as launching it is concerned the same for both: a client that a case judges, or
//! any program that is audited.

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
    /// A client, asked what the case says in the words of the profile, and judged by it.
    Client {
        /// What is asked, allowed and expected.
        case: Box<Case>,
        /// How the client is told; it has words for all that the case asks.
        profile: Profile,
        /// Which of the profile's variables are set.
        settings: Settings,
        /// The name of the stub's scenario, where the command line has one.
        asked_stub: Option<String>,
        /// Arguments after the profile's own.
        further: Vec<OsString>,
    },
    /// Any program.
    Program(Audit),
}

impl Workload {
    /// `case-b`, `audit`.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Client { case, .. } => &case.name,
            Self::Program(audit) => &audit.name,
        }
    }

    /// The header in which the profile has the credential; `None` for any program.
    pub(crate) fn credential_header(&self) -> Option<&str> {
        match self {
            Self::Client { profile, .. } => Some(&profile.headers.credential),
            Self::Program(_) => None,
        }
    }

    /// What the run is for.
    pub(crate) fn purpose(&self) -> Purpose {
        match self {
            Self::Client { .. } => Purpose::Judge,
            Self::Program(_) => Purpose::Audit,
        }
    }

    /// The file of the case, or of the policy of audits.
    pub(crate) fn origin(&self) -> &Origin {
        match self {
            Self::Client { case, .. } => &case.origin,
            Self::Program(audit) => &audit.origin,
        }
    }

    /// Tiers and limits.
    pub(crate) fn sandbox(&self) -> &SandboxRules {
        match self {
            Self::Client { case, .. } => &case.sandbox,
            Self::Program(audit) => &audit.sandbox,
        }
    }

    /// Everything of the host that is shown beside the program.
    pub(crate) fn path_rules(&self) -> Vec<&PathRule> {
        match self {
            Self::Client { case, profile, .. } => {
                case.sandbox.paths.iter().chain(&profile.paths).collect()
            }
            Self::Program(audit) => audit.sandbox.paths.iter().collect(),
        }
    }

    /// What the stub answers, whoever asks it.
    pub(crate) fn scenario(&self) -> Scenario {
        match self {
            Self::Client { case, .. } => case.stub.clone(),
            Self::Program(audit) => audit.stub.clone().unwrap_or_default(),
        }
    }

    /// The name of the stub's scenario, where the command line has one.
    pub(crate) fn asked_stub(&self) -> Option<&str> {
        match self {
            Self::Client { asked_stub, .. } => asked_stub.as_deref(),
            Self::Program(audit) => audit.asked_stub.as_deref(),
        }
    }

    /// Whether the workload is told where the stub is.
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

    /// The whole environment, placeholders in it.
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

    /// The variables, by name and value, that the command line gives a value of its user's: perhaps a secret. One with a
    /// placeholder in it is made for the run, and what it is filled with is no secret or is replaced anyway.
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

    /// What the profile sets in this case and was told not to.
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

    /// Device nodes of the host that it sees.
    pub(crate) fn devices(&self) -> Vec<Device> {
        match self {
            Self::Client { profile, .. } => profile.devices.clone(),
            Self::Program(_) => Device::ALL.into(),
        }
    }

    /// Requests that are known by name.
    pub(crate) fn side_requests(&self) -> &[SideRequest] {
        match self {
            Self::Client { profile, .. } => &profile.side_requests,
            Self::Program(_) => &[],
        }
    }

    /// Files that are known; `None`: nothing is known of any.
    pub(crate) fn known_files(&self) -> Option<&Files> {
        match self {
            Self::Client { profile, .. } => Some(&profile.files),
            Self::Program(_) => None,
        }
    }

    /// What is said to the client, and is shown by no report.
    pub(crate) fn prompts(&self) -> Vec<&str> {
        match self {
            Self::Client { case, .. } => case.invocation.prompts(),
            Self::Program(_) => Vec::new(),
        }
    }

    /// The directory that it starts in; `None`: one of its own.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Client { .. } => None,
            Self::Program(audit) => audit.directory.as_deref(),
        }
    }
}
