//! Reader of reports of schema `runner.report/1`: the JSON document, with the keys that decisions depend on checked.
//! Unknown keys are compared or ignored by the rules.

use model::case::Tier;
use model::finding::{self, Verdict};
use model::quote::quoted;
use serde_json::Value;

use super::rules::{Field, LISTS};

/// Schema of the reports that are read.
pub(crate) const SCHEMA: &str = "runner.report/1";

/// Most values of a document. A body of the largest size that the stub accepts has three million.
const MAX_VALUES: usize = 8_000_000;

/// Texts that each report has, as JSON pointers.
const TEXTS: [&str; 7] = [
    "/runner/version",
    "/case/name",
    "/verdict",
    "/tier",
    "/started_at",
    "/client/program",
    "/client/sha256",
];

/// Lists that each report has in addition to [`LISTS`], with the texts of each entry.
const TABLES: [(&str, &[&str]); 6] = [
    ("/isolation/layers", &["name", "status", "need"]),
    ("/isolation/canaries", &["name", "status"]),
    ("/checks", &["id", "status"]),
    ("/evidence/gaps", &["what", "detail"]),
    ("/evidence/records", &[]),
    ("/evidence/connections", &[]),
];

/// Gaps in evidence that is not compared, because it depends on the load of the host.
const NOT_COMPARED: [&str; 2] = ["lookups", "order"];

/// Error of a document that is no report.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// Not JSON, or cut short.
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
    #[error("expected {expected} at {at}, found {found}")]
    Form {
        /// Form of the value.
        expected: String,
        /// Place of the value, a JSON pointer.
        at: String,
        /// Value or its type, escaped and cut.
        found: String,
    },
}

/// Report as a JSON document.
#[derive(Debug)]
pub struct Report(pub(super) Value);

