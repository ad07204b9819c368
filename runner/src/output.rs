//! Destinations of reports. Each output is opened before the run, or tested to be writable. A file is written under a
//! temporary name and renamed, so a reader never sees a partial report. The directory stays open from the start, so a
//! later change of the path does not redirect the report.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, StdoutLock, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use model::closed_set;
use model::quote::shown_path;
use report::{Format, RenderError};
use sys::read::name_of;
use sys::streams;
use thiserror::Error;

use crate::bundle::BundleError;
use crate::request::{Destination, ReportTarget};

mod location;
mod stream;
#[cfg(test)]
mod tests;

use location::{Location, directory};

/// A report with its opened destination.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Stdout,
    Stderr,
    /// A pipe, a terminal or a device, which is written in place.
    Stream {
        name: String,
        file: File,
    },
    /// A file that is made or replaced at the end.
    File(Location),
}

/// A file that the run reads. No report may replace it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'p> {
    /// Name of the file for people, such as `the client`.
    pub(crate) what: &'static str,
    pub(crate) path: &'p Path,
}

/// Errors of opening an output. Nothing was run.
#[derive(Debug, Error)]
pub(crate) enum OutputError {
    #[error("cannot open the {} {path}", what.word())]
    Open {
        path: String,
        what: FileKind,
        source: io::Error,
    },
    /// The directory does not allow a new file, which replaces the old one by a rename.
    #[error("cannot replace {path} in {directory}")]
    Beside {
        path: String,
        directory: String,
        source: io::Error,
    },
    /// Standard output or standard error goes to the same file.
    #[error("cannot write the {} {path}: {stream} goes to the same file", by.word())]
    IsStream {
        path: String,
        by: FileKind,
        stream: &'static str,
    },
    #[error("cannot write two reports to {path}")]
    Twice { path: String },
    #[error("the {} would replace {what}, {path}", by.word())]
    Replaces {
        path: String,
        by: FileKind,
        what: &'static str,
    },
    #[error("cannot write a report and the lock file to {path}")]
    Shared { path: String },
}

closed_set! {
    /// Kinds of file that a run writes.
    pub(crate) enum FileKind {
        Report = "report file",
        Lock = "lock file",
    }
}

