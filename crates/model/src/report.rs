//! Report of one run: the single value that every report format shows.

use std::path::PathBuf;

use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::difference::{Accept, Difference};
use crate::evidence::{Arg, Evidence};
use crate::finding::{Finding, Verdict};
use crate::policy::{Origin, Tier};
use crate::profile::{Cases, Variable};
use crate::time;

mod audit_findings;
mod baseline_form;
mod content;
pub mod document;

pub use audit_findings::{AuditFindings, FindingKind, SensitivePlace, sensitive};
pub use content::{Content, DigestSource};

/// The whole report of one run.
///
/// Start, duration, end of the client, layers and probes are in the evidence.
#[derive(Clone, Debug)]
pub struct Report {
    /// This program.
    pub runner: Runner,
    /// The machine.
    pub host: Host,
    /// Purpose of the run.
    pub purpose: Purpose,
    /// The case of the run, or the policy of an audit.
    pub case: Policy,
    /// The client, or the audited program.
    pub client: Client,
    /// Isolation of the network.
    pub tier: Tier,
    /// Reason why a stronger allowed isolation was not used.
    pub tier_because: Option<String>,
    /// Verdict of the run.
    pub verdict: Verdict,
    /// Result of each check that was made or skipped, in the order of [`finding::ids`](crate::finding::ids). An audit has
    /// only the checks of any program. Those of the options, [`BASELINE`](crate::finding::BASELINE) and
    /// [`FAIL_ON`](crate::finding::FAIL_ON), come last.
    pub checks: Vec<Finding>,
    /// Kinds of evidence that the case does not judge.
    pub not_judged: Vec<String>,
    /// Number of unreviewed rules of the case.
    pub not_reviewed: u64,
    /// Losses of the run itself, one phrase each; a run with losses cannot pass.
    pub unsound: Vec<String>,
    /// True if the probes show that the kernel refuses every other attempt.
    pub kernel_refuses: bool,
    /// Collected evidence.
    pub evidence: Evidence,
    /// Limits of this isolation or run, beyond those of every run; one sentence each.
    pub not_proved: Vec<String>,
    /// Rules of the case or profile that allow more than the built-in case.
    pub wider_rules: Vec<WiderRule>,
    /// Result of `--baseline`; `None` if it was not requested, or a comparison was not possible.
    pub baseline: Option<Baseline>,
    /// The lock file that was requested, even if a comparison was not possible.
    pub lock_place: Option<LockPlace>,
}

/// Result of a comparison with a lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    from = "baseline_form::BaselineForm",
    into = "baseline_form::BaselineForm"
)]
pub struct Baseline {
    /// Path of the lock file, escaped.
    pub file: String,
    /// Action on the lock file.
    pub outcome: BaselineOutcome,
    /// Isolation before the update, if the file was rewritten for another one.
    pub tier_before: Option<String>,
    /// Differences of this run from the file; for an updated file, its changes.
    pub differences: Vec<Difference>,
}

/// Location of a lock file in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPlace {
    /// Relative path, free of machine-specific parts.
    pub path: PathBuf,
    /// Lines to review, from 1; empty if the file was written.
    pub lines: Vec<usize>,
}

impl Baseline {
    /// Returns the edit that accepts a difference; `None` if the file was written and already contains it.
    pub fn to_accept(&self, found: &Difference) -> Option<Accept> {
        match self.outcome {
            BaselineOutcome::Compared => Some(Accept::of(found)),
            BaselineOutcome::Updated | BaselineOutcome::Made => None,
        }
    }
}

closed_set! {
    /// Action on a lock file.
    pub enum BaselineOutcome {
        /// Compared with the run.
        Compared = "compared",
        /// Rewritten.
        Updated = "updated",
        /// Created.
        Made = "made",
    }
}

closed_set! {
    /// Purpose of a run.
    pub enum Purpose {
        /// Compare a client with the expectations of a case.
        Judge = "judge",
        /// Observe the attempts of a program.
        Audit = "audit",
    }
}

/// This program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runner {
    /// `0.1.0`
    pub version: String,
    /// Commit of the sources, or [`UNKNOWN`].
    #[serde(default = "unknown")]
    pub commit: String,
    /// GNU build id of the executable, lower-case hex, or [`UNKNOWN`]. `readelf -n` shows that of a file.
    #[serde(default = "unknown")]
    pub build_id: String,
}

/// Value of a commit or build id that the executable does not know.
pub const UNKNOWN: &str = "unknown";

fn unknown() -> String {
    UNKNOWN.to_owned()
}

/// The machine of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Release of the kernel, as in uname(2).
    pub kernel: String,
    /// Machine hardware name, as in uname(2): `x86_64`.
    pub arch: String,
    /// Landlock ABI of the kernel; 0 without Landlock.
    pub landlock_abi: u32,
}

/// Name, source and digest of a case or profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    /// Name: `case-b`, `reference`.
    pub name: String,
    /// Origin of its file.
    #[serde(flatten)]
    pub origin: Origin,
}

/// The client, its command line and its environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// Path of the program as the user gave it, or `built in`.
    pub program: String,
    /// Identity of the program's content.
    #[serde(flatten)]
    pub content: Content,
    /// The profile that spells the options; `None` for an audited program.
    pub profile: Option<Policy>,
    /// Arguments after the program's name.
    pub args: Vec<Arg>,
    /// Standard input.
    #[serde(default)]
    pub stdin: Stdin,
    /// Current directory of the caller, escaped, if an audit does not show it. The program starts in an empty one.
    #[serde(default)]
    pub hidden_directory: Option<String>,
    /// Environment in the spelling of the profile: placeholders replace values that vary between runs.
    pub settings: Vec<Setting>,
    /// Settings of the profile for this case that `--plain` omitted.
    pub left_out: Vec<Setting>,
}

/// Standard input of the client. All but an empty one arrives through a pipe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stdin {
    /// Empty: /dev/null.
    #[default]
    None,
    /// The standard input of the runner.
    Inherited,
    /// A file.
    File(#[schemars(description = "Path of the file, escaped.")] String),
}

/// One variable of the client's environment; placeholders are not filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Name of the variable.
    pub name: String,
    /// Value, with placeholders.
    pub value: String,
    /// Reason for the variable.
    pub reason: String,
    /// Cases that set the variable.
    pub scope: Scope,
}

closed_set! {
    /// Cases that set a variable.
    pub enum Scope {
        /// Every case: the client does not run without the variable.
        Always = "always",
        /// Some cases: the variable reproduces the observed behaviour.
        Case = "case",
    }
}

impl From<&Variable> for Setting {
    fn from(variable: &Variable) -> Self {
        Self {
            name: variable.name.clone(),
            value: variable.value.clone(),
            reason: variable.reason.clone(),
            scope: match variable.cases {
                Cases::Every => Scope::Always,
                Cases::Only(_) => Scope::Case,
            },
        }
    }
}

/// A rule that allows more than the built-in case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiderRule {
    /// The allowed behaviour.
    pub rule: String,
    /// Reason from the policy file.
    pub reason: String,
}

impl Report {
    /// Returns the findings of an audit; `None` for a judged run, whose checks are its findings.
    pub fn findings(&self) -> Option<AuditFindings> {
        match self.purpose {
            Purpose::Judge => None,
            Purpose::Audit => Some(AuditFindings::of(&self.evidence)),
        }
    }

    /// Returns the start of the run: `2026-05-28T20:26:40.000Z`.
    pub fn started_at(&self) -> String {
        time::rfc3339(self.evidence.wall.0)
    }
}
