//! The provider: which request gets which answer.
//!
//! It knows the scenario and the public interface. It does not know the journal: what went over the wire
//! is the room of the connection.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use futures_core::Stream;
use serde::Serialize;

use crate::answer::Paced;
use crate::limits::{Budget, Limits};
use crate::messages::{self, Ask, Fault};
use crate::scenario::Scenario;

const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The provider as a router: `HEAD /` and `POST /v1/messages`; everything else is an error in the public
/// shape.
pub fn app(scenario: Scenario, limits: Limits) -> Router {
    let budget = Budget::new(&limits);
    let provider = Arc::new(Provider {
        scenario,
        body_bytes: limits.body_bytes,
        budget,
    });
    Router::new()
        .route(
            "/",
            on(MethodFilter::HEAD, reachable).fallback(wrong_method),
        )
        .route(
            "/v1/messages",
            on(MethodFilter::POST, message).fallback(wrong_method),
        )
        .fallback(unknown)
        .with_state(provider)
}

struct Provider {
    scenario: Scenario,
    body_bytes: usize,
    budget: Budget,
}

async fn reachable(State(provider): State<Arc<Provider>>, request: Request) -> Result<(), Refusal> {
    provider.read(request.into_body()).await.map(|_| ())
}

async fn unknown(State(provider): State<Arc<Provider>>, request: Request) -> Result<(), Refusal> {
    provider.read(request.into_body()).await?;
    Err(Refusal {
        status: StatusCode::NOT_FOUND,
        fault: Fault::NotFound,
        message: "Not found".to_owned(),
    })
}

async fn wrong_method(
    State(provider): State<Arc<Provider>>,
    request: Request,
) -> Result<(), Refusal> {
    provider.read(request.into_body()).await?;
    let message = "Method not allowed".to_owned();
    Err(Refusal {
        status: StatusCode::METHOD_NOT_ALLOWED,
        fault: Fault::InvalidRequest,
        message,
    })
}

async fn message(
    State(provider): State<Arc<Provider>>,
    request: Request,
) -> Result<Response, Refusal> {
    let has_key = has_key(request.headers());
    let body = provider.read(request.into_body()).await?;
    if !has_key {
        let message = "x-api-key header is required".to_owned();
        return Err(Refusal {
            status: StatusCode::UNAUTHORIZED,
            fault: Fault::Authentication,
            message,
        });
    }
    let ask: Ask =
        serde_json::from_slice(&body).map_err(|error| Refusal::invalid(error.to_string()))?;
    drop(body);

    let scenario = &provider.scenario;
    if !scenario.pace().first.is_zero() {
        tokio::time::sleep(scenario.pace().first).await;
    }
    let id = messages::new_id("msg");
    if !ask.stream {
        return Ok(json(
            StatusCode::OK,
            &messages::new_id("req"),
            &messages::message(&scenario.text(), &id, &ask.model),
        ));
    }
    let stream = Paced::new(scenario, &messages::events(scenario, &id, &ask.model));
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    insert_id(headers, &messages::new_id("req"));
    Ok(response)
}

/// A key in either of the two headers that the interface knows.
fn has_key(headers: &HeaderMap) -> bool {
    [API_KEY, header::AUTHORIZATION]
        .iter()
        .any(|name| headers.get(name).is_some_and(|value| !value.is_empty()))
}

impl Provider {
    /// Reads a body to its end, so that the connection can carry another request.
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
                    fault: Fault::RequestTooLarge,
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

/// An answer in the public error shape.
struct Refusal {
    status: StatusCode,
    fault: Fault,
    message: String,
}

impl Refusal {
    fn invalid(message: String) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            fault: Fault::InvalidRequest,
            message,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let id = messages::new_id("req");
        body(
            self.status,
            &id,
            messages::error_body(self.fault, &self.message, &id),
        )
    }
}

fn json(status: StatusCode, request_id: &str, value: &impl Serialize) -> Response {
    // Plain structs and strings always serialise.
    body(
        status,
        request_id,
        serde_json::to_string(value).unwrap_or_default(),
    )
}

fn body(status: StatusCode, request_id: &str, json: String) -> Response {
    let mut response = Response::new(Body::from(json));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    insert_id(headers, request_id);
    response
}

fn insert_id(headers: &mut HeaderMap, request_id: &str) {
    // The identifier is a prefix and hexadecimal digits.
    if let Ok(value) = HeaderValue::from_str(request_id) {
        headers.insert(REQUEST_ID, value);
    }
}
