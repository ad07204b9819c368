//! The one value that every report shows, and the reports: a function each, from a [`Report`] to bytes.
//!
//! Owns the claims of a run and the words for them. A report judges nothing and collects nothing: the verdict,
//! the findings and the evidence come from [`judge::check`] and [`model::evidence`].
//!
//! Text of the client is hostile. The JSON report escapes it so that it reads back unchanged, the others show the
//! escapes; none lets a control, bidirectional or invisible character through, nor a command to the log of a CI
//! system.

use model::report::Report;

mod claims;
mod headline;
pub mod html;
pub mod human;
pub mod json;
pub mod junit;
pub mod markdown;
mod phrases;
pub mod sarif;

use human::Colour;

#[cfg(test)]
pub(crate) mod tests;

/// How a report looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people, on a terminal.
    Human,
    /// The whole report, for programs.
    Json,
    /// A test case for each check, for CI systems.
    Junit,
    /// For the summary page of a CI job.
    Markdown,
    /// A page of its own, for a browser.
    Html,
    /// For code scanning: a result for each finding.
    Sarif,
}

impl Format {
    /// Every one there is.
    pub const ALL: [Self; 6] = [
        Self::Human,
        Self::Json,
        Self::Junit,
        Self::Markdown,
        Self::Html,
        Self::Sarif,
    ];

    /// As typed after `--report`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
            Self::Junit => "junit",
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::Sarif => "sarif",
        }
    }
}

/// The report in a format; `colour` is for [`Format::Human`].
///
/// # Errors
/// A value that has no such form.
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

/// The form of an answer that is no report of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Human,
    /// For programs.
    Json,
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A value has no JSON form.
    #[error("the report has no JSON form")]
    Json(#[from] serde_json::Error),
    /// The report has no XML form.
    #[error("the report has no JUnit form")]
    Junit(#[from] quick_junit::SerializeError),
    /// A text could not be formatted.
    #[error("the report could not be formatted")]
    Text(#[from] std::fmt::Error),
}
