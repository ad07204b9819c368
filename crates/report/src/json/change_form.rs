//! One difference in JSON: the same keys in a comparison of two runs and in the drift of a run from its lock file.

use model::difference::{Area, Difference, Kind};
use schemars::JsonSchema;
use serde::Serialize;

/// One fact that is not the same on both sides.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Change")]
pub struct ChangeForm<'a> {
    /// The part of the behaviour.
    #[schemars(with = "Area")]
    area: &'static str,
    /// What became of it.
    #[schemars(with = "Kind")]
    kind: &'static str,
    /// What it is about: `POST /v1/messages user-agent`.
    key: &'a str,
    /// Its value in the old run or the lock file; null where it was not there.
    old: Option<&'a str>,
    /// Its value in the new run; null where it is not there.
    new: Option<&'a str>,
}

impl<'a> From<&'a Difference> for ChangeForm<'a> {
    fn from(found: &'a Difference) -> Self {
        Self {
            area: found.fact.area.word(),
            kind: found.change.word(),
            key: &found.fact.key,
            old: found.change.before(),
            new: found.change.now(),
        }
    }
}
