//! HTTP to the provider: the preflight, and the POST with its retries.
//!
//! The HTTP client is restricted to explicit actions: no proxy from the environment, no redirects, no pooled
//! connections, no retries, HTTP/1.1 only. A literal address is never looked up, because the connector parses it first.
//! Each request uses a new connection and asks for its closing.
//!
//! The preflight only announces the client. It is awaited, so that it comes first. Its outcome is ignored, as in the
//! real client: the POST reports an unreachable provider.
//!
//! Knows no records and no meaning of the stream.

use std::{error::Error, fmt, time::Duration};

use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT},
    redirect, retry,
};
use tokio::time::{sleep, timeout};

use crate::{
    cli::Invocation,
    event::{ErrorDetail, error_detail},
    request::{BETA_FAMILIES, BETA_HEADER, Body, CLI_USER_AGENT, RUNTIME_USER_AGENT},
};

/// Largest body read from a failed response, in bytes.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
/// Delay before the first retry; it doubles up to [`MAX_BACKOFF`].
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
/// Longest delay that the client chooses.
const MAX_BACKOFF: Duration = Duration::from_secs(8);
/// Longest delay that a provider may ask for; a longer one ends the turn.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Time limits of the waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// Until a connection is established.
    pub(crate) connect: Duration,
    /// For the complete preflight.
    pub(crate) preflight: Duration,
    /// Until the head of an answer arrives, and between two pieces of its body.
    pub(crate) read: Duration,
    /// For the body of a failed response.
    pub(crate) error_body: Duration,
}

/// Time limits of the client.
pub(crate) const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    preflight: Duration::from_secs(2),
    read: Duration::from_secs(120),
    error_body: Duration::from_secs(5),
};

