//! JSON forms of evidence whose keys differ from the fields of its type.
//!
//! Every form can be read back. The content of records is not in a report, so that a record read back has the names of
//! its fields, its type and its event, and null for every other value.

use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Advice, Before, Exit, Line, Outcome, Reason, Record, Request, RequestClass};
use crate::journal::{Body, Content, Head, Host};
use crate::schema::values::Sha256;
use crate::time::millis;

/// Fault of a request whose connection ended inside the head.
const INCOMPLETE_HEAD: &str = "the connection ended before the head did";
/// Beginning of the fault of a body with a duplicate key; the path of the key follows.
const DUPLICATE_KEY: &str = "a key is named twice: ";
/// Layer of every denied attempt. The ledger does not contain refusals of the kernel.
const SUPERVISOR: &str = "supervisor";

/// One request, as received.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Request")]
pub(super) struct RequestForm {
    /// Number, from 1.
    seq: u64,
    /// Time at which the head was read.
    at_us: u64,
    /// Number of the connection.
    connection: u64,
    /// Host of the connection.
    host: Host,
    /// Purpose of the request.
    class: RequestClass,
    /// Name of the side request in the profile.
    side: Option<String>,
    /// Method, as received; null without a head.
    method: Option<String>,
    /// Request target up to the first `?`; null without a head.
    path: Option<String>,
    /// Request target after the first `?`.
    query: Option<String>,
    /// `HTTP/1.1` or `HTTP/1.0`; null without a head.
    #[serde(default)]
    version: Option<String>,
    /// Names and values, as received and in order. In credential headers, the run's own credential is `<redacted>`
    /// and any other value is `<N bytes, sha256 HEX>`.
    headers: Vec<(String, String)>,
    /// Body; null if no body was read.
    body: Option<BodyForm>,
    /// True if head and body are complete.
    complete: bool,
    /// Status of the response, if the stub began one.
    status: Option<u16>,
    /// Reason in the profile for a request besides the turn; null for any other.
    #[serde(default)]
    expected: Option<String>,
    /// Reason for the missing head; absent if there is a head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

/// The body of a request, without its text.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Body")]
struct BodyForm {
    /// Length in bytes.
    bytes: u64,
    /// Digest of the body.
    #[schemars(with = "Sha256")]
    sha256: String,
    /// JSON value with each string replaced by its length and digest, except those of `type` and `role`.
    shape: Option<Value>,
    /// Reason for the missing shape of a body with bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

impl From<Request> for RequestForm {
    fn from(request: Request) -> Self {
        let complete = request.is_complete();
        let form = Self {
            seq: request.seq,
            at_us: request.at_us,
            connection: request.connection,
            host: request.host,
            class: request.class,
            side: request.side,
            method: None,
            path: None,
            query: None,
            version: None,
            headers: Vec::new(),
            body: request.body.map(BodyForm::from),
            complete,
            status: request.status,
            expected: request.expected,
            fault: None,
        };
        match request.head {
            Head::Request {
                method,
                path,
                query,
                version,
                headers,
            } => Self {
                method: Some(method),
                path: Some(path),
                query,
                version: Some(version),
                headers,
                ..form
            },
            Head::Malformed { reason } => Self {
                fault: Some(reason),
                ..form
            },
            Head::Incomplete => Self {
                fault: Some(INCOMPLETE_HEAD.to_owned()),
                ..form
            },
        }
    }
}

impl From<RequestForm> for Request {
    fn from(form: RequestForm) -> Self {
        let head = match (form.method, form.path) {
            (Some(method), Some(path)) => Head::Request {
                method,
                path,
                query: form.query,
                version: form.version.unwrap_or_default(),
                headers: form.headers,
            },
            _ => match form.fault {
                Some(reason) if reason != INCOMPLETE_HEAD => Head::Malformed { reason },
                Some(_) | None => Head::Incomplete,
            },
        };
        Self {
            seq: form.seq,
            at_us: form.at_us,
            connection: form.connection,
            host: form.host,
            class: form.class,
            side: form.side,
            head,
            body: form.body.map(|body| body.read(form.complete)),
            status: form.status,
            expected: form.expected,
        }
    }
}

impl From<Body> for BodyForm {
    fn from(body: Body) -> Self {
        let (shape, fault) = match body.content {
            Content::Empty => (None, None),
            Content::Json { shape } => (Some(shape), None),
            Content::DuplicateKey { path } => (None, Some(format!("{DUPLICATE_KEY}{path}"))),
            Content::Other { reason } => (None, Some(reason)),
        };
        Self {
            bytes: body.bytes,
            sha256: body.sha256,
            shape,
            fault,
        }
    }
}

impl BodyForm {
    fn read(self, complete: bool) -> Body {
        let content = match (self.shape, self.fault) {
            (Some(shape), _) => Content::Json { shape },
            (None, None) => Content::Empty,
            (None, Some(fault)) => match fault.strip_prefix(DUPLICATE_KEY) {
                Some(path) => Content::DuplicateKey {
                    path: path.to_owned(),
                },
                None => Content::Other { reason: fault },
            },
        };
        Body {
            bytes: self.bytes,
            sha256: self.sha256,
            complete,
            content,
        }
    }
}

/// One line of the client's standard output.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Record")]
pub(super) struct RecordForm {
    /// Number, from 1.
    seq: u64,
    /// Time at which the end of the line was read.
    at_us: u64,
    /// Field `type` of the record.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Field `subtype` of the record.
    subtype: Option<String>,
    /// Provider event inside the record.
    event: Option<String>,
    /// Names of the fields, sorted; empty if the line is no record.
    fields: Vec<String>,
    /// Length in bytes, without the line feed.
    bytes: u64,
    /// Event that had not happened yet when the line was on the pipe.
    before: Before,
    /// Reason why the line is no record; absent for a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

impl From<Record> for RecordForm {
    fn from(record: Record) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Self {
            seq: record.seq,
            at_us: record.at_us,
            kind: owned(record.kind()),
            subtype: owned(record.subtype()),
            event: owned(record.event()),
            fields: record.fields().into_iter().map(str::to_owned).collect(),
            bytes: record.bytes,
            before: record.before,
            fault: match record.line {
                Line::Record(_) => None,
                Line::NotJson { reason } => Some(reason),
            },
        }
    }
}

impl From<RecordForm> for Record {
    fn from(form: RecordForm) -> Self {
        let mut object: Map<String, Value> = form
            .fields
            .into_iter()
            .map(|name| (name, Value::Null))
            .collect();
        let event = form
            .event
            .map(|kind| Value::Object(Map::from_iter([("type".to_owned(), kind.into())])));
        let known = [
            ("type", form.kind.map(Value::from)),
            ("subtype", form.subtype.map(Value::from)),
            ("event", event),
        ];
        for (name, value) in known {
            if let Some(value) = value {
                object.insert(name.to_owned(), value);
            }
        }
        Self {
            seq: form.seq,
            at_us: form.at_us,
            bytes: form.bytes,
            before: form.before,
            line: match form.fault {
                None => Line::Record(Value::Object(object)),
                Some(reason) => Line::NotJson { reason },
            },
        }
    }
}

/// End of the client, as an object with one key.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Exit")]
pub(super) enum ExitForm {
    /// The client exited with this status.
    Code(i32),
    /// This signal ended the client.
    Signal(i32),
    /// The runner ended the client after this time, in milliseconds.
    Timeout(u64),
    /// The runner ended the client, because it wrote more than the case allows.
    OutputLimit(bool),
    /// The runner ended the client, because it made more requests than the case allows.
    RequestLimit(bool),
    /// The run was interrupted.
    Interrupted(bool),
    /// The client was never started.
    NotStarted(bool),
}

impl From<Exit> for ExitForm {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Code(code),
            Exit::Signal(signal) => Self::Signal(signal),
            Exit::Timeout(after) => Self::Timeout(millis(after)),
            Exit::OutputLimit => Self::OutputLimit(true),
            Exit::RequestLimit => Self::RequestLimit(true),
            Exit::Interrupted => Self::Interrupted(true),
            Exit::NotStarted => Self::NotStarted(true),
        }
    }
}

