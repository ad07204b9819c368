//! `runner diff`: what changed between two runs, told from their JSON reports.
//!
//! Owns where the reports are read, what is said of runs that are hardly alike, and the answer. What is compared and
//! what is not belongs to [`judge::behaviour`]. A run that was not sound, or whose evidence has gaps in what is
//! compared, shows differences that are true and misses others: its answer is *incomplete*, and never *unchanged*.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use judge::facts::form::{FormError, Report};
use judge::facts::{self, Applied, Behaviour};
use model::difference::{Change, Difference};
use model::digest;
use model::quote::shown_path;
use report::human::Colour;
use report::{Form, RenderError};
use sys::read::{self, ReadError};
use thiserror::Error;

use crate::bundle;
use crate::bundle::manifest::{self, Manifest, ManifestError};

mod human;
mod json;
#[cfg(test)]
mod tests;

pub use json::schema;

/// The longest report that is read, in bytes.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// What is to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffRequest {
    /// A JSON report, or a bundle.
    pub old: PathBuf,
    /// Another one.
    pub new: PathBuf,
    /// How the answer looks.
    pub form: Form,
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Exit status 0.
    Unchanged,
    /// Exit status 1.
    Changed,
    /// Exit status 2: one of the runs says nothing of what it does not show.
    Incomplete,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum DiffError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{directory} is no bundle: it has no {}", manifest::NAME)]
    NoBundle { directory: String },
    #[error("the manifest of {directory} cannot be relied on")]
    Manifest {
        directory: String,
        source: ManifestError,
    },
    #[error(
        "{directory} is not whole: {} is not the one that its manifest says",
        bundle::REPORT
    )]
    Report { directory: String },
    #[error("{file} is no report that can be compared")]
    Form { file: String, source: FormError },
    #[error("the answer cannot be made")]
    Render(#[from] RenderError),
    #[error("the answer cannot be written")]
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
            Self::Manifest { .. } | Self::Report { .. } => {
                Some("`runner verify DIR` tells more; name the report itself to compare it anyway")
            }
            Self::Form { .. } => Some("`--report json=FILE` writes one"),
            Self::Read(_) | Self::Render(_) | Self::Write(_) => None,
        }
    }
}

/// A run by what tells it from others.
#[derive(Debug)]
struct Identity {
    file: String,
    client: String,
    sha256: String,
    /// `None` for an audited program.
    profile: Option<String>,
    case: String,
    tier: String,
    started_at: String,
    runner: String,
}

/// Everything that an answer shows.
#[derive(Debug)]
struct Answer {
    old: Identity,
    new: Identity,
    differences: Vec<Difference>,
    incomplete: Vec<String>,
    notes: Vec<String>,
    applied: Applied,
}

/// Compares and writes the answer to `out`.
///
/// # Errors
/// What cannot be read or written.
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

/// A directory is a bundle.
fn load(path: &Path) -> Result<Report, DiffError> {
    let inside = path.join(bundle::REPORT);
    let (path, bytes) = if path.is_dir() {
        (inside.as_path(), of_bundle(path, &inside)?)
    } else {
        (path, read::regular(path, MOST_BYTES)?)
    };
    Report::parse(&bytes).map_err(|source| DiffError::Form {
        file: shown_path(path),
        source,
    })
}

/// The report of a bundle, which is the one of its run only where the manifest says so.
fn of_bundle(directory: &Path, report: &Path) -> Result<Vec<u8>, DiffError> {
    let shown = || shown_path(directory);
    let document = match read::regular(&directory.join(manifest::NAME), manifest::MAX_BYTES) {
        Err(error) if error.is_absence() => {
            let directory = shown();
            return Err(DiffError::NoBundle { directory });
        }
        read => read?,
    };
    let manifest = Manifest::parse(&document).map_err(|source| DiffError::Manifest {
        directory: shown(),
        source,
    })?;
    let bytes = read::regular(report, MOST_BYTES)?;
    let sha256 = digest::of_bytes(&bytes);
    let mut listed = manifest.files.iter();
    if listed.any(|file| file.path == bundle::REPORT && file.sha256 == sha256) {
        Ok(bytes)
    } else {
        let directory = shown();
        Err(DiffError::Report { directory })
    }
}

impl Answer {
    fn of((old_path, old): (&Path, Report), (new_path, new): (&Path, Report)) -> Self {
        let behaviours = (Behaviour::of(&old), Behaviour::of(&new));
        let runs = [
            ("the old run", &old, &behaviours.0),
            ("the new run", &new, &behaviours.1),
        ];
        let incomplete = runs.map(|(which, report, behaviour)| {
            let reasons = report.incomplete().into_iter();
            let reasons = reasons.chain(behaviour.incomplete());
            reasons.map(move |why| format!("{which}: {why}"))
        });
        let (old, new) = (Identity::of(old_path, old), Identity::of(new_path, new));
        let mut differences = facts::compare(behaviours.0.facts(), behaviours.1.facts());
        // What is not seen in the beginning of a run may be in its rest.
        differences.retain(|found| match found.change {
            Change::Added(_) => !behaviours.0.is_cut(),
            Change::Removed(_) => !behaviours.1.is_cut(),
            Change::Changed { .. } => true,
        });
        Self {
            differences,
            incomplete: incomplete.into_iter().flatten().collect(),
            notes: notes(&old, &new),
            applied: behaviours.0.applied().and(&behaviours.1.applied()),
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
    fn of(path: &Path, report: Report) -> Self {
        Self {
            file: shown_path(path),
            client: report.client.program,
            sha256: report.client.sha256,
            profile: report.client.profile.map(|profile| profile.name),
            case: report.case.name,
            tier: report.tier,
            started_at: report.started_at,
            runner: report.runner.version,
        }
    }
}

/// Why some of what differs may not be the client's doing.
fn notes(old: &Identity, new: &Identity) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |what: &str, one: &str, other: &str| {
        if one != other {
            notes.push(format!("the {what} is another: {one} before, {other} now"));
        }
    };
    let profile = |run: &Identity| run.profile.clone().unwrap_or("none, an audit".to_owned());
    note("case", &old.case, &new.case);
    note("profile", &profile(old), &profile(new));
    note("tier", &old.tier, &new.tier);
    note("version of the runner", &old.runner, &new.runner);
    if old.tier != new.tier {
        let inherited = "in tier inherited no names are asked for, and programs and directories are where the host has them";
        notes.push(inherited.to_owned());
    }
    notes
}
