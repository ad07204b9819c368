//! What is wrong with a command line that clap could parse. Every one of these is exit status 2.

use model::case::Tier;
use model::profile::Unspelt;
use policy::{PolicyError, never_shown};
use report::Format;
use thiserror::Error;

/// What is wrong with a command line, or with a file that it names; nothing was run.
#[derive(Debug, Error)]
pub(crate) enum UsageError {
    /// The case could not be read.
    #[error("the case cannot be used")]
    Case(#[source] PolicyError),
    /// The profile could not be read.
    #[error("the profile cannot be used")]
    Profile(#[source] PolicyError),
    /// The case asks for what the profile cannot say.
    #[error("the case and the profile do not fit")]
    Unspelt(#[from] Unspelt),
    /// The profile sets variables for some cases, and the case is none of them.
    #[error("the profile `{profile}` has settings for other cases, and none for `{case}`")]
    NoSettings {
        /// Of the profile.
        profile: String,
        /// Of the case.
        case: String,
        /// Line that sets them for the case, and the option that leaves them out.
        hint: String,
    },
    /// `--require-case` names another digest.
    #[error("the case has the SHA-256 {found}, not the required {required}")]
    OtherCase {
        /// Of the case's bytes.
        found: String,
        /// As demanded.
        required: String,
    },
    /// A tier of the stable list that is not built yet.
    #[error("the isolation tier {tier} is not in this version")]
    TierNotInThisVersion {
        /// As typed.
        tier: &'static str,
    },
    /// The case does not accept the demanded tier.
    #[error("the case does not accept the isolation tier {}", tier.word())]
    TierNotAccepted {
        /// As demanded.
        tier: Tier,
    },
    /// What is to be shown is not there.
    #[error("{path} cannot be shown to the program")]
    PathNotFound {
        /// Escaped.
        path: String,
        /// Of the look-up.
        #[source]
        source: std::io::Error,
    },
    /// What is to be shown never is.
    #[error("{path} is never shown to a program")]
    NeverShown {
        /// Escaped.
        path: String,
    },
    /// A variable to pass on that there is not.
    #[error("the variable {name} is not set here, or is no UTF-8")]
    VariableNotSet {
        /// As typed.
        name: String,
    },
    /// `{base_url}` with `--stub none`.
    #[error("there is no stub, and {{base_url}} asks for its address")]
    NoStub,
    /// No scenario of this name.
    #[error("the stub has no scenario {name}")]
    NoScenario {
        /// Escaped.
        name: String,
        /// The nearest known names.
        known: String,
    },
    /// A report without a file, where standard output is the program's.
    #[error("standard output is the program's, and the report {} wants it", format.word())]
    StandardOutputTaken {
        /// As typed.
        format: Format,
    },
    /// Two reports for one stream.
    #[error("the reports {} and {} both want standard output", first.word(), second.word())]
    StandardOutputTwice {
        /// The earlier one.
        first: Format,
        /// The later one.
        second: Format,
    },
    /// Two reports for one file.
    #[error("two reports want the file {file}")]
    FileTwice {
        /// Escaped.
        file: String,
    },
    /// No such program.
    #[error("the program {program} is not there")]
    ClientNotFound {
        /// Escaped.
        program: String,
        /// Of the look-up, where there was one.
        #[source]
        source: Option<std::io::Error>,
    },
    /// A directory, or a file that nobody may execute.
    #[error("the program {program} is not an executable file")]
    ClientNotExecutable {
        /// Escaped.
        program: String,
    },
}

impl UsageError {
    /// What the user can do about it, in one line.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Case(error) | Self::Profile(error) => error.hint(),
            Self::Unspelt(_) => {
                "add [[arguments]] for it to the profile, or choose another profile".into()
            }
            Self::NoSettings { hint, .. } => hint.clone(),
            Self::OtherCase { .. } => {
                "read what changed in the case, then require its new digest".into()
            }
            Self::TierNotInThisVersion { .. } => "choose auto, namespace or inherited".into(),
            Self::TierNotAccepted { .. } => {
                "leave --isolation out, or run a case that accepts the tier".into()
            }
            Self::PathNotFound { .. } => "name a file or directory that is there".into(),
            Self::NeverShown { .. } => never_shown(),
            Self::VariableNotSet { name } => format!("give it a value: --env {name}=VALUE"),
            Self::NoStub => "leave --stub none out, or the address".into(),
            Self::NoScenario { known, .. } => known.clone(),
            Self::StandardOutputTaken { format } => {
                format!("give it a file: --report {}=FILE", format.word())
            }
            Self::StandardOutputTwice { second, .. } => {
                format!("give one of them a file: --report {}=FILE", second.word())
            }
            Self::FileTwice { .. } => "give each report a file of its own".into(),
            Self::ClientNotFound { .. } => {
                "a name without `/` is looked up in PATH; write ./NAME for one in this directory"
                    .into()
            }
            Self::ClientNotExecutable { .. } => {
                "name the program itself; chmod +x makes a file executable".into()
            }
        }
    }
}