/// Reason why the stream failed or did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderError {
    #[error("cannot set up the HTTP client")]
    Setup(#[source] Deepest),
    #[error("cannot write the request")]
    Body(#[from] serde_json::Error),
    #[error("cannot connect to the provider")]
    Connect(#[source] Deepest),
    #[error("the provider did not answer in time")]
    TimedOut,
    #[error("the exchange with the provider broke off")]
    Exchange(#[source] Deepest),
    #[error("the provider answered with a redirect (status {status}), which is not followed")]
    Redirect { status: u16 },
    #[error("the provider answered with status {status}: {detail}")]
    Status {
        status: u16,
        detail: ErrorDetail,
        retry_after: Option<Duration>,
    },
    #[error("the provider answered with the content type \"{found}\" instead of text/event-stream")]
    ContentType { found: String },
    #[error("the provider sent no data for too long")]
    Stalled,
    #[error("the stream was cut off")]
    Cut(#[source] Deepest),
}

/// An HTTP error that shows only its deepest cause; the other levels repeat it.
#[derive(Debug)]
pub(crate) struct Deepest(reqwest::Error);

/// One provider, with the HTTP client and headers to reach it.
#[derive(Debug)]
pub(crate) struct Provider {
    http: Client,
    base_url: Url,
    messages_url: Url,
    headers: HeaderMap,
    timeouts: Timeouts,
}

/// The stream of a successful request.
#[derive(Debug)]
pub(crate) struct Answer(Response);

impl Provider {
    /// Prepares the HTTP client for the provider of the invocation; sends no request.
    pub(crate) fn new(invocation: &Invocation, timeouts: Timeouts) -> Result<Self, ProviderError> {
        let http = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .http1_only()
            .pool_max_idle_per_host(0)
            .tcp_keepalive(None)
            .tcp_keepalive_interval(None)
            .tcp_keepalive_retries(None)
            .tcp_user_timeout(None)
            .connect_timeout(timeouts.connect)
            .read_timeout(timeouts.read)
            .build()
            .map_err(|error| ProviderError::Setup(Deepest(error)))?;
        Ok(Self {
            http,
            messages_url: messages_url(&invocation.base_url),
            base_url: invocation.base_url.clone(),
            headers: post_headers(invocation),
            timeouts,
        })
    }

    /// Sends `HEAD` to the base URL, without the key, and ignores the outcome.
    pub(crate) async fn preflight(&self) {
        let request = self
            .http
            .head(self.base_url.clone())
            .header(USER_AGENT, RUNTIME_USER_AGENT)
            .header(CONNECTION, "close")
            .timeout(self.timeouts.preflight);
        // The POST reports an unreachable provider.
        let _ = request.send().await;
    }

    /// Sends `POST /v1/messages`, with up to `retries` retries before the stream starts.
    pub(crate) async fn post(
        &self,
        body: &Body<'_>,
        retries: u32,
    ) -> Result<Answer, ProviderError> {
        let body = serde_json::to_vec(body)?;
        let mut backoff = FIRST_BACKOFF;
        for _ in 0..retries {
            let error = match self.attempt(body.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match error.retry_delay(backoff) {
                Some(delay) => sleep(delay).await,
                None => return Err(error),
            }
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
        self.attempt(body).await
    }

    async fn attempt(&self, body: Vec<u8>) -> Result<Answer, ProviderError> {
        let request = self
            .http
            .post(self.messages_url.clone())
            .headers(self.headers.clone());
        let response = request
            .body(body)
            .send()
            .await
            .map_err(ProviderError::before_answer)?;
        let status = response.status();
        if status.is_redirection() {
            return Err(ProviderError::Redirect {
                status: status.as_u16(),
            });
        }
        if status != StatusCode::OK {
            return Err(self.failed(response).await);
        }
        let found = header_text(&response, CONTENT_TYPE.as_str());
        if is_event_stream(&found) {
            Ok(Answer(response))
        } else {
            Err(ProviderError::ContentType { found })
        }
    }

    async fn failed(&self, response: Response) -> ProviderError {
        let status = response.status().as_u16();
        let retry_after = header_text(&response, RETRY_AFTER.as_str());
        // A truncated body is dropped at the time limit, because partial JSON does not parse.
        let read = timeout(self.timeouts.error_body, error_body(response)).await;
        ProviderError::Status {
            status,
            detail: error_detail(&read.unwrap_or_default()),
            retry_after: retry_after.trim().parse().ok().map(Duration::from_secs),
        }
    }
}

impl Answer {
    /// Returns the next piece of the stream; `None` at its end.
    pub(crate) async fn chunk(
        &mut self,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, ProviderError> {
        self.0.chunk().await.map_err(|error| {
            if error.is_timeout() {
                ProviderError::Stalled
            } else {
                ProviderError::Cut(Deepest(error))
            }
        })
    }
}

impl ProviderError {
    fn before_answer(error: reqwest::Error) -> Self {
        if error.is_connect() {
            Self::Connect(Deepest(error))
        } else if error.is_timeout() {
            Self::TimedOut
        } else {
            Self::Exchange(Deepest(error))
        }
    }

    /// Returns the delay before a retry; `None` if a retry is pointless.
    fn retry_delay(&self, backoff: Duration) -> Option<Duration> {
        match self {
            Self::Connect(_) | Self::TimedOut | Self::Exchange(_) => Some(backoff),
            Self::Status {
                status,
                retry_after,
                ..
            } if is_transient(*status) => {
                let delay = retry_after.unwrap_or(backoff);
                (delay <= MAX_RETRY_AFTER).then_some(delay)
            }
            Self::Status { .. }
            | Self::Setup(_)
            | Self::Body(_)
            | Self::Redirect { .. }
            | Self::ContentType { .. }
            | Self::Stalled
            | Self::Cut(_) => None,
        }
    }
}

impl fmt::Display for Deepest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut deepest: &dyn Error = &self.0;
        while let Some(source) = deepest.source() {
            deepest = source;
        }
        write!(formatter, "{deepest}")
    }
}

impl Error for Deepest {}

fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// Appends `/v1/messages` to the path of the base URL.
fn messages_url(base_url: &Url) -> Url {
    let mut url = base_url.clone();
    url.set_path(&format!(
        "{}/v1/messages",
        base_url.path().trim_end_matches('/')
    ));
    url
}

fn post_headers(invocation: &Invocation) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(CLI_USER_AGENT));
    headers.insert(BETA_HEADER, HeaderValue::from_static(BETA_FAMILIES));
    // A key is visible ASCII, so it is always a valid header value.
    if let Ok(mut key) = HeaderValue::from_str(invocation.key.expose()) {
        key.set_sensitive(true);
        headers.insert("x-api-key", key);
    }
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers
}

fn header_text(response: &Response, name: &str) -> String {
    let value = response
        .headers()
        .get(name)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    String::from_utf8_lossy(value).into_owned()
}

fn is_event_stream(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}

async fn error_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > MAX_ERROR_BODY_BYTES {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    body
}

#[cfg(test)]
mod tests;
