//! The bundle of evidence of `--out`, and `runner verify`.

use std::path::PathBuf;

/// What is to be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyRequest {
    /// The bundle.
    pub directory: PathBuf,
    /// SHA-256 that its manifest must have, lower-case hex.
    pub required: Option<String>,
}
