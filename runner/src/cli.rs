//! The command line as typed, in the form that clap parses.
//!
//! [`Cli::resolve`] turns a command line into a [`Command`]: it reads the policies and rejects contradictions. Errors
//! of both have exit status 2. Must not know: how a run is made, or how a report looks.

mod audit;
mod error;
mod folder;
mod help;
mod host;
mod init;
mod inline;
mod options;
mod program;
mod reports;
mod resolve;
mod run;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use model::case::Root;
use model::profile::Destination as AttemptDestination;
use policy::init::PolicyName;

use crate::request::SchemaForm;

pub(crate) use error::UsageError;
pub(crate) use resolve::Command;
pub(crate) use values::{FailOn, ReportArgument, VariableArgument};

/// Arguments of the command line.
#[derive(Debug, Parser)]
#[command(
    name = "runner",
    version,
    disable_version_flag = true,
    about = help::ABOUT,
    long_about = help::LONG_ABOUT,
    after_help = help::EXIT_CODES,
    after_long_help = help::EXAMPLES_AND_EXIT_CODES,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// Print the version; with --verbose also commit, build id, target and features
    #[arg(short = 'V', long, action = ArgAction::Version)]
    pub version: Option<bool>,
    /// The subcommand.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// Guesses from the words of a command line if it makes a run with namespaces of its own. A wrong guess costs time only.
pub(crate) fn is_likely_run(arguments: &[OsString]) -> bool {
    let makes_run = |word: &OsString| RUNS.iter().any(|run| word == run);
    let makes_none = |word: &OsString| NO_RUN.iter().any(|other| word == other);
    arguments.get(1).is_some_and(makes_run) && !arguments.iter().any(makes_none)
}

/// Subcommands that make a run.
const RUNS: [&str; 4] = ["case-a", "case-b", "run", "audit"];
/// Words of command lines without a run, or with a run in the namespaces of a container.
const NO_RUN: [&str; 4] = ["-h", "--help", "inherited", "--isolation=inherited"];

/// The subcommands.
//
// Deferred: only the options of the subcommand that was typed are built. Their docs are plain comments, because clap
// would take a doc comment for the description of the subcommand.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum CliCommand {
    /// Core smoke: one print turn; `HEAD /` may come first
    #[command(after_help = help::RUN_EXIT_CODES)]
    CaseA(RunOptions),
    /// Startup: one print turn in safe mode; the POST must be the first and only request
    #[command(after_help = help::RUN_EXIT_CODES)]
    CaseB(RunOptions),
    /// Run a case of your own, or each case of a directory
    #[command(after_help = help::CASES_EXIT_CODES)]
    Run {
        /// Case files, and directories of case files; `runner policy init case NAME` prints a file to start from
        #[arg(value_name = "CASE.toml|DIR", required = true)]
        cases: Vec<PathBuf>,
        /// Options, as of the built-in cases.
        #[command(flatten)]
        options: RunOptions,
    },
    /// Run any program in the sandbox, and report what it tries
    #[command(after_help = help::AUDIT_EXIT_CODES)]
    Audit(AuditOptions),
    /// Run a program several times, and write a case that allows what it did
    #[command(after_help = help::INIT_EXIT_CODES)]
    Init(InitOptions),
    /// Test each feature that a run needs on this machine, and print a fix for each missing one
    #[command(after_help = help::DOCTOR_EXIT_CODES)]
    Doctor(DoctorOptions),
    /// Try known ways out of the sandbox, and report which of them this machine blocks
    #[command(after_help = help::SELFTEST_EXIT_CODES)]
    Selftest(SelftestOptions),
    /// Compare the behaviour of two runs
    #[command(after_help = help::DIFF_EXIT_CODES)]
    Diff(DiffOptions),
    /// Check a directory of `--out` against its SHA256SUMS and its report
    #[command(after_help = help::VERIFY_EXIT_CODES)]
    Verify(VerifyOptions),
    /// List, print and check case and profile files, or print a new one to start from
    Policy {
        /// Action on the files.
        #[command(subcommand)]
        command: PolicyCommand,
    },
}

