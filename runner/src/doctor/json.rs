//! JSON form of the result, with the schema `runner.doctor/1`.
//!
//! Readers ignore unknown keys.

use model::case::Tier;
use model::schema;
use report::json;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::Examination;
use super::probe::Probe;

const SCHEMA: &str = "runner.doctor/1";

pub(super) fn render(examination: &Examination) -> serde_json::Result<Vec<u8>> {
    json::document(&Doctor::of(examination))
}

/// JSON Schema of the output of `runner doctor --json`.
pub fn schema() -> Schema {
    schema::of_document::<Doctor<'static>>(SCHEMA)
}

/// Result of `runner doctor`: the isolation that a run gets on this machine, each probe, and the fixes for features
/// that do not work. Readers ignore unknown keys.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Examination of runner")]
struct Doctor<'a> {
    /// Schema of this document.
    schema: &'static str,
    /// The program that wrote this document.
    runner: Runner,
    /// The verdict, with its reason.
    verdict: Verdict,
    /// Properties of the machine, for people. They do not affect the verdict.
    context: Vec<Line>,
    /// Each probe, in the order of execution.
    probes: &'a [Probe],
}

/// The program that wrote the document.
#[derive(Serialize, JsonSchema)]
struct Runner {
    /// Version of the program, such as `0.1.0`.
    version: &'static str,
}

/// The verdict.
#[derive(Serialize, JsonSchema)]
struct Verdict {
    /// Isolation that a run gets; null if a run is not possible.
    tier: Option<Tier>,
    /// Reason for the verdict, for people.
    reason: &'static str,
    /// Exit code: 0 for namespace, 1 for inherited only, 3 for none.
    exit_code: u8,
}

/// A property of the machine.
#[derive(Serialize, JsonSchema)]
struct Line {
    /// Label, such as `kernel`, `container` or `yama`.
    name: &'static str,
    /// Value, for people.
    text: String,
}

impl<'a> Doctor<'a> {
    fn of(examination: &'a Examination) -> Self {
        let lines = examination.evidence.lines().into_iter();
        Self {
            schema: SCHEMA,
            runner: Runner {
                version: env!("CARGO_PKG_VERSION"),
            },
            verdict: Verdict {
                tier: examination.tier,
                reason: examination.reason(),
                exit_code: examination.exit_code(),
            },
            context: lines.map(|(name, text)| Line { name, text }).collect(),
            probes: &examination.probes,
        }
    }
}
