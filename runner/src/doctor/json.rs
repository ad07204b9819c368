//! JSON form of the result, with the schema `runner.doctor/1`.
//!
//! Readers ignore unknown keys.

use std::collections::BTreeMap;

use model::case::Tier;
use model::finding;
use model::schema::{self, values};
use nix::errno::Errno;
use report::json;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::Examination;
use super::human::observed;
use super::judge::{ProbeResult, Status, agrees};
use super::probes::Need;
use super::trial::Observation;
use super::whole_run::Ended;

const SCHEMA: &str = "runner.doctor/1";

pub(super) fn render(examination: &Examination) -> serde_json::Result<Vec<u8>> {
    json::document(&Doctor::of(examination))
}

/// JSON Schema of the output of `runner doctor --json`.
pub fn schema() -> Schema {
    schema::of_document::<Doctor>(SCHEMA)
}

/// Result of `runner doctor`: the isolation that a run gets on this machine, each probe, and the fixes for features
/// that do not work. Readers ignore unknown keys.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Examination of runner")]
struct Doctor {
    /// Schema of this document.
    schema: &'static str,
    /// The program that wrote this document.
    runner: Runner,
    /// The verdict, with its reason.
    verdict: VerdictForm,
    /// Properties of the machine, for people. They do not affect the verdict.
    context: Vec<ContextForm>,
    /// Each probe, in the order of execution.
    probes: Vec<ProbeForm>,
    /// A real run of case-b.
    whole_run: RunForm,
}

/// The program that wrote the document.
#[derive(Serialize, JsonSchema)]
struct Runner {
    /// Version of the program, such as `0.1.0`.
    version: &'static str,
}

/// The verdict.
#[derive(Serialize, JsonSchema)]
struct VerdictForm {
    /// Isolation that a run gets; null if a run is not possible, or if the real run disagrees with the probes.
    #[schemars(with = "Option<Tier>")]
    tier: Option<&'static str>,
    /// Reason for the verdict, and the features that a stronger isolation lacks, for people.
    reason: String,
    /// Exit code: 0 for namespace, 1 for inherited only, 3 for none.
    exit_code: u8,
    /// Strongest isolation by the probes alone; null if none is possible.
    #[schemars(with = "Option<Tier>")]
    possible: Option<&'static str>,
    /// True if a run with isolation `namespace` has a new /proc.
    fresh_proc: bool,
}

/// A property of the machine.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Line")]
struct ContextForm {
    /// Label, such as `kernel`, `container` or `yama`.
    name: &'static str,
    /// Value, for people.
    text: String,
}

/// One probe.
#[derive(Serialize, JsonSchema)]
struct ProbeForm {
    /// Id of the probe; it is stable.
    id: &'static str,
    /// Feature that was tested, for people.
    what: &'static str,
    /// Need of each isolation for the feature.
    needed: BTreeMap<&'static str, Need>,
    /// Result of the probe.
    #[schemars(with = "Status")]
    status: &'static str,
    /// Observation, for people.
    observed: String,
    /// Name of the errno with which the kernel refused; null if it did not refuse with an errno.
    errno: Option<String>,
    /// Cause, if the feature does not work; null if it works or was not tested.
    cause: Option<String>,
    /// Fixes: commands, flags or settings.
    fixes: Vec<String>,
}

/// A real run of case-b.
#[derive(Serialize, JsonSchema)]
struct RunForm {
    /// Exit code of the run; null if a signal ended it, or if it did not start or end.
    exit_code: Option<i32>,
    /// Isolation in its report; null without a report.
    #[schemars(with = "Option<Tier>")]
    tier: Option<&'static str>,
    /// Verdict in its report; null without a report.
    #[schemars(with = "Option<finding::Verdict>")]
    verdict: Option<&'static str>,
    /// True if the run agrees with the probes.
    agrees: bool,
    /// Lines of its error messages.
    said: Vec<String>,
}

impl Doctor {
    fn of(examination: &Examination) -> Self {
        let verdict = &examination.verdict;
        Self {
            schema: SCHEMA,
            runner: Runner {
                version: env!("CARGO_PKG_VERSION"),
            },
            verdict: VerdictForm {
                tier: verdict.tier.map(Tier::word),
                reason: verdict.text(),
                exit_code: verdict.exit_code(),
                possible: examination.possible.tier.map(Tier::word),
                fresh_proc: examination.possible.fresh_proc,
            },
            context: (examination.context.lines().into_iter())
                .map(|(name, text)| ContextForm { name, text })
                .collect(),
            probes: (examination.tried.iter())
                .map(|one| ProbeForm::of(examination, one))
                .collect(),
            whole_run: RunForm::of(examination),
        }
    }
}

impl ProbeForm {
    fn of(examination: &Examination, one: &ProbeResult) -> Self {
        let (cause, fixes) = match examination.advice(one) {
            Some(advice) => (Some(advice.cause), advice.fixes),
            None => (None, Vec::new()),
        };
        Self {
            id: one.probe.id,
            what: one.probe.feature,
            needed: Tier::ALL
                .map(|tier| (tier.word(), one.probe.need(tier)))
                .into(),
            status: one.status().word(),
            observed: observed(&one.observation),
            errno: match one.observation {
                Observation::Refused { errno, .. } => Some(format!("{:?}", Errno::from_raw(errno))),
                Observation::Works(_)
                | Observation::Wrong(_)
                | Observation::Killed(_)
                | Observation::Hung
                | Observation::Untried(_)
                | Observation::NotNeeded(_) => None,
            },
            cause,
            fixes,
        }
    }
}

impl RunForm {
    fn of(examination: &Examination) -> Self {
        let run = &examination.run;
        Self {
            exit_code: match run.ended {
                Ended::Code(code) => Some(code),
                Ended::Signal(_) | Ended::Hung | Ended::NotStarted(_) => None,
            },
            tier: run.tier.map(Tier::word),
            verdict: run.verdict.map(finding::Verdict::word),
            agrees: agrees(examination.possible, run),
            said: run.errors.clone(),
        }
    }
}

values::closed_sets! {
    /// Result of a probe.
    Status of ALL,

    /// Need of an isolation for a feature: `required`, `used` if available, or `unneeded`.
    Need of ALL,
}
