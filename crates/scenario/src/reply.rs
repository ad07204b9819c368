//! Answers that are no message: errors of the public table, redirects, and bodies taken as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ScenarioError;
use super::limits::MAX_TEXT_BYTES;

/// What stands for the origin of the second host in the address of a redirect.
pub const ELSEWHERE: &str = "{elsewhere}";
/// Longest address of a redirect, and longest content type, in bytes.
const MAX_HEADER_BYTES: usize = 2_000;

/// The error types of the public interface.
///
/// Source: the public table of errors and the list of the official SDKs; `request_too_large` is in the
/// first alone, `conflict_error` in the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorType {
    #[serde(rename = "invalid_request_error")]
    InvalidRequest,
    #[serde(rename = "authentication_error")]
    Authentication,
    #[serde(rename = "billing_error")]
    Billing,
    #[serde(rename = "permission_error")]
    Permission,
    #[serde(rename = "not_found_error")]
    NotFound,
    #[serde(rename = "conflict_error")]
    Conflict,
    RequestTooLarge,
    #[serde(rename = "rate_limit_error")]
    RateLimit,
    #[serde(rename = "api_error")]
    Api,
    #[serde(rename = "timeout_error")]
    Timeout,
    #[serde(rename = "overloaded_error")]
    Overloaded,
}

impl ErrorType {
    /// The type that the public table gives to a status.
    pub(crate) fn of(status: u16) -> Self {
        match status {
            401 => Self::Authentication,
            402 => Self::Billing,
            403 => Self::Permission,
            404 => Self::NotFound,
            409 => Self::Conflict,
            413 => Self::RequestTooLarge,
            429 => Self::RateLimit,
            504 => Self::Timeout,
            529 => Self::Overloaded,
            500.. => Self::Api,
            _ => Self::InvalidRequest,
        }
    }

    /// What is said where a scenario says nothing else.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request is not valid.",
            Self::Authentication => "The key is not valid.",
            Self::Billing => "The account has a billing problem.",
            Self::Permission => "The key may not do this.",
            Self::NotFound => "There is no such model.",
            Self::Conflict => "The request conflicts with another.",
            Self::RequestTooLarge => "The request is too large.",
            Self::RateLimit => "There were too many requests.",
            Self::Api => "Internal server error",
            Self::Timeout => "The request took too long.",
            Self::Overloaded => "Overloaded",
        }
    }
}

/// An error in the public shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "ErrorFile", into = "ErrorFile")]
pub(crate) struct ErrorAnswer {
    /// 400 to 599.
    pub(crate) status: u16,
    pub(crate) kind: ErrorType,
    pub(crate) message: String,
    pub(crate) retry_after_s: Option<u32>,
    /// The header `x-should-retry`; `None`: none.
    pub(crate) should_retry: Option<bool>,
}

/// A redirect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RedirectFile", into = "RedirectFile")]
pub(crate) struct Redirect {
    pub(crate) status: u16,
    pub(crate) to: Address,
}

/// Where a redirect leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Url(String),
    /// A path, maybe empty, on the second host of the stub.
    Elsewhere(String),
}

/// A body taken as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "LiteralFile", into = "LiteralFile")]
pub(crate) struct Literal {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ErrorFile {
    /// Its status.
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// Its type; without it, the one of the public table.
    r#type: Option<ErrorType>,
    /// What it says.
    message: Option<String>,
    /// Seconds of the header `retry-after`.
    retry_after_s: Option<u32>,
    /// The header `x-should-retry`.
    should_retry: Option<bool>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RedirectFile {
    /// Its status.
    status: u16,
    /// A full URL, or a path on the second host behind `{elsewhere}`.
    to: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LiteralFile {
    /// Its status; without it 200.
    status: Option<u16>,
    /// Its `content-type`.
    content_type: String,
    /// Its bytes.
    #[serde(default)]
    body: String,
}

impl TryFrom<ErrorFile> for ErrorAnswer {
    type Error = ScenarioError;

    fn try_from(file: ErrorFile) -> Result<Self, ScenarioError> {
        let status = file.status;
        if !(400..600).contains(&status) {
            let (key, allowed) = ("error", "400 to 599");
            return Err(ScenarioError::Status {
                key,
                status,
                allowed,
            });
        }
        let kind = file.r#type.unwrap_or_else(|| ErrorType::of(status));
        // As recorded: the two statuses that were seen with the header.
        let recorded = match status {
            400 => Some(false),
            429 => Some(true),
            _ => None,
        };
        Ok(Self {
            status,
            kind,
            message: file.message.unwrap_or_else(|| kind.message().to_owned()),
            retry_after_s: file.retry_after_s,
            should_retry: file.should_retry.or(recorded),
        })
    }
}

impl From<ErrorAnswer> for ErrorFile {
    fn from(error: ErrorAnswer) -> Self {
        Self {
            status: error.status,
            r#type: Some(error.kind),
            message: Some(error.message),
            retry_after_s: error.retry_after_s,
            should_retry: error.should_retry,
        }
    }
}

impl TryFrom<RedirectFile> for Redirect {
    type Error = ScenarioError;

    fn try_from(file: RedirectFile) -> Result<Self, ScenarioError> {
        let status = file.status;
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            let (key, allowed) = ("redirect", "301, 302, 303, 307 or 308");
            return Err(ScenarioError::Status {
                key,
                status,
                allowed,
            });
        }
        let to = match file.to.strip_prefix(ELSEWHERE) {
            Some(path) if path.is_empty() || path.starts_with('/') => {
                is_address(path).then(|| Address::Elsewhere(path.to_owned()))
            }
            Some(_) => None,
            None => is_url(&file.to).then(|| Address::Url(file.to.clone())),
        };
        to.map(|to| Self { status, to })
            .ok_or(ScenarioError::Address { to: file.to })
    }
}

impl From<Redirect> for RedirectFile {
    fn from(redirect: Redirect) -> Self {
        Self {
            status: redirect.status,
            to: match redirect.to {
                Address::Url(url) => url,
                Address::Elsewhere(path) => format!("{ELSEWHERE}{path}"),
            },
        }
    }
}

impl TryFrom<LiteralFile> for Literal {
    type Error = ScenarioError;

    fn try_from(file: LiteralFile) -> Result<Self, ScenarioError> {
        let status = file.status.unwrap_or(200);
        // A body has no place in the others: RFC 9110, sections 15.2, 15.3.5, 15.4.5.
        if !matches!(status, 200..=203 | 206..=299 | 400..=599) {
            let (key, allowed) = ("literal", "200 to 299 but 204 and 205, or 400 to 599");
            return Err(ScenarioError::Status {
                key,
                status,
                allowed,
            });
        }
        if file.content_type.is_empty() || !is_header(&file.content_type) {
            return Err(ScenarioError::ContentType);
        }
        if file.body.len() > MAX_TEXT_BYTES {
            let bytes = file.body.len();
            return Err(ScenarioError::LongText { bytes });
        }
        Ok(Self {
            status,
            content_type: file.content_type,
            body: file.body,
        })
    }
}

impl From<Literal> for LiteralFile {
    fn from(literal: Literal) -> Self {
        Self {
            status: Some(literal.status),
            content_type: literal.content_type,
            body: literal.body,
        }
    }
}

/// Fit for the value of a header.
fn is_header(text: &str) -> bool {
    text.len() <= MAX_HEADER_BYTES
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

/// An absolute address of HTTP.
fn is_url(text: &str) -> bool {
    let host = ["http://", "https://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/')) && is_address(text)
}

fn is_address(text: &str) -> bool {
    is_header(text) && !text.contains(' ')
}
