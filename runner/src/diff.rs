//! `runner diff`: compares two runs by their JSON reports.
//!
//! Owns reading the reports, the notes on runs of different kinds, and the answer. [`judge::facts`] selects the
//! compared facts. If a run was unsound or lost evidence, its differences are true but not complete. The answer is
//! then *incomplete*, never *unchanged*.

use std::io::{self, Write};
use std::path::Path;

use judge::facts::{self, Applied, Report, RunFacts};
use model::case::Tier;
use model::closed_set;
use model::difference::{Change, Difference};
use model::digest;
use model::quote::shown_path;
use model::report::document::DocumentError;
use model::schema::values::{Sha256, Timestamp};
use report::human::Colour;
use report::{Form, RenderError};
use schemars::JsonSchema;
use serde::Serialize;
use sys::read::{self, ReadError};
use thiserror::Error;

use crate::bundle;
use crate::bundle::sums::{self, SumsError};
use crate::request::DiffRequest;

mod human;
mod json;
#[cfg(test)]
mod tests;

pub use json::schema;

/// Limit of a report's size, in bytes.
const MAX_REPORT_BYTES: u64 = 256 * 1024 * 1024;

closed_set! {
    /// Status of a comparison.
    pub(crate) enum Status {
        /// No difference: exit status 0.
        Unchanged = "unchanged",
        /// A difference: exit status 1.
        Changed = "changed",
        /// A run is unsound or lost evidence, so differences may be missing: exit status 2.
        Incomplete = "incomplete",
    }
}

/// Errors of `runner diff`.
#[derive(Debug, Error)]
pub(crate) enum DiffError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    InBundle(ReadError),
    #[error("{directory} is not a directory of `--out`: it has no {}", sums::NAME)]
    NoBundle { directory: String },
    #[error("cannot parse {} of {directory}", sums::NAME)]
    Sums {
        directory: String,
        source: SumsError,
    },
    #[error(
        "cannot use {directory}: its {} does not match {}",
        bundle::REPORT,
        sums::NAME
    )]
    Report { directory: String },
    #[error("cannot read {file} as a JSON report")]
    Form { file: String, source: DocumentError },
    #[error("cannot build the answer")]
    Render(#[from] RenderError),
    #[error("cannot write the answer")]
    Write(#[from] io::Error),
}

impl DiffError {
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Read(error) if error.is_absence() => {
                Some("name a file of `--report json=FILE`, or a directory of `--out DIR`")
            }
            Self::NoBundle { .. } => {
                Some("name a directory of `--out DIR`, or the report itself to compare it anyway")
            }
            Self::InBundle(_) | Self::Sums { .. } | Self::Report { .. } => Some(
                "`runner verify DIR` lists each difference; name the report itself to compare it anyway",
            ),
            Self::Form { .. } => Some("`--report json=FILE` writes one"),
            Self::Read(_) | Self::Render(_) | Self::Write(_) => None,
        }
    }
}

/// Properties that identify a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Run")]
struct Identity {
    /// The report, as given on the command line.
    file: String,
    /// Path of the program, or `built in`.
    client: String,
    /// SHA-256 of the program; null for a client that is part of the runner's executable.
    #[schemars(with = "Option<Sha256>")]
    sha256: Option<String>,
    /// Name of the profile; null in an audit.
    profile: Option<String>,
    /// Name of the case.
    case: String,
    /// Isolation of the network.
    tier: Tier,
    /// Start of the run.
    #[schemars(with = "Timestamp")]
    started_at: String,
    /// Version of the runner.
    runner: String,
}

/// Contents of an answer.
#[derive(Debug)]
struct Answer {
    old: Identity,
    new: Identity,
    differences: Vec<Difference>,
    incomplete: Vec<String>,
    notes: Vec<String>,
    applied: Applied,
}

/// Compares two runs and writes the answer to `out`.
///
/// # Errors
/// A report that cannot be read, or an output that cannot be written.
pub(crate) fn run(
    request: &DiffRequest,
    colour: Colour,
    out: &mut impl Write,
) -> Result<Status, DiffError> {
    let answer = Answer::of(
        (&request.old, load(&request.old)?),
        (&request.new, load(&request.new)?),
    );
    let rendered = match request.form {
        Form::Human => human::render(&answer, colour)?,
        Form::Json => json::render(&answer)?,
    };
    out.write_all(&rendered)?;
    out.flush()?;
    Ok(answer.status())
}

