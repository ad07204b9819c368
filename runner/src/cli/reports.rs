//! Formats and destinations of the reports.
//!
//! The human report is always written. If another format uses standard output, the human report goes to standard
//! error.

use std::collections::BTreeSet;
use std::fs;
use std::path::{self, Path};

use model::quote::shown_path;
use report::Format;
use sys::streams::{self, Stream};

use super::UsageError;
use super::values::ReportArgument;
use crate::request::{Destination, ReportTarget};

/// The reports in the order of the command line. A human report is added at the end unless one goes to standard
/// output.
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
                // Other names of one file are detected when the outputs are opened.
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

/// True for `/dev/stdout` and any other name of the file or pipe behind standard output.
fn is_stdout(file: &Path) -> bool {
    let status = fs::metadata(file);
    status.is_ok_and(|status| streams::stream_to(&status) == Some(Stream::Output))
}

/// The reports of an audit. The program has standard output, so the human report goes to standard error.
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
    use std::path::PathBuf;

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
            "cannot write two reports to standard output: human and json"
        );
    }

    #[test]
    fn two_reports_cannot_share_a_file_however_it_is_written() {
        let error =
            resolved(&[(Format::Human, Some("r")), (Format::Json, Some("./r"))]).unwrap_err();
        assert_eq!(error, "cannot write two reports to the file ./r");
    }
}