// The options of a run.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunOptions {
    /// The program to test [default: the case's, or the reference client]
    #[arg(long, value_name = "PROGRAM", help_heading = help::CLIENT)]
    pub client: Option<PathBuf>,
    /// Profile of the program, with its command line, names and files: a built-in name or a file [default: reference]
    #[arg(long, value_name = "NAME|FILE", help_heading = help::CLIENT)]
    pub profile: Option<OsString>,
    /// Leave out the variables that the profile sets for this case only
    #[arg(long, help_heading = help::CLIENT)]
    pub plain: bool,
    /// Further arguments for the program, after the profile's own
    #[arg(last = true, value_name = "CLIENT-ARGS", help_heading = help::CLIENT)]
    pub client_args: Vec<OsString>,
    /// Scenario of the provider stub; `runner policy list` lists them [default: the case's]
    #[arg(long, value_name = "SCENARIO", help_heading = help::CLIENT)]
    pub stub: Option<String>,
    /// Standard input of the program: a file, `none`, or `inherit` or `-` for that of runner, copied through a pipe
    /// [default: none]
    #[arg(long, value_name = "FILE|inherit|none", help_heading = help::CLIENT)]
    pub stdin: Option<OsString>,
    /// Network isolation of the sandbox; no run is without one
    #[arg(long, value_enum, value_name = "ISOLATION", default_value_t, help_heading = help::SANDBOX)]
    pub isolation: IsolationArgument,
    /// Wall time of the program, such as 60s or 5min; the processor time grows with it [default: the case's]
    #[arg(long, value_name = "TIME", value_parser = values::timeout, help_heading = help::SANDBOX)]
    pub timeout: Option<Duration>,
    /// Let the program run what it writes to its home, tmp or work directory. May be given again; not for a built-in case
    #[arg(long, value_name = "DIRECTORY", value_parser = values::tree(), help_heading = help::SANDBOX)]
    pub allow_exec: Vec<Root>,
    /// Set a limit of the case, such as memory=64TiB or cpu_time=2h. May be given again
    #[arg(long, value_name = "NAME=VALUE", help_heading = help::SANDBOX)]
    pub limit: Vec<String>,
    /// Refuse to run if the case file has another SHA-256
    #[arg(long, value_name = "SHA256", value_parser = values::sha256, help_heading = help::SANDBOX)]
    pub require_case: Option<String>,
    /// Refuse to run if the case has a rule whose reason ends with `not reviewed`
    #[arg(long, help_heading = help::SANDBOX)]
    pub require_reviewed: bool,
    /// List the paths that the program looked for and did not get; slows a program that looks for many files
    #[arg(long, help_heading = help::OUTPUT)]
    pub lookups: bool,
    /// Write a report: human, json, junit, markdown, html or sarif; without a file, to standard output. May be given
    /// again
    #[arg(long, value_name = "FORMAT[=FILE]", value_parser = values::report(), help_heading = help::OUTPUT)]
    pub report: Vec<ReportArgument>,
    /// Write the evidence to a new or empty directory: all reports, the output, the files as found, and their digests
    #[arg(long, value_name = "DIR", help_heading = help::OUTPUT)]
    pub out: Option<PathBuf>,
    /// Compare the behaviour with this lock file; any difference fails the check `baseline/unchanged`
    #[arg(long, value_name = "FILE", help_heading = help::OUTPUT)]
    pub baseline: Option<PathBuf>,
    /// Write the behaviour of this run to the lock file instead of comparing it; needs --baseline
    #[arg(long, requires = "baseline", help_heading = help::OUTPUT)]
    pub update_baseline: bool,
    /// Copy the home to a new temporary directory at the end, and print its path
    #[arg(long, help_heading = help::OUTPUT)]
    pub keep_home: bool,
    /// Read the whole program for its SHA-256, even if an earlier run has, and remember nothing
    #[arg(long, help_heading = help::OUTPUT)]
    pub no_cache: bool,
}

