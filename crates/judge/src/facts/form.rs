//! Reader of reports of schema `runner.report/1`. Unknown keys are ignored; a key that is read must exist, with a value
//! of its type.

use std::collections::BTreeMap;
use std::fmt;

use model::case::Tier;
use model::finding::Verdict;
use serde::de::{Error, Expected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Schema of the reports that are read.
pub(crate) const SCHEMA: &str = "runner.report/1";

/// Most values of a document. A body of the largest size that the stub accepts has three million.
const MAX_VALUES: usize = 8_000_000;

/// Error of a document that is no report.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// Not JSON, cut short, or without a schema.
    #[error("expected a JSON report with a `schema`, found something else")]
    NotJson(#[source] serde_json::Error),
    /// A document of another schema.
    #[error("expected the schema {SCHEMA}, found {found}")]
    OtherSchema {
        /// Schema of the document, escaped and cut.
        found: String,
    },
    /// More values than [`MAX_VALUES`]: each takes many times the memory of its text.
    #[error("expected at most {MAX_VALUES} values, found more")]
    TooMany,
    /// A key is missing, or has a value of another type.
    #[error("the report does not match the schema {SCHEMA}")]
    Report(#[source] serde_json::Error),
}

/// Report, as far as it is read.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// Runner that wrote the report.
    pub runner: Runner,
    /// Case of the run.
    pub case: Case,
    #[serde(deserialize_with = "verdict")]
    pub(crate) verdict: String,
    #[serde(deserialize_with = "tier")]
    /// Tier of the run: `namespace` or `inherited`.
    pub tier: String,
    /// Start of the run, as in the report: UTC in the form of RFC 3339.
    pub started_at: String,
    /// Client of the run.
    pub client: Client,
    pub(crate) isolation: Isolation,
    pub(crate) checks: Vec<Check>,
    pub(crate) evidence: Evidence,
}

impl Report {
    /// Parses a document.
    ///
    /// # Errors
    /// The first fault of the document, with line and column.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormError> {
        if values(bytes) > MAX_VALUES {
            return Err(FormError::TooMany);
        }
        let head: Head = serde_json::from_slice(bytes).map_err(FormError::NotJson)?;
        if head.schema != SCHEMA {
            return Err(FormError::OtherSchema {
                found: model::quote::quoted(&head.schema),
            });
        }
        serde_json::from_slice(bytes).map_err(FormError::Report)
    }
}

/// Upper bound of the number of values of a document: one, and one more for each comma, array and object outside of
/// strings.
fn values(document: &[u8]) -> usize {
    let (mut number, mut in_string, mut is_escaped) = (1, false, false);
    for byte in document {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => number += 1,
            _ => {}
        }
    }
    number
}

#[derive(Debug, Deserialize)]
struct Head {
    schema: String,
}

fn verdict<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    value.deserialize_str(Word(&Verdict::ALL.map(Verdict::word)))
}

fn tier<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    value.deserialize_str(Word(&Tier::ALL.map(Tier::word)))
}

/// Visitor that accepts only these words, since decisions depend on them.
struct Word<'w>(&'w [&'w str]);

impl Visitor<'_> for Word<'_> {
    type Value = String;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(|word| format!("`{word}`")).collect();
        out.write_str(&words.join(" or "))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<String, E> {
        if self.0.contains(&word) {
            return Ok(word.to_owned());
        }
        let found = model::quote::quoted(word);
        let expected: &dyn Expected = &self;
        Err(E::custom(format!("expected {expected}, found {found}")))
    }
}

/// Runner that wrote the report.
#[derive(Debug, Deserialize)]
pub struct Runner {
    /// Version of the runner.
    pub version: String,
}

/// Case of the run.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// Name of the case.
    pub name: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Check {
    pub(crate) id: String,
    pub(crate) status: String,
}

/// Client of the run.
#[derive(Debug, Deserialize)]
pub struct Client {
    /// Path or name of the program.
    pub program: String,
    /// SHA-256 of the program, in hexadecimal.
    pub sha256: String,
    /// Profile of the client; `None` for an audit.
    pub profile: Option<Profile>,
    /// Exit of the client: one key, the kind of exit, with its value.
    pub(crate) exit: BTreeMap<String, Value>,
}

/// Profile of the client.
#[derive(Debug, Deserialize)]
pub struct Profile {
    /// Name of the profile.
    pub name: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Isolation {
    pub layers: Vec<Layer>,
    pub canaries: Vec<Canary>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Layer {
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) need: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Canary {
    pub(crate) name: String,
    pub(crate) status: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) connections: Vec<serde::de::IgnoredAny>,
    pub(crate) requests: Vec<Request>,
    pub(crate) records: Vec<Record>,
    pub(crate) files: Vec<File>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) names: Vec<Name>,
    pub(crate) lookups: Vec<serde::de::IgnoredAny>,
    pub(crate) processes: Vec<Process>,
    pub(crate) stderr: Stderr,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) sightings: Vec<Sighting>,
    pub(crate) survivors: Vec<Survivor>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    pub(crate) host: String,
    pub(crate) class: String,
    pub(crate) side: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) query: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Body>,
    pub(crate) complete: bool,
    pub(crate) status: Option<u16>,
    pub(crate) fault: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Body {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) shape: Option<Value>,
    pub(crate) fault: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Record {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) subtype: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) fields: Vec<String>,
    pub(crate) fault: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct File {
    pub(crate) root: String,
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) mode: String,
    pub(crate) sha256: Option<String>,
    /// Target of a symbolic link; reports of earlier versions lack the key.
    pub(crate) target: Option<String>,
    pub(crate) transient: bool,
    pub(crate) expected: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) kind: String,
    pub(crate) program: String,
    pub(crate) syscall: String,
    pub(crate) family: Option<String>,
    #[serde(rename = "type")]
    pub(crate) socket_type: Option<String>,
    pub(crate) protocol: Option<u32>,
    pub(crate) address: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) outcome: String,
    pub(crate) errno: Option<String>,
    pub(crate) count: u64,
    #[serde(default)]
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Name {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) odd: Option<String>,
    pub(crate) count: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Process {
    pub(crate) program: String,
    pub(crate) args: Vec<Argument>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Argument {
    Word(String),
    Prompt { bytes: u64 },
}

#[derive(Debug, Deserialize)]
pub(crate) struct Stderr {
    pub(crate) bytes: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Gap {
    pub(crate) what: String,
    pub(crate) detail: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Sighting {
    pub(crate) place: String,
    pub(crate) form: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Survivor {
    pub(crate) program: String,
}
