//! The examination for machines: one JSON document of schema `runner.doctor/1`.
//!
//! Readers ignore keys that they do not know.

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
use super::judge::{Status, Tried, agrees};
use super::probes::Need;
use super::trial::Observation;
use super::whole_run::Ended;

const SCHEMA: &str = "runner.doctor/1";

pub(super) fn render(examination: &Examination) -> serde_json::Result<Vec<u8>> {
    json::document(&Doctor::of(examination))
}

/// The schema of what `runner doctor --json` writes.
pub fn schema() -> Schema {
    schema::of_document::<Doctor>(SCHEMA)
}

/// Which tier a run gets on this host, what was tried to find out, and what would mend what does not work. Readers
/// ignore keys that they do not know.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Examination of runner")]
struct Doctor {
    /// The form of this document.
    schema: &'static str,
    /// The program that examined, and its version.
    runner: Runner,
    /// The one word and why.
    verdict: VerdictForm,
    /// The surroundings: what, and what was found. Nothing was judged by them.
    context: Vec<Line>,
    /// Each probe, in the order in which they were tried.
    probes: Vec<ProbeForm>,
    /// A real run of case-b.
    whole_run: RunForm,
}

/// The program that examined.
#[derive(Serialize, JsonSchema)]
struct Runner {
    /// Its version: `0.1.0`.
    version: &'static str,
}

/// The verdict.
#[derive(Serialize, JsonSchema)]
struct VerdictForm {
    /// The tier that a run gets; null where it gets none, or where probes and run do not agree.
    #[schemars(with = "Option<Tier>")]
    tier: Option<&'static str>,
    /// Why, and what the stronger tiers lack, for people.
    reason: String,
    /// The exit code: 0 namespace, 1 only inherited, 3 none.
    exit_code: u8,
    /// The strongest tier by the probes alone.
    #[schemars(with = "Option<Tier>")]
    possible: Option<&'static str>,
    /// A run of tier `namespace` has a fresh /proc.
    fresh_proc: bool,
}

/// A line about the surroundings.
#[derive(Serialize, JsonSchema)]
struct Line {
    /// What it is about: `kernel`, `container`, `yama`.
    name: &'static str,
    /// What was found, for people.
    text: String,
}

/// One probe.
#[derive(Serialize, JsonSchema)]
struct ProbeForm {
    /// Stable.
    id: &'static str,
    /// What was tried, for people.
    what: &'static str,
    /// What each tier has of it.
    needed: BTreeMap<&'static str, Need>,
    /// What it came to.
    #[schemars(with = "Status")]
    status: &'static str,
    /// What was seen, for people.
    observed: String,
    /// Name of the errno with which the kernel refused; null where it did not.
    errno: Option<String>,
    /// Why it does not work; null where it does, or was not tried.
    cause: Option<String>,
    /// Each way to mend it, a command, a flag or a setting.
    fixes: Vec<String>,
}

/// A real run of case-b.
#[derive(Serialize, JsonSchema)]
struct RunForm {
    /// Its exit code; null where it has none.
    exit_code: Option<i32>,
    /// The tier in its report; null where there is no report.
    #[schemars(with = "Option<Tier>")]
    tier: Option<&'static str>,
    /// The verdict in its report; null where there is no report.
    #[schemars(with = "Option<finding::Verdict>")]
    verdict: Option<&'static str>,
    /// Whether it came to what the probes say.
    agrees: bool,
    /// What it said of its failure, a line each.
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
                reason: verdict.told(),
                exit_code: verdict.exit_code(),
                possible: examination.possible.tier.map(Tier::word),
                fresh_proc: examination.possible.fresh_proc,
            },
            context: (examination.context.lines().into_iter())
                .map(|(name, text)| Line { name, text })
                .collect(),
            probes: (examination.tried.iter())
                .map(|one| ProbeForm::of(examination, one))
                .collect(),
            whole_run: RunForm::of(examination),
        }
    }
}

impl ProbeForm {
    fn of(examination: &Examination, one: &Tried) -> Self {
        let (cause, fixes) = match examination.advice(one) {
            Some(advice) => (Some(advice.cause), advice.fixes),
            None => (None, Vec::new()),
        };
        Self {
            id: one.probe.id,
            what: one.probe.what,
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
            said: run.said.clone(),
        }
    }
}

values::closed_sets! {
    /// What a probe came to.
    Status of ALL,

    /// What a tier has of something: `required`, `used` where it is there, or `unneeded`.
    Need of ALL,
}
