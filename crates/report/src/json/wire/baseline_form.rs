//! Form of `baseline` in schema `runner.report/1`.

use model::difference::Accept;
use model::report::BaselineOutcome;
use schemars::JsonSchema;
use serde::Serialize;

use crate::json::change_form::ChangeForm;

/// A lock file and the drift from it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Baseline<'a> {
    /// The file, as given on the command line.
    file: &'a str,
    /// Use of the file: compared, updated or made.
    #[schemars(with = "BaselineOutcome")]
    outcome: &'static str,
    /// Isolation of the old file, if it was rewritten for another isolation.
    tier_before: Option<&'a str>,
    /// Differences, sorted by area and key; for an updated file, its changes.
    differences: Vec<Drift<'a>>,
}

/// One fact that differs from the lock file.
#[derive(Serialize, JsonSchema)]
struct Drift<'a> {
    /// The difference.
    #[serde(flatten)]
    change: ChangeForm<'a>,
    /// Edit that accepts the difference; null if the file was written and already has the fact.
    accept: Option<AcceptForm>,
}

/// One line of the lock file.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Accept")]
struct AcceptForm {
    /// Edit of the line: `add`, `change`, `delete`.
    verb: &'static str,
    /// Table of the line: `[headers]`.
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
