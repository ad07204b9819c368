//! `--baseline FILE`: the behaviour of a run against a lock file, and the check `baseline/unchanged`.
//!
//! Owns the file from before the run, when it is read or proved to be writable, to the end, when the check is made or
//! the file is written. The check is none of [`crate::check`]: it compares with a file, is made only where one is
//! named, and no specification asks for it; its id is not among [`crate::check::ids`]. What is compared is
//! [`crate::behaviour`]'s, as `runner diff` has it.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::behaviour::form::{FormError, Report as Form};
use crate::behaviour::{Behaviour, Difference, compare};
use crate::case::outline::below;
use crate::check;
use crate::cli::Baseline;
use crate::evidence::Exit;
use crate::output::{Input, LockFile, Output, OutputError, WriteError};
use crate::policy::{quoted, shown_path};
use crate::read::{self, ReadError};
use crate::report::{self, BaselineOutcome, RenderError, Report, json};
use crate::verdict::{AskedBy, Finding, Status};

pub mod lock;
#[cfg(test)]
mod tests;
pub(crate) mod told;

use lock::{Lock, LockFault, Made};

/// The check's stable id.
pub const CHECK: &str = "baseline/unchanged";

/// The longest lock file that is read, in bytes.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Most differences whose lines are looked up: code scanning shows the first, and takes ten.
const MOST_PLACES: usize = 10;

/// Why nothing is run, or what came of a run cannot be compared.
#[derive(Debug, Error)]
pub(crate) enum BaselineError {
    #[error("the lock file cannot be read")]
    Read(#[source] ReadError),
    #[error("{file}:{fault}")]
    Lock { file: String, fault: LockFault },
    #[error("the lock file {file} is of {found}, and this run is of {case}")]
    OtherCase {
        file: String,
        found: String,
        case: String,
    },
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl BaselineError {
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Read(error) if error.is_absence() => {
                Some("--update-baseline makes it from the behaviour of this run")
            }
            Self::Read(_) => None,
            Self::Lock { .. } => {
                Some("mend the line, or remove the file and make it anew with --update-baseline")
            }
            Self::OtherCase { .. } => {
                Some("name this case's own lock file, or make one with --update-baseline")
            }
            Self::Output(
                OutputError::Replaces { .. }
                | OutputError::Shared { .. }
                | OutputError::IsStream { .. },
            ) => Some("give the lock file a name of its own"),
            Self::Output(_) => None,
        }
    }
}

/// A lock file before the run.
#[derive(Debug)]
pub(crate) struct Opened {
    shown: String,
    /// As code scanning names it.
    place_in_repository: PathBuf,
    /// Free of links.
    path: PathBuf,
    task: Task,
}

/// What is done with a lock file after the run.
#[derive(Debug)]
enum Task {
    /// The behaviour is compared with what it holds.
    Compare { lock: Lock, bytes: Vec<u8> },
    /// It is written.
    Write {
        /// What it holds; `None` where it is yet to be made.
        old: Option<Lock>,
        place: LockFile,
    },
}

