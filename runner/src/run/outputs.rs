//! Outputs of one run: reports, lock file, bundle. They are opened before the run, and written from its one
//! report.

use std::path::{Path, PathBuf};

use model::case::Source;
use model::report::Report;
use sys::process::block_end_signals;

use super::{RunError, colour};
use crate::baseline::{self, Opened};
use crate::bundle::{self, Bundle, Bundled};
use crate::collect::home_copy;
use crate::output::{self, Input, Output, WriteError};
use crate::request::{Baseline, ClientProgram, RunRequest, StdinChoice};
use crate::workload::Workload;

/// Opened outputs.
#[derive(Debug)]
pub(super) struct Outputs {
    reports: Vec<Output>,
    lock: Option<Opened>,
    bundle: Option<Bundle>,
    /// Outputs of several runs.
    shared: Vec<PathBuf>,
}

/// Result of writing the outputs.
#[derive(Debug)]
pub(super) struct Written {
    /// Outputs that could not be written.
    pub(super) lost: Vec<WriteError>,
    /// The bundle, if it is complete.
    pub(super) bundled: Option<Bundled>,
}

impl Outputs {
    /// Opens the outputs. The bundle is last: its directory is created, so the steps after it must not fail.
    ///
    /// # Errors
    /// Returns the error of the first output that cannot be opened, or that would overwrite an input or another
    /// output.
    pub(super) fn open(request: &RunRequest) -> Result<Self, RunError> {
        let inputs = inputs(request);
        let mut outputs = Self {
            reports: output::open(&request.reports, &inputs)?,
            lock: None,
            bundle: None,
            shared: request.hidden.clone(),
        };
        let case = request.workload.name();
        if let Some(lock) = &request.baseline {
            outputs.lock = Some(baseline::open(lock, case, &inputs, &outputs.reports)?);
        }
        if request.keep_home {
            home_copy::try_out().map_err(RunError::Keep)?;
        }
        let mut others = outputs.files();
        // The directory in which the copy of the home will be created.
        others.extend(request.keep_home.then(temporary_directory));
        // Signals are blocked until the event loop handles them; the new directory must not be left behind.
        block_end_signals();
        outputs.bundle = bundle::open(request.out.as_deref(), &others)?;
        Ok(outputs)
    }

    /// Returns the paths of the outputs, with links resolved; the client must not see them.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let lock = self.lock.as_ref().map(Opened::path);
        let bundle = self.bundle.as_ref().map(Bundle::path);
        let others = lock.into_iter().chain(bundle).map(Path::to_owned);
        let reports = self.reports.iter().filter_map(Output::file);
        let shared = self.shared.iter().cloned();
        reports.chain(others).chain(shared).collect()
    }

    /// Returns the bundle, which takes the client's output and files before they are removed.
    pub(super) fn bundle(&mut self) -> Option<&mut Bundle> {
        self.bundle.as_mut()
    }

    /// Compares with the lock file first, which may change the verdict, so that all reports agree. Every output is
    /// tried even if another one failed. `before` is written before the report on standard error.
    pub(super) fn write(self, report: &mut Report, before: &mut Vec<u8>) -> Written {
        let unlocked = self.lock.and_then(|lock| lock.settle(report).err());
        let mut lost = write(self.reports, report, before);
        let mut missing = Vec::new();
        let bundled = self
            .bundle
            .and_then(|bundle| bundle.finish(report, &mut missing));
        lost.extend(missing.into_iter().map(WriteError::from));
        lost.extend(unlocked);
        Written { lost, bundled }
    }
}

/// Returns the temporary directory with links resolved.
fn temporary_directory() -> PathBuf {
    let typed = std::env::temp_dir();
    typed.canonicalize().unwrap_or(typed)
}

fn write(outputs: Vec<Output>, report: &Report, before: &mut Vec<u8>) -> Vec<WriteError> {
    let mut lost = Vec::new();
    for output in outputs {
        let (format, colour) = (output.format, colour(output.is_terminal()));
        let written = report::render(report, format, colour)
            .map_err(|source| WriteError::Render { format, source })
            .and_then(|mut rendered| {
                if output.is_stderr() {
                    rendered.splice(..0, before.drain(..));
                }
                output.write(&rendered)
            });
        lost.extend(written.err());
    }
    lost
}

/// Returns the files that the run reads.
pub(crate) fn inputs(request: &RunRequest) -> Vec<Input<'_>> {
    let origin = &request.workload.origin().source;
    let (policies, what) = match &request.workload {
        Workload::Client { profile, .. } => (
            [
                policy_file("the case", origin),
                policy_file("the profile", &profile.origin.source),
            ],
            "the client",
        ),
        Workload::Inline { .. } => ([policy_file("the case", origin), None], "the client"),
        Workload::Program(_) => ([policy_file("the policy", origin), None], "the program"),
    };
    let program = match &request.client {
        ClientProgram::File(path) => Some(Input { what, path }),
        ClientProgram::Reference | ClientProgram::Hostile => None,
    };
    let lock = match &request.baseline {
        Some(Baseline::Compare(path)) => Some(Input {
            what: "the lock file",
            path,
        }),
        Some(Baseline::Update(_)) | None => None,
    };
    let stdin = match &request.stdin {
        StdinChoice::File(path) => Some(Input {
            what: "the standard input",
            path,
        }),
        StdinChoice::Nothing | StdinChoice::Inherit => None,
    };
    let own = Input {
        what: "the runner",
        path: Path::new(sys::process::OWN_FILE),
    };
    policies
        .into_iter()
        .flatten()
        .chain(program)
        .chain(lock)
        .chain(stdin)
        .chain([own])
        .collect()
}

fn policy_file<'r>(what: &'static str, source: &'r Source) -> Option<Input<'r>> {
    match source {
        Source::File(path) => Some(Input { what, path }),
        Source::BuiltIn => None,
    }
}
