//! Which report goes where.
//!
//! People always get theirs: on standard output, or on standard error where another format has claimed
//! standard output, in addition to any file that was asked for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{self, Path, PathBuf};

use model::quote::shown_path;
use report::Format;
use sys::streams::{self, Stream};

use super::UsageError;
use super::values::ReportArgument;

/// One report to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportTarget {
    /// How it looks.
    pub format: Format,
    /// Where it goes.
    pub destination: Destination,
}

/// Where a report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, as typed; opened before the run.
    File(PathBuf),
}

impl Destination {
    /// The file, where it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdout | Self::Stderr => None,
        }
    }
}

/// The reports in the order of the command line, with the one for people added last where it was not asked for.
pub(super) fn targets(arguments: Vec<ReportArgument>) -> Result<Vec<ReportTarget>, UsageError> {
    let mut on_stdout = None;
    let mut files = BTreeSet::new();
    let mut targets = Vec::new();
    for argument in arguments {
        let format = argument.format;
        let file = argument.file.filter(|file| !is_stdout(file));
        let destination = match file {
            None => match on_stdout.replace(format) {
                None => Destination::Stdout,
                Some(first) => {
                    return Err(UsageError::StandardOutputTwice {
                        first,
                        second: format,
                    });
                }
            },
            Some(file) => {
                // A file reached by another name is found when the outputs are opened.
                let whole = path::absolute(&file).unwrap_or_else(|_| file.clone());
                if !files.insert(whole) {
                    return Err(UsageError::FileTwice {
                        file: shown_path(&file),
                    });
                }
                Destination::File(file)
            }
        };
        targets.push(ReportTarget {
            format,
            destination,
        });
    }
    let for_people = match on_stdout {
        None => Some(Destination::Stdout),
        Some(Format::Human) => None,
        Some(_) => Some(Destination::Stderr),
    };
    targets.extend(for_people.map(|destination| ReportTarget {
        format: Format::Human,
        destination,
    }));
    Ok(targets)
}

/// `/dev/stdout`, and every other name of the file or pipe that standard output goes to.
fn is_stdout(file: &Path) -> bool {
    let status = fs::metadata(file);
    status.is_ok_and(|status| streams::stream_to(&status) == Some(Stream::Output))
}

/// The reports of an audit: the program has standard output, and people have standard error.
pub(super) fn targets_of_audit(
    arguments: Vec<ReportArgument>,
) -> Result<Vec<ReportTarget>, UsageError> {
    let mut targets = targets(arguments)?;
    for target in &mut targets {
        if target.destination == Destination::Stdout {
            if target.format != Format::Human {
                return Err(UsageError::StandardOutputTaken {
                    format: target.format,
                });
            }
            target.destination = Destination::Stderr;
        }
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(
        arguments: &[(Format, Option<&str>)],
    ) -> Result<Vec<(Format, Destination)>, String> {
        let arguments = arguments.iter().map(|(format, file)| ReportArgument {
            format: *format,
            file: file.map(PathBuf::from),
        });
        let targets = targets(arguments.collect()).map_err(|error| error.to_string())?;
        Ok(targets
            .into_iter()
            .map(|target| (target.format, target.destination))
            .collect())
    }

    #[test]
    fn without_an_option_people_have_standard_output() {
        assert_eq!(
            resolved(&[]).unwrap(),
            [(Format::Human, Destination::Stdout)]
        );
        assert_eq!(
            resolved(&[(Format::Human, None)]).unwrap(),
            [(Format::Human, Destination::Stdout)]
        );
    }

    #[test]
    fn a_format_without_a_file_sends_people_to_standard_error() {
        let expected = [
            (Format::Json, Destination::Stdout),
            (Format::Human, Destination::Stderr),
        ];
        assert_eq!(resolved(&[(Format::Json, None)]).unwrap(), expected);
    }

    #[test]
    fn a_format_with_a_file_leaves_standard_output_to_people() {
        let expected = [
            (Format::Json, Destination::File("r".into())),
            (Format::Human, Destination::Stdout),
        ];
        assert_eq!(resolved(&[(Format::Json, Some("r"))]).unwrap(), expected);
    }

    #[test]
    fn two_formats_cannot_share_standard_output() {
        let error = resolved(&[(Format::Human, None), (Format::Json, None)]).unwrap_err();
        assert_eq!(
            error,
            "the reports human and json both want standard output"
        );
    }

    #[test]
    fn two_reports_cannot_share_a_file_however_it_is_written() {
        let error =
            resolved(&[(Format::Human, Some("r")), (Format::Json, Some("./r"))]).unwrap_err();
        assert_eq!(error, "two reports want the file ./r");
    }
}
