//! Facts of requests and their headers.

use std::collections::BTreeMap;

use model::difference::{Area, Fact};
use model::shape::is_text;
use serde_json::Value;

use super::form::{Evidence, Request};
use super::{Facts, Rule, body};

/// Host of requests that did not go to the provider.
const ELSEWHERE: &str = "elsewhere";

pub(super) fn read(evidence: &Evidence, facts: &mut Facts) {
    facts
        .applied
        .add(Rule::Connections, evidence.connections.len());
    let requests = &evidence.requests;
    let message = message(requests, facts);
    let mut named: BTreeMap<String, Vec<(&Request, String)>> = BTreeMap::new();
    for (index, request) in requests.iter().enumerate() {
        let key = name(request, facts);
        let place = place(request, index, message, facts);
        let value = value(request, place, facts);
        named.entry(key).or_default().push((request, value));
    }
    let message = message.and_then(|index| requests.get(index));
    for (key, alike) in named {
        for (request, value) in in_order(alike, message, facts) {
            let key = facts.insert(Area::Requests, &key, &value);
            headers(&key, request, facts);
            if let Some(found) = &request.body {
                body::read(&key, found, facts);
            }
        }
    }
}

/// Index of the request for the turn. Of several, the one with the most values in its body, so that the order of
/// requests does not matter.
fn message(requests: &[Request], facts: &Facts) -> Option<usize> {
    let of_turn = requests.iter().enumerate();
    let of_turn = of_turn.filter(|(_, one)| one.class == "message" && one.host != ELSEWHERE);
    let sized = of_turn.map(|(index, one)| {
        let shape = one.body.as_ref().and_then(|body| body.shape.as_ref());
        (shape.map_or(0, values), index)
    });
    let sized: Vec<(usize, usize)> = sized.collect();
    let most = sized.iter().map(|(size, _)| *size).max()?;
    let largest = sized.iter().filter(|(size, _)| *size == most);
    let largest: Vec<usize> = largest.map(|(_, index)| *index).collect();
    if let [only] = largest.as_slice() {
        return Some(*only);
    }
    let mut number = facts.number;
    let content = largest.into_iter().filter_map(|index| {
        let content = content(requests.get(index)?, facts, &mut number);
        Some((content, index))
    });
    content.min().map(|(_, index)| index)
}

/// Number of values in a body.
fn values(shape: &Value) -> usize {
    match shape {
        Value::Object(_) if is_text(shape) => 1,
        Value::Object(fields) => fields.values().map(values).sum(),
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// Sorts requests of one name by their content, the message first.
fn in_order<'r>(
    alike: Vec<(&'r Request, String)>,
    message: Option<&Request>,
    facts: &mut Facts,
) -> Vec<(&'r Request, String)> {
    if alike.len() < 2 {
        return alike;
    }
    facts.applied.add(Rule::Order, alike.len() - 1);
    let mut number = facts.number;
    let sorted = alike.into_iter().map(|(request, value)| {
        let is_other = message.is_none_or(|message| !std::ptr::eq(message, request));
        let content = content(request, facts, &mut number);
        (is_other, content, value, request)
    });
    let mut sorted: Vec<_> = sorted.collect();
    sorted.sort_by(|one, other| (one.0, &one.1, &one.2).cmp(&(other.0, &other.1, &other.2)));
    let sorted = sorted.into_iter();
    sorted
        .map(|(_, _, value, request)| (request, value))
        .collect()
}

/// Content by which requests of one name are sorted. `number` counts the facts of all previews, to which the limit of
/// facts applies too.
fn content(
    request: &Request,
    facts: &Facts,
    number: &mut usize,
) -> (Option<String>, BTreeMap<Fact, String>) {
    let mut beside = facts.with_room_of(*number);
    let query = request.query.as_deref().map(|query| beside.text(query));
    headers("", request, &mut beside);
    if let Some(found) = &request.body {
        body::read("", found, &mut beside);
    }
    *number = beside.number;
    (query, beside.facts)
}

/// Key of a request, independent of its position.
fn name(request: &Request, facts: &mut Facts) -> String {
    let mut name = match (&request.method, &request.path) {
        (Some(method), Some(path)) => format!("{method} {}", facts.text(path)),
        (Some(_) | None, _) => "bytes that are no request".to_owned(),
    };
    if let Some(side) = &request.side {
        name.push_str(&format!(" ({side})"));
    }
    if request.host == ELSEWHERE {
        name.push_str(" at the second host");
    }
    name
}

/// Position before or after the message. `None` for the message itself, and for side requests, whose order varies.
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
