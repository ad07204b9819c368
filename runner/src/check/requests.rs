//! Which requests the stub was asked, and what its connections carried besides.

use stub::journal::{End, Head, Host};

use crate::case::Preflight;
use crate::evidence::{Connection, Request, RequestClass};
use crate::profile::SideRequest;

use super::outcome::{Deviation, Outcome, Run, absent, count, describe, list, name, not_asked};

pub(super) fn first_and_only(run: &Run) -> Outcome {
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
            .failed(),
    }
}

pub(super) fn sequence(run: &Run) -> Outcome {
    if run.case.expect.preflight != Preflight::OptionalFirst {
        return not_asked("the case forbids a preflight: requests/first-and-only is its check");
    }
    let (beside, others): (Vec<_>, Vec<_>) = run
        .evidence
        .requests
        .iter()
        .partition(|request| is_expected_beside(&run.profile.side_requests, request));
    let asked = |request: &&Request| (request.host, request.class);
    let asked: Vec<(Host, RequestClass)> = others.iter().map(asked).collect();
    let sequence = match asked.as_slice() {
        [(Host::Stub, RequestClass::Message)] => "POST /v1/messages, without a preflight",
        [
            (Host::Stub, RequestClass::Preflight),
            (Host::Stub, RequestClass::Message),
        ] => "HEAD /, then POST /v1/messages",
        _ => {
            return Deviation::new(
                "The requests are not an optional HEAD / and then one POST /v1/messages.",
            )
            .expected("HEAD / first or not at all, POST /v1/messages, nothing else")
            .found(listing(&run.evidence.requests))
            .failed();
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

/// Whether a request beside the turn is one that the profile expects.
pub fn is_expected_beside(known: &[SideRequest], request: &Request) -> bool {
    let rule = known
        .iter()
        .find(|rule| Some(&rule.name) == request.side.as_ref());
    request.host == Host::Stub && rule.is_some_and(|rule| rule.expected)
}

pub(super) fn post_count(run: &Run) -> Outcome {
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
            .failed(),
    }
}

pub(super) fn connections(run: &Run) -> Outcome {
    let all = &run.evidence.connections;
    if all.is_empty() {
        return absent("no connection was accepted");
    }
    for connection in all {
        if let Some(fault) = fault(connection, &run.evidence.requests) {
            return Deviation::new("A connection carried something other than whole requests.")
                .at(format!("connection {}", connection.seq))
                .expected("one whole request or more, no other byte, closed between requests")
                .found(fault)
                .failed();
        }
    }
    Ok(format!(
        "{}, each with whole requests and nothing else.",
        count(all.len(), "connection")
    ))
}

pub(super) fn query(run: &Run) -> Outcome {
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

/// The query; an empty one and none are the same.
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

fn fault(connection: &Connection, requests: &[Request]) -> Option<String> {
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
    let on_it = |request: &&Request| request.connection == connection.seq;
    if let Some(request) = requests
        .iter()
        .filter(on_it)
        .find(|request| !request.is_complete())
    {
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
