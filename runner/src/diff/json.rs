//! JSON form of the answer, with the schema `runner.diff/1`.

use judge::facts::RULES;
use model::difference::Difference;
use model::schema;
use report::{RenderError, json};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::{Answer, Identity, Status};

const SCHEMA: &str = "runner.diff/1";

/// JSON Schema of the output of `runner diff --json`.
pub fn schema() -> Schema {
    schema::of_document::<Document<'_>>(SCHEMA)
}

/// Differences between two runs. Readers ignore unknown keys. Texts may come from the client and may be hostile;
/// control and invisible characters are escaped.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Comparison of runner")]
struct Document<'a> {
    /// Schema of this document.
    schema: &'static str,
    /// Status of the comparison.
    status: Status,
    /// Old run.
    old: &'a Identity,
    /// New run.
    new: &'a Identity,
    /// Each difference, sorted by area and key.
    changes: &'a [Difference],
    /// Reasons why a run may lack facts; empty if both runs are sound.
    incomplete: &'a [String],
    /// Notes on differences that may not be caused by the client.
    notes: &'a [String],
    /// Rules for facts that are not compared, with their numbers in both runs.
    rules: Vec<RuleForm>,
}

/// Rule that leaves facts out of the comparison.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AppliedRule")]
struct RuleForm {
    /// Name of the rule.
    name: &'static str,
    /// Facts that the rule leaves out.
    what: &'static str,
    /// Number of facts left out.
    applied: u64,
}

/// Renders the answer.
pub(super) fn render(answer: &Answer) -> Result<Vec<u8>, RenderError> {
    let rules = RULES.iter().map(|rule| RuleForm {
        name: rule.name,
        what: rule.what,
        applied: answer.applied.of(rule.name),
    });
    Ok(json::document(&Document {
        schema: SCHEMA,
        status: answer.status(),
        old: &answer.old,
        new: &answer.new,
        changes: &answer.differences,
        incomplete: &answer.incomplete,
        notes: &answer.notes,
        rules: rules.collect(),
    })?)
}
