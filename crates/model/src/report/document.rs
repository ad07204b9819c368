//! Top level of schema `runner.report/1`: the parts of a [`Report`] under their keys.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::{AuditFindings, Baseline, Client, Host, Policy, Report, Runner};
use crate::escape::visible;
use crate::evidence::{Canary, Evidence, Exit, Layer};
use crate::finding::{Finding, Verdict};
use crate::policy::Tier;
use crate::quote::quoted;
use crate::schema::values::Timestamp;
use crate::text::truncated;
use crate::time::millis;

/// Value of the key `schema`.
pub const SCHEMA: &str = "runner.report/1";

/// Result of one run of `runner`, with the evidence. Readers ignore unknown keys. Times named `at_us` are
/// microseconds on one monotonic clock from the start of the run. Texts may come from the client and be hostile;
/// control and invisible characters are escaped.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Report of runner")]
pub struct Document<'a> {
    /// Schema of this document.
    pub schema: Cow<'a, str>,
    /// The `runner` executable that made the run.
    pub runner: Cow<'a, Runner>,
    /// Machine of the run.
    pub host: Cow<'a, Host>,
    /// Case of the run: the request, the permissions and the expectations.
    pub case: Cow<'a, Policy>,
    /// Verdict of the whole run. That of an audit is of its gates, `--fail-on` and `--baseline`: `audited` without one.
    pub verdict: Verdict,
    /// Kinds of evidence that the case does not judge; absent for an audit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<Cow<'a, str>>,
    /// Number of unreviewed rules of the case; absent if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_reviewed: u64,
    /// Findings of an audit; absent for a case, whose failed checks are its findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<AuditFindings>,
    /// Isolation of the network.
    pub tier: Tier,
    /// Start of the run.
    #[schemars(with = "Timestamp")]
    pub started_at: String,
    /// Duration of the run, in milliseconds.
    pub duration_ms: u64,
    /// Program under test.
    pub client: ClientAndEnd<'a>,
    /// The sandbox, as verified from inside.
    pub isolation: Isolation<'a>,
    /// Result of each check, in a fixed order. An audit has the checks of any program, and those of its gates.
    pub checks: Cow<'a, [Finding]>,
    /// Lock file of `--baseline`; absent if the option was not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Cow<'a, Baseline>>,
    /// Evidence, collected outside of the client.
    pub evidence: Cow<'a, Evidence>,
}

/// The program under test, with its arguments, its environment and its end.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Client")]
pub struct ClientAndEnd<'a> {
    /// The program and what it was given.
    #[serde(flatten)]
    pub client: Cow<'a, Client>,
    /// Names of the environment variables.
    pub env_names: Vec<Cow<'a, str>>,
    /// End of the program.
    pub exit: Exit,
    /// Limit of the case that ended the program, with its value; null for any other end.
    pub limit: Option<Cow<'a, str>>,
}

/// The sandbox, as verified from inside.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Isolation<'a> {
    /// Reason for the weaker isolation; null for the strongest one.
    pub because: Option<Cow<'a, str>>,
    /// Layers of the sandbox, verified from the kernel.
    pub layers: Cow<'a, [Layer]>,
    /// Probes of the canary: forbidden calls, made in the client's place just before its start.
    pub canaries: Cow<'a, [Canary]>,
    /// Classes of attempts missing in the ledger, because a filter outside of the sandbox refuses them first; named
    /// by their probes.
    pub unseen: Vec<Cow<'a, str>>,
    /// Limits of the run, a sentence each.
    pub not_proved: Vec<Cow<'a, str>>,
}

