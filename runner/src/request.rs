//! Requests: what one command line asks for, with its policies read and its values checked.
//!
//! The command line makes them, and every command takes its own.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use judge::observed::Observed;
use model::case::{InlineClient, Limits, Root, Tier};
use model::profile::ExpectedAttempt;
use model::report::{FindingKind, Purpose};
use policy::Reference;
use policy::init::PolicyName;
use policy::write::{self, NewCase};
use report::{Form, Format};

use crate::workload::Workload;

/// One run, with all settings of the command line and the policies. A required digest of the case has already been
/// compared.
#[derive(Debug)]
pub(crate) struct RunRequest {
    /// The client with its case, or the audited program.
    pub workload: Workload,
    /// The executable to run.
    pub client: ClientProgram,
    /// The reports to write; always includes a human report.
    pub reports: Vec<ReportTarget>,
    /// The requested isolation of the network.
    pub isolation: IsolationChoice,
    /// Wall time that replaces the case's.
    pub timeout: Option<Duration>,
    /// Limits that replace the policy's, as typed.
    pub limits: Vec<String>,
    /// Standard input of the program.
    pub stdin: StdinChoice,
    /// Directory for the evidence.
    pub out: Option<PathBuf>,
    /// True if the paths that the program looked for are recorded.
    pub lookups: bool,
    /// Further outputs, with links resolved, which no path rule may show unless it shows the case.
    pub hidden: Vec<PathBuf>,
    /// The lock file to compare or to write.
    pub baseline: Option<Baseline>,
    /// Kinds of findings that fail an audit; empty without that gate.
    pub fail_on: Vec<FindingKind>,
    /// True if a copy of the home is kept.
    pub keep_home: bool,
    /// True if the digest of an unchanged program may come from an earlier run.
    pub use_cache: bool,
}

impl RunRequest {
    /// Run for its evidence alone: no reports, no files, no standard input, no gate.
    pub(crate) fn for_evidence(
        workload: Workload,
        client: ClientProgram,
        isolation: IsolationChoice,
    ) -> Self {
        Self {
            lookups: workload.purpose() == Purpose::Audit,
            workload,
            client,
            reports: Vec::new(),
            isolation,
            timeout: None,
            limits: Vec::new(),
            stdin: StdinChoice::Nothing,
            out: None,
            hidden: Vec::new(),
            baseline: None,
            fail_on: Vec::new(),
            keep_home: false,
            use_cache: false,
        }
    }

    /// Kinds of isolation to try, strongest first.
    pub(crate) fn tiers(&self) -> Vec<Tier> {
        match self.isolation {
            IsolationChoice::Auto => self.workload.sandbox().tiers.clone(),
            IsolationChoice::Demanded(tier) => vec![tier],
        }
    }
}

/// Runs of several cases, each as of its own request, without outputs of their own.
#[derive(Debug)]
pub(crate) struct FleetRequest {
    /// The runs, sorted by the name of their case; the names differ.
    pub runs: Vec<CaseRun>,
    /// TOML files of the directories that are no cases.
    pub not_cases: Vec<PathBuf>,
    /// The common reports.
    pub reports: Vec<ReportTarget>,
    /// Directory for the evidence of all runs.
    pub out: Option<PathBuf>,
}

/// Run of one case of several.
#[derive(Debug)]
pub(crate) struct CaseRun {
    /// File of the case.
    pub file: PathBuf,
    /// The run.
    pub request: RunRequest,
}

/// Runs of one program that become a case file.
#[derive(Debug)]
pub(crate) struct InitRequest {
    /// One of the runs; its workload is a client without expectations.
    pub run: RunRequest,
    /// Number of runs.
    pub runs: u8,
    /// The file to write.
    pub file: PathBuf,
    /// Project of the case, without links.
    pub project: PathBuf,
    /// Content of the file, beside its expectations.
    pub new: NewFile,
    /// Lines about project and client for the user.
    pub notes: Vec<String>,
}

