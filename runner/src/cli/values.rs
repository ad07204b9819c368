//! Parsers of single values. Their combinations are resolved later.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use model::case::Root;
use model::quote::{known_words, quoted};
use model::report::FindingKind;
use policy::init::PolicyName;
use policy::quantity::{self, QuantityError, show_duration};
use policy::{TIMEOUT_BOUNDS, is_variable_name};
use report::Format;
use thiserror::Error;

/// `FORMAT[=FILE]` as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportArgument {
    /// Format of the report.
    pub format: Format,
    /// File of the report; `None` selects standard output.
    pub file: Option<PathBuf>,
}

/// `NAME[=VALUE]` as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VariableArgument {
    /// Name of the variable, as in environ(7).
    pub name: String,
    /// Value of the variable; `None` passes on the caller's.
    pub value: Option<String>,
}

/// `LIST` of `--fail-on` as typed, with `any` resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailOn(pub Vec<FindingKind>);

/// Word of `--fail-on` for every kind.
const ANY: &str = "any";

/// Errors of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum ValueError {
    #[error("expected one of {}", Format::ALL.map(Format::word).join(", "))]
    UnknownFormat,
    #[error("expected a file name after `=`; leave `=` out for standard output")]
    NoFile,
    #[error("{0}; write it as 60s or 5min")]
    Time(#[from] QuantityError),
    #[error("expected {} to {}", show_duration(*TIMEOUT_BOUNDS.start()), show_duration(*TIMEOUT_BOUNDS.end()))]
    TimeOutOfBounds,
    #[error("expected a name of letters, digits and `_` that does not begin with a digit")]
    Variable,
    #[error("expected 64 hexadecimal digits; `runner policy list` shows them")]
    Digest,
    #[error("expected 64 hexadecimal digits; the run and `runner verify DIR` print them")]
    SumsDigest,
    #[error("expected 1 to 64 of a-z A-Z 0-9 . _ - and not only dots")]
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

/// Parser of `FORMAT[=FILE]`. The file name may have any bytes.
pub(super) fn report() -> impl TypedValueParser<Value = ReportArgument> {
    OsStringValueParser::new().try_map(|text: OsString| report_argument(&text))
}

/// Parses a writable tree.
pub(super) fn tree() -> impl TypedValueParser<Value = Root> {
    PossibleValuesParser::new(Root::ALL.map(Root::word)).try_map(|word| {
        let mut trees = Root::ALL.into_iter();
        trees
            .find(|tree| tree.word() == word)
            .ok_or("expected home, tmp or work")
    })
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

/// Parser of words that are separated by commas. The kinds are in the order of their definition, each once.
pub(super) fn fail_on(text: &str) -> Result<FailOn, String> {
    let mut kinds = BTreeSet::new();
    for word in text.split(',') {
        let named = FindingKind::ALL
            .into_iter()
            .find(|kind| kind.word() == word);
        match named {
            Some(kind) => drop(kinds.insert(kind)),
            None if word == ANY => kinds.extend(FindingKind::ALL),
            None => {
                let known = FindingKind::ALL.into_iter().map(FindingKind::word);
                let known = known_words(word, known.chain([ANY]));
                return Err(format!(
                    "expected words with commas between them, found {}; {known}",
                    quoted(word)
                ));
            }
        }
    }
    Ok(FailOn(kinds.into_iter().collect()))
}

/// Parser of a wall time within the bounds of a case.
pub(super) fn timeout(text: &str) -> Result<Duration, ValueError> {
    let time = quantity::duration(text)?;
    if TIMEOUT_BOUNDS.contains(&time) {
        Ok(time)
    } else {
        Err(ValueError::TimeOutOfBounds)
    }
}

/// Parser of a policy's name.
pub(super) fn policy_name(text: &str) -> Result<PolicyName, ValueError> {
    PolicyName::parse(text).ok_or(ValueError::PolicyName)
}

/// Parser of a case's SHA-256.
pub(super) fn sha256(text: &str) -> Result<String, ValueError> {
    digest(text).ok_or(ValueError::Digest)
}

/// Parser of the SHA-256 of `SHA256SUMS`.
pub(super) fn sums_sha256(text: &str) -> Result<String, ValueError> {
    digest(text).ok_or(ValueError::SumsDigest)
}

/// Converts 64 hexadecimal digits to lower case.
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
    fn fail_on_is_a_list_of_known_words() {
        let kinds = |text| fail_on(text).map(|FailOn(kinds)| kinds);
        let two = vec![FindingKind::Attempts, FindingKind::Credential];
        assert_eq!(kinds("credential,attempts,credential"), Ok(two));
        for all in ["any", "names,any"] {
            assert_eq!(kinds(all), Ok(FindingKind::ALL.to_vec()));
        }
        assert_eq!(
            kinds("attempt").unwrap_err(),
            "expected words with commas between them, found `attempt`; did you mean `attempts`? known here: \
             `attempts`, `names`, `credential`, `survivors`, `sensitive`, `any`"
        );
        for text in ["", "attempts,", "Any", "attempts names", "none"] {
            assert!(kinds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_timeout_has_a_unit_and_bounds() {
        assert_eq!(timeout("5min"), Ok(Duration::from_secs(300)));
        assert_eq!(timeout("60"), Err(ValueError::Time(QuantityError::NoUnit)));
        assert_eq!(
            timeout("0s").unwrap_err().to_string(),
            "expected 100ms to 24h"
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
