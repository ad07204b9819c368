//! Requests, and their headers.

use super::form::{Evidence, Request};
use super::{Area, Facts, Rule, body};

pub(super) fn read(evidence: &Evidence, facts: &mut Facts) {
    facts
        .applied
        .add(Rule::Connections, evidence.connections.len());
    let requests = &evidence.requests;
    let message = requests
        .iter()
        .position(|request| request.class == "message");
    for (index, request) in requests.iter().enumerate() {
        let key = name(request, facts);
        let place = place(request, index, message, facts);
        let value = value(request, place, facts);
        let key = facts.insert(Area::Requests, &key, &value);
        headers(&key, request, facts);
        if let Some(found) = &request.body {
            body::read(&key, found, facts);
        }
    }
}

/// What it is known by, whenever it came.
fn name(request: &Request, facts: &mut Facts) -> String {
    let mut name = match (&request.method, &request.path) {
        (Some(method), Some(path)) => format!("{method} {}", facts.text(path)),
        (Some(_) | None, _) => "bytes that are no request".to_owned(),
    };
    if let Some(side) = &request.side {
        name.push_str(&format!(" ({side})"));
    }
    if request.host == "elsewhere" {
        name.push_str(" at the second host");
    }
    name
}

/// Whether it came before the message or behind it. A request that the client makes beside the turn comes when it
/// comes.
fn place(
    request: &Request,
    index: usize,
    message: Option<usize>,
    facts: &mut Facts,
) -> Option<&'static str> {
    let message = message.filter(|message| *message != index)?;
    if request.side.is_some() || request.class == "side" {
        facts.apply(Rule::Order);
        return None;
    }
    Some(if index < message {
        "before the message"
    } else {
        "after the message"
    })
}

fn value(request: &Request, place: Option<&str>, facts: &mut Facts) -> String {
    let mut parts = vec![request.class.clone()];
    parts.extend(place.map(str::to_owned));
    if let Some(query) = &request.query {
        parts.push(format!("query {}", facts.text(query)));
    }
    if let Some(fault) = &request.fault {
        parts.push(facts.text(fault));
    }
    if !request.complete {
        parts.push("incomplete".to_owned());
    }
    parts.push(match request.status {
        Some(status) => format!("status {status}"),
        None => "no status".to_owned(),
    });
    parts.join(", ")
}

fn headers(request: &str, found: &Request, facts: &mut Facts) {
    if !found.headers.is_empty() {
        facts.apply(Rule::Order);
    }
    for (name, value) in &found.headers {
        let value = if name.eq_ignore_ascii_case("content-length") {
            facts.apply(Rule::Lengths);
            "{length}".to_owned()
        } else {
            if value.contains("<redacted>") {
                facts.apply(Rule::Credential);
            }
            facts.text(value)
        };
        let name = facts.text(name);
        facts.insert(Area::Headers, &format!("{request} {name}"), &value);
    }
}