impl Report {
    /// Parses a document.
    ///
    /// # Errors
    /// The first fault of the document, with its place.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormError> {
        if values(bytes) > MAX_VALUES {
            return Err(FormError::TooMany);
        }
        let report = Self(serde_json::from_slice(bytes).map_err(FormError::NotJson)?);
        match report.0.get("schema") {
            Some(Value::String(schema)) if schema == SCHEMA => report.checked(),
            found => Err(FormError::OtherSchema {
                found: shown(found),
            }),
        }
    }

    /// Text at a JSON pointer; empty if there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.0
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Name of the profile; `None` for an audit.
    pub fn profile(&self) -> Option<&str> {
        self.0
            .pointer("/client/profile/name")
            .and_then(Value::as_str)
    }

    /// Reasons why the run is incomplete, so that a missing fact proves nothing; empty for a complete one.
    ///
    /// The reasons come from the layers, probes, gaps and exit, and not from the verdict alone: the file may have been
    /// edited, and a verdict covers several faults. A failed comparison with a lock file is no reason: it is a fault of
    /// that file.
    pub fn incomplete(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let (layers, canaries) = (
            self.rows("/isolation/layers"),
            self.rows("/isolation/canaries"),
        );
        if layers.is_empty() {
            reasons.push("no layer of its sandbox was verified".to_owned());
        }
        let lost = layers
            .iter()
            .filter(|layer| of(layer, "need") != "if-offered");
        let lost = lost.filter(|layer| of(layer, "status") != "enforced");
        reasons.extend(lost.map(|layer| {
            let (name, status) = (of(layer, "name"), of(layer, "status"));
            format!("a layer of its sandbox is {status}: {name}")
        }));
        if canaries.is_empty() {
            reasons.push("no canary was tried".to_owned());
        }
        let held = |canary: &&Value| matches!(of(canary, "status"), "held" | "not-applicable");
        let leaks = canaries.iter().filter(|canary| !held(canary));
        reasons.extend(leaks.map(|one| format!("a probe did not hold: {}", of(one, "name"))));
        for (exit, reason) in [
            ("not_started", "its client was never started"),
            ("interrupted", "it was interrupted"),
        ] {
            if self.0.pointer(&format!("/client/exit/{exit}")).is_some() {
                reasons.push(reason.to_owned());
            }
        }
        let gaps = self.rows("/evidence/gaps").iter();
        let gaps = gaps.filter(|gap| !NOT_COMPARED.contains(&of(gap, "what")));
        reasons.extend(gaps.map(|gap| {
            let (what, detail) = (of(gap, "what"), of(gap, "detail"));
            format!("its {what} are incomplete: {detail}")
        }));
        if self.text("/verdict") == "errored" && reasons.is_empty() && !self.only_the_baseline() {
            reasons.push("its verdict is errored".to_owned());
        }
        reasons
    }

    /// Checks that the verdict is errored only because of the lock file. With a failed check the verdict would be
    /// failed, so an errored verdict beside one means a fault of the run itself.
    fn only_the_baseline(&self) -> bool {
        let with = |status: &'static str| {
            let checks = self.rows("/checks").iter();
            checks.filter(move |check| of(check, "status") == status)
        };
        let errored = with("errored").map(|check| of(check, "id"));
        errored.eq([finding::BASELINE])
            && with("failed").next().is_none()
            && with("passed").next().is_some()
    }

    /// Entries of a list at a JSON pointer.
    pub(super) fn rows(&self, pointer: &str) -> &[Value] {
        let rows = self.0.pointer(pointer).and_then(Value::as_array);
        rows.map_or(&[], Vec::as_slice)
    }

    fn checked(self) -> Result<Self, FormError> {
        for pointer in TEXTS {
            self.expect("a text", pointer, Value::is_string)?;
        }
        self.expect_word("/verdict", &Verdict::ALL.map(Verdict::word))?;
        self.expect_word("/tier", &Tier::ALL.map(Tier::word))?;
        self.expect("an object", "/client/exit", Value::is_object)?;
        self.expect("a number", "/evidence/stderr/bytes", Value::is_u64)?;
        self.expect("an object or null", "/client/profile", |profile| {
            profile.is_null() || profile["name"].is_string()
        })?;
        for (list, texts) in TABLES {
            self.expect_rows(list, texts.iter().copied(), Value::is_string)?;
        }
        for list in &LISTS {
            let pointer = format!("/{}", list.path.replace('.', "/"));
            let fields = Field::all(list.key);
            let keys = fields.iter().filter(|field| field.word.is_none());
            self.expect_rows(&pointer, keys.map(|field| field.name), |_| true)?;
        }
        Ok(self)
    }

    fn expect(
        &self,
        expected: &str,
        pointer: &str,
        is_expected: impl Fn(&Value) -> bool,
    ) -> Result<(), FormError> {
        match self.0.pointer(pointer) {
            Some(found) if is_expected(found) => Ok(()),
            found => Err(FormError::Form {
                expected: expected.to_owned(),
                at: pointer.to_owned(),
                found: shown(found),
            }),
        }
    }

    fn expect_word(&self, pointer: &str, words: &[&str]) -> Result<(), FormError> {
        let is_known = |found: &Value| found.as_str().is_some_and(|found| words.contains(&found));
        self.expect(&format!("`{}`", words.join("` or `")), pointer, is_known)
    }

    fn expect_rows<'k>(
        &self,
        pointer: &str,
        keys: impl Iterator<Item = &'k str> + Clone,
        is_expected: impl Fn(&Value) -> bool,
    ) -> Result<(), FormError> {
        self.expect("a list", pointer, Value::is_array)?;
        let rows = self.rows(pointer).iter();
        for (index, row) in rows.enumerate() {
            for key in keys.clone() {
                if !row.get(key).is_some_and(&is_expected) {
                    return Err(FormError::Form {
                        expected: format!("the key `{key}`"),
                        at: format!("{pointer}/{index}"),
                        found: shown(row.get(key)),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Text of a key of an entry; empty if there is none.
pub(super) fn of<'r>(row: &'r Value, key: &str) -> &'r str {
    row.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A text, escaped and cut, or the type of another value.
fn shown(found: Option<&Value>) -> String {
    match found {
        None => "nothing".to_owned(),
        Some(Value::Null) => "null".to_owned(),
        Some(Value::Bool(_)) => "a boolean".to_owned(),
        Some(Value::Number(number)) => format!("the number {number}"),
        Some(Value::String(text)) => quoted(text),
        Some(Value::Array(_)) => "a list".to_owned(),
        Some(Value::Object(_)) => "an object".to_owned(),
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
