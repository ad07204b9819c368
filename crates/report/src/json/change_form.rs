//! JSON form of one difference, shared by `runner diff` and by the drift from a lock file.

use model::difference::{Area, Difference, Kind};
use schemars::JsonSchema;
use serde::Serialize;

/// One fact that differs between both sides.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Change")]
pub struct ChangeForm<'a> {
    /// The part of the behaviour.
    #[schemars(with = "Area")]
    area: &'static str,
    /// Kind of the difference.
    #[schemars(with = "Kind")]
    kind: &'static str,
    /// Key of the fact: `POST /v1/messages user-agent`.
    key: &'a str,
    /// Value in the old run or the lock file; null if it was not there.
    old: Option<&'a str>,
    /// Value in the new run; null if it is not there.
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