impl From<ExitForm> for Exit {
    fn from(form: ExitForm) -> Self {
        match form {
            ExitForm::Code(code) => Self::Code(code),
            ExitForm::Signal(signal) => Self::Signal(signal),
            ExitForm::Timeout(millis) => Self::Timeout(std::time::Duration::from_millis(millis)),
            ExitForm::OutputLimit(_) => Self::OutputLimit,
            ExitForm::RequestLimit(_) => Self::RequestLimit,
            ExitForm::Interrupted(_) => Self::Interrupted,
            ExitForm::NotStarted(_) => Self::NotStarted,
        }
    }
}

closed_set! {
    /// Decision on a call.
    enum Decision {
        /// The call was let through to the kernel.
        Allowed = "allowed",
        /// The supervisor refused the call.
        Denied = "denied",
    }
}

/// Outcome of a call, as keys of its attempt.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct OutcomeForm {
    /// Decision on the call.
    outcome: Decision,
    /// Layer that denied the call; null if it was allowed.
    layer: Option<String>,
    /// errno of a denied call: `ENETUNREACH`.
    errno: Option<String>,
}

impl From<Outcome> for OutcomeForm {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Allowed => Self {
                outcome: Decision::Allowed,
                layer: None,
                errno: None,
            },
            Outcome::Denied(errno) => Self {
                outcome: Decision::Denied,
                layer: Some(SUPERVISOR.to_owned()),
                errno: Some(format!("{errno:?}")),
            },
        }
    }
}

