//! Changes of the rules of requests.

use std::collections::BTreeSet;

use model::case::change::Change;
use model::case::expect::{BodyField, RequestRule, Requests};
use model::evidence::Request;
use model::expected::is_expected_side_request;

use super::{Judged, widened};
use crate::observed;

/// Rules for requests that no rule matches, at each place, and wider numbers of those that a rule matches.
pub(super) fn further(run: &Judged<'_>) -> Vec<Vec<Change>> {
    let complete = (run.complete)(run.own);
    let (Some(own), Some(rules)) = (&run.own.requests, &complete.requests) else {
        return Vec::new();
    };
    let mut numbers = vec![0; rules.rules.len()];
    let mut unknown: Vec<Request> = Vec::new();
    for request in &run.evidence.requests {
        let mut all = rules.rules.iter();
        match all.position(|rule| rule.covers(request)) {
            Some(place) => {
                if let Some(number) = numbers.get_mut(place) {
                    *number += 1;
                }
            }
            None if is_expected_side_request(&complete.side_requests, request) => {}
            None => unknown.push(request.clone()),
        }
    }
    let wider = own.rules.iter().zip(numbers).enumerate();
    let wider = wider.filter_map(|(place, (rule, number))| {
        let count = widened(rule.count, number);
        let is_wider = count != rule.count;
        is_wider.then(|| {
            replaced(
                place,
                RequestRule {
                    count,
                    ..rule.clone()
                },
                run.reason,
            )
        })
    });
    let wider: Vec<Change> = wider.collect();
    let mut refused = BTreeSet::new();
    let mut further = observed::requests(&[&unknown], run.reason, &mut refused).rules;
    if !refused.is_empty() {
        return Vec::new();
    }
    if further.is_empty() {
        return vec![wider];
    }
    rename(&mut further, own);
    let end = own.rules.len();
    let places = std::iter::once(end).chain(0..end);
    let with = places.map(|place| {
        let mut changes = wider.clone();
        changes.push(Change::AddRequests(place, further.clone()));
        changes
    });
    with.collect()
}

/// Gives each rule a name that the case does not have.
fn rename(further: &mut [RequestRule], own: &Requests) {
    let mut known: BTreeSet<String> = own.rules.iter().map(|rule| rule.name.clone()).collect();
    for rule in further {
        let method = rule.method.to_lowercase();
        let mut names = (1..).map(|number| format!("{method}-{number}"));
        if let Some(name) = names.find(|name| !known.contains(name)) {
            rule.name = name;
        }
        known.insert(rule.name.clone());
    }
}

/// Part of a rule that can be widened.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Query,
    UserAgent,
    RequiredHeaders,
    AllowedHeaders,
    Fields,
}

/// Widens a part of each rule to what the run showed. An expectation is never removed.
pub(super) fn wider(run: &Judged<'_>, part: Part) -> Vec<Change> {
    let complete = (run.complete)(run.own);
    let (Some(own), Some(rules)) = (&run.own.requests, &complete.requests) else {
        return Vec::new();
    };
    let of_rule = |place: usize| {
        let requests = run.evidence.requests.iter();
        let requests = requests.filter(|request| {
            let mut all = rules.rules.iter();
            all.position(|rule| rule.covers(request)) == Some(place)
        });
        requests.collect::<Vec<&Request>>()
    };
    let changed = own.rules.iter().enumerate().filter_map(|(place, rule)| {
        let requests = of_rule(place);
        let mut wider = rule.clone();
        match part {
            Part::Query => {
                let mut queries = observed::queries(&requests);
                queries.retain(|query| !rule.queries.contains(query));
                wider.queries.extend(queries);
            }
            Part::UserAgent => {
                let seen = observed::user_agent(&requests);
                wider.user_agent = rule.user_agent.clone().map(|own| seen.unwrap_or(own));
            }
            Part::Fields => {
                if let (Some(own), Some(seen)) = (&rule.body.fields, observed::fields(&requests)) {
                    wider.body.fields = Some(with_kinds(seen, own));
                }
            }
            Part::RequiredHeaders => {
                let has = |request: &&Request, name: &String| !request.header(name).is_empty();
                let headers = &mut wider.headers;
                let all = |name: &String| requests.iter().all(|request| has(request, name));
                headers.required.retain(all);
                let any = |name: &String| requests.iter().any(|request| has(request, name));
                headers.forbidden.retain(|name| !any(name));
            }
            Part::AllowedHeaders => {
                let names = requests.iter().flat_map(|request| request.headers());
                let names = names.map(|(name, _)| name.to_ascii_lowercase());
                if let Some(allowed) = &mut wider.headers.allowed {
                    let mut further = BTreeSet::from_iter(names);
                    further.retain(|name| !allowed.contains(name));
                    allowed.extend(further);
                }
            }
        }
        (!requests.is_empty() && wider != *rule).then(|| replaced(place, wider, run.reason))
    });
    changed.collect()
}

/// Fields that were seen, each with the type that the rule expects.
fn with_kinds(seen: Vec<BodyField>, own: &[BodyField]) -> Vec<BodyField> {
    let known = |field: &BodyField| own.iter().find(|own| own.name == field.name).cloned();
    let fields = seen.into_iter();
    fields.map(|field| known(&field).unwrap_or(field)).collect()
}

fn replaced(place: usize, rule: RequestRule, reason: &str) -> Change {
    let reason = reason.to_owned();
    Change::ReplaceRequest(place, Box::new(RequestRule { reason, ..rule }))
}