/// Errors of writing an output.
#[derive(Debug, Error)]
pub(crate) enum WriteError {
    #[error("cannot write the report to {path}")]
    Report { path: String, source: io::Error },
    #[error("cannot write the lock file {path}")]
    Lock { path: String, source: io::Error },
    #[error("cannot make the {} report", format.word())]
    Render { format: Format, source: RenderError },
    /// The reports of several runs could not be kept until the end.
    #[error("cannot make the {} report: its parts could not be stored", format.word())]
    Parts { format: Format, source: io::Error },
    /// Output of an audited program could not be passed on.
    #[error("cannot pass the program's output on to {stream}")]
    Passing {
        stream: &'static str,
        source: io::Error,
    },
    /// The directory for `--keep-home` could not be made.
    #[error("cannot make a directory for the copy of the home")]
    Keep(#[source] io::Error),
    /// The directory of `--out` could not be written.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// Locked standard output. A reader that ends early, such as head(1), is no error: it has what it wanted, and the exit
/// code is that of the result.
#[derive(Debug)]
pub(crate) struct Stdout(StdoutLock<'static>);

/// Locks standard output.
///
/// # Errors
/// `EBADF` if standard output was closed when the process started.
pub(crate) fn stdout() -> io::Result<Stdout> {
    streams::stdout_is_open().map(|()| Stdout(io::stdout().lock()))
}

impl Stdout {
    /// True for a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        io::IsTerminal::is_terminal(&self.0)
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

/// Opens the outputs of `targets`.
///
/// # Errors
/// The first output that cannot be opened or is a file of `inputs`, or a file that two reports name.
pub(crate) fn open(
    targets: &[ReportTarget],
    inputs: &[Input<'_>],
) -> Result<Vec<Output>, OutputError> {
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut outputs = Vec::with_capacity(targets.len());
    for target in targets {
        let sink = match &target.destination {
            Destination::Stdout => Sink::Stdout,
            Destination::Stderr => Sink::Stderr,
            Destination::File(path) => open_file(path, inputs, &mut seen)?,
        };
        outputs.push(Output {
            format: target.format,
            sink,
        });
    }
    Ok(outputs)
}

fn open_file(
    path: &Path,
    inputs: &[Input<'_>],
    seen: &mut Vec<PathBuf>,
) -> Result<Sink, OutputError> {
    let failed = |source| OutputError::Open {
        path: shown_path(path),
        what: FileKind::Report,
        source,
    };
    match fs::metadata(path) {
        Ok(status) if status.is_file() => {}
        Ok(status) if status.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
        Ok(_) => {
            let file = stream::open(path, stream::READER_LIMIT).map_err(failed)?;
            return Ok(Sink::Stream {
                name: shown_path(path),
                file,
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let location = writable(path, FileKind::Report, inputs)?;
    if seen.iter().any(|other| other == location.path()) {
        return Err(OutputError::Twice {
            path: shown_path(location.path()),
        });
    }
    seen.push(location.path().to_owned());
    Ok(Sink::File(location))
}

/// Location of a file that can be written, and that the run does not read.
fn writable(path: &Path, by: FileKind, inputs: &[Input<'_>]) -> Result<Location, OutputError> {
    let failed = |source| OutputError::Open {
        path: shown_path(path),
        what: by,
        source,
    };
    // Follow links, so that the target is replaced and not the link.
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(_) => fs::canonicalize(directory(path)).map_err(failed)?.join(
            path.file_name()
                .ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?,
        ),
    };
    let location = Location::open(&target).map_err(failed)?;
    if let Some(file) = location.existing().map_err(failed)? {
        let status = file.metadata().map_err(failed)?;
        if let Some(stream) = streams::stream_to(&status) {
            return Err(OutputError::IsStream {
                path: shown_path(path),
                by,
                stream: stream.word(),
            });
        }
        if let Some(input) = inputs.iter().find(|input| input.is(&status)) {
            return Err(OutputError::Replaces {
                path: shown_path(path),
                by,
                what: input.what,
            });
        }
    }
    location
        .test_write()
        .map_err(|source| OutputError::Beside {
            path: shown_path(path),
            directory: shown_path(directory(&target)),
            source,
        })?;
    Ok(location)
}

/// Lock file that a run writes in the same way as a report.
#[derive(Debug)]
pub(crate) struct LockFile(Location);

impl LockFile {
    /// Tests that the file can be written.
    ///
    /// # Errors
    /// Errors of [`open`], and a file of `outputs`.
    pub(crate) fn open(
        path: &Path,
        inputs: &[Input<'_>],
        outputs: &[Output],
    ) -> Result<Self, OutputError> {
        let location = writable(path, FileKind::Lock, inputs)?;
        let mut reports = outputs.iter().filter_map(Output::file);
        if reports.any(|report| report == location.path()) {
            return Err(OutputError::Shared {
                path: shown_path(location.path()),
            });
        }
        Ok(Self(location))
    }

    /// Path of the file without links.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes the whole file.
    ///
    /// # Errors
    /// The error of the file system.
    pub(crate) fn write(self, mut text: &[u8]) -> Result<(), WriteError> {
        self.0
            .replace(&mut text)
            .map_err(|source| WriteError::Lock {
                path: shown_path(self.0.path()),
                source,
            })
    }
}

impl Input<'_> {
    /// True if both names have the same device and inode.
    fn is(&self, file: &Metadata) -> bool {
        fs::metadata(self.path)
            .is_ok_and(|input| (input.dev(), input.ino()) == (file.dev(), file.ino()))
    }
}

impl Output {
    /// Writes the rendered report.
    ///
    /// # Errors
    /// The destination and the system's error.
    pub(crate) fn write(self, mut report: &[u8]) -> Result<(), WriteError> {
        self.write_from(&mut report)
    }

    /// Writes a rendered report of any length, a piece at a time.
    ///
    /// # Errors
    /// Errors of [`Output::write`], and of the reader.
    pub(crate) fn write_from(self, report: &mut dyn Read) -> Result<(), WriteError> {
        let (path, written) = match self.sink {
            Sink::Stdout => ("standard output".to_owned(), to_stdout(report)),
            Sink::Stderr => ("standard error".to_owned(), to_stderr(report)),
            Sink::Stream { name, file } => {
                (name, stream::write(&file, report, stream::READER_LIMIT))
            }
            Sink::File(location) => (shown_path(location.path()), location.replace(report)),
        };
        written.map_err(|source| WriteError::Report { path, source })
    }

    /// Path of the report's file without links, if it has a name.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match &self.sink {
            Sink::Stdout | Sink::Stderr => None,
            Sink::Stream { file, .. } => name_of(file).ok(),
            Sink::File(location) => Some(location.path().to_owned()),
        }
    }

    /// True if the report goes to standard error.
    pub(crate) fn is_stderr(&self) -> bool {
        matches!(self.sink, Sink::Stderr)
    }

    /// True if the report goes to a terminal, so that it may have colours.
    pub(crate) fn is_terminal(&self) -> bool {
        match &self.sink {
            Sink::Stdout => io::IsTerminal::is_terminal(&io::stdout()),
            Sink::Stderr => io::IsTerminal::is_terminal(&io::stderr()),
            Sink::Stream { file, .. } => io::IsTerminal::is_terminal(file),
            Sink::File(_) => false,
        }
    }
}

fn to_stdout(report: &mut dyn Read) -> io::Result<()> {
    let mut stdout = stdout()?;
    io::copy(report, &mut stdout)?;
    stdout.flush()
}

fn to_stderr(report: &mut dyn Read) -> io::Result<()> {
    streams::stderr_is_open()?;
    io::copy(report, &mut io::stderr().lock()).map(drop)
}
