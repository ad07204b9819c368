//! `--baseline FILE`: compares the behaviour of a run with a lock file, in the check `baseline/unchanged`.
//!
//! Owns the lock file during a run: before the run it is read, or tested to be writable; after the run the check is
//! made, or the file is written. The check is not part of [`judge::check`], because it needs a file and has no
//! specification. Its id is not in [`model::finding::ids`]. [`judge::facts`] selects the compared facts, as for
//! `runner diff`.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use judge::facts::{self, RunFacts, compare};
use judge::{check, gate};
use model::difference::Difference;
use model::evidence::Exit;
use model::finding::{AskedBy, BASELINE, Finding, Status};
use model::quote::{quoted, shown_path};
use model::report::{BaselineOutcome, LockPlace, Purpose, Report};
use policy::below;
use report::{self, json};
use sys::read::{self, ReadError};
use thiserror::Error;

use crate::output::{Input, LockFile, Output, OutputError, WriteError};
use crate::request::Baseline;

#[cfg(test)]
mod tests;

use judge::lock::{self, Lock, LockFault, Made, drift};

/// Limit of a lock file's size, in bytes.
const MAX_LOCK_BYTES: u64 = 64 * 1024 * 1024;

/// Number of differences whose lines are looked up. Code scanning shows the first line, and accepts ten.
const MAX_LINES: usize = 10;

/// Errors of a lock file before the run.
#[derive(Debug, Error)]
pub(crate) enum BaselineError {
    #[error("cannot read the lock file")]
    Read(#[source] ReadError),
    #[error("{file}:{fault}")]
    Lock { file: String, fault: LockFault },
    #[error("cannot use the lock file {file}: it belongs to {found}, and this run to {case}")]
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
            Self::Lock { .. } => Some(
                "correct the line, or remove the file and write a new one with --update-baseline",
            ),
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
    /// Path of the file as code scanning names it.
    repository_path: PathBuf,
    /// Path of the file without links.
    path: PathBuf,
    task: Task,
}

/// Use of the lock file after the run.
#[derive(Debug)]
enum Task {
    /// Compare the behaviour with the file.
    Compare { lock: Lock, bytes: Vec<u8> },
    /// Write the behaviour to the file.
    Write {
        /// Contents before the run; `None` if the file does not exist.
        old: Option<Lock>,
        file: LockFile,
    },
}

/// Reads the lock file, or tests that it can be written.
///
/// # Errors
/// The file cannot be read, is not a lock file, or belongs to another case than `case`. A file to write is not
/// writable, is an input of the run, or is a report.
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
            let file = LockFile::open(path, inputs, outputs)?;
            (path, Task::Write { old, file })
        }
    };
    Ok(Opened {
        shown: shown_path(path),
        repository_path: below(std::env::current_dir().ok().as_deref(), path),
        path: match &task {
            Task::Compare { .. } => std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
            Task::Write { file, .. } => file.path().to_owned(),
        },
        task,
    })
}

/// Reads a lock file and its bytes. Its case must be `case` before it is compared or replaced.
fn read_lock(path: &Path, case: &str) -> Result<(Lock, Vec<u8>), BaselineError> {
    let bytes = read::regular(path, MAX_LOCK_BYTES).map_err(BaselineError::Read)?;
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
    /// Path without links. The sandbox must not show this file to the client.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the check, or writes the file. Adds the finding and the differences to the report, and updates its
    /// verdict.
    ///
    /// # Errors
    /// The file could not be written.
    pub(crate) fn settle(self, report: &mut Report) -> Result<(), WriteError> {
        let outcome = self.task.run(report);
        report.checks.push(outcome.check.finding(&self.shown));
        report.verdict = match report.purpose {
            Purpose::Judge => check::verdict(&report.checks, &report.evidence),
            Purpose::Audit => gate::verdict(&report.checks, &report.evidence),
        };
        report.baseline = outcome.section.map(|section| model::report::Baseline {
            file: self.shown,
            outcome: section.outcome,
            tier_before: section.tier_before,
            differences: section.differences,
        });
        report.lock_place = Some(LockPlace {
            path: self.repository_path,
            lines: outcome.lines,
        });
        outcome.lost.map_or(Ok(()), Err)
    }
}

/// Result of the check.
struct TaskOutcome {
    check: CheckOutcome,
    section: Option<Section>,
    /// Lines of the differences in the lock file.
    lines: Vec<usize>,
    /// Error of writing the file.
    lost: Option<WriteError>,
}

/// Data of the report besides the finding.
struct Section {
    outcome: BaselineOutcome,
    tier_before: Option<String>,
    differences: Vec<Difference>,
}

impl From<CheckOutcome> for TaskOutcome {
    /// A result without a comparison and without a written file.
    fn from(check: CheckOutcome) -> Self {
        Self {
            check,
            section: None,
            lines: Vec::new(),
            lost: None,
        }
    }
}

impl Task {
    fn run(self, report: &Report) -> TaskOutcome {
        match (self, complete_behaviour(report)) {
            (Self::Compare { .. }, Err(because)) => CheckOutcome::errored(because).into(),
            (Self::Write { .. }, Err(because)) => CheckOutcome::unwritten(because).into(),
            (Self::Compare { lock, bytes }, Ok(behaviour)) => {
                compared(&lock, &bytes, &behaviour, report)
            }
            (Self::Write { old, file }, Ok(behaviour)) => {
                written(old.as_ref(), file, &behaviour, report)
            }
        }
    }
}