/// A new case file, without expectations.
#[derive(Debug)]
pub(crate) struct NewFile {
    /// Name of the case.
    pub name: String,
    /// Client of the case.
    pub client: InlineClient,
    /// Name of the stub's scenario; `None` for the usual answer.
    pub scenario: Option<String>,
    /// Accepted kinds of isolation.
    pub tiers: Vec<Tier>,
    /// Writable trees with programs.
    pub exec: Vec<Root>,
    /// Limits of a run.
    pub limits: Limits,
    /// Attempts that options expect.
    pub attempts: Vec<ExpectedAttempt>,
}

impl NewFile {
    /// Returns the text of the file.
    pub(crate) fn text(&self, about: &[String], observed: &Observed) -> String {
        write::case(&NewCase {
            name: &self.name,
            about,
            client: &self.client,
            scenario: self.scenario.as_deref(),
            tiers: &self.tiers,
            exec: &self.exec,
            limits: &self.limits,
            expect: &observed.expect,
            withheld: &observed.withheld,
            refused: &observed.refused,
            records_not_judged: observed.records_not_judged.as_deref(),
        })
    }
}

/// The program under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientProgram {
    /// The reference client, which is part of this executable.
    Reference,
    /// The hostile client of `runner selftest`, which is part of this executable.
    Hostile,
    /// An executable file; the path is absolute.
    File(PathBuf),
}

/// Standard input of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StdinChoice {
    /// An empty input: /dev/null.
    Nothing,
    /// The standard input of the runner.
    Inherit,
    /// A file, as typed. It is opened before the run.
    File(PathBuf),
}

/// One report to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportTarget {
    /// Format of the report.
    pub format: Format,
    /// Destination of the report.
    pub destination: Destination,
}

/// Destination of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, as typed. It is opened before the run.
    File(PathBuf),
}

/// Use of a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Baseline {
    /// Compare the behaviour with the file.
    Compare(PathBuf),
    /// Write the behaviour to the file.
    Update(PathBuf),
}

/// Kinds of isolation that the run accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsolationChoice {
    /// The strongest kind that the host supports and the case accepts.
    Auto,
    /// Exactly this kind.
    Demanded(Tier),
}

/// An action on policy files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PolicyAction {
    /// List the built-in files.
    List,
    /// Print the built-in file of this name.
    Show(Reference),
    /// Parse the files.
    Check {
        /// The files.
        files: Vec<PathBuf>,
        /// True if a case with unreviewed rules is wrong.
        require_reviewed: bool,
    },
    /// Print a schema.
    Schema(SchemaForm),
    /// Print a file to start from.
    Init(InitAction),
}

/// Kind and contents of a file to start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InitAction {
    /// A case with this name.
    Case(PolicyName),
    /// A profile with this name, and with the libraries of a program.
    Profile {
        /// Name of the profile.
        name: PolicyName,
        /// The program whose libraries are added.
        client: Option<PathBuf>,
    },
}

/// Kinds of schema of `runner policy schema`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaForm {
    /// Case files
    Case,
    /// Client profiles
    Profile,
    /// The policy of audits
    Audit,
    /// Reports of `--report json`
    Report,
    /// Reports of `--report json` of several cases
    Fleet,
    /// Output of `runner doctor --json`
    Doctor,
    /// Output of `runner selftest --json`
    Selftest,
    /// Output of `runner diff --json`
    Diff,
}

/// Arguments of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VerifyRequest {
    /// Directory of the bundle.
    pub directory: PathBuf,
    /// Required SHA-256 digest of its `SHA256SUMS`, in lower-case hex.
    pub required: Option<String>,
}

/// Arguments of `runner diff`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffRequest {
    /// Old run: a JSON report, or a directory of `--out`.
    pub old: PathBuf,
    /// New run, in the same forms.
    pub new: PathBuf,
    /// Form of the answer.
    pub form: Form,
}

/// Output of `runner doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoctorAction {
    /// The result as text.
    Human,
    /// The result as JSON.
    Json,
    /// The AppArmor profile for this executable, without any test.
    AppArmor,
}

/// Arguments of `runner selftest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SelftestRequest {
    /// Requested isolation.
    pub isolation: IsolationChoice,
    /// Form of the answer.
    pub form: Form,
    /// True if an inconclusive class changes the exit code.
    pub strict: bool,
}
