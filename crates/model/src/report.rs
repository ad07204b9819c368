//! Everything that one run reports: every report shows this value, and nothing else.

use std::path::PathBuf;

use crate::case::{Origin, Tier};
use crate::difference::{Accept, Difference};
use crate::evidence::{Evidence, FileEntry};
use crate::finding::{self, Finding, Verdict};
use crate::profile::{ExpectedAttempt, Files, SideRequest, Variable};
use crate::schema::values::closed_sets;
use crate::{expected, time};

mod redact_args;

pub use redact_args::{Arg, Process};

/// Everything that one run has to report.
///
/// The start, the duration, how the client ended, the layers and the canaries stand in the evidence.
#[derive(Clone, Debug)]
pub struct Report {
    /// This program.
    pub runner: Runner,
    /// The machine.
    pub host: Host,
    /// What is reported of.
    pub purpose: Purpose,
    /// The case that was run, or the policy of an audit.
    pub case: Policy,
    /// The subject.
    pub client: Client,
    /// What sealed the network.
    pub tier: Tier,
    /// Why it is not a stronger one that would have done.
    pub tier_because: Option<String>,
    /// The verdict on the run.
    pub verdict: Verdict,
    /// One for each check, in the order of [`finding::ids`]; [`finding::BASELINE`] comes last, where it was made.
    pub checks: Vec<Finding>,
    /// Losses of the run itself, one phrase each; only a run without losses can pass.
    pub unsound: Vec<String>,
    /// Whether the canaries show that the kernel itself refuses every other attempt.
    pub kernel_refuses: bool,
    /// What was collected. Reports show its processes from [`Report::processes`].
    pub evidence: Evidence,
    /// What was started, without the prompts that stand among the arguments.
    pub processes: Vec<Process>,
    /// What the profile knows of the client, beside its spelling.
    pub known: Known,
    /// What this tier or run does not prove, beyond what no run proves; a sentence each.
    pub not_proved: Vec<String>,
    /// Rules of the case or profile that are wider than the built-in case.
    pub wider_rules: Vec<WiderRule>,
    /// What became of `--baseline`; `None` where it was not asked for, or nothing could be compared.
    pub baseline: Option<Baseline>,
    /// The lock file that was asked for, also where nothing could be compared with it.
    pub lock_place: Option<LockPlace>,
}

/// A lock file, and how the behaviour differs from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// Its path, escaped.
    pub file: String,
    /// What was done.
    pub outcome: BaselineOutcome,
    /// The tier that it was of, where it was written anew for another.
    pub tier_before: Option<String>,
    /// What this run showed otherwise; where the file was written, what changed in it.
    pub differences: Vec<Difference>,
}

/// Where a lock file is found in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPlace {
    /// Relative, and nothing of this machine.
    pub path: PathBuf,
    /// Lines that are to be looked at, from 1; none where it was written.
    pub lines: Vec<usize>,
}

impl Baseline {
    /// The line that would accept a difference; `None` where the file was written, and has it already.
    pub fn to_accept(&self, found: &Difference) -> Option<Accept> {
        match self.outcome {
            BaselineOutcome::Compared => Some(Accept::of(found)),
            BaselineOutcome::Updated | BaselineOutcome::Made => None,
        }
    }
}

/// What was done with a lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineOutcome {
    /// The behaviour was compared with it.
    Compared,
    /// It was written anew.
    Updated,
    /// It was made.
    Made,
}

impl BaselineOutcome {
    /// Every one there is.
    pub const ALL: [Self; 3] = [Self::Compared, Self::Updated, Self::Made];

    /// The word in every report.
    pub fn word(self) -> &'static str {
        match self {
            Self::Compared => "compared",
            Self::Updated => "updated",
            Self::Made => "made",
        }
    }
}

closed_sets! {
    /// What was done with a lock file.
    BaselineOutcome of ALL,
}

impl Report {
    /// The finding of every check; of an audit those that hold for any program, as it makes no other.
    pub fn made(&self) -> impl Iterator<Item = &Finding> {
        self.checks.iter().filter(|finding| match self.purpose {
            Purpose::Judge => true,
            Purpose::Audit => finding::holds_for_any_program(finding.id),
        })
    }
}

/// What a run was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To compare a client with what a case expects.
    Judge,
    /// To see what a program tries.
    Audit,
}

/// This program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    /// `0.1.0`
    pub version: String,
    /// SHA-256 of the executable, lower-case hex.
    pub sha256: String,
}

/// The machine on which the run took place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Release of the kernel, as in uname(2).
    pub kernel: String,
    /// `x86_64`
    pub arch: String,
    /// ABI of Landlock that the kernel offers; 0 without any.
    pub landlock_abi: u32,
}

/// A case or profile by name, source and digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `case-b`, `reference`.
    pub name: String,
    /// Its file.
    pub origin: Origin,
}

/// The client and what it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Path of the program as the user gave it, or `built in`.
    pub program: String,
    /// SHA-256 of the program, lower-case hex.
    pub sha256: String,
    /// The profile that spelt the options; `None` for an audited program.
    pub profile: Option<Policy>,
    /// The command line behind the program's name.
    pub args: Vec<Arg>,
    /// Its environment as the profile spells it: placeholders stand for what is different in each run.
    pub settings: Vec<Variable>,
    /// What the profile would have set for this case and was told not to.
    pub left_out: Vec<Variable>,
}

/// What a profile knows of its client, for reports to say why something is no surprise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Attempts that are no finding.
    pub attempts: Vec<ExpectedAttempt>,
    /// Files that are no finding, and files that are there for a time; `None` where there is no profile.
    pub files: Option<Files>,
    /// Requests beside the turn.
    pub side_requests: Vec<SideRequest>,
}

impl Known {
    /// Why a file is no surprise.
    pub fn reason_for_file(&self, entry: &FileEntry) -> Option<&str> {
        expected::reason_for_file(self.files.as_ref()?, entry)
    }
}

/// A rule that allows more than the built-in case does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiderRule {
    /// What it allows.
    pub rule: String,
    /// Why, in the words of the policy file.
    pub reason: String,
}

impl Report {
    /// When the run began: `2026-05-28T20:26:40.000Z`.
    pub fn started_at(&self) -> String {
        time::rfc3339(self.evidence.wall.0)
    }
}