/// Reads a report from a file, or from a directory of `--out`.
fn load(path: &Path) -> Result<Report, DiffError> {
    let inside = path.join(bundle::REPORT);
    let (path, bytes) = if path.is_dir() {
        (inside.as_path(), of_bundle(path, &inside)?)
    } else {
        (path, read::regular(path, MAX_REPORT_BYTES)?)
    };
    Report::parse(&bytes).map_err(|source| DiffError::Form {
        file: shown_path(path),
        source,
    })
}

/// Reads the report of a directory of `--out`. Fails if its digest is not the one in `SHA256SUMS`, and for a symbolic
/// link, because a bundle has none.
fn of_bundle(directory: &Path, report: &Path) -> Result<Vec<u8>, DiffError> {
    let shown = || shown_path(directory);
    let document = match read::regular_not_link(&directory.join(sums::NAME), sums::MAX_BYTES) {
        Err(error) if error.is_absence() => {
            let directory = shown();
            return Err(DiffError::NoBundle { directory });
        }
        read => read.map_err(DiffError::InBundle)?,
    };
    let listed = sums::parse(&document).map_err(|source| DiffError::Sums {
        directory: shown(),
        source,
    })?;
    let bytes = read::regular_not_link(report, MAX_REPORT_BYTES).map_err(DiffError::InBundle)?;
    let sha256 = digest::of_bytes(&bytes);
    if listed.get(bundle::REPORT) == Some(&sha256) {
        Ok(bytes)
    } else {
        let directory = shown();
        Err(DiffError::Report { directory })
    }
}

impl Answer {
    fn of((old_path, old): (&Path, Report), (new_path, new): (&Path, Report)) -> Self {
        let behaviours = (RunFacts::of(&old), RunFacts::of(&new));
        let runs = [
            ("the old run", &old, &behaviours.0),
            ("the new run", &new, &behaviours.1),
        ];
        let incomplete = runs.map(|(which, report, behaviour)| {
            let reasons = report.incomplete().into_iter();
            let reasons = reasons.chain(behaviour.incomplete());
            reasons.map(move |reason| format!("{which}: {reason}"))
        });
        let (old, new) = (Identity::of(old_path, &old), Identity::of(new_path, &new));
        let mut differences = facts::compare(behaviours.0.facts(), behaviours.1.facts());
        // If a run was cut, a fact that is missing in it may belong to its lost part.
        differences.retain(|found| match found.change {
            Change::Added(_) => !behaviours.0.is_cut(),
            Change::Removed(_) => !behaviours.1.is_cut(),
            Change::Changed { .. } => true,
        });
        Self {
            differences,
            incomplete: incomplete.into_iter().flatten().collect(),
            notes: notes(&old, &new),
            applied: behaviours.0.applied().clone().and(behaviours.1.applied()),
            old,
            new,
        }
    }

    fn status(&self) -> Status {
        if !self.incomplete.is_empty() {
            Status::Incomplete
        } else if self.differences.is_empty() {
            Status::Unchanged
        } else {
            Status::Changed
        }
    }
}

impl Identity {
    fn of(path: &Path, report: &Report) -> Self {
        let document = &report.document;
        let client = &document.client.client;
        Self {
            file: shown_path(path),
            client: client.program.clone(),
            sha256: client.content.sha256().map(str::to_owned),
            profile: client.profile.as_ref().map(|profile| profile.name.clone()),
            case: document.case.name.clone(),
            tier: document.tier,
            started_at: document.started_at.clone(),
            runner: document.runner.version.clone(),
        }
    }
}

/// Notes on differences that may not be caused by the client.
fn notes(old: &Identity, new: &Identity) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |property: &str, one: &str, other: &str| {
        if one != other {
            notes.push(format!("the {property} differs: {one} before, {other} now"));
        }
    };
    let profile = |run: &Identity| run.profile.clone().unwrap_or("none, an audit".to_owned());
    note("case", &old.case, &new.case);
    note("profile", &profile(old), &profile(new));
    note("isolation", old.tier.word(), new.tier.word());
    note("version of the runner", &old.runner, &new.runner);
    if old.tier != new.tier {
        let inherited = "with isolation inherited, name lookups are not visible, and programs and directories have the host's paths";
        notes.push(inherited.to_owned());
    }
    notes
}
