//! Runs of several cases, one after another, and their common reports.
//!
//! The report of each run goes to a file without a name when the run ends, so that memory does not grow with the number
//! of runs. An interruption ends the current run; the later ones are listed as not made.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use model::evidence::Exit;
use model::finding::Verdict;
use model::fleet::{CheckCounts, FirstFinding, Fleet, FleetRun};
use model::quote::shown_path;
use model::report::Report;
use report::fleet::first_finding;
use sandbox::spawn::Waiting;
use sys::clock::Clock;
use sys::process::{absorb_one_signal, block_end_signals, is_end_signal_pending};
use thiserror::Error;

use crate::bundle::output_dir::{self, OutputDirectoryError};
use crate::error_text::one_line;
use crate::output::{self, OutputError, WriteError};
use crate::request::{CaseRun, FleetRequest};
use crate::run::{self, Done, RunError};
use crate::version;

mod parts;

use parts::Parts;

/// Errors that prevent all runs.
#[derive(Debug, Error)]
pub(crate) enum FleetError {
    /// A report cannot be opened.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The directory of `--out` cannot be used.
    #[error(transparent)]
    Directory(#[from] OutputDirectoryError),
    /// No file can be made for the reports of the runs.
    #[error("cannot make a file in the temporary directory for the reports of the runs")]
    Parts(#[source] io::Error),
}

impl FleetError {
    /// Advice for the user, in one line.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Directory(error) => Some(error.hint()),
            Self::Output(_) | Self::Parts(_) => None,
        }
    }
}

/// Result of the runs.
#[derive(Debug)]
pub(crate) struct FleetDone {
    /// Verdict of all runs.
    pub(crate) verdict: Verdict,
    /// Common reports that could not be delivered.
    pub(crate) lost: Vec<WriteError>,
}

/// A run that has ended, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended<'a> {
    /// Summary of the run.
    pub(crate) run: &'a FleetRun,
    /// Number of the run, from 1.
    pub(crate) number: usize,
    /// Number of all runs.
    pub(crate) all: usize,
    /// The run, or the reason why it has no report.
    pub(crate) result: &'a Result<Done, RunError>,
}

/// Makes the runs and writes the common reports. `waiting` is a stage for the first run. `on_end` is called with each
/// run when it ends.
///
/// # Errors
/// A report or the evidence directory that cannot be opened. No run was made then.
pub(crate) fn run(
    request: FleetRequest,
    mut waiting: Option<Waiting>,
    on_end: impl Fn(Ended<'_>),
) -> Result<FleetDone, FleetError> {
    let inputs: Vec<_> = request.runs.iter().map(|case| &case.request).collect();
    let inputs: Vec<_> = inputs.into_iter().flat_map(run::inputs).collect();
    let outputs = output::open(&request.reports, &inputs)?;
    let mut parts = Parts::for_outputs(&outputs).map_err(FleetError::Parts)?;
    // From here on signals wait for the next event loop, or for the end of the run.
    block_end_signals();
    let out = request.out.as_deref();
    let out = out.map(output_dir::for_several).transpose()?;
    let hidden = outputs.iter().filter_map(output::Output::file);
    let hidden: Vec<PathBuf> = hidden.chain(out.clone()).collect();

    let (clock, started) = (Clock::start(), SystemTime::now());
    let all = request.runs.len();
    let mut runs = Vec::with_capacity(all);
    let mut is_interrupted = false;
    for (index, case) in request.runs.into_iter().enumerate() {
        is_interrupted |= is_end_signal_pending();
        if is_interrupted {
            let run = not_made(&case);
            parts.push(&run, None);
            runs.push(run);
            continue;
        }
        let case = placed(case, out.as_deref(), &hidden);
        let before = clock.elapsed_us();
        let (result, report) = match run::one_of_several(&case.request, waiting.take()) {
            Ok((done, report)) => (Ok(done), Some(report)),
            Err(error) => (Err(error), None),
        };
        let run = FleetRun {
            duration_ms: clock.elapsed_us().saturating_sub(before) / 1_000,
            ..summary(&case, &result, report.as_ref())
        };
        parts.push(&run, report.as_ref());
        on_end(Ended {
            run: &run,
            number: index + 1,
            all,
            result: &result,
        });
        is_interrupted = matches!(&result, Ok(done) if done.exit == Exit::Interrupted);
        runs.push(run);
    }
    absorb_one_signal();
    let fleet = Fleet {
        runner: version::of_this_executable(),
        started,
        duration: Duration::from_micros(clock.elapsed_us()),
        runs,
        not_cases: request
            .not_cases
            .iter()
            .map(|file| shown_path(file))
            .collect(),
    };
    Ok(FleetDone {
        verdict: fleet.verdict(),
        lost: parts.write(&fleet, outputs),
    })
}

/// Sets the evidence directory of the run, and the outputs of all runs.
fn placed(mut case: CaseRun, out: Option<&Path>, hidden: &[PathBuf]) -> CaseRun {
    let request = &mut case.request;
    request.out = out.map(|out| out.join(request.workload.name()));
    request.hidden = hidden.to_vec();
    case
}

/// Summary of a run that was not made.
fn not_made(case: &CaseRun) -> FleetRun {
    let workload = &case.request.workload;
    FleetRun {
        case: workload.name().to_owned(),
        file: shown_path(&case.file),
        verdict: None,
        duration_ms: 0,
        checks: CheckCounts::default(),
        first_finding: None,
        not_judged: workload.not_judged(),
        not_reviewed: workload.not_reviewed(),
    }
}

/// Summary of a run. A run without a report, or whose evidence could not be stored, is errored.
fn summary(case: &CaseRun, result: &Result<Done, RunError>, report: Option<&Report>) -> FleetRun {
    let of_run = |message| FirstFinding {
        check: None,
        message,
    };
    let failure = match result {
        Ok(done) => {
            let failure = done.failure.as_ref().map(|failure| one_line(failure));
            failure.or_else(|| done.lost.first().map(|lost| one_line(lost)))
        }
        Err(error) => Some(one_line(error)),
    };
    let verdict = match (&failure, report) {
        (None, Some(report)) => report.verdict,
        (Some(_), _) | (None, None) => Verdict::Errored,
    };
    FleetRun {
        verdict: Some(verdict),
        checks: report.map(CheckCounts::of).unwrap_or_default(),
        first_finding: failure
            .map(of_run)
            .or_else(|| report.and_then(first_finding)),
        ..not_made(case)
    }
}
