//! HTTP routes of the provider and their answers.
//!
//! Knows the scenario and the provider's public interface. The journal belongs to the connection, which sees
//! the bytes on the wire.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use model::endpoint::Endpoint;
use model::secret::Belongs;
use scenario::messages::{self, MessageRequest};
use scenario::script::{Context, Script};
use scenario::{ErrorType, Scenario};

use crate::connection::ConnectionHandle;
use crate::limits::{Budget, Limits};
use crate::respond::{self, REQUEST_ID};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Builds the router: `HEAD /` and `POST /v1/messages`, after any prefix; every other request gets an error in the
/// public shape. `elsewhere` is the origin of the second host, the target of redirects. The listener must provide each
/// connection's [`ConnectionHandle`].
pub(crate) fn app(
    scenario: Scenario,
    limits: Limits,
    elsewhere: String,
    belongs: Belongs,
) -> Router {
    let provider = Arc::new(Provider {
        scenario,
        asked: AtomicUsize::new(0),
        elsewhere,
        belongs,
        body_bytes: limits.body_bytes,
        budget: Budget::new(&limits),
    });
    Router::new().fallback(serve).with_state(provider)
}

struct Provider {
    scenario: Scenario,
    /// Messages requested so far.
    asked: AtomicUsize,
    elsewhere: String,
    belongs: Belongs,
    body_bytes: usize,
    budget: Budget,
}

async fn serve(
    State(provider): State<Arc<Provider>>,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    request: Request,
) -> Result<Response, Refusal> {
    let endpoint = endpoint(request.uri());
    match (request.method(), endpoint) {
        (&Method::POST, Some(Endpoint::Messages)) => {
            return message(&provider, connection, request).await;
        }
        (&Method::HEAD, Some(Endpoint::Root)) => {
            provider.read(request.into_body()).await?;
            return Ok(StatusCode::OK.into_response());
        }
        _ => {}
    }
    provider.read(request.into_body()).await?;
    Err(match endpoint {
        Some(Endpoint::Root | Endpoint::Messages) => Refusal {
            status: StatusCode::METHOD_NOT_ALLOWED,
            kind: ErrorType::InvalidRequest,
            message: "Method not allowed".to_owned(),
        },
        Some(Endpoint::CountTokens | Endpoint::Models) | None => Refusal {
            status: StatusCode::NOT_FOUND,
            kind: ErrorType::NotFound,
            message: "Not found".to_owned(),
        },
    })
}

/// Returns the endpoint of a target in origin-form. A target in absolute-form asks for a proxy (RFC 9112, section 3.2.2).
fn endpoint(target: &Uri) -> Option<Endpoint> {
    let is_origin_form = target.authority().is_none();
    Endpoint::of(target.path()).filter(|_| is_origin_form)
}

async fn message(
    provider: &Provider,
    connection: ConnectionHandle,
    request: Request,
) -> Result<Response, Refusal> {
    let has_key = has_key(request.headers(), &provider.belongs);
    let body = provider.read(request.into_body()).await?;
    if !has_key {
        let message = "x-api-key header is required".to_owned();
        return Err(Refusal {
            status: StatusCode::UNAUTHORIZED,
            kind: ErrorType::Authentication,
            message,
        });
    }
    let ask: MessageRequest =
        serde_json::from_slice(&body).map_err(|error| Refusal::invalid(error.to_string()))?;
    drop(body);

    let before = provider.asked.fetch_add(1, Ordering::Relaxed);
    let script = Script::new(
        provider.scenario.answer(before),
        Context {
            request_id: &messages::new_id("req"),
            message_id: &messages::new_id("msg"),
            model: &ask.model,
            streams: ask.stream,
            elsewhere: &provider.elsewhere,
        },
    );
    Ok(respond::respond(script, connection).await)
}

/// Checks for a non-empty key in `x-api-key`, `authorization` or the header that the credential belongs in.
fn has_key(headers: &HeaderMap, belongs: &Belongs) -> bool {
    let is_auth_header = |name: &HeaderName| {
        [API_KEY, header::AUTHORIZATION].contains(name) || belongs.is_in(name.as_str())
    };
    headers
        .iter()
        .any(|(name, value)| is_auth_header(name) && !value.is_empty())
}

impl Provider {
    /// Reads a body to its end, so that the connection can carry another request. Returns 413 beyond the
    /// limits.
    async fn read(&self, body: Body) -> Result<Vec<u8>, Refusal> {
        let mut share = self.budget.share();
        let mut stream = body.into_data_stream();
        let mut read = Vec::new();
        while let Some(piece) = next(&mut stream).await {
            let piece = piece.map_err(|_| {
                Refusal::invalid("the request body is cut off or malformed".to_owned())
            })?;
            if read.len() + piece.len() > self.body_bytes || !share.take(piece.len()) {
                let message = format!("the request is longer than {} bytes", self.body_bytes);
                return Err(Refusal {
                    status: StatusCode::PAYLOAD_TOO_LARGE,
                    kind: ErrorType::RequestTooLarge,
                    message,
                });
            }
            read.extend_from_slice(&piece);
        }
        Ok(read)
    }
}

async fn next<S: Stream<Item = Result<Bytes, axum::Error>> + Unpin>(
    stream: &mut S,
) -> Option<S::Item> {
    std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}

/// Error answer in the public shape.
struct Refusal {
    status: StatusCode,
    kind: ErrorType,
    message: String,
}

impl Refusal {
    fn invalid(message: String) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: ErrorType::InvalidRequest,
            message,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let id = messages::new_id("req");
        let body = messages::error_body(self.kind, &self.message, &id);
        let headers = [
            (header::CONTENT_TYPE, "application/json"),
            (REQUEST_ID, id.as_str()),
        ];
        (self.status, headers, body).into_response()
    }
}
