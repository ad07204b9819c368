//! Deviations in the requests and their connections.

use model::evidence::fixture::{
    Fixture, add_header, case_a, head_request, headers, set_header, shape,
};
use model::evidence::{Connection, ProviderEvent, RequestClass};
use model::journal::{End, Head, Host};
use model::profile::SideRequest;
use serde_json::json;

use super::{deviations, finding};

deviations! {
    a_second_message_request_is_found: case_b, |run| {
        let again = run.evidence.requests[0].clone();
        run.evidence.requests.push(again);
    } => ["requests/first-and-only", "requests/post-count"];

    a_repeated_message_request_is_found_in_case_a: case_a, |run| {
        let mut again = run.evidence.requests[1].clone();
        again.class = RequestClass::Retry;
        run.evidence.requests.push(again);
    } => ["requests/sequence", "requests/post-count"];

    message_after_a_prefix_is_found_in_case_b: case_b, |run| {
        set_path(run, 0, "/proxy/v1/messages");
    } => ["requests/first-and-only", "requests/post-count"];

    message_after_a_prefix_is_found_in_case_a: case_a, |run| {
        set_path(run, 1, "/proxy/v1/messages");
    } => ["requests/sequence", "requests/post-count"];

    a_preflight_in_case_b_is_found: case_b, |run| {
        run.evidence.requests.insert(0, head_request());
    } => ["requests/first-and-only"];

    case_a_without_a_preflight_is_as_good: case_a, |run| {
        run.evidence.requests.remove(0);
        run.evidence.connections.remove(0);
    } => [];

    a_preflight_after_the_message_request_is_found: case_a, |run| {
        run.evidence.requests.swap(0, 1);
    } => ["requests/sequence"];

    a_second_preflight_is_found: case_a, |run| {
        run.evidence.requests.insert(0, head_request());
    } => ["requests/sequence"];

    a_side_request_is_found: case_b, |run| {
        let mut side = head_request();
        side.class = RequestClass::Side;
        run.evidence.requests.push(side);
    } => ["requests/first-and-only"];

    a_message_at_the_second_host_is_none_for_the_provider: case_b, |run| {
        run.evidence.requests[0].host = Host::Elsewhere;
    } => ["requests/first-and-only"];

    a_sequence_at_the_second_host_is_none_for_the_provider: case_a, |run| {
        run.evidence.requests[1].host = Host::Elsewhere;
    } => ["requests/sequence"];

    what_is_expected_beside_the_turn_is_expected_at_the_provider: case_a, |run| {
        run.profile.side_requests.push(title(true));
        beside_the_turn(run, 1);
        run.evidence.requests[1].host = Host::Elsewhere;
    } => ["requests/sequence", "requests/post-count"];

    a_message_beside_the_turn_leaves_the_turn_to_be_judged: case_b, |run| {
        run.profile.side_requests.push(title(true));
        beside_the_turn(run, 0);
    } => ["requests/first-and-only", "requests/post-count"];

    a_message_beside_the_turn_that_is_expected_is_still_a_second_message: case_a, |run| {
        run.profile.side_requests.push(title(true));
        beside_the_turn(run, 1);
    } => ["requests/post-count"];

    a_message_beside_the_turn_that_is_not_expected_is_found: case_a, |run| {
        run.profile.side_requests.push(title(false));
        beside_the_turn(run, 2);
    } => ["requests/sequence", "requests/post-count"];

    a_message_beside_the_turn_without_a_key_is_found: case_b, |run| {
        beside_the_turn(run, 1);
        headers(&mut run.evidence.requests[1]).retain(|(name, _)| name != "x-api-key");
    } => ["requests/first-and-only", "requests/post-count", "headers/api-key-present"];

    a_message_beside_the_turn_with_authorization_is_found: case_b, |run| {
        beside_the_turn(run, 1);
        let request = &mut run.evidence.requests[1];
        add_header(request, "authorization", "Bearer x");
    } => ["requests/first-and-only", "requests/post-count", "headers/authorization-absent",
        "headers/nothing-else"];

    the_families_of_a_message_beside_the_turn_are_its_own_affair: case_b, |run| {
        beside_the_turn(run, 1);
        set_header(&mut run.evidence.requests[1], "agent-beta", "other-2025");
    } => ["requests/first-and-only", "requests/post-count"];

    a_turn_is_not_replaced_by_a_message_beside_it: case_a, |run| {
        run.profile.side_requests.push(title(true));
        beside_the_turn(run, 1);
        run.evidence.requests.remove(2);
        run.evidence.provider_events.retain(|event| event.request == SIDE);
    } => ["requests/sequence", "records/sequence", "records/events-match-provider"];

    a_side_request_that_the_profile_expects_is_no_finding_in_case_a: case_a, |run| {
        let rule = SideRequest { method: "GET".to_owned(), path: "/v1/models".to_owned(), ..title(true) };
        run.profile.side_requests.push(rule);
        let mut side = head_request();
        (side.class, side.side) = (RequestClass::Side, Some("session title".to_owned()));
        run.evidence.requests.push(side);
    } => [];

    a_side_request_that_no_rule_expects_is_found_in_case_a: case_a, |run| {
        let mut side = head_request();
        (side.class, side.side) = (RequestClass::Side, None);
        run.evidence.requests.push(side);
    } => ["requests/sequence"];

    a_head_that_does_not_end_is_a_request_too: case_b, |run| {
        let mut cut = head_request();
        (cut.class, cut.head) = (RequestClass::Unknown, Head::Incomplete);
        run.evidence.requests.push(cut);
    } => ["requests/first-and-only", "requests/connections"];

    bytes_that_are_no_request_are_a_request_too: case_b, |run| {
        let mut other = head_request();
        (other.class, other.connection) = (RequestClass::Unknown, 2);
        other.head = Head::Malformed { reason: "no method".to_owned() };
        run.evidence.requests.push(other);
    } => ["requests/first-and-only"];

    a_lone_repetition_is_not_the_first_request: case_b, |run| {
        run.evidence.requests[0].class = RequestClass::Retry;
    } => ["requests/first-and-only"];

    no_request_at_all_fails_the_checks_that_count: case_b, |run| {
        run.evidence.requests.clear();
        run.evidence.connections.clear();
    } => ["requests/first-and-only", "requests/post-count"];

    an_idle_connection_is_found: case_b, |run| {
        let idle = Connection { seq: 2, bytes: 0, requests: 0, ..run.evidence.connections[0].clone() };
        run.evidence.connections.push(idle);
    } => ["requests/connections"];

    bytes_that_belong_to_no_request_are_found: case_b, |run| {
        run.evidence.connections[0].unaccounted = 5;
    } => ["requests/connections"];

    a_connection_that_was_reset_is_found: case_b, |run| {
        run.evidence.connections[0].end = End::Reset;
    } => ["requests/connections"];

    a_connection_that_ended_inside_a_request_is_found: case_b, |run| {
        run.evidence.connections[0].end = End::Truncated;
    } => ["requests/connections"];

    a_connection_that_the_stub_closed_is_as_good: case_b, |run| {
        run.evidence.connections[0].end = End::ByStub;
    } => [];

    a_connection_without_an_end_is_found: case_b, |run| {
        run.evidence.connections[0].end = End::Open;
    } => ["requests/connections"];

    bytes_that_the_kernel_still_holds_are_found: case_b, |run| {
        run.evidence.connections[0].held = 839;
    } => ["requests/connections"];

    bytes_held_behind_an_end_of_the_stub_are_found: case_a, |run| {
        run.evidence.connections[0].end = End::ByStub;
        run.evidence.connections[0].held = 1;
    } => ["requests/connections"];

    a_query_that_the_profile_does_not_name_is_found: case_b, |run| {
        set_query(&mut run.evidence.requests[0].head, "data=c2VjcmV0");
    } => ["requests/query"];

    a_query_that_the_profile_names_is_as_good: case_b, |run| {
        set_query(&mut run.evidence.requests[0].head, "beta=true");
    } => [];

    a_query_of_the_preflight_is_found: case_a, |run| {
        set_query(&mut run.evidence.requests[0].head, "beta=true");
    } => ["requests/query"];
}

