//! Reports of a run: a function for each format, from a [`Report`] to bytes.
//!
//! Owns the claims of a run and their words. The verdict and the findings come from the crate `judge`, the evidence
//! from [`model::evidence`]. A report neither judges nor collects.
//!
//! Text of the client is hostile. Each report escapes control, bidirectional and invisible characters, and commands to
//! the log of a CI system. Escapes of the JSON report read back unchanged; the other reports show them.

use model::closed_set;
use model::report::Report;

mod claims;
mod document;
pub mod fleet;
pub mod frame;
mod headline;
pub mod html;
pub mod human;
pub mod json;
pub mod junit;
pub mod markdown;
mod phrases;
pub mod sarif;
mod tone;

use human::Colour;

#[cfg(test)]
pub(crate) mod tests;

closed_set! {
    /// Format of a report.
    pub enum Format {
        /// Text for a terminal.
        Human = "human",
        /// JSON, the whole report.
        Json = "json",
        /// JUnit XML, a test case for each check.
        Junit = "junit",
        /// Markdown for the summary page of a CI job.
        Markdown = "markdown",
        /// One HTML page.
        Html = "html",
        /// SARIF for code scanning, a result for each failed or errored finding.
        Sarif = "sarif",
    }
}

/// Renders the report in a format; `colour` applies to [`Format::Human`].
///
/// # Errors
/// A value that the format cannot hold.
pub fn render(report: &Report, format: Format, colour: Colour) -> Result<Vec<u8>, RenderError> {
    match format {
        Format::Human => human::render(report, colour),
        Format::Json => json::render(report),
        Format::Junit => junit::render(report),
        Format::Markdown => markdown::render(report),
        Format::Html => html::render(report),
        Format::Sarif => sarif::render(report),
    }
}

/// Format of other output, such as that of `runner doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text for people.
    Human,
    /// JSON for programs.
    Json,
}

/// Failure to render a report.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A value has no JSON form.
    #[error("cannot write the report as JSON")]
    Json(#[from] serde_json::Error),
    /// The report has no XML form.
    #[error("cannot write the report as JUnit XML")]
    Junit(#[from] quick_junit::SerializeError),
    /// A document of several runs has no place for them.
    #[error("cannot put the runs into the report")]
    NoPlace,
    /// A text could not be formatted.
    #[error("cannot format the report")]
    Text(#[from] std::fmt::Error),
}
