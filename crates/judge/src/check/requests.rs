//! Checks of the requests to the stub, and of other bytes on its connections.

use std::collections::HashMap;

use model::case::expect::{Order, RequestRule, Requests};
use model::evidence::{Connection, Request, RequestClass};
use model::expected::is_expected_side_request;
use model::journal::{End, Head, Host};
use model::text::count;

use super::outcome::{Deviation, JudgedRun, Outcome, absent, describe, list, name, not_asked};
use super::{PROCESSES, REQUESTS};

pub(super) fn first_and_only(run: &JudgedRun) -> Outcome {
    let Some(rule) = run.rules()?.only() else {
        return not_asked("the case allows more than one request: requests/sequence is its check");
    };
    let wanted = rule.words();
    match run.evidence.requests.as_slice() {
        [only] if is_first(run, only) => Ok(format!("One request was served, and it is {wanted}.")),
        all => Deviation::new("The message request is not the first and only request.")
            .expected(format!("1 request: {wanted}"))
            .found(listing(all))
            .unfinished_if(all.is_empty())
            .failed_if_complete(match all {
                [only] if is_known(only) => &[],
                [] | [_] => REQUESTS,
                [_, _, ..] => &[],
            }),
    }
}

/// Checks for a request of the only rule, which is neither repeated nor beside the turn.
fn is_first(run: &JudgedRun, request: &Request) -> bool {
    let rule = run.rule_of(request).filter(|rule| rule.count.to != Some(0));
    let is_repeated = request.class == RequestClass::Retry;
    rule.is_some() && request.host == Host::Stub && request.side.is_none() && !is_repeated
}

/// Checks for a request that no lost part of the journal could change.
fn is_known(request: &Request) -> bool {
    request.is_complete() || matches!(request.head, Head::Malformed { .. })
}

pub(super) fn sequence(run: &JudgedRun) -> Outcome {
    let rules = run.rules()?;
    if rules.only().is_some() {
        return not_asked("the case allows one request only: requests/first-and-only is its check");
    }
    let (beside, others): (Vec<_>, Vec<_>) = run
        .evidence
        .requests
        .iter()
        .partition(|request| is_expected_side_request(&run.expect.side_requests, request));
    let known = others.iter().copied().filter(|request| is_known(request));
    let known: Vec<Option<usize>> = known.map(|request| place(rules, request)).collect();
    let all: Vec<Option<usize>> = others.iter().map(|request| place(rules, request)).collect();
    let is_whole = rules.rules.iter().enumerate().all(|(number, rule)| {
        let found = all.iter().filter(|place| **place == Some(number)).count();
        rule.count.allows(found as u64)
    });
    if !is_whole || !is_possible(rules, &all) {
        return Deviation::new("The requests are not those that the case lists.")
            .expected(expected_sequence(rules))
            .found(listing(&run.evidence.requests))
            .unfinished_if(is_possible(rules, &all))
            .failed_if_complete(if is_possible(rules, &known) {
                REQUESTS
            } else {
                &[]
            });
    }
    let sequence = others.iter().map(|request| describe(request));
    let sequence = list(sequence);
    Ok(match beside.len() {
        0 => format!("The requests are those that the case lists: {sequence}."),
        number => format!(
            "The requests are those that the case lists: {sequence}, beside {} that the profile expects.",
            count(number, "request")
        ),
    })
}

/// Number of the rule that a request to the provider matches.
fn place(rules: &Requests, request: &Request) -> Option<usize> {
    let mut rules = rules.rules.iter();
    rules.position(|rule| {
        // The only one must be no repetition, even if its own first attempt was never seen.
        let may_repeat = rule.protocol.is_none() || rule.count.to != Some(1);
        let is_first = may_repeat || request.class != RequestClass::Retry;
        request.host == Host::Stub && request.side.is_none() && is_first && rule.covers(request)
    })
}

/// Checks whether further requests could complete these to the listed ones.
fn is_possible(rules: &Requests, places: &[Option<usize>]) -> bool {
    let Some(places) = places.iter().copied().collect::<Option<Vec<usize>>>() else {
        return false;
    };
    let in_order = rules.order == Order::Any || places.is_sorted();
    let within = rules.rules.iter().enumerate().all(|(number, rule)| {
        let found = places.iter().filter(|place| **place == number).count() as u64;
        rule.count.to.is_none_or(|to| found <= to)
    });
    in_order && within
}

/// Text `HEAD / at most once, POST /v1/messages once, in this order, nothing else`.
fn expected_sequence(rules: &Requests) -> String {
    let order = match rules.order {
        Order::Listed => "in this order, ",
        Order::Any => "",
    };
    let rules = rules.rules.iter();
    let rules = rules.map(|rule| format!("{} {}", rule.words(), rule.count.words()));
    format!("{}, {order}nothing else", list(rules))
}

pub(super) fn post_count(run: &JudgedRun) -> Outcome {
    let rules = run.rules()?.rules.iter();
    let rules: Vec<&RequestRule> = rules.filter(|rule| rule.protocol.is_some()).collect();
    if rules.is_empty() {
        return not_asked("no rule of the requests has a protocol");
    }
    for rule in &rules {
        let found = run.ruled().filter(|(of, _)| of.name == rule.name).count() as u64;
        if !rule.count.allows(found) {
            return Deviation::new(format!(
                "{} was not sent as often as expected.",
                rule.words()
            ))
            .failed_number(rule.count, found, "message request", REQUESTS);
        }
    }
    let counts = rules
        .iter()
        .map(|rule| format!("{} {}", rule.words(), rule.count.words()));
    Ok(format!("As often as expected: {}.", list(counts)))
}

pub(super) fn connections(run: &JudgedRun) -> Outcome {
    run.rules()?;
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
    run.some_request()?;
    for (rule, request) in run.ruled() {
        let query = query_of(request);
        if !query.is_empty() && !rule.queries.iter().any(|known| known == query) {
            return Deviation::new("A request has a query that its rule does not name.")
                .at(name(request))
                .expected(allowed(&rule.queries))
                .found(query)
                .failed();
        }
    }
    Ok("No query but those that the rules name.".to_owned())
}

/// Query of a request; a missing query is empty.
fn query_of(request: &Request) -> &str {
    match &request.head {
        Head::Request { query, .. } => query.as_deref().unwrap_or_default(),
        Head::Malformed { .. } | Head::Incomplete => "",
    }
}

fn allowed(queries: &[String]) -> String {
    if queries.is_empty() {
        "none".to_owned()
    } else {
        format!("none, or one of: {}", list(queries))
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
