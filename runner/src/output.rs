//! Where reports go. Each output is opened, or proved to be writable, before the run; a file is written whole
//! under a temporary name and renamed, so that a reader never sees half a report. Its directory is held open from
//! the start: whatever is made of the path meanwhile, the report goes where it was judged to go.

use std::fs::{self, File, Metadata};
use std::io::{self, StdoutLock, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use model::quote::shown_path;
use report::{Format, RenderError};
use sys::streams;
use thiserror::Error;

use crate::bundle::BundleError;
use crate::cli::{Destination, ReportTarget};

mod location;
mod stream;
#[cfg(test)]
mod tests;

use location::{Location, directory};

pub(crate) use location::name_of;

/// A report that can be written.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Stdout,
    Stderr,
    /// A pipe, a terminal, /dev/null: written as it is.
    Stream {
        name: String,
        file: File,
    },
    /// A file that is made or replaced at the end.
    File(Location),
}

/// A file that the run reads, and that no report may replace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'p> {
    /// For people: `the client`.
    pub(crate) what: &'static str,
    pub(crate) path: &'p Path,
}

/// Why nothing is run: a report would have no place.
#[derive(Debug, Error)]
pub(crate) enum OutputError {
    #[error("cannot open the {} {path}", what.file())]
    Open {
        path: String,
        what: Written,
        source: io::Error,
    },
    /// It is written beside its name and renamed, which takes a right to the directory.
    #[error("cannot replace {path} in {directory}")]
    Beside {
        path: String,
        directory: String,
        source: io::Error,
    },
    /// Its text and the report would go over each other.
    #[error("the {} {path} is what {stream} goes to", by.file())]
    IsStream {
        path: String,
        by: Written,
        stream: &'static str,
    },
    #[error("two reports go to {path}")]
    Twice { path: String },
    #[error("the {} would replace {what}, {path}", by.word())]
    Replaces {
        path: String,
        by: Written,
        what: &'static str,
    },
    #[error("a report and the lock file go to {path}")]
    Shared { path: String },
}

/// What a run writes to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Report,
    Lock,
}

impl Written {
    fn word(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Lock => "lock file",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Report => "report file",
            Self::Lock => "lock file",
        }
    }
}

