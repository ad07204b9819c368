//! Single values of the command line: closed words and well-formed texts; what they mean together is resolved later.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use policy::init::PolicyName;
use policy::quantity::{self, QuantityError, show_duration};
use policy::{TIMEOUT_BOUNDS, is_variable_name};
use report::Format;
use thiserror::Error;

/// `FORMAT[=FILE]` as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportArgument {
    /// How it looks.
    pub format: Format,
    /// `None`: standard output.
    pub file: Option<PathBuf>,
}

/// `NAME[=VALUE]` as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VariableArgument {
    /// As in environ(7).
    pub name: String,
    /// `None`: the caller's own.
    pub value: Option<String>,
}

/// Why a value of the command line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum ValueError {
    #[error("the formats are {}", Format::ALL.map(Format::word).join(", "))]
    UnknownFormat,
    #[error("a file name must follow the `=`; leave the `=` out for standard output")]
    NoFile,
    #[error("{0}; write it as 60s or 5min")]
    Time(#[from] QuantityError),
    #[error("it must be {} to {}", show_duration(*TIMEOUT_BOUNDS.start()), show_duration(*TIMEOUT_BOUNDS.end()))]
    TimeOutOfBounds,
    #[error("letters, digits and `_` make a variable's name, a digit not the first")]
    Variable,
    #[error("64 hexadecimal digits are expected; `runner policy list` shows them")]
    Digest,
    #[error("64 hexadecimal digits are expected; the run and `runner verify DIR` show them")]
    ManifestDigest,
    #[error("a name has 1 to 64 of: a-z A-Z 0-9 . _ - and is not made of dots alone")]
    PolicyName,
}

/// Parser of `NAME[=VALUE]`.
pub(super) fn variable(text: &str) -> Result<VariableArgument, ValueError> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    if !is_variable_name(name) {
        return Err(ValueError::Variable);
    }
    Ok(VariableArgument {
        name: name.to_owned(),
        value,
    })
}

/// Parser of `FORMAT[=FILE]`; the file may be any bytes.
pub(super) fn report() -> impl TypedValueParser<Value = ReportArgument> {
    OsStringValueParser::new().try_map(|text: OsString| report_argument(&text))
}

fn report_argument(text: &OsStr) -> Result<ReportArgument, ValueError> {
    let mut parts = text.as_bytes().splitn(2, |byte| *byte == b'=');
    let word = parts.next().unwrap_or_default();
    let format = Format::ALL
        .into_iter()
        .find(|format| format.word().as_bytes() == word);
    let format = format.ok_or(ValueError::UnknownFormat)?;
    match parts.next() {
        None => Ok(ReportArgument { format, file: None }),
        Some(b"") => Err(ValueError::NoFile),
        Some(file) => Ok(ReportArgument {
            format,
            file: Some(PathBuf::from(OsStr::from_bytes(file))),
        }),
    }
}

/// A wall time within the bounds of a case.
pub(super) fn timeout(text: &str) -> Result<Duration, ValueError> {
    let time = quantity::duration(text)?;
    if TIMEOUT_BOUNDS.contains(&time) {
        Ok(time)
    } else {
        Err(ValueError::TimeOutOfBounds)
    }
}

/// The name of a policy.
pub(super) fn policy_name(text: &str) -> Result<PolicyName, ValueError> {
    PolicyName::parse(text).ok_or(ValueError::PolicyName)
}

/// The SHA-256 of a case.
pub(super) fn sha256(text: &str) -> Result<String, ValueError> {
    digest(text).ok_or(ValueError::Digest)
}

/// The SHA-256 of a manifest.
pub(super) fn manifest_sha256(text: &str) -> Result<String, ValueError> {
    digest(text).ok_or(ValueError::ManifestDigest)
}

/// In lower case.
fn digest(text: &str) -> Option<String> {
    let fits = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_a_format_and_perhaps_a_file_of_any_bytes() {
        let json = |file: Option<&[u8]>| {
            Ok(ReportArgument {
                format: Format::Json,
                file: file.map(|file| OsStr::from_bytes(file).into()),
            })
        };
        assert_eq!(report_argument(OsStr::new("json")), json(None));
        assert_eq!(
            report_argument(OsStr::from_bytes(b"json=a=b\xff")),
            json(Some(b"a=b\xff"))
        );
        assert_eq!(
            report_argument(OsStr::new("json=")),
            Err(ValueError::NoFile)
        );
        for word in ["", "JSON", "xml=x", "json:x"] {
            assert_eq!(
                report_argument(OsStr::new(word)),
                Err(ValueError::UnknownFormat),
                "{word}"
            );
        }
    }

    #[test]
    fn a_timeout_has_a_unit_and_bounds() {
        assert_eq!(timeout("5min"), Ok(Duration::from_secs(300)));
        assert_eq!(timeout("60"), Err(ValueError::Time(QuantityError::NoUnit)));
        assert_eq!(
            timeout("0s").unwrap_err().to_string(),
            "it must be 100ms to 24h"
        );
        assert_eq!(timeout("25h"), Err(ValueError::TimeOutOfBounds));
    }

    #[test]
    fn a_digest_is_64_hexadecimal_digits_in_either_case() {
        assert_eq!(sha256(&"Ab".repeat(32)), Ok("ab".repeat(32)));
        for text in ["", "ab", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(sha256(text), Err(ValueError::Digest));
        }
    }
}
