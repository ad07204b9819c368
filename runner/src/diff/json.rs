//! The answer for programs: JSON of schema `runner.diff/1`.

use judge::facts::Rule;
use model::case::Tier;
use model::schema;
use model::schema::values::{Sha256, Timestamp, closed_sets};
use report::RenderError;
use report::json;
use report::json::change_form::ChangeForm;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::{Answer, Identity, Status};

const SCHEMA: &str = "runner.diff/1";

/// The schema of what `runner diff --json` writes.
pub fn schema() -> Schema {
    schema::of_document::<Document<'_>>(SCHEMA)
}

closed_sets! {
    /// What a comparison came to. `incomplete`: one of the runs was not sound, or its evidence has gaps, so that what is
    /// missing from it says nothing.
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

/// What changed between two runs. Readers ignore keys that they do not know. Texts may be the client's own and
/// hostile; control and invisible characters are escaped.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Comparison of runner")]
struct Document<'a> {
    /// The form of this document.
    schema: &'static str,
    /// The word for the whole comparison.
    #[schemars(with = "Status")]
    status: &'static str,
    /// The run that is compared with.
    old: Run<'a>,
    /// The other one.
    new: Run<'a>,
    /// Each difference, sorted by area and key.
    changes: Vec<ChangeForm<'a>>,
    /// Why a run says nothing of what it does not show; empty for two sound ones.
    incomplete: &'a [String],
    /// Why some of it may not be the client's doing.
    notes: &'a [String],
    /// What is not compared, and how often that was so in both runs together.
    rules: Vec<RuleForm>,
}

/// A run, by what tells it from others.
#[derive(Serialize, JsonSchema)]
struct Run<'a> {
    /// The report, as given on the command line.
    file: &'a str,
    /// Path of the program, or `built in`.
    client: &'a str,
    /// Digest of the program.
    #[schemars(with = "Sha256")]
    sha256: &'a str,
    /// Name of the profile; null for an audited program.
    profile: Option<&'a str>,
    /// Name of the case.
    case: &'a str,
    /// What sealed the network.
    #[schemars(with = "Tier")]
    tier: &'a str,
    /// When it began.
    #[schemars(with = "Timestamp")]
    started_at: &'a str,
    /// Version of the runner.
    runner: &'a str,
}

/// A rule by which something is not compared.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AppliedRule")]
struct RuleForm {
    /// Its name.
    #[schemars(with = "Rule")]
    name: &'static str,
    /// What it leaves out.
    what: &'static str,
    /// How often.
    applied: u64,
}

/// Renders it.
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
