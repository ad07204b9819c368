//! The command line as it is typed: what clap parses, and nothing that it means.
//!
//! [`Cli::resolve`] turns it into a [`Command`], with policies read and contradictions refused. Both exit with
//! status 2 on an error. Must not know: how a run is made, or how a report looks.

mod error;
mod help;
mod program;
mod reports;
mod resolve;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::policy::init::PolicyName;

pub use error::UsageError;
pub use program::ClientProgram;
pub use reports::{Destination, Format, ReportTarget};
pub use resolve::{Command, InitAction, Isolation, PolicyAction, RunRequest};
pub use values::{FormatWord, ReportArgument};

/// What the user typed.
#[derive(Debug, Parser)]
#[command(
    name = "runner",
    version,
    about = help::ABOUT,
    long_about = help::LONG_ABOUT,
    after_help = help::EXIT_CODES,
    after_long_help = help::EXAMPLES_AND_EXIT_CODES,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Core smoke: one print turn; `HEAD /` may come first
    #[command(after_help = help::RUN_EXIT_CODES)]
    CaseA(RunOptions),
    /// Startup: the same in safe mode; the POST must be the first and only request
    #[command(after_help = help::RUN_EXIT_CODES)]
    CaseB(RunOptions),
    /// Run a case of your own
    #[command(after_help = help::RUN_EXIT_CODES)]
    Run {
        /// The case file; `runner policy init case NAME` prints one to start from
        #[arg(value_name = "CASE.toml")]
        case: PathBuf,
        /// As for the built-in cases.
        #[command(flatten)]
        options: RunOptions,
    },
    /// List, print, start and check case and profile files
    Policy {
        /// What to do with them.
        #[command(subcommand)]
        command: PolicyCommand,
    },
}

/// The options of a run.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// The program to test [default: the reference client]
    #[arg(long, value_name = "PROGRAM", help_heading = help::CLIENT)]
    pub client: Option<PathBuf>,
    /// How the program is told what to do: a built-in profile or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "reference", help_heading = help::CLIENT)]
    pub profile: OsString,
    /// Leave out what the profile sets for this case only: what does the program do by itself?
    #[arg(long, help_heading = help::CLIENT)]
    pub plain: bool,
    /// Further arguments for the program, after the profile's own
    #[arg(last = true, value_name = "CLIENT-ARGS", help_heading = help::CLIENT)]
    pub client_args: Vec<OsString>,
    /// What must seal the network; a run is never unsealed
    #[arg(long, value_enum, value_name = "TIER", default_value_t, help_heading = help::SANDBOX)]
    pub isolation: IsolationArgument,
    /// Wall time of the program, such as 60s or 5min [default: the case's]
    #[arg(long, value_name = "TIME", value_parser = values::timeout, help_heading = help::SANDBOX)]
    pub timeout: Option<Duration>,
    /// Refuse to run unless the case file has this SHA-256
    #[arg(long, value_name = "SHA256", value_parser = values::sha256, help_heading = help::SANDBOX)]
    pub require_case: Option<String>,
    /// Write a report: human or json; without a file, to standard output. May be given again
    #[arg(long, value_name = "FORMAT[=FILE]", value_parser = values::report(), help_heading = help::OUTPUT)]
    pub report: Vec<ReportArgument>,
    /// Copy the home to a fresh temporary directory at the end and say where
    #[arg(long, help_heading = help::OUTPUT)]
    pub keep_home: bool,
}

/// What `--isolation` accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum IsolationArgument {
    /// The strongest tier that this host has
    #[default]
    Auto,
    /// An own network namespace that has loopback only
    Namespace,
    /// The container's own namespace, verified to be loopback only (not in this version)
    #[value(hide = true)]
    Inherited,
    /// Reserved (not in this version)
    #[value(hide = true)]
    Supervised,
}

/// What `runner policy` does.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List the built-in cases and profiles with their digests
    List,
    /// Print a built-in file as it is, comments included
    Show {
        /// A name from `runner policy list`
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Check files without running anything; exit 2 if one is wrong
    Check {
        /// Case or profile files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Print the JSON Schema of case files, profile files or JSON reports
    Schema {
        /// What the schema is of
        #[arg(value_enum, value_name = "FORM")]
        form: SchemaForm,
    },
    /// Print a file of your own to start from, each key explained
    Init {
        /// Which kind of file.
        #[command(subcommand)]
        command: InitCommand,
    },
}

/// What `runner policy schema` describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaForm {
    /// Case files
    Case,
    /// Client profiles
    Profile,
    /// Reports of `--report json`
    Report,
}

/// What `runner policy init` starts.
#[derive(Debug, Subcommand)]
pub enum InitCommand {
    /// A case: what is asked, allowed and expected
    Case {
        /// Its name: letters, digits, `.`, `_` and `-`
        #[arg(value_name = "NAME", value_parser = values::policy_name)]
        name: PolicyName,
    },
    /// A profile: how a client is told, and its own names
    Profile {
        /// Its name: letters, digits, `.`, `_` and `-`
        #[arg(value_name = "NAME", value_parser = values::policy_name)]
        name: PolicyName,
        /// Add the loader and the libraries that this program asks for; it is read and never run
        #[arg(long, value_name = "PROGRAM")]
        client: Option<PathBuf>,
    },
}