/// Facts of the run, from the JSON report that `runner diff` reads. Fails with the reason if the run cannot be
/// compared.
fn complete_behaviour(report: &Report) -> Result<RunFacts, String> {
    let cannot =
        |error: &dyn std::error::Error| format!("cannot compare the report of this run: {error}");
    let rendered = json::render(report).map_err(|error| cannot(&error))?;
    let form = facts::Report::parse(&rendered).map_err(|error| cannot(&error))?;
    let behaviour = RunFacts::of(&form);
    let incomplete = form.incomplete().into_iter();
    let incomplete: Vec<String> = incomplete.chain(behaviour.incomplete()).collect();
    match incomplete.as_slice() {
        [] => Ok(behaviour),
        reasons => Err(reasons.join("; ")),
    }
}

fn compared(lock: &Lock, bytes: &[u8], behaviour: &RunFacts, report: &Report) -> TaskOutcome {
    // The isolation of a run with `--isolation auto` is known only after the run.
    let tier = report.tier.word();
    if lock.tier() != tier {
        let because = format!(
            "the lock file has isolation {locked}, and this run has {tier}: `--isolation` selects it, and \
             `--update-baseline` writes the file for this one",
            locked = quoted(lock.tier())
        );
        return TaskOutcome {
            lines: lock::line_of_tier(bytes),
            ..CheckOutcome::errored(because).into()
        };
    }
    let (expected, found) = lock.comparable(behaviour.facts());
    let differences = compare(&expected, &found);
    let check = match differences.len() {
        0 => CheckOutcome::unchanged(found.len(), behaviour.facts().len()),
        _ => CheckOutcome::drifted(&differences),
    };
    TaskOutcome {
        lines: lock::lines(bytes, differences.iter().take(MAX_LINES)),
        section: Some(Section {
            outcome: BaselineOutcome::Compared,
            tier_before: None,
            differences,
        }),
        ..check.into()
    }
}

fn written(
    old: Option<&Lock>,
    file: LockFile,
    behaviour: &RunFacts,
    report: &Report,
) -> TaskOutcome {
    if let Some(reason) = partial_run_reason(report.evidence.exit) {
        return CheckOutcome::unwritten(reason).into();
    }
    let new = Lock::of(behaviour, made(report), old, report);
    if let Err(error) = file.write(new.print().as_bytes()) {
        let check = CheckOutcome::lost(&error);
        return TaskOutcome {
            lost: Some(error),
            ..check.into()
        };
    }
    let section = match old {
        None => Section {
            outcome: BaselineOutcome::Made,
            tier_before: None,
            differences: Vec::new(),
        },
        Some(old) => {
            let (before, now) = old.comparable(new.facts());
            Section {
                outcome: BaselineOutcome::Updated,
                tier_before: (old.tier() != new.tier()).then(|| old.tier().to_owned()),
                differences: compare(&before, &now),
            }
        }
    };
    TaskOutcome {
        section: Some(section),
        ..CheckOutcome::written().into()
    }
}

/// Reason why a run shows only the beginning of a behaviour. A lock file of such a run would lack the client's later
/// actions.
fn partial_run_reason(exit: Exit) -> Option<String> {
    let cause = match exit {
        Exit::Timeout(after) => format!("the runner ended it after {:.1} s", after.as_secs_f64()),
        Exit::OutputLimit => "the runner ended it at its output limit".to_owned(),
        Exit::RequestLimit => "the runner ended it at its request limit".to_owned(),
        // RLIMIT_CPU ends a process by SIGXCPU or SIGKILL (setrlimit(2)), and so does a lack of memory.
        Exit::Signal(number @ (libc::SIGKILL | libc::SIGXCPU)) => {
            format!("signal {number} ended it, as at a limit of time or memory")
        }
        Exit::Code(_) | Exit::Signal(_) | Exit::Interrupted | Exit::NotStarted => return None,
    };
    Some(format!(
        "this run does not show all that the client does: {cause}"
    ))
}

fn made(report: &Report) -> Made {
    let program = report.client.program.rsplit('/').next();
    Made {
        client: program.unwrap_or_default().to_owned(),
        sha256: report
            .client
            .content
            .sha256()
            .unwrap_or_default()
            .to_owned(),
        runner: report.runner.version.clone(),
    }
}

/// Message for `all` facts, of which `compared` were compared. The lock file accepts any value (`*`) for the others.
fn match_message(compared: usize, all: usize) -> String {
    let accepted = match all.saturating_sub(compared) {
        0 => String::new(),
        1 => ", and 1 with any value".to_owned(),
        more => format!(", and {more} with any value"),
    };
    format!("The behaviour matches the lock file: {compared} facts{accepted}.")
}

/// Outcome of the check.
struct CheckOutcome {
    status: Status,
    message: String,
    found: Option<String>,
    because: Option<String>,
}

impl CheckOutcome {
    fn unchanged(compared: usize, all: usize) -> Self {
        Self {
            status: Status::Passed,
            message: match_message(compared, all),
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
            message: "The behaviour of this run was not written to the lock file.".to_owned(),
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
            id: BASELINE.into(),
            status: self.status,
            message: self.message,
            object: Some(file.to_owned()),
            expected: self
                .found
                .as_ref()
                .map(|_| "the behaviour in the lock file".to_owned()),
            found: self.found,
            because: self.because,
            accept: None,
            asked_by: AskedBy::LockFile,
        }
    }
}
