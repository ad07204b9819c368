//! Deviations in which requests came, and on which connections.

use stub::journal::{End, Head};

use crate::evidence::fixture::head_request;
use crate::evidence::{Connection, RequestClass};

use super::deviations;

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

fn set_query(head: &mut Head, text: &str) {
    let Head::Request { query, .. } = head else {
        panic!("the request has a head")
    };
    *query = Some(text.to_owned());
}
