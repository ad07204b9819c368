//! JSON form of the answer, with the schema `runner.diff/1`.

use judge::facts::Rule;
use model::case::Tier;
use model::schema;
use model::schema::values::{Sha256, Timestamp, closed_sets};
use report::json::change_form::ChangeForm;
use report::{RenderError, json};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::{Answer, Identity, Status};

const SCHEMA: &str = "runner.diff/1";

/// JSON Schema of the output of `runner diff --json`.
pub fn schema() -> Schema {
    schema::of_document::<Document<'_>>(SCHEMA)
}

closed_sets! {
    /// Status of a comparison. `incomplete`: a run was unsound or lost evidence, so facts that it does not have may be
    /// lost.
    Status of ALL,
}

impl Status {
    const ALL: [Self; 3] = [Self::Unchanged, Self::Changed, Self::Incomplete];

    fn word(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Changed => "changed",
            Self::Incomplete => "incomplete",
        }
    }
}

/// Differences between two runs. Readers ignore unknown keys. Texts may come from the client and may be hostile;
/// control and invisible characters are escaped.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Comparison of runner")]
struct Document<'a> {
    /// Schema of this document.
    schema: &'static str,
    /// Status of the comparison.
    #[schemars(with = "Status")]
    status: &'static str,
    /// Old run.
    old: Run<'a>,
    /// New run.
    new: Run<'a>,
    /// Each difference, sorted by area and key.
    changes: Vec<ChangeForm<'a>>,
    /// Reasons why a run may lack facts; empty if both runs are sound.
    incomplete: &'a [String],
    /// Notes on differences that may not be caused by the client.
    notes: &'a [String],
    /// Rules for facts that are not compared, with their numbers in both runs.
    rules: Vec<RuleForm>,
}

/// Properties that identify a run.
#[derive(Serialize, JsonSchema)]
struct Run<'a> {
    /// The report, as given on the command line.
    file: &'a str,
    /// Path of the program, or `built in`.
    client: &'a str,
    /// SHA-256 of the program.
    #[schemars(with = "Sha256")]
    sha256: &'a str,
    /// Name of the profile; null in an audit.
    profile: Option<&'a str>,
    /// Name of the case.
    case: &'a str,
    /// Isolation of the network.
    #[schemars(with = "Tier")]
    tier: &'a str,
    /// Start of the run.
    #[schemars(with = "Timestamp")]
    started_at: &'a str,
    /// Version of the runner.
    runner: &'a str,
}

/// Rule that leaves facts out of the comparison.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AppliedRule")]
struct RuleForm {
    /// Name of the rule.
    #[schemars(with = "Rule")]
    name: &'static str,
    /// Facts that the rule leaves out.
    what: &'static str,
    /// Number of facts left out.
    applied: u64,
}

/// Renders the answer.
pub(super) fn render(answer: &Answer) -> Result<Vec<u8>, RenderError> {
    let rule = |rule: Rule| RuleForm {
        name: rule.word(),
        what: rule.what(),
        applied: answer.applied.of(rule),
    };
    Ok(json::document(&Document {
        schema: SCHEMA,
        status: answer.status().word(),
        old: Run::from(&answer.old),
        new: Run::from(&answer.new),
        changes: answer.differences.iter().map(ChangeForm::from).collect(),
        incomplete: &answer.incomplete,
        notes: &answer.notes,
        rules: Rule::ALL.into_iter().map(rule).collect(),
    })?)
}

impl<'a> From<&'a Identity> for Run<'a> {
    fn from(run: &'a Identity) -> Self {
        Self {
            file: &run.file,
            client: &run.client,
            sha256: &run.sha256,
            profile: run.profile.as_deref(),
            case: &run.case,
            tier: &run.tier,
            started_at: &run.started_at,
            runner: &run.runner,
        }
    }
}
