//! `--baseline FILE`: the behaviour of a run against a lock file, and the check `baseline/unchanged`.
//!
//! Owns the file from before the run, when it is read or proved to be writable, to the end, when the check is made or
//! the file is written. The check is none of [`judge::check`]: it compares with a file, is made only where one is
//! named, and no specification asks for it; its id is not among [`model::finding::ids`]. What is compared is
//! [`judge::behaviour`]'s, as `runner diff` has it.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use judge::check;
use judge::facts::form::Report as Form;
use judge::facts::{Behaviour, compare};
use model::difference::Difference;
use model::evidence::Exit;
use model::finding::{AskedBy, BASELINE, Finding, Status};
use model::quote::{quoted, shown_path};
use model::report::{BaselineOutcome, LockPlace, Report};
use policy::below;
use report::{self, json};
use sys::read::{self, ReadError};
use thiserror::Error;

use crate::cli::Baseline;
use crate::output::{Input, LockFile, Output, OutputError, WriteError};

#[cfg(test)]
mod tests;

use judge::lock::{self, Lock, LockFault, Made, drift};

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
        let end = self.task.end(report);
        report.checks.push(end.settled.finding(&self.shown));
        report.verdict = check::verdict(&report.checks, &report.evidence);
        report.baseline = end.told.map(|told| model::report::Baseline {
            file: self.shown,
            outcome: told.outcome,
            tier_before: told.tier_before,
            differences: told.differences,
        });
        report.lock_place = Some(LockPlace {
            path: self.place_in_repository,
            lines: end.lines,
        });
        end.lost.map_or(Ok(()), Err)
    }
}

/// What a lock file came to.
struct End {
    settled: Settled,
    told: Option<Told>,
    /// Where to look in the file.
    lines: Vec<usize>,
    /// Why it was not written.
    lost: Option<WriteError>,
}

/// What goes into the report beside the finding.
struct Told {
    outcome: BaselineOutcome,
    tier_before: Option<String>,
    differences: Vec<Difference>,
}

impl From<Settled> for End {
    /// Nothing was compared or written.
    fn from(settled: Settled) -> Self {
        Self {
            settled,
            told: None,
            lines: Vec::new(),
            lost: None,
        }
    }
}

impl Task {
    fn end(self, report: &Report) -> End {
        match (self, whole_behaviour(report)) {
            (Self::Compare { .. }, Err(because)) => Settled::errored(because).into(),
            (Self::Write { .. }, Err(because)) => Settled::unwritten(because).into(),
            (Self::Compare { lock, bytes }, Ok(behaviour)) => {
                compared(&lock, &bytes, &behaviour, report)
            }
            (Self::Write { old, place }, Ok(behaviour)) => {
                written(old.as_ref(), place, &behaviour, report)
            }
        }
    }
}

/// The behaviour as `runner diff` will read it from the JSON report of this run; else why there is nothing to compare.
fn whole_behaviour(report: &Report) -> Result<Behaviour, String> {
    let cannot = |error: &dyn std::error::Error| {
        format!("the report of this run cannot be compared: {error}")
    };
    let rendered = json::render(report).map_err(|error| cannot(&error))?;
    let form = Form::parse(&rendered).map_err(|error| cannot(&error))?;
    let behaviour = Behaviour::of(&form);
    let incomplete = form.incomplete().into_iter();
    let incomplete: Vec<String> = incomplete.chain(behaviour.incomplete()).collect();
    match incomplete.as_slice() {
        [] => Ok(behaviour),
        reasons => Err(reasons.join("; ")),
    }
}

fn compared(lock: &Lock, bytes: &[u8], behaviour: &Behaviour, report: &Report) -> End {
    // The strongest tier that the host has is known only now.
    let tier = report.tier.word();
    if lock.tier() != tier {
        let because = format!(
            "the lock file is of tier {locked}, and this run of tier {tier}: `--isolation` asks for a tier, and \
             `--update-baseline` writes the file for this one",
            locked = quoted(lock.tier())
        );
        return End {
            lines: lock::line_of_tier(bytes),
            ..Settled::errored(because).into()
        };
    }
    let (expected, found) = lock.comparable(behaviour.facts());
    let differences = compare(&expected, &found);
    let settled = match differences.len() {
        0 => Settled::unchanged(found.len(), behaviour.facts().len()),
        _ => Settled::drifted(&differences),
    };
    End {
        lines: lock::lines(bytes, differences.iter().take(MOST_PLACES)),
        told: Some(Told {
            outcome: BaselineOutcome::Compared,
            tier_before: None,
            differences,
        }),
        ..settled.into()
    }
}

fn written(old: Option<&Lock>, place: LockFile, behaviour: &Behaviour, report: &Report) -> End {
    if let Some(why) = cut_short(report.evidence.exit) {
        return Settled::unwritten(why).into();
    }
    let new = Lock::of(behaviour, made(report), old, report);
    if let Err(error) = place.write(new.print().as_bytes()) {
        let settled = Settled::lost(&error);
        return End {
            lost: Some(error),
            ..settled.into()
        };
    }
    let told = match old {
        None => Told {
            outcome: BaselineOutcome::Made,
            tier_before: None,
            differences: Vec::new(),
        },
        Some(old) => {
            let (before, now) = old.comparable(new.facts());
            Told {
                outcome: BaselineOutcome::Updated,
                tier_before: (old.tier() != new.tier()).then(|| old.tier().to_owned()),
                differences: compare(&before, &now),
            }
        }
    };
    End {
        told: Some(told),
        ..Settled::written().into()
    }
}

/// Why a run shows the beginning of a behaviour only. What a client would still have done is in no such run, and a
/// lock file made of it would let all of that go.
fn cut_short(exit: Exit) -> Option<String> {
    let what = match exit {
        Exit::Timeout(after) => format!("the runner ended it after {:.1} s", after.as_secs_f64()),
        Exit::OutputLimit => "the runner ended it at its output limit".to_owned(),
        Exit::RequestLimit => "the runner ended it at its request limit".to_owned(),
        // So does a limit of processor time (setrlimit(2)), or want of memory.
        Exit::Signal(number @ (libc::SIGKILL | libc::SIGXCPU)) => {
            format!("signal {number} ended it, as at a limit of time or memory")
        }
        Exit::Code(_) | Exit::Signal(_) | Exit::Interrupted | Exit::NotStarted => return None,
    };
    Some(format!(
        "this run does not show all that the client does: {what}"
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
    fn unchanged(compared: usize, all: usize) -> Self {
        Self {
            status: Status::Passed,
            message: as_locked(compared, all),
            found: None,
            because: None,
        }
    }

    fn drifted(differences: &[Difference]) -> Self {
        Self {
            status: Status::Failed,
            message: match differences.len() {
                1 => "The behaviour differs from the lock file in 1 place.".to_owned(),
                more => format!("The behaviour differs from the lock file in {more} places."),
            },
            found: Some(drift::found(differences)),
            because: None,
        }
    }

    fn errored(because: String) -> Self {
        Self {
            status: Status::Errored,
            message: "This run cannot be compared with the lock file.".to_owned(),
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
            id: BASELINE,
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
