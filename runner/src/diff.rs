//! `runner diff`: what changed between two runs.

use std::path::PathBuf;

use crate::report::Form;

/// What is to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffRequest {
    /// A JSON report, or a bundle.
    pub old: PathBuf,
    /// Another one.
    pub new: PathBuf,
    /// How the answer looks.
    pub form: Form,
}
