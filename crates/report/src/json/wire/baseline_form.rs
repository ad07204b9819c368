//! What stands under `baseline` in schema `runner.report/1`.

use model::difference::Accept;
use model::report::BaselineOutcome;
use schemars::JsonSchema;
use serde::Serialize;

use crate::json::change_form::ChangeForm;

/// A lock file, and how the behaviour differs from it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Baseline<'a> {
    /// The file, as given on the command line.
    file: &'a str,
    /// What was done with it.
    #[schemars(with = "BaselineOutcome")]
    outcome: &'static str,
    /// The tier that the file was of, where it was written anew for another.
    tier_before: Option<&'a str>,
    /// Each difference, sorted by area and key; of a file that was updated, what changed in it.
    differences: Vec<Drift<'a>>,
}

/// One fact that the lock file does not have so.
#[derive(Serialize, JsonSchema)]
struct Drift<'a> {
    /// What differs.
    #[serde(flatten)]
    change: ChangeForm<'a>,
    /// What makes it accepted; null where the file was written, and has it already.
    accept: Option<AcceptForm>,
}

/// One line of the lock file.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Accept")]
struct AcceptForm {
    /// What to do with the line: `add`, `change`, `delete`.
    verb: &'static str,
    /// The table in which it stands: `[headers]`.
    table: String,
    /// The whole line.
    line: String,
}

impl<'a> From<&'a model::report::Baseline> for Baseline<'a> {
    fn from(baseline: &'a model::report::Baseline) -> Self {
        let differences = baseline.differences.iter();
        Self {
            file: &baseline.file,
            outcome: baseline.outcome.word(),
            tier_before: baseline.tier_before.as_deref(),
            differences: differences
                .map(|found| Drift {
                    change: ChangeForm::from(found),
                    accept: baseline.to_accept(found).map(AcceptForm::from),
                })
                .collect(),
        }
    }
}

impl From<Accept> for AcceptForm {
    fn from(Accept { verb, table, line }: Accept) -> Self {
        Self { verb, table, line }
    }
}
