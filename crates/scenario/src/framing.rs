//! How the events of a stream are spelt: line ends, and what else a decoder has to bear.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The spelling of a stream. The default is that of the public interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Framing {
    /// How a line ends.
    pub(crate) line_end: LineEnd,
    /// A byte order mark before everything.
    pub(crate) bom: bool,
    /// A comment line before each event.
    pub(crate) comments: bool,
    /// The space after the colon of `data:`.
    pub(crate) data_space: bool,
    /// The empty line that ends the last event.
    pub(crate) last_blank_line: bool,
}

/// How a line ends; all three are allowed in an event stream.
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
