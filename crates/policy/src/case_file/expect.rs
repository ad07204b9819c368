//! File form of a case's expectations, parsed into [`Expectations`].

mod files;
mod records;
mod requests;

use std::collections::BTreeSet;

use model::case::Count;
use model::case::Expectations;
use model::case::Switch;
use model::case::expect::{ExpectedExit, ProgramRule};
use model::profile::TextPattern;
use scenario::closed_set;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::not_empty;
use crate::error::Flaw;
use crate::placeholders::checked;
use crate::profile_file::ExpectedAttemptFile;
use crate::profile_file::attempts;
use crate::schema::{Sentence, Text};
use crate::values::{reject_repeated, sentence};

/// Largest number in a count; a larger number is a typing error.
const MAX_COUNT: u64 = 1_000_000;
/// Expectation of a text with placeholders, in errors.
const EXPECTED_TEXT: &str = "a text that can be met";

/// Expectations of the case. A table that is absent is not judged; attempts, names, the credential and survivors always
/// are.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Expect")]
pub(super) struct ExpectFile {
    /// Requests to the provider.
    requests: Option<requests::RequestsFile>,
    /// Records on standard output.
    records: Option<records::RecordsFile>,
    /// Files that the client leaves.
    files: Option<files::FilesFile>,
    /// Exit of the client.
    exit: Option<ExitFile>,
    /// Programs that the client starts beside its own.
    programs: Option<ProgramsFile>,
    /// Attempts and names that are no finding.
    #[serde(default)]
    attempts: AttemptsFile,
    /// Completeness of the ledger of attempts; without this table, it may have limits.
    outbound: Option<OutboundFile>,
}

closed_set! {
    /// Expected list of tools.
    enum Tools {
        /// No tool.
        Empty = "empty",
    }
}

/// Exit of the client.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectExit")]
struct ExitFile {
    /// Exit code, 0 to 255; without this key, any code, if the client ends of its own accord.
    #[schemars(with = "Option<u8>")]
    code: Option<Spanned<u64>>,
}

/// Programs that the client starts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectPrograms")]
struct ProgramsFile {
    /// Programs, and no others beside the client's own.
    #[serde(default)]
    rule: Vec<ProgramFile>,
}

/// A program that the client may start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectedProgram")]
struct ProgramFile {
    /// Path inside the sandbox; placeholders as in paths of files, and `{project}` at its begin for a case with a client.
    #[schemars(with = "Text")]
    program: Spanned<String>,
    /// Reason why the client starts it.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// Attempts and names that are no finding.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectAttempts")]
struct AttemptsFile {
    /// Accepted attempts. These rules do not open the sandbox.
    #[serde(default)]
    rule: Vec<ExpectedAttemptFile>,
}

/// Completeness of the ledger.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectOutbound")]
struct OutboundFile {
    /// True if the run is errored when a filter outside of the sandbox hides a class of attempts from the ledger.
    complete_ledger: bool,
}

/// Number of times that something may occur.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Count")]
struct CountFile {
    /// Smallest number.
    #[schemars(with = "u64", range(max = MAX_COUNT))]
    from: Spanned<u64>,
    /// Largest number; without this key, no limit.
    #[schemars(with = "Option<u64>", range(max = MAX_COUNT))]
    to: Option<Spanned<u64>>,
}

impl ExpectFile {
    /// Parses the tables. `switches` are those of the task.
    pub(super) fn into_expectations(self, switches: &[Switch]) -> Result<Expectations, Flaw> {
        Ok(Expectations {
            requests: self.requests.map(requests::parsed).transpose()?,
            records: match self.records {
                Some(file) => records::parsed(file, switches)?,
                None => None,
            },
            files: self.files.map(files::parsed).transpose()?,
            exit: self.exit.map(exit).transpose()?,
            programs: self.programs.map(programs).transpose()?,
            attempts: attempts::parsed(self.attempts.rule, Ok)?,
            side_requests: Vec::new(),
            complete_ledger: self.outbound.is_some_and(|file| file.complete_ledger),
        })
    }
}

fn exit(file: ExitFile) -> Result<ExpectedExit, Flaw> {
    let Some(code) = file.code else {
        return Ok(ExpectedExit::AnyCode);
    };
    let parsed = u8::try_from(*code.get_ref()).map_err(|_| {
        let hint = "a process exits with one byte (exit(3))";
        Flaw::new(code.span(), "a number from 0 to 255", code.get_ref(), hint)
    })?;
    Ok(ExpectedExit::Code(parsed.into()))
}

fn programs(file: ProgramsFile) -> Result<Vec<ProgramRule>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for rule in file.rule {
        reject_repeated(&mut seen, &rule.program, "each program once")?;
        let program = Spanned::new(rule.program.span(), not_empty(rule.program)?);
        parsed.push(ProgramRule {
            program: checked(
                &program,
                TextPattern::of_program(program.get_ref()),
                EXPECTED_TEXT,
            )?,
            reason: sentence(rule.reason)?,
        });
    }
    Ok(parsed)
}

/// Parses a number of times; without the table, `absent`.
fn times(file: Option<CountFile>, absent: Count) -> Result<Count, Flaw> {
    let Some(file) = file else {
        return Ok(absent);
    };
    let number = |value: &Spanned<u64>, from: u64| {
        let found = *value.get_ref();
        if (from..=MAX_COUNT).contains(&found) {
            return Ok(found);
        }
        let expected = format!("a number from {from} to {MAX_COUNT}");
        let hint = "write it as { from = 0, to = 1 }, or { from = 1 } without an upper limit";
        Err(Flaw::new(value.span(), expected, found, hint))
    };
    let from = number(&file.from, 0)?;
    let to = file.to.map(|to| number(&to, from)).transpose()?;
    Ok(Count { from, to })
}
