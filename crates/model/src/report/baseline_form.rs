//! JSON form of a comparison with a lock file: each difference with the edit that accepts it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Baseline, BaselineOutcome};
use crate::difference::{Accept, Difference};

/// A lock file and the drift from it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Baseline")]
pub(super) struct BaselineForm {
    /// The file, as given on the command line.
    file: String,
    /// Use of the file.
    outcome: BaselineOutcome,
    /// Isolation of the old file, if it was rewritten for another isolation.
    tier_before: Option<String>,
    /// Differences, sorted by area and key; for an updated file, its changes.
    differences: Vec<Drift>,
}

/// One fact that differs from the lock file.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Drift {
    /// The difference.
    #[serde(flatten)]
    difference: Difference,
    /// Edit that accepts the difference; null if the file was written and already has the fact.
    accept: Option<Accept>,
}

impl From<Baseline> for BaselineForm {
    fn from(baseline: Baseline) -> Self {
        let differences = baseline.differences.iter().map(|difference| Drift {
            difference: difference.clone(),
            accept: baseline.to_accept(difference),
        });
        Self {
            differences: differences.collect(),
            file: baseline.file,
            outcome: baseline.outcome,
            tier_before: baseline.tier_before,
        }
    }
}

impl From<BaselineForm> for Baseline {
    fn from(form: BaselineForm) -> Self {
        let differences = form.differences.into_iter();
        Self {
            file: form.file,
            outcome: form.outcome,
            tier_before: form.tier_before,
            differences: differences.map(|drift| drift.difference).collect(),
        }
    }
}