/// Largest number of an errno on Linux (`MAX_ERRNO` in include/linux/err.h).
const MAX_ERRNO: i32 = 4095;

impl TryFrom<OutcomeForm> for Outcome {
    type Error = String;

    fn try_from(form: OutcomeForm) -> Result<Self, String> {
        match (form.outcome, form.errno) {
            (Decision::Allowed, _) => Ok(Self::Allowed),
            (Decision::Denied, None) => Err("expected an errno of a denied call".to_owned()),
            (Decision::Denied, Some(name)) => (1..=MAX_ERRNO)
                .map(Errno::from_raw)
                .find(|errno| format!("{errno:?}") == name)
                .map(Self::Denied)
                .ok_or_else(|| format!("expected the name of an errno, found {name:?}")),
        }
    }
}

closed_set! {
    /// Option of `runner audit` that would show a path.
    enum AdvisedOption {
        /// `--read`
        Read = "read",
        /// `--write`
        Write = "write",
        /// No option.
        Never = "never",
    }
}

/// Option that would show a path, or the reason why no option does.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LookupAdvice")]
pub(super) struct AdviceForm {
    /// The option.
    option: AdvisedOption,
    /// Value of the option.
    path: Option<String>,
    /// Reason why no option shows the path.
    reason: Option<Reason>,
}

impl From<Advice> for AdviceForm {
    fn from(advice: Advice) -> Self {
        let (option, path, reason) = match advice {
            Advice::Read(path) => (AdvisedOption::Read, Some(path), None),
            Advice::Write(path) => (AdvisedOption::Write, Some(path), None),
            Advice::Never(reason) => (AdvisedOption::Never, None, Some(reason)),
        };
        Self {
            option,
            path,
            reason,
        }
    }
}

impl TryFrom<AdviceForm> for Advice {
    type Error = &'static str;

    fn try_from(form: AdviceForm) -> Result<Self, &'static str> {
        match (form.option, form.path, form.reason) {
            (AdvisedOption::Read, Some(path), _) => Ok(Self::Read(path)),
            (AdvisedOption::Write, Some(path), _) => Ok(Self::Write(path)),
            (AdvisedOption::Never, _, Some(reason)) => Ok(Self::Never(reason)),
            (AdvisedOption::Read | AdvisedOption::Write, None, _) => {
                Err("expected the path that the option shows")
            }
            (AdvisedOption::Never, _, None) => Err("expected the reason why no option helps"),
        }
    }
}

/// Permission bits as four octal digits.
pub(super) mod octal {
    use serde::de::{Deserialize as _, Deserializer, Error as _};
    use serde::ser::Serializer;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    pub(in super::super) fn serialize<S: Serializer>(
        mode: &u32,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{mode:04o}"))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<u32, D::Error> {
        let text = String::deserialize(deserializer)?;
        u32::from_str_radix(&text, 8)
            .ok()
            .filter(|mode| *mode <= 0o7777 && text.len() == 4)
            .ok_or_else(|| {
                D::Error::custom(format_args!("expected four octal digits, found {text:?}"))
            })
    }
}

/// Times of a run that was read back.
pub(super) fn unknown_wall() -> (SystemTime, SystemTime) {
    (UNIX_EPOCH, UNIX_EPOCH)
}
