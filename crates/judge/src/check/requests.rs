//! Checks of the requests to the stub, and of other bytes on its connections.

use std::collections::HashMap;

use model::case::Preflight;
use model::evidence::{Connection, Request, RequestClass};
use model::expected::is_expected_side_request;
use model::journal::{End, Head, Host};
use model::text::count;

use super::outcome::{Deviation, JudgedRun, Outcome, absent, describe, list, name, not_asked};
use super::{PROCESSES, REQUESTS};

/// Preflight to the provider.
const PREFLIGHT: (Host, RequestClass) = (Host::Stub, RequestClass::Preflight);
/// Message request to the provider.
const MESSAGE: (Host, RequestClass) = (Host::Stub, RequestClass::Message);

pub(super) fn first_and_only(run: &JudgedRun) -> Outcome {
    if run.case.expect.preflight != Preflight::Forbidden {
        return not_asked("the case allows a preflight: requests/sequence is its check");
    }
    match run.evidence.requests.as_slice() {
        [only] if only.class == RequestClass::Message && only.host == Host::Stub => {
            Ok("One request was served, and it is POST /v1/messages.".to_owned())
        }
        all => Deviation::new("The message request is not the first and only request.")
            .expected("1 request: POST /v1/messages")
            .found(listing(all))
            .failed_if_complete(match all {
                [only] if is_known(only) => &[],
                [] | [_] => REQUESTS,
                [_, _, ..] => &[],
            }),
    }
}

/// Checks for a request that no lost part of the journal could change.
fn is_known(request: &Request) -> bool {
    request.is_complete() || matches!(request.head, Head::Malformed { .. })
}

pub(super) fn sequence(run: &JudgedRun) -> Outcome {
    if run.case.expect.preflight != Preflight::OptionalFirst {
        return not_asked("the case forbids a preflight: requests/first-and-only is its check");
    }
    let (beside, others): (Vec<_>, Vec<_>) = run
        .evidence
        .requests
        .iter()
        .partition(|request| is_expected_side_request(&run.profile.side_requests, request));
    let asked = |request: &&Request| (request.host, request.class);
    let known = others.iter().copied().filter(|request| is_known(request));
    let known: Vec<(Host, RequestClass)> = known.map(|request| asked(&request)).collect();
    let asked: Vec<(Host, RequestClass)> = others.iter().map(asked).collect();
    let sequence = match asked.as_slice() {
        [MESSAGE] => "POST /v1/messages, without a preflight",
        [PREFLIGHT, MESSAGE] => "HEAD /, then POST /v1/messages",
        _ => {
            return Deviation::new(
                "The requests are not an optional HEAD / and then one POST /v1/messages.",
            )
            .expected("HEAD / first or not at all, POST /v1/messages, nothing else")
            .found(listing(&run.evidence.requests))
            .failed_if_complete(match known.as_slice() {
                [] | [PREFLIGHT] | [MESSAGE] | [PREFLIGHT, MESSAGE] => REQUESTS,
                _ => &[],
            });
        }
    };
    Ok(match beside.len() {
        0 => format!("{sequence}."),
        number => format!(
            "{sequence}, beside {} that the profile expects.",
            count(number, "request")
        ),
    })
}

pub(super) fn post_count(run: &JudgedRun) -> Outcome {
    match run
        .evidence
        .requests
        .iter()
        .filter(|request| request.is_post())
        .count()
    {
        1 => Ok("Exactly one POST /v1/messages.".to_owned()),
        posts => Deviation::new("There is not exactly one POST /v1/messages.")
            .expected("1 message request")
            .found(count(posts, "message request"))
            .failed_if_complete(if posts == 0 { REQUESTS } else { &[] }),
    }
}

