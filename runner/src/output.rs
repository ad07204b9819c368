//! Where reports go. Each output is opened, or proved to be writable, before the run; a file is written whole
//! under a temporary name and renamed, so that a reader never sees half a report.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::cli::{Destination, Format, ReportTarget};
use crate::policy::shown_path;

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
    File {
        path: PathBuf,
    },
}

/// Why a report cannot be written.
#[derive(Debug, Error)]
pub(crate) enum OutputError {
    #[error("cannot open the report file {path}")]
    Open { path: String, source: io::Error },
    #[error("two reports go to {path}")]
    Twice { path: String },
    #[error("cannot write the report to {path}")]
    Write { path: String, source: io::Error },
}

impl OutputError {
    /// Whether nothing was run yet.
    pub(crate) fn is_before_the_run(&self) -> bool {
        match self {
            Self::Open { .. } | Self::Twice { .. } => true,
            Self::Write { .. } => false,
        }
    }
}

/// Opens the outputs of `targets`.
///
/// # Errors
/// The first that cannot be opened, and one file that two reports go to by different names.
pub(crate) fn open(targets: &[ReportTarget]) -> Result<Vec<Output>, OutputError> {
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut outputs = Vec::with_capacity(targets.len());
    for target in targets {
        let sink = match &target.destination {
            Destination::Stdout => Sink::Stdout,
            Destination::Stderr => Sink::Stderr,
            Destination::File(path) => open_file(path, &mut seen)?,
        };
        outputs.push(Output {
            format: target.format,
            sink,
        });
    }
    Ok(outputs)
}

fn open_file(path: &Path, seen: &mut Vec<PathBuf>) -> Result<Sink, OutputError> {
    let failed = |source| OutputError::Open {
        path: shown_path(path),
        source,
    };
    match fs::metadata(path) {
        Ok(status) if status.is_file() => {
            OpenOptions::new().append(true).open(path).map_err(failed)?;
        }
        Ok(status) if status.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
        Ok(_) => {
            let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
            return Ok(Sink::Stream {
                name: shown_path(path),
                file,
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    // Through links, so that the file they lead to is replaced and not the link.
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(_) => fs::canonicalize(directory(path)).map_err(failed)?.join(
            path.file_name()
                .ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?,
        ),
    };
    tempfile::tempfile_in(directory(&target)).map_err(failed)?;
    if seen.contains(&target) {
        return Err(OutputError::Twice {
            path: shown_path(&target),
        });
    }
    seen.push(target.clone());
    Ok(Sink::File { path: target })
}

fn directory(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

impl Output {
    /// Writes the rendered report.
    ///
    /// # Errors
    /// The destination and what the system said. A closed pipe is an error too: nobody has read the verdict.
    pub(crate) fn write(self, report: &[u8]) -> Result<(), OutputError> {
        let (name, written) = match self.sink {
            Sink::Stdout => {
                let mut stdout = io::stdout().lock();
                (
                    "standard output".to_owned(),
                    stdout.write_all(report).and_then(|()| stdout.flush()),
                )
            }
            Sink::Stderr => (
                "standard error".to_owned(),
                io::stderr().lock().write_all(report),
            ),
            Sink::Stream { name, mut file } => (name, file.write_all(report)),
            Sink::File { path } => (shown_path(&path), replace(&path, report)),
        };
        written.map_err(|source| OutputError::Write { path: name, source })
    }

    /// Whether the report may be coloured: it goes to a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        match &self.sink {
            Sink::Stdout => io::IsTerminal::is_terminal(&io::stdout()),
            Sink::Stderr => io::IsTerminal::is_terminal(&io::stderr()),
            Sink::Stream { file, .. } => io::IsTerminal::is_terminal(file),
            Sink::File { .. } => false,
        }
    }
}

/// Mode as any new file's: the umask takes away what it will.
fn replace(path: &Path, report: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut file = tempfile::Builder::new()
        .prefix(".runner-report-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory(path))?;
    file.write_all(report)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn target(path: &Path) -> ReportTarget {
        ReportTarget {
            format: Format::Json,
            destination: Destination::File(path.to_path_buf()),
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_lies_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        fs::write(&path, "old").unwrap();
        let outputs = open(&[target(&path)]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        for output in outputs {
            output.write(b"new").unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_and_the_file_behind_it_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "").unwrap();
        symlink(&file, &link).unwrap();
        open(&[target(&link)])
            .unwrap()
            .pop()
            .unwrap()
            .write(b"new")
            .unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        let twice = open(&[target(&link), target(&file)]).unwrap_err();
        assert!(matches!(twice, OutputError::Twice { .. }));
    }

    #[test]
    fn a_device_is_written_as_it_is() {
        open(&[target(Path::new("/dev/null"))])
            .unwrap()
            .pop()
            .unwrap()
            .write(b"x")
            .unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn what_cannot_be_written_is_known_before_the_run() {
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent/report.json");
        for path in [absent.as_path(), directory.path()] {
            let error = open(&[target(path)]).unwrap_err();
            assert!(matches!(error, OutputError::Open { .. }), "{error}");
        }
    }
}
