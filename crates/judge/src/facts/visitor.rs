//! State of the visit of one report, shared by the readers of its parts.

use super::mask::{Kind, Masks};
use super::{Applied, Facts};

/// Visitor of one report.
pub(super) struct Visitor {
    pub(super) facts: Facts,
    pub(super) masks: Masks,
    pub(super) applied: Applied,
}

impl Visitor {
    /// Text of the client with placeholders.
    pub(super) fn text(&mut self, text: &str) -> String {
        self.masks.apply(text, Kind::Text, &mut self.applied)
    }
}
