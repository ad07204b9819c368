//! Reports of several runs around the reports of single ones.

/// Text around the parts of a report.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// Text before the first part; the whole report of a format without parts.
    pub head: Vec<u8>,
    /// Text after the last part.
    pub tail: Vec<u8>,
}

impl Frame {
    /// Splits a document at the place of its parts. Returns `None` for a document without that place.
    pub(super) fn split(
        document: &[u8],
        place: &str,
        [before, after]: [&'static str; 2],
    ) -> Option<Self> {
        let document = str::from_utf8(document).ok()?;
        let (head, tail) = document.rsplit_once(place)?;
        Some(Self {
            head: [head, before].concat().into_bytes(),
            tail: [after, tail].concat().into_bytes(),
        })
    }
}
