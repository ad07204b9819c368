//! Errors of a command line that clap could parse. Each has exit status 2.

use model::case::Tier;
use model::profile::Unspelt;
use policy::{LimitError, PolicyError, never_shown};
use report::Format;
use thiserror::Error;

use crate::toolchain::TooWide;

/// An error of the command line, or of a file that it names. Nothing was run.
#[derive(Debug, Error)]
pub(crate) enum UsageError {
    /// The case could not be read.
    #[error("cannot use the case")]
    Case(#[source] PolicyError),
    /// The command line of `runner init` makes no case.
    #[error("no case can hold this command line")]
    NoCase(#[source] PolicyError),
    /// Standard input that a case cannot name.
    #[error("cannot write the standard input of the runner into a case")]
    InheritedInput,
    /// The project of a case is a home.
    #[error("cannot show {path} as {{project}}: it is a whole home, or holds one")]
    HomeAsProject {
        /// The path, escaped.
        path: String,
    },
    /// The profile could not be read.
    #[error("cannot use the profile")]
    Profile(#[source] PolicyError),
    /// The profile has no words for an option that the case asks for.
    #[error("cannot build the client's command line from the case and the profile")]
    Unspelt(#[from] Unspelt),
    /// The profile sets variables for some cases, and not for this case.
    #[error("the profile `{profile}` has settings for other cases, not for `{case}`")]
    NoSettings {
        /// Name of the profile.
        profile: String,
        /// Name of the case.
        case: String,
        /// The line that sets the variables for the case, or the option that leaves them out.
        hint: String,
    },
    /// The case does not have the digest of `--require-case`.
    #[error("the case has the SHA-256 {found}, not the required {required}")]
    OtherCase {
        /// SHA-256 of the case file, in hexadecimal digits.
        found: String,
        /// SHA-256 that the command line requires.
        required: String,
    },
    /// The case does not accept the demanded isolation.
    #[error("the case does not accept the isolation `{}`", tier.word())]
    TierNotAccepted {
        /// The demanded isolation.
        tier: Tier,
    },
    /// A path to show does not exist.
    #[error("cannot show {path} to the program")]
    PathNotFound {
        /// The path, escaped.
        path: String,
        /// Error of the path's resolution.
        #[source]
        source: std::io::Error,
    },
    /// A path that `--read` and `--write` never show.
    #[error("{path} is never shown to a program")]
    NeverShown {
        /// The path, escaped.
        path: String,
    },
    /// The toolchain lies where no program is shown files unasked.
    #[error(transparent)]
    Toolchain(#[from] TooWide),
    /// A limit with an unknown name or a wrong value.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A variable to pass on is not set.
    #[error("cannot pass on the variable {name}: it is not set, or is not UTF-8")]
    VariableNotSet {
        /// Name of the variable, as typed.
        name: String,
    },
    /// `{base_url}` is used with `--stub none`.
    #[error("cannot replace {{base_url}}: there is no stub")]
    NoStub,
    /// The cases of a directory could not be listed.
    #[error("cannot use the cases")]
    Folder(#[source] PolicyError),
    /// A directory without cases.
    #[error("there is no case in {directory}")]
    NoCases {
        /// The directory, escaped.
        directory: String,
    },
    /// Two cases with one name, which the reports could not tell apart.
    #[error("two cases have the name {name}: {first} and {second}")]
    SameName {
        /// The name.
        name: String,
        /// File of one case, escaped.
        first: String,
        /// File of the other case, escaped.
        second: String,
    },
    /// An option that does not hold for several cases.
    #[error("{option} does not apply to several cases")]
    NotForSeveral {
        /// The option.
        option: &'static str,
        /// Advice for the user.
        hint: &'static str,
    },
    /// One of several cases cannot be run.
    #[error("cannot run {file}")]
    InCase {
        /// File of the case, escaped.
        file: String,
        /// The reason.
        #[source]
        source: Box<UsageError>,
    },
    /// An option for the client of a profile, with a case that has a client of its own.
    #[error("the case has a client of its own, so {option} does not apply")]
    ClientOfCase {
        /// The option.
        option: &'static str,
    },
    /// The case has unreviewed rules, and `--require-reviewed` was given.
    #[error("the case has {rules} that nobody has reviewed")]
    NotReviewed {
        /// Number of rules, with its noun.
        rules: String,
    },
    /// `--allow-exec` with a built-in case.
    #[error("the built-in case `{case}` does not allow --allow-exec")]
    ExecInBuiltIn {
        /// Name of the case.
        case: String,
    },
    /// The file to write exists.
    #[error("{path} exists")]
    FileExists {
        /// The file, escaped.
        path: String,
    },
    /// A word of the program that a case file cannot hold.
    #[error("a word of the program is not UTF-8, so no case file can hold it")]
    NotUtf8,
    /// An unknown scenario.
    #[error("the stub has no scenario {name}")]
    NoScenario {
        /// Name of the scenario, escaped.
        name: String,
        /// Hint with the nearest known names.
        known: String,
    },
    /// A report of an audit has no file; standard output has the program's output.
    #[error("cannot write the report {} to standard output: the program writes there", format.word())]
    StandardOutputTaken {
        /// Format of the report.
        format: Format,
    },
    /// Two reports go to standard output.
    #[error("cannot write two reports to standard output: {} and {}", first.word(), second.word())]
    StandardOutputTwice {
        /// Format of the earlier report.
        first: Format,
        /// Format of the later report.
        second: Format,
    },
    /// Two reports go to one file.
    #[error("cannot write two reports to the file {file}")]
    FileTwice {
        /// The file's path, escaped.
        file: String,
    },
    /// The program does not exist.
    #[error("cannot find the program {program}")]
    ClientNotFound {
        /// The program's name, escaped.
        program: String,
        /// Error of the look-up; `None` if PATH was searched.
        #[source]
        source: Option<std::io::Error>,
    },
    /// A directory, or a file without execute permission.
    #[error("the program {program} is not an executable file")]
    ClientNotExecutable {
        /// The program's path, escaped.
        program: String,
    },
}

impl UsageError {
    /// Advice for the user, in one line.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Case(error)
            | Self::Profile(error)
            | Self::Folder(error)
            | Self::NoCase(error) => error.hint(),
            Self::InheritedInput => "save it to a file, and name that with --stdin".into(),
            Self::HomeAsProject { .. } => {
                "move the case and its client to a directory of their own".into()
            }
            Self::Limit(error) => error.hint.clone(),
            Self::Unspelt(_) => {
                "add [[arguments]] for it to the profile, or choose another profile".into()
            }
            Self::NoSettings { hint, .. } => hint.clone(),
            Self::OtherCase { .. } => {
                "read what changed in the case, then require its new digest".into()
            }
            Self::TierNotAccepted { .. } => {
                "leave --isolation out, or run a case that accepts it".into()
            }
            Self::PathNotFound { .. } => "name a file or directory that exists".into(),
            Self::NeverShown { .. } => never_shown(),
            Self::Toolchain(_) => {
                "install the interpreter in a directory of its own, or name a part of it in [[client.paths]]"
                    .into()
            }
            Self::VariableNotSet { name } => format!(
                "set it where the runner starts, or give its value: --env {name}=VALUE, in a case `value`"
            ),
            Self::NoStub => "leave out `--stub none` or {base_url}".into(),
            Self::ClientOfCase { option } => {
                format!("leave out {option}, or change [client] in the case")
            }
            Self::NoCases { .. } => {
                "a case is a file *.toml with schema = \"runner.case/1\"; directories below are not searched"
                    .into()
            }
            Self::SameName { .. } => "give each case a `name` of its own".into(),
            Self::NotForSeveral { hint, .. } => (*hint).into(),
            Self::InCase { source, .. } => source.hint(),
            Self::NotReviewed { .. } => {
                "read each rule whose reason ends with `not reviewed`, and say why it is right"
                    .into()
            }
            Self::ExecInBuiltIn { .. } => {
                "write a case of your own: runner policy init case NAME > FILE.toml".into()
            }
            Self::FileExists { .. } => "name another file, or remove this one".into(),
            Self::NotUtf8 => "start the program by a script that holds the word".into(),
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