/// Reads the lock file, or proves that it can be written.
///
/// # Errors
/// A file that cannot be read, is no lock file or is of another case than `case`; one to be written that cannot be, that
/// the run reads, or that is a report's.
pub(crate) fn open(
    baseline: &Baseline,
    case: &str,
    inputs: &[Input<'_>],
    outputs: &[Output],
) -> Result<Opened, BaselineError> {
    let (path, task) = match baseline {
        Baseline::Compare(path) => {
            let (lock, bytes) = read_lock(path, case)?;
            (path, Task::Compare { lock, bytes })
        }
        Baseline::Update(path) => {
            let old = match read_lock(path, case) {
                Err(BaselineError::Read(error)) if error.is_absence() => None,
                read => Some(read?.0),
            };
            let place = LockFile::open(path, inputs, outputs)?;
            (path, Task::Write { old, place })
        }
    };
    Ok(Opened {
        shown: shown_path(path),
        place_in_repository: below(std::env::current_dir().ok().as_deref(), path),
        path: match &task {
            Task::Compare { .. } => std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
            Task::Write { place, .. } => place.path().to_owned(),
        },
        task,
    })
}

/// The lock file of this case, which it must be before it is compared with, and before it is replaced; and its bytes.
fn read_lock(path: &Path, case: &str) -> Result<(Lock, Vec<u8>), BaselineError> {
    let bytes = read::regular(path, MOST_BYTES).map_err(BaselineError::Read)?;
    let lock = Lock::parse(&bytes).map_err(|fault| BaselineError::Lock {
        file: shown_path(path),
        fault,
    })?;
    if lock.case() == case {
        return Ok((lock, bytes));
    }
    Err(BaselineError::OtherCase {
        file: shown_path(path),
        found: quoted(lock.case()),
        case: case.to_owned(),
    })
}

impl Opened {
    /// The file, free of links: the client must not be shown it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the check, or writes the file; the finding, the differences and the verdict go into the report.
    ///
    /// # Errors
    /// The file could not be written.
    pub(crate) fn settle(self, report: &mut Report) -> Result<(), WriteError> {
        let (settled, told, written) = match behaviour_of(report) {
            Err(error) => {
                let why = format!("the report of this run cannot be compared: {error}");
                (Settled::errored(why), None, Ok(()))
            }
            Ok((_, incomplete)) if !incomplete.is_empty() => {
                (Settled::errored(incomplete.join("; ")), None, Ok(()))
            }
            Ok((behaviour, _)) => match (self.task, cut_short(report.evidence.exit)) {
                (Task::Compare { lock, bytes }, _) => {
                    let (settled, differences) = judge(&lock, &behaviour, report);
                    let told = differences.map(|differences| Told {
                        outcome: BaselineOutcome::Compared,
                        lines: lock::lines(&bytes, differences.iter().take(MOST_PLACES)),
                        differences,
                    });
                    (settled, told, Ok(()))
                }
                (Task::Write { .. }, Some(why)) => (Settled::unwritten(why), None, Ok(())),
                (Task::Write { old, place }, None) => {
                    let new = Lock::of(&behaviour, made(report), old.as_ref(), report);
                    let told = told_of_update(old.as_ref(), &new);
                    match place.write(new.print().as_bytes()) {
                        Ok(()) => (Settled::written(), Some(told), Ok(())),
                        Err(error) => (Settled::lost(&error), None, Err(error)),
                    }
                }
            },
        };
        report.checks.push(settled.finding(&self.shown));
        report.verdict = check::verdict(&report.checks, &report.evidence);
        report.baseline = told.map(|told| report::Baseline {
            file: self.shown,
            place: self.place_in_repository,
            lines: told.lines,
            outcome: told.outcome,
            differences: told.differences,
        });
        written
    }
}

/// What goes into the report beside the finding.
struct Told {
    outcome: BaselineOutcome,
    differences: Vec<Difference>,
    /// Where in the file.
    lines: Vec<usize>,
}

/// Why there is nothing to compare.
#[derive(Debug, Error)]
#[error(transparent)]
enum Incomparable {
    Rendered(#[from] RenderError),
    Form(#[from] FormError),
}

/// The behaviour as `runner diff` will read it from the JSON report of this run, and why it is not the whole.
fn behaviour_of(report: &Report) -> Result<(Behaviour, Vec<String>), Incomparable> {
    let form = Form::parse(&json::render(report)?)?;
    let behaviour = Behaviour::of(&form);
    let incomplete = form.incomplete().into_iter();
    let incomplete = incomplete.chain(behaviour.incomplete()).collect();
    Ok((behaviour, incomplete))
}

/// Why a run shows the beginning of a behaviour only. What a client would still have done is in no such run, and a
/// lock file made of it would let all of that go.
fn cut_short(exit: Exit) -> Option<String> {
    let limit = match exit {
        Exit::Timeout(after) => format!("after {:.1} s", after.as_secs_f64()),
        Exit::OutputLimit => "at its output limit".to_owned(),
        Exit::RequestLimit => "at its request limit".to_owned(),
        Exit::Code(_) | Exit::Signal(_) | Exit::Interrupted | Exit::NotStarted => return None,
    };
    Some(format!(
        "the runner ended the client {limit}: this run does not show all that the client does"
    ))
}

fn made(report: &Report) -> Made {
    let program = report.client.program.rsplit('/').next();
    Made {
        client: program.unwrap_or_default().to_owned(),
        sha256: report.client.sha256.clone(),
        runner: report.runner.version.clone(),
    }
}

fn told_of_update(old: Option<&Lock>, new: &Lock) -> Told {
    let (outcome, differences) = match old {
        None => (BaselineOutcome::Made, Vec::new()),
        Some(old) => {
            let (before, now) = old.comparable(new.facts());
            (BaselineOutcome::Updated, compare(&before, &now))
        }
    };
    Told {
        outcome,
        differences,
        lines: Vec::new(),
    }
}

fn judge(
    lock: &Lock,
    behaviour: &Behaviour,
    report: &Report,
) -> (Settled, Option<Vec<Difference>>) {
    // The strongest tier that the host has is known only now.
    let tier = report.tier.word();
    if lock.tier() != tier {
        let because = format!(
            "the lock file is of tier {}, and this run of tier {tier}",
            quoted(lock.tier())
        );
        return (Settled::errored(because), None);
    }
    let (expected, found) = lock.comparable(behaviour.facts());
    let differences = compare(&expected, &found);
    let settled = match differences.len() {
        0 => Settled {
            status: Status::Passed,
            message: as_locked(found.len(), behaviour.facts().len()),
            found: None,
            because: None,
        },
        number => Settled {
            status: Status::Failed,
            message: match number {
                1 => "The behaviour differs from the lock file in 1 place.".to_owned(),
                more => format!("The behaviour differs from the lock file in {more} places."),
            },
            found: Some(told::found(&differences)),
            because: None,
        },
    };
    (settled, Some(differences))
}

/// Of a behaviour of so many facts of which so many were compared; for the others the lock file has `*`.
fn as_locked(compared: usize, all: usize) -> String {
    let accepted = match all.saturating_sub(compared) {
        0 => String::new(),
        1 => ", and 1 accepted whatever it is".to_owned(),
        more => format!(", and {more} accepted whatever they are"),
    };
    format!("The behaviour is as the lock file has it: {compared} facts{accepted}.")
}

/// How the check came out.
struct Settled {
    status: Status,
    message: String,
    found: Option<String>,
    because: Option<String>,
}

impl Settled {
    fn errored(because: String) -> Self {
        Self {
            status: Status::Errored,
            message: "This run cannot be compared with the lock file, nor be written to it."
                .to_owned(),
            found: None,
            because: Some(because),
        }
    }

    fn unwritten(because: String) -> Self {
        Self {
            message: "This run cannot be written to the lock file.".to_owned(),
            ..Self::errored(because)
        }
    }

    fn lost(error: &WriteError) -> Self {
        let source = error.source().map(|source| format!(": {source}"));
        Self {
            message: "The behaviour of this run is in no lock file.".to_owned(),
            ..Self::errored(format!("{error}{}", source.unwrap_or_default()))
        }
    }

    fn written() -> Self {
        Self {
            status: Status::Skipped,
            message: "Not checked.".to_owned(),
            found: None,
            because: Some("the lock file was written with the behaviour of this run".to_owned()),
        }
    }

    fn finding(self, file: &str) -> Finding {
        Finding {
            id: CHECK,
            status: self.status,
            message: self.message,
            object: Some(file.to_owned()),
            expected: self
                .found
                .as_ref()
                .map(|_| "the behaviour in the lock file".to_owned()),
            found: self.found,
            because: self.because,
            asked_by: AskedBy::LockFile,
        }
    }
}
