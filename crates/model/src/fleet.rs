//! Summary of several runs, each of one case.

use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::Serialize;

use crate::finding::{Status, Verdict};
use crate::report::{Report, Runner};
use crate::time;

/// Value of the key `schema`.
pub const SCHEMA: &str = "runner.fleet/1";

/// Runs of several cases. The full report of each run is not part of it.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// This program.
    pub runner: Runner,
    /// Start of the first run.
    pub started: SystemTime,
    /// Time from the start of the first run to the end of the last one.
    pub duration: Duration,
    /// The runs, in their order.
    pub runs: Vec<FleetRun>,
    /// TOML files of the directories that are no cases, escaped.
    pub not_cases: Vec<String>,
}

/// One run of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FleetRun {
    /// Name of the case.
    pub case: String,
    /// File of the case as the user gave it, escaped.
    pub file: String,
    /// Verdict of the run; null if the run was not made, because the runs were interrupted.
    pub verdict: Option<Verdict>,
    /// Duration of the run, in milliseconds.
    pub duration_ms: u64,
    /// Number of checks by result.
    pub checks: CheckCounts,
    /// First finding of a run that did not pass; null for a run that passed or was not made.
    pub first_finding: Option<FirstFinding>,
    /// Kinds of evidence that the case does not judge.
    pub not_judged: Vec<String>,
    /// Number of unreviewed rules of the case.
    pub not_reviewed: u64,
}

/// Number of checks by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckCounts {
    /// Passed checks.
    pub passed: usize,
    /// Failed checks.
    pub failed: usize,
    /// Errored checks.
    pub errored: usize,
    /// Skipped checks.
    pub skipped: usize,
}

/// First finding of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FirstFinding {
    /// Id of the check; null for the cause of the whole run, such as a time-out.
    pub check: Option<String>,
    /// The finding in one line; may contain text of the client.
    pub message: String,
}

impl CheckCounts {
    /// Counts the checks of a report.
    pub fn of(report: &Report) -> Self {
        let mut counts = Self::default();
        for finding in &report.checks {
            *match finding.status {
                Status::Passed => &mut counts.passed,
                Status::Failed => &mut counts.failed,
                Status::Errored => &mut counts.errored,
                Status::Skipped => &mut counts.skipped,
            } += 1;
        }
        counts
    }
}

impl Fleet {
    /// Verdict of all runs: errored if a run is errored or was not made, else failed if one failed, else passed.
    pub fn verdict(&self) -> Verdict {
        let any = |verdict| self.count(Some(verdict)) > 0;
        if self.count(None) > 0 || any(Verdict::Errored) || self.runs.is_empty() {
            Verdict::Errored
        } else if any(Verdict::Failed) {
            Verdict::Failed
        } else {
            Verdict::Passed
        }
    }

    /// Number of runs with this verdict; `None` counts those that were not made.
    pub fn count(&self, verdict: Option<Verdict>) -> usize {
        self.runs
            .iter()
            .filter(|run| run.verdict == verdict)
            .count()
    }

    /// Returns the start of the first run: `2026-05-28T20:26:40.000Z`.
    pub fn started_at(&self) -> String {
        time::rfc3339(self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::UNKNOWN;

    fn verdict(runs: &[Option<Verdict>]) -> Verdict {
        let run = |(number, verdict): (usize, &Option<Verdict>)| FleetRun {
            case: format!("case-{number}"),
            file: format!("case-{number}.toml"),
            verdict: *verdict,
            duration_ms: 1,
            checks: CheckCounts::default(),
            first_finding: None,
            not_judged: Vec::new(),
            not_reviewed: 0,
        };
        let fleet = Fleet {
            runner: Runner {
                version: "0.1.0".to_owned(),
                commit: UNKNOWN.to_owned(),
                build_id: UNKNOWN.to_owned(),
            },
            started: SystemTime::UNIX_EPOCH,
            duration: Duration::ZERO,
            runs: runs.iter().enumerate().map(run).collect(),
            not_cases: Vec::new(),
        };
        fleet.verdict()
    }

    #[test]
    fn verdict_of_a_fleet_is_its_worst() {
        let (passed, failed) = (Some(Verdict::Passed), Some(Verdict::Failed));
        let errored = Some(Verdict::Errored);
        assert_eq!(verdict(&[passed, passed]), Verdict::Passed);
        assert_eq!(verdict(&[passed, failed]), Verdict::Failed);
        assert_eq!(verdict(&[failed, errored, passed]), Verdict::Errored);
        assert_eq!(verdict(&[passed, None]), Verdict::Errored);
        assert_eq!(verdict(&[]), Verdict::Errored);
    }
}