impl<'a> Document<'a> {
    /// Builds the document of a report. `not_proved` has the limits of the run, a sentence each.
    pub fn of(report: &'a Report, not_proved: Vec<String>) -> Self {
        let evidence = &report.evidence;
        Self {
            schema: SCHEMA.into(),
            runner: Cow::Borrowed(&report.runner),
            host: Cow::Borrowed(&report.host),
            case: Cow::Borrowed(&report.case),
            verdict: report.verdict,
            not_judged: report.not_judged.iter().map(Cow::from).collect(),
            not_reviewed: report.not_reviewed,
            findings: report.findings(),
            tier: report.tier,
            started_at: report.started_at(),
            duration_ms: millis(evidence.duration),
            client: ClientAndEnd {
                client: Cow::Borrowed(&report.client),
                env_names: report
                    .client
                    .settings
                    .iter()
                    .map(|setting| setting.name.as_str().into())
                    .collect(),
                exit: evidence.exit,
                limit: evidence.limit.as_deref().map(Cow::from),
            },
            isolation: Isolation {
                because: report.tier_because.as_deref().map(Cow::from),
                layers: Cow::Borrowed(&evidence.layers),
                canaries: Cow::Borrowed(&evidence.canaries),
                unseen: evidence.unseen().into_iter().map(Cow::from).collect(),
                not_proved: not_proved.into_iter().map(Cow::from).collect(),
            },
            checks: Cow::Borrowed(&report.checks),
            baseline: report.baseline.as_ref().map(Cow::Borrowed),
            evidence: Cow::Borrowed(evidence),
        }
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Document<'static> {
    /// Parses a stored report of at most this number of values, each of which takes many times the memory of its text.
    /// Unknown keys are ignored.
    ///
    /// # Errors
    /// There are more values, the bytes are not JSON, the schema is another one, or a key is missing or has a value of
    /// the wrong form.
    pub fn parse(bytes: &[u8], max_values: usize) -> Result<Self, DocumentError> {
        if values(bytes) > max_values {
            return Err(DocumentError::TooMany { max_values });
        }
        // Another schema explains the faults of a document better than the first of them.
        let read = parse::<Self>(bytes);
        let schema = match &read {
            Ok(document) => document.schema.as_ref().into(),
            Err(_) => parse::<Form>(bytes)?.schema,
        };
        if schema != SCHEMA {
            let found = match (schema.as_str(), schema.is_null()) {
                (Some(schema), _) => quoted(schema),
                (None, true) => "nothing".to_owned(),
                (None, false) => visible(&truncated(&schema.to_string(), MAX_SHOWN)),
            };
            return Err(DocumentError::Schema { found });
        }
        read
    }
}

/// Most characters of a parser's message, which quotes the document.
const MAX_SHOWN: usize = 400;

/// Common part of all versions.
#[derive(Deserialize)]
struct Form {
    #[serde(default)]
    schema: Value,
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DocumentError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let at = visible(&truncated(&error.path().to_string(), MAX_SHOWN));
        // Some values of a wrong type are syntax errors to serde_json.
        match serde_json::from_slice::<IgnoredAny>(bytes) {
            Err(fault) => DocumentError::NotJson(fault),
            Ok(IgnoredAny) => DocumentError::Form {
                at,
                why: visible(&truncated(&error.into_inner().to_string(), MAX_SHOWN)),
            },
        }
    })?;
    json.end().map_err(DocumentError::NotJson)?;
    Ok(parsed)
}

/// Error of a document that is not a report. Texts of the document are escaped and cut.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// More values than the reader accepts.
    #[error("expected at most {max_values} values, found more")]
    TooMany {
        /// Largest number.
        max_values: usize,
    },
    /// Not JSON, or cut short.
    #[error("cannot parse it as JSON")]
    NotJson(#[source] serde_json::Error),
    /// A document of another kind or version.
    #[error("expected the schema {SCHEMA}, found {found}")]
    Schema {
        /// Schema of the document, escaped.
        found: String,
    },
    /// A key is missing, or has a value of another form.
    #[error("unexpected value at {at}: {why}")]
    Form {
        /// Path of the value: `evidence.files[0].mode`.
        at: String,
        /// Message of the parser.
        why: String,
    },
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
