//! Framing of an event stream: line ends, byte order mark, comments, spaces and blank lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Framing of an event stream. The default is the framing of the public interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Framing {
    /// End of each line.
    pub(crate) line_end: LineEnd,
    /// A byte order mark before the first event.
    pub(crate) bom: bool,
    /// A comment line before each event.
    pub(crate) comments: bool,
    /// A space after the colon of `data:`.
    pub(crate) data_space: bool,
    /// An empty line after the last event.
    pub(crate) last_blank_line: bool,
}

/// End of a line. An event stream allows all three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LineEnd {
    #[default]
    Lf,
    Crlf,
    Cr,
}

impl LineEnd {
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::Crlf => b"\r\n",
            Self::Cr => b"\r",
        }
    }
}

impl Default for Framing {
    fn default() -> Self {
        Self {
            line_end: LineEnd::default(),
            bom: false,
            comments: false,
            data_space: true,
            last_blank_line: true,
        }
    }
}