/// What was lost on its way out, and why.
#[derive(Debug, Error)]
pub(crate) enum WriteError {
    #[error("cannot write the report to {path}")]
    Report { path: String, source: io::Error },
    #[error("cannot write the lock file {path}")]
    Lock { path: String, source: io::Error },
    #[error("cannot make the {} report", format.word())]
    Render { format: Format, source: RenderError },
    /// Output of an audited program.
    #[error("cannot pass the program's output on to {stream}")]
    Passing {
        stream: &'static str,
        source: io::Error,
    },
    /// The directory for `--keep-home`.
    #[error("cannot make a directory for the copy of the home")]
    Keep(#[source] io::Error),
    /// The bundle of `--out`.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// Standard output, where this process has one.
///
/// # Errors
/// `EBADF` where it was closed at the start.
pub(crate) fn stdout() -> io::Result<StdoutLock<'static>> {
    streams::stdout_is_open().map(|()| io::stdout().lock())
}

/// Opens the outputs of `targets`.
///
/// # Errors
/// The first that cannot be opened, one that is a file of `inputs`, and one file that two reports go to by different
/// names.
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
        what: Written::Report,
        source,
    };
    match fs::metadata(path) {
        Ok(status) if status.is_file() => {}
        Ok(status) if status.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
        Ok(_) => {
            let file = stream::open(path, stream::READER).map_err(failed)?;
            return Ok(Sink::Stream {
                name: shown_path(path),
                file,
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let place = writable(path, Written::Report, inputs)?;
    if seen.iter().any(|other| other == place.path()) {
        return Err(OutputError::Twice {
            path: shown_path(place.path()),
        });
    }
    seen.push(place.path().to_owned());
    Ok(Sink::File(place))
}

/// The place of a file that can be written, and that the run does not read.
fn writable(path: &Path, by: Written, inputs: &[Input<'_>]) -> Result<Location, OutputError> {
    let failed = |source| OutputError::Open {
        path: shown_path(path),
        what: by,
        source,
    };
    // Through links, so that the file they lead to is replaced and not the link.
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(_) => fs::canonicalize(directory(path)).map_err(failed)?.join(
            path.file_name()
                .ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?,
        ),
    };
    let place = Location::open(&target).map_err(failed)?;
    if let Some(file) = place.existing().map_err(failed)? {
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
    place.try_out().map_err(|source| OutputError::Beside {
        path: shown_path(path),
        directory: shown_path(directory(&target)),
        source,
    })?;
    Ok(place)
}

/// The lock file of a run that writes it, beside its reports and in the same way.
#[derive(Debug)]
pub(crate) struct LockFile(Location);

impl LockFile {
    /// Proves that it can be written.
    ///
    /// # Errors
    /// As for [`open`]; a file of `outputs` too.
    pub(crate) fn open(
        path: &Path,
        inputs: &[Input<'_>],
        outputs: &[Output],
    ) -> Result<Self, OutputError> {
        let place = writable(path, Written::Lock, inputs)?;
        let mut reports = outputs.iter().filter_map(Output::file);
        if reports.any(|report| report == place.path()) {
            return Err(OutputError::Shared {
                path: shown_path(place.path()),
            });
        }
        Ok(Self(place))
    }

    /// Free of links.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes the whole file.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn write(self, text: &[u8]) -> Result<(), WriteError> {
        self.0.replace(text).map_err(|source| WriteError::Lock {
            path: shown_path(self.0.path()),
            source,
        })
    }
}

impl Input<'_> {
    /// Whether it is this file, by whatever name.
    fn is(&self, file: &Metadata) -> bool {
        fs::metadata(self.path)
            .is_ok_and(|input| (input.dev(), input.ino()) == (file.dev(), file.ino()))
    }
}

impl Output {
    /// Writes the rendered report.
    ///
    /// # Errors
    /// The destination and what the system said. A closed pipe is an error too: nobody has read the verdict.
    pub(crate) fn write(self, report: &[u8]) -> Result<(), WriteError> {
        let (path, written) = match self.sink {
            Sink::Stdout => ("standard output".to_owned(), to_stdout(report)),
            Sink::Stderr => ("standard error".to_owned(), to_stderr(report)),
            Sink::Stream { name, file } => (name, stream::write(&file, report, stream::READER)),
            Sink::File(place) => (shown_path(place.path()), place.replace(report)),
        };
        written.map_err(|source| WriteError::Report { path, source })
    }

    /// The file that the report goes to, free of links, where it has a name.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match &self.sink {
            Sink::Stdout | Sink::Stderr => None,
            Sink::Stream { file, .. } => name_of(file).ok(),
            Sink::File(place) => Some(place.path().to_owned()),
        }
    }

    /// Whether it is our standard error.
    pub(crate) fn is_stderr(&self) -> bool {
        matches!(self.sink, Sink::Stderr)
    }

    /// Whether the report may be coloured: it goes to a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        match &self.sink {
            Sink::Stdout => io::IsTerminal::is_terminal(&io::stdout()),
            Sink::Stderr => io::IsTerminal::is_terminal(&io::stderr()),
            Sink::Stream { file, .. } => io::IsTerminal::is_terminal(file),
            Sink::File(_) => false,
        }
    }
}

fn to_stdout(report: &[u8]) -> io::Result<()> {
    let mut stdout = stdout()?;
    stdout.write_all(report)?;
    stdout.flush()
}

fn to_stderr(report: &[u8]) -> io::Result<()> {
    streams::stderr_is_open()?;
    io::stderr().lock().write_all(report)
}
