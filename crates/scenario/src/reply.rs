//! Answers other than messages: errors of the public table, redirects, and bodies sent unchanged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ScenarioError;
use super::limits::MAX_TEXT_BYTES;
use crate::closed_set;

/// Placeholder for the origin of the second host in the target of a redirect.
pub const ELSEWHERE: &str = "{elsewhere}";
/// Largest redirect target and largest content type, in bytes.
const MAX_HEADER_BYTES: usize = 2_000;

closed_set! {
    /// Error types of the public interface.
    ///
    /// Source: the public table of errors and the list of the official SDKs. Only the first has `request_too_large`;
    /// only the second has `conflict_error`.
    #[allow(
        missing_docs,
        reason = "the variants are the words of the public table"
    )]
    pub enum ErrorType {
        InvalidRequest = "invalid_request_error",
        Authentication = "authentication_error",
        Billing = "billing_error",
        Permission = "permission_error",
        NotFound = "not_found_error",
        Conflict = "conflict_error",
        RequestTooLarge = "request_too_large",
        RateLimit = "rate_limit_error",
        Api = "api_error",
        Timeout = "timeout_error",
        Overloaded = "overloaded_error",
    }
}

impl ErrorType {
    /// Returns the type that the public table assigns to a status.
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

    /// Returns the default message of the type.
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

/// An error in the public form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "ErrorFile", into = "ErrorFile")]
pub(crate) struct ErrorAnswer {
    /// HTTP status, 400 to 599.
    pub(crate) status: u16,
    pub(crate) kind: ErrorType,
    pub(crate) message: String,
    pub(crate) retry_after_s: Option<u32>,
    /// Value of the header `x-should-retry`; `None` omits the header.
    pub(crate) should_retry: Option<bool>,
}

/// A redirect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RedirectFile", into = "RedirectFile")]
pub(crate) struct Redirect {
    pub(crate) status: u16,
    pub(crate) to: Address,
}

/// Target of a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Url(String),
    /// A path on the second host of the stub; may be empty.
    Elsewhere(String),
}

/// A body sent unchanged.
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
    /// HTTP status.
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// Error type; by default the type that the public table assigns to the status.
    r#type: Option<ErrorType>,
    /// Message of the error.
    message: Option<String>,
    /// Value of the header `retry-after`, in seconds.
    retry_after_s: Option<u32>,
    /// Value of the header `x-should-retry`.
    should_retry: Option<bool>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RedirectFile {
    /// HTTP status.
    status: u16,
    /// A full URL, or `{elsewhere}` and a path on the second host.
    to: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LiteralFile {
    /// HTTP status, by default 200.
    status: Option<u16>,
    /// Value of the header `content-type`.
    content_type: String,
    /// Bytes of the body.
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
        // Only these two statuses were recorded with the header.
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
        // Other statuses cannot have a body: RFC 9110, sections 15.2, 15.3.5, 15.4.5.
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

/// Returns true if the text is a valid header value.
fn is_header(text: &str) -> bool {
    text.len() <= MAX_HEADER_BYTES
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

/// Returns true for an absolute HTTP URL.
fn is_url(text: &str) -> bool {
    let host = ["http://", "https://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/')) && is_address(text)
}

fn is_address(text: &str) -> bool {
    is_header(text) && !text.contains(' ')
}