// The options of an audit.
#[derive(Debug, Args)]
pub(crate) struct AuditOptions {
    /// The program and its arguments; `{base_url}` in them is replaced by the address of the provider stub
    #[arg(last = true, required = true, value_name = "PROGRAM [ARGS]", help_heading = help::PROGRAM)]
    pub program: Vec<OsString>,
    /// Set a variable, or pass on yours; {base_url}, {credential}, {home} and {tmp} in VALUE are replaced
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = values::variable, help_heading = help::PROGRAM)]
    pub env: Vec<VariableArgument>,
    /// Scenario of the provider stub; `runner policy list` lists them, `none` leaves the stub out
    #[arg(long, value_name = "none|SCENARIO", help_heading = help::PROGRAM)]
    pub stub: Option<String>,
    /// Standard input of the program: a file, `none`, or `inherit` or `-` for that of runner, copied through a pipe
    /// [default: inherit, but none for a terminal]
    #[arg(long, value_name = "FILE|inherit|none", help_heading = help::PROGRAM)]
    pub stdin: Option<OsString>,
    /// Show a file or directory of this machine, read-only. May be given again
    #[arg(long, value_name = "PATH", help_heading = help::SANDBOX)]
    pub read: Vec<PathBuf>,
    /// Let the program write to a file or directory; files in it cannot be executed. May be given again
    #[arg(long, value_name = "PATH", help_heading = help::SANDBOX)]
    pub write: Vec<PathBuf>,
    /// Expect an attempt, as a report shows it: inet:192.0.2.1:443, name:example.com, listen; it stays blocked
    #[arg(long, value_name = "DESTINATION", help_heading = help::SANDBOX)]
    pub allow_attempt: Vec<AttemptDestination>,
    /// Network isolation of the sandbox; no run is without one
    #[arg(long, value_enum, value_name = "ISOLATION", default_value_t, help_heading = help::SANDBOX)]
    pub isolation: IsolationArgument,
    /// Wall time of the program, such as 60s or 5min; the processor time grows with it [default: 5min]
    #[arg(long, value_name = "TIME", value_parser = values::timeout, help_heading = help::SANDBOX)]
    pub timeout: Option<Duration>,
    /// Let the program run what it writes to its home, tmp or work directory. May be given again
    #[arg(long, value_name = "DIRECTORY", value_parser = values::tree(), help_heading = help::SANDBOX)]
    pub allow_exec: Vec<Root>,
    /// Set a limit of the audit, such as memory=64TiB or cpu_time=2h. May be given again
    #[arg(long, value_name = "NAME=VALUE", help_heading = help::SANDBOX)]
    pub limit: Vec<String>,
    /// Write a report to a file: human, json, junit, markdown, html or sarif. May be given again
    #[arg(long, value_name = "FORMAT=FILE", value_parser = values::report(), help_heading = help::OUTPUT)]
    pub report: Vec<ReportArgument>,
    /// Write the evidence to a new or empty directory: all reports, the output, the files as found, and their digests
    #[arg(long, value_name = "DIR", help_heading = help::OUTPUT)]
    pub out: Option<PathBuf>,
    /// Exit with 123 if the audit finds one of these: attempts, names, credential, survivors, sensitive, or any
    #[arg(long, value_name = "LIST", value_parser = values::fail_on, help_heading = help::OUTPUT)]
    pub fail_on: Option<FailOn>,
    /// Compare the behaviour with this lock file; exit with 123 if it differs
    #[arg(long, value_name = "FILE", help_heading = help::OUTPUT)]
    pub baseline: Option<PathBuf>,
    /// Write the behaviour of this audit to the lock file instead of comparing it; needs --baseline
    #[arg(long, requires = "baseline", help_heading = help::OUTPUT)]
    pub update_baseline: bool,
    /// Copy the home to a new temporary directory at the end, and print its path
    #[arg(long, help_heading = help::OUTPUT)]
    pub keep_home: bool,
    /// Read the whole program for its SHA-256, even if an earlier run has, and remember nothing
    #[arg(long, help_heading = help::OUTPUT)]
    pub no_cache: bool,
}

// The options of `runner init`.
#[derive(Debug, Args)]
pub(crate) struct InitOptions {
    /// The case file to write; it must not exist yet. Its directory is the project
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// The program and its arguments; `{base_url}` in them is replaced by the address of the provider stub
    #[arg(last = true, required = true, value_name = "PROGRAM [ARGS]", help_heading = help::PROGRAM)]
    pub program: Vec<OsString>,
    /// Set a variable, or pass on yours; {base_url}, {credential}, {home} and {tmp} in VALUE are replaced
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = values::variable, help_heading = help::PROGRAM)]
    pub env: Vec<VariableArgument>,
    /// Show a file or directory of this machine, read-only. May be given again
    #[arg(long, value_name = "PATH", help_heading = help::SANDBOX)]
    pub read: Vec<PathBuf>,
    /// Let the program run what it writes to its home, tmp or work directory. May be given again
    #[arg(long, value_name = "DIRECTORY", value_parser = values::tree(), help_heading = help::SANDBOX)]
    pub allow_exec: Vec<Root>,
    /// Scenario of the provider stub, which the case names; `runner policy list` lists them
    #[arg(long, value_name = "SCENARIO", help_heading = help::PROGRAM)]
    pub stub: Option<String>,
    /// Standard input of the program, which the case names: a file, or `none` [default: none]
    #[arg(long, value_name = "FILE|none", help_heading = help::PROGRAM)]
    pub stdin: Option<OsString>,
    /// Expect an attempt, as a report shows it: inet:192.0.2.1:443, name:example.com, listen; it stays blocked
    #[arg(long, value_name = "DESTINATION", help_heading = help::SANDBOX)]
    pub allow_attempt: Vec<AttemptDestination>,
    /// Number of runs, 1 to 20; what differs between them becomes a pattern
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=20), help_heading = help::SANDBOX)]
    pub runs: u8,
    /// Network isolation of the sandbox, which the case demands; no run is without one
    #[arg(long, value_enum, value_name = "ISOLATION", default_value_t, help_heading = help::SANDBOX)]
    pub isolation: IsolationArgument,
    /// Wall time of each run, such as 60s or 5min; the processor time grows with it [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = values::timeout, help_heading = help::SANDBOX)]
    pub timeout: Option<Duration>,
    /// Set a limit of the case, such as memory=64TiB or cpu_time=2h. May be given again
    #[arg(long, value_name = "NAME=VALUE", help_heading = help::SANDBOX)]
    pub limit: Vec<String>,
}