pub(super) fn connections(run: &JudgedRun) -> Outcome {
    let all = &run.evidence.connections;
    if all.is_empty() {
        return absent("no connection was accepted");
    }
    let mut requests_of: HashMap<u64, Vec<&Request>> = HashMap::new();
    for request in &run.evidence.requests {
        let on_it = requests_of.entry(request.connection).or_default();
        on_it.push(request);
    }
    let mut doubtful = None;
    for connection in all {
        let on_it = requests_of
            .get(&connection.seq)
            .map_or(&[][..], Vec::as_slice);
        if let Some(fault) = fault(connection, on_it) {
            let deviation =
                Deviation::new("A connection carried something other than whole requests.")
                    .at(format!("connection {}", connection.seq))
                    .expected("one whole request or more, no other byte, closed between requests")
                    .found(fault);
            // If the client's exit is unknown, so is the side that cut the connection. If the journal lacks the end of
            // the connection, it may lack more of the connection.
            let needs = if connection.end == End::Open && connection.held == 0 {
                REQUESTS
            } else {
                PROCESSES
            };
            // A client that is killed before it has read the whole answer also resets the connection.
            let is_leftover =
                connection.end == End::Reset && connection.held == 0 && is_whole(connection, on_it);
            let deviation = if is_leftover {
                deviation.leftover()
            } else {
                deviation
            };
            if needs == PROCESSES && !is_leftover {
                return deviation.failed_if_complete(PROCESSES);
            }
            doubtful.get_or_insert((deviation, needs));
        }
    }
    if let Some((deviation, needs)) = doubtful {
        return deviation.failed_if_complete(needs);
    }
    Ok(format!(
        "{}, each with whole requests and nothing else.",
        count(all.len(), "connection")
    ))
}

pub(super) fn query(run: &JudgedRun) -> Outcome {
    let asked: Vec<_> = run.posts()?.into_iter().chain(run.preflights()).collect();
    for request in asked {
        let query = query_of(request);
        let named = request.is_post() && run.profile.queries.iter().any(|known| known == query);
        if !query.is_empty() && !named {
            return Deviation::new("A request has a query that the profile does not name.")
                .at(name(request))
                .expected(allowed(request, &run.profile.queries))
                .found(query)
                .failed();
        }
    }
    Ok("No query but those that the profile names.".to_owned())
}

/// Query of a request; a missing query is empty.
fn query_of(request: &Request) -> &str {
    match &request.head {
        Head::Request { query, .. } => query.as_deref().unwrap_or_default(),
        Head::Malformed { .. } | Head::Incomplete => "",
    }
}

fn allowed(request: &Request, queries: &[String]) -> String {
    if request.is_post() && !queries.is_empty() {
        format!("none, or one of: {}", list(queries))
    } else {
        "none".to_owned()
    }
}

/// Checks for a connection with requests, each of them whole.
fn is_whole(connection: &Connection, requests: &[&Request]) -> bool {
    connection.requests > 0 && requests.iter().all(|request| request.is_complete())
}

fn fault(connection: &Connection, requests: &[&Request]) -> Option<String> {
    if connection.held > 0 {
        return Some(format!(
            "{} bytes that the kernel still held for the client 1 s after its end",
            connection.held
        ));
    }
    if connection.requests == 0 {
        return Some(format!("{} bytes and no request", connection.bytes));
    }
    if connection.unaccounted > 0 {
        return Some(format!(
            "{} bytes that belong to no request",
            connection.unaccounted
        ));
    }
    if let Some(request) = requests.iter().find(|request| !request.is_complete()) {
        return Some(format!(
            "{} is not whole: {}",
            name(request),
            describe(request)
        ));
    }
    match connection.end {
        End::Truncated => Some("the client closed inside a request".to_owned()),
        End::Reset => Some("the client reset the connection".to_owned()),
        End::Open => Some("neither closed nor reset 1 s after the client's end".to_owned()),
        End::Closed | End::ByStub => None,
    }
}

fn listing(requests: &[Request]) -> String {
    if requests.is_empty() {
        return "no request".to_owned();
    }
    format!(
        "{}: {}",
        count(requests.len(), "request"),
        list(requests.iter().map(describe))
    )
}
