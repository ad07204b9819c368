//! The workload of a run: a client judged by a case, or an audited program. Both are started in the same way.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use model::audit::{ASKED_FOR, Audit, OF_CALLER};
use model::case::expect::ProgramRule;
use model::case::{Case, Device, Expectations, Origin, PathRule, SandboxRules, Source};
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
        /// Expectations of the case, completed by the profile.
        expect: Box<Expectations>,
        /// Selects the profile's variables to set.
        settings: Settings,
        /// Name of the stub's scenario, if `--stub` gives one.
        asked_stub: Option<String>,
        /// Arguments after those of the profile.
        further: Vec<OsString>,
    },
    /// A program that a case describes and judges. It is started as an audited program is.
    Inline {
        /// Task, limits and expectations.
        case: Box<Case>,
        /// Expectations of the case, on this machine.
        expect: Box<Expectations>,
        /// Directory of the client's project.
        project: PathBuf,
        /// Interpreters that the toolchain leads to on this machine.
        interpreters: Vec<ProgramRule>,
        /// Place, arguments and environment of the program.
        program: Audit,
    },
    /// An audited program.
    Program(Audit),
}

impl Workload {
    /// Name of the case or of the policy, such as `case-b` or `audit`.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Client { case, .. } | Self::Inline { case, .. } => &case.name,
            Self::Program(audit) => &audit.name,
        }
    }

    /// Header that carries the credential, if the expectations name one; `None` in an audit.
    pub(crate) fn credential_header(&self) -> Option<&str> {
        match self {
            Self::Client { expect, .. } | Self::Inline { expect, .. } => expect.credential_header(),
            Self::Program(_) => None,
        }
    }

    /// Kinds of evidence that the case does not judge; empty for an audit.
    pub(crate) fn not_judged(&self) -> Vec<String> {
        match self {
            Self::Client { expect, .. } | Self::Inline { expect, .. } => {
                expect.not_judged().into_iter().map(str::to_owned).collect()
            }
            Self::Program(_) => Vec::new(),
        }
    }

    /// Number of unreviewed rules of the case.
    pub(crate) fn not_reviewed(&self) -> u64 {
        match self {
            Self::Client { expect, .. } | Self::Inline { expect, .. } => {
                expect.not_reviewed() as u64
            }
            Self::Program(_) => 0,
        }
    }

    /// Purpose of the run.
    pub(crate) fn purpose(&self) -> Purpose {
        match self {
            Self::Client { .. } | Self::Inline { .. } => Purpose::Judge,
            Self::Program(_) => Purpose::Audit,
        }
    }

    /// File of the case, or of the policy of audits.
    pub(crate) fn origin(&self) -> &Origin {
        match self {
            Self::Client { case, .. } | Self::Inline { case, .. } => &case.origin,
            Self::Program(audit) => &audit.origin,
        }
    }

    /// The case's own file, with links resolved; `None` for a built-in case, and for an audit.
    pub(crate) fn case_file(&self) -> Option<PathBuf> {
        match self {
            Self::Client { case, .. } | Self::Inline { case, .. } => match &case.origin.source {
                Source::File(path) => path.canonicalize().ok(),
                Source::BuiltIn => None,
            },
            Self::Program(_) => None,
        }
    }

    /// Accepted kinds of isolation, limits, and trees with programs.
    pub(crate) fn sandbox(&self) -> &SandboxRules {
        match self {
            Self::Client { case, .. } | Self::Inline { case, .. } => &case.sandbox,
            Self::Program(audit) => &audit.sandbox,
        }
    }

    /// Paths of the host to show, apart from the program itself.
    pub(crate) fn path_rules(&self) -> Vec<&PathRule> {
        match self {
            Self::Client { case, profile, .. } => {
                case.sandbox.paths.iter().chain(&profile.paths).collect()
            }
            Self::Inline { program, .. } | Self::Program(program) => {
                program.sandbox.paths.iter().collect()
            }
        }
    }

    /// Scenario of the stub. An audit without a stub has the default scenario.
    pub(crate) fn scenario(&self) -> Scenario {
        match self {
            Self::Client { case, .. } | Self::Inline { case, .. } => case.stub.clone(),
            Self::Program(audit) => audit.stub.clone().unwrap_or_default(),
        }
    }

    /// Name of the stub's scenario, if `--stub` gives one.
    pub(crate) fn asked_stub(&self) -> Option<&str> {
        match self {
            Self::Client { asked_stub, .. } => asked_stub.as_deref(),
            Self::Inline { program, .. } | Self::Program(program) => program.asked_stub.as_deref(),
        }
    }

    /// True if the workload gets the address of the stub.
    pub(crate) fn knows_stub(&self) -> bool {
        match self {
            Self::Client { .. } | Self::Inline { .. } => true,
            Self::Program(audit) => audit.stub.is_some(),
        }
    }

    /// Attempts that are no finding.
    pub(crate) fn expected_attempts(&self) -> &[ExpectedAttempt] {
        match self {
            Self::Client { expect, .. } | Self::Inline { expect, .. } => &expect.attempts,
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
            Self::Inline { program, .. } | Self::Program(program) => {
                program.environment.iter().collect()
            }
        }
    }

    /// Names and values of the variables that `--env` sets or the caller has, which may be secrets. Excludes values with
    /// a placeholder: they are made for the run, and the placeholder's value is public or redacted anyway.
    pub(crate) fn asked_values(&self) -> Vec<(&str, &str)> {
        let asked = |variable: &Variable| {
            let mut placeholders = PLACEHOLDERS.into_iter();
            is_private(variable) && !placeholders.any(|one| variable.value.contains(one))
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
            Self::Inline { .. } | Self::Program(_) => Vec::new(),
        }
    }

    /// Device nodes of the host that the workload sees.
    pub(crate) fn devices(&self) -> Vec<Device> {
        match self {
            Self::Client { profile, .. } => profile.devices.clone(),
            Self::Inline { .. } | Self::Program(_) => Device::ALL.into(),
        }
    }

    /// Requests that the profile knows by name.
    pub(crate) fn side_requests(&self) -> &[SideRequest] {
        match self {
            Self::Client { expect, .. } | Self::Inline { expect, .. } => &expect.side_requests,
            Self::Program(_) => &[],
        }
    }

    /// Directory of the client's project, and the interpreters of the client; `None` for a client of a profile.
    pub(crate) fn project(&self) -> Option<(&Path, &[ProgramRule])> {
        match self {
            Self::Inline {
                project,
                interpreters,
                ..
            } => Some((project, interpreters)),
            Self::Client { .. } | Self::Program(_) => None,
        }
    }

    /// Programs that the case expects beside the client's own.
    pub(crate) fn expected_programs(&self) -> &[ProgramRule] {
        match self {
            Self::Client { expect, .. } | Self::Inline { expect, .. } => {
                expect.programs.as_deref().unwrap_or_default()
            }
            Self::Program(_) => &[],
        }
    }

    /// Files that the case expects; `None` in an audit, and in a case that does not judge files.
    pub(crate) fn known_files(&self) -> Option<&Files> {
        match self {
            Self::Client { expect, .. } | Self::Inline { expect, .. } => expect.files.as_ref(),
            Self::Program(_) => None,
        }
    }

    /// Prompts for the client, which reports leave out.
    pub(crate) fn prompts(&self) -> Vec<&str> {
        match self {
            Self::Client { case, .. } | Self::Inline { case, .. } => case.invocation.prompts(),
            Self::Program(_) => Vec::new(),
        }
    }

    /// Working directory of the workload; `None` selects a directory made for the run.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Client { .. } => None,
            Self::Inline { program, .. } | Self::Program(program) => program.directory.as_deref(),
        }
    }
}

/// True for a variable whose value may be the user's secret; no report shows it.
pub(crate) fn is_private(variable: &Variable) -> bool {
    [ASKED_FOR, OF_CALLER].contains(&variable.reason.as_str())
}