// The options of `runner doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    /// Write JSON; `runner policy schema doctor` prints its schema
    #[arg(long)]
    pub json: bool,
    /// Print an AppArmor profile that allows user namespaces to this program, and test nothing
    #[arg(long, conflicts_with = "json")]
    pub apparmor: bool,
}

// The options of a selftest.
#[derive(Debug, Args)]
pub(crate) struct SelftestOptions {
    /// Write JSON; `runner policy schema selftest` prints its schema
    #[arg(long)]
    pub json: bool,
    /// Exit with 3 if something is inconclusive
    #[arg(long)]
    pub strict: bool,
    /// Isolation to test
    #[arg(long, value_enum, value_name = "ISOLATION", default_value_t)]
    pub isolation: IsolationArgument,
}

// The options of a comparison.
#[derive(Debug, Args)]
pub(crate) struct DiffOptions {
    /// The run to compare with: a JSON report, or a directory of `--out`
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The other run, in the same forms
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// Write JSON; `runner policy schema diff` prints its schema
    #[arg(long)]
    pub json: bool,
}

// The options of a verification.
#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    /// A directory of `--out`
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Require this SHA-256 of SHA256SUMS, as the run printed it
    #[arg(long, value_name = "SHA256", value_parser = values::sums_sha256)]
    pub require_sums: Option<String>,
}

/// Values of `--isolation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum IsolationArgument {
    /// The strongest isolation that this host supports
    #[default]
    Auto,
    /// A new network namespace with loopback only
    Namespace,
    /// The network of the container, if it has loopback only (`--network none`)
    Inherited,
}

// Commands of `runner policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// List the built-in policies with their digests, and the stub's scenarios
    List,
    /// Print a policy, comments included, and after a case the limits that it leaves out
    Show {
        /// A name from `runner policy list`, or a file
        #[arg(value_name = "NAME|FILE")]
        policy: OsString,
    },
    /// Check files without running anything; exit 2 if one is wrong
    Check {
        /// Also count a case as wrong if it has a rule whose reason ends with `not reviewed`
        #[arg(long)]
        require_reviewed: bool,
        /// Case or profile files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Print the JSON Schema of policy files or of JSON reports
    Schema {
        /// Kind of file or report
        #[arg(value_enum, value_name = "FORM")]
        form: SchemaForm,
    },
    /// Print a file of your own to start from, each key explained
    Init {
        /// Kind of file.
        #[command(subcommand)]
        command: InitCommand,
    },
}

// Kinds of file of `runner policy init`.
#[derive(Debug, Subcommand)]
pub(crate) enum InitCommand {
    /// A case: task, limits and expectations
    Case {
        /// Name of the case: letters, digits, `.`, `_` and `-`
        #[arg(value_name = "NAME", value_parser = values::policy_name)]
        name: PolicyName,
    },
    /// A profile: command line, names and files of a client
    Profile {
        /// Name of the profile: letters, digits, `.`, `_` and `-`
        #[arg(value_name = "NAME", value_parser = values::policy_name)]
        name: PolicyName,
        /// Add the loader and the libraries that this program needs; it is read and never run
        #[arg(long, value_name = "PROGRAM")]
        client: Option<PathBuf>,
    },
}
