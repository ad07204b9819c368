//! Differences between two runs as lines that can be copied.

use std::fmt;

use model::difference::{Change, Difference};

use super::page::Page;

/// Writes `+ key: value`, `- key: value`, or `~ key` with both values below it.
pub fn difference(page: &mut Page<String>, found: &Difference) -> fmt::Result {
    let key = &found.fact.key;
    match &found.change {
        Change::Added(new) => page.whole(&format!("+ {key}: {new}")),
        Change::Removed(old) => page.whole(&format!("- {key}: {old}")),
        Change::Changed { old, new } => {
            page.whole(&format!("~ {key}"))?;
            page.whole(&format!("    - {old}"))?;
            page.whole(&format!("    + {new}"))
        }
    }
}