/// Number of the request beside the turn.
const SIDE: u64 = 9;

fn title(expected: bool) -> SideRequest {
    SideRequest {
        name: "session title".to_owned(),
        method: "POST".to_owned(),
        path: "/v1/messages".to_owned(),
        with: vec!["output_config.format".parse().unwrap()],
        without: Vec::new(),
        expected,
        reason: "the client is known for it".to_owned(),
    }
}

/// Inserts a message beside the turn at an index, with another body and its own events.
fn beside_the_turn(run: &mut Fixture, index: usize) {
    let turn = run.evidence.requests.iter().find(|one| one.is_turn());
    let mut side = turn.expect("a turn").clone();
    (side.seq, side.class) = (SIDE, RequestClass::Side);
    side.side = Some("session title".to_owned());
    shape(&mut side, |fields| {
        *fields = json!({"stream": false, "tools": [{}]})
    });
    run.evidence.requests.insert(index, side);
    let events = run.evidence.provider_events.iter();
    let events: Vec<_> = events
        .map(|event| ProviderEvent {
            request: SIDE,
            ..event.clone()
        })
        .collect();
    run.evidence.provider_events.splice(0..0, events);
}

#[test]
fn what_came_beside_the_turn_is_named_in_the_finding_and_counted_where_it_is_expected() {
    let mut run = case_a();
    run.profile.side_requests.push(title(true));
    beside_the_turn(&mut run, 1);
    let sequence = finding("requests/sequence", &run).message;
    let expected = "The requests are those that the case lists: HEAD /, POST /v1/messages, beside 1 request that the profile expects.";
    assert_eq!(sequence, expected);
    run.profile.side_requests = vec![title(false)];
    let found = finding("requests/sequence", &run).found;
    let listed = "3 requests: HEAD /, POST /v1/messages (session title), POST /v1/messages";
    assert_eq!(found.as_deref(), Some(listed));
}

fn set_path(run: &mut Fixture, index: usize, text: &str) {
    if let Head::Request { path, .. } = &mut run.evidence.requests[index].head {
        text.clone_into(path);
    }
}

pub(super) fn set_query(head: &mut Head, text: &str) {
    let Head::Request { query, .. } = head else {
        panic!("the request has a head")
    };
    *query = Some(text.to_owned());
}
