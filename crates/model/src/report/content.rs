//! Identity of the content of a client's program, and its form in JSON.

use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::schema::values::Sha256;

/// Identity of the content of a client's program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "ContentForm", into = "ContentForm")]
pub enum Content {
    /// Part of the runner's executable, which its build id names.
    BuiltIn,
    /// A file whose content was read in this run, with its SHA-256 in lower-case hex.
    Read(String),
    /// An unchanged file whose content an earlier run has read, with its SHA-256 in lower-case hex.
    Cached(String),
}

closed_set! {
    /// Source of a program's SHA-256.
    pub enum DigestSource {
        /// The file was read in this run.
        Read = "read",
        /// The cache knew the unchanged file.
        Cache = "cache",
        /// No SHA-256: the program is part of the runner's executable.
        BuiltIn = "built-in",
    }
}

impl Content {
    /// Returns the SHA-256; `None` for a program in the runner's executable.
    pub fn sha256(&self) -> Option<&str> {
        match self {
            Self::BuiltIn => None,
            Self::Read(sha256) | Self::Cached(sha256) => Some(sha256),
        }
    }

    /// Returns the source of the SHA-256.
    pub const fn from(&self) -> DigestSource {
        match self {
            Self::BuiltIn => DigestSource::BuiltIn,
            Self::Read(_) => DigestSource::Read,
            Self::Cached(_) => DigestSource::Cache,
        }
    }
}

/// SHA-256 of a program, and its source.
#[derive(Serialize, Deserialize, JsonSchema)]
struct ContentForm {
    /// SHA-256 of the program; absent for a client that is part of the runner's executable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Sha256")]
    sha256: Option<String>,
    /// Source of the SHA-256.
    // A report without a source is from before digests were remembered, when every program was read.
    #[serde(default = "read")]
    from: DigestSource,
}

fn read() -> DigestSource {
    DigestSource::Read
}

impl From<Content> for ContentForm {
    fn from(content: Content) -> Self {
        Self {
            from: content.from(),
            sha256: content.sha256().map(str::to_owned),
        }
    }
}

/// A report whose SHA-256 of the program does not fit its source.
#[derive(Debug, Error)]
#[error("expected {} of a program from {}", if *.0 == DigestSource::BuiltIn { "no sha256" } else { "sha256" }, .0.word())]
struct WrongDigest(DigestSource);

impl TryFrom<ContentForm> for Content {
    type Error = WrongDigest;

    fn try_from(ContentForm { sha256, from }: ContentForm) -> Result<Self, WrongDigest> {
        match (from, sha256) {
            (DigestSource::BuiltIn, None) => Ok(Self::BuiltIn),
            (DigestSource::Read, Some(sha256)) => Ok(Self::Read(sha256)),
            (DigestSource::Cache, Some(sha256)) => Ok(Self::Cached(sha256)),
            (from @ DigestSource::BuiltIn, Some(_))
            | (from @ (DigestSource::Read | DigestSource::Cache), None) => Err(WrongDigest(from)),
        }
    }
}
