//! The barrier, the end of the run, and errors that invalidate a run.

use model::journal::{End, Entry};
use stub::ServeError;

use crate::kit::{HEAD, Plan, post};

#[test]
fn an_answer_waits_until_it_may_go() {
    let mut run = Plan::default().start_with_barrier();
    let mut client = run.connect();
    client.send(post());
    let request = run.wait_for_began();
    client.assert_nothing();
    run.go(request);
    assert_eq!(client.answer().events().len(), 6);
    drop(client);
    let story = run.finish().story();
    assert!(
        !story.iter().any(|word| word.contains("unordered")),
        "{story:?}"
    );
}

#[test]
fn the_first_byte_of_a_request_is_enough_to_ask() {
    let mut run = Plan::default().start_with_barrier();
    let mut client = run.connect();
    client.send("H");
    let request = run.wait_for_began();
    run.go(request);
    assert_eq!(client.send(&HEAD[1..]).head_answer().status, 200);
}

#[test]
fn each_of_several_requests_waits_for_its_own_word() {
    let mut run = Plan::default().start_with_barrier();
    let mut client = run.connect();
    client.send([HEAD, &post()].concat());
    let first = run.wait_for_began();
    run.go(first);
    assert_eq!(client.head_answer().status, 200);
    let second = run.wait_for_began();
    client.assert_nothing();
    run.go(second);
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_refusal_waits_as_well() {
    let mut run = Plan::default().start_with_barrier();
    let mut client = run.connect();
    client.send("nonsense\r\n\r\n");
    let request = run.wait_for_began();
    client.assert_nothing();
    run.go(request);
    assert_eq!(client.answer().status, 400);
}

#[test]
fn an_answer_that_no_one_lets_go_is_marked_unordered() {
    let mut run = Plan::default().start_with_barrier();
    let mut client = run.connect();
    let start = std::time::Instant::now();
    assert_eq!(client.send(HEAD).head_answer().status, 200);
    assert!(start.elapsed() >= stub::MAX_HOLD);
    run.wait_for(|entry| matches!(entry, Entry::Unordered { request: 1, .. }));
    run.go(1);
    drop(client);
    let story = run.finish().story();
    let place = |word: &str| story.iter().position(|found| found == word).unwrap();
    assert!(
        place("1 began 1") < place("1: unordered") && place("1: unordered") < place("1: 200"),
        "{story:?}"
    );
}

#[test]
fn what_was_sent_just_before_the_end_is_journaled() {
    let run = Plan::default().start_with_barrier();
    let mut clients: Vec<_> = (0..20).map(|_| run.connect()).collect();
    for client in &mut clients {
        client.send(post());
    }
    drop(clients);
    let journal = run.finish();
    assert_eq!(journal.ends().len(), 20);
    for (bytes, unaccounted, end) in journal.ends() {
        assert_eq!(
            (bytes, unaccounted, end),
            (post().len() as u64, 0, End::Closed)
        );
    }
    assert!(journal.bodies().iter().all(|body| body.complete));
}

#[test]
fn a_held_request_is_read_to_its_end_and_stays_unanswered() {
    let mut run = Plan::default().start_with_barrier();
    let mut client = run.connect();
    client.send("P");
    run.wait_for_began();
    client.send(&post()[1..]);
    let journal = run.finish();
    assert_eq!(journal.ends(), [(post().len() as u64, 0, End::Open)]);
    assert!(!journal.story().iter().any(|word| word == "1: 200"));
    assert_eq!(client.rest(), "");
}

#[test]
fn more_than_the_kernel_gives_in_one_read_is_journaled_at_the_end() {
    let mut run = Plan::default().start_with_barrier();
    let mut client = run.connect();
    client.send("P");
    run.wait_for_began();
    let body = "1".repeat(60_000);
    let request = format!(
        "OST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    client.send(&request);
    let journal = run.finish();
    assert_eq!(journal.ends()[0].0, request.len() as u64 + 1);
    assert!(journal.bodies()[0].complete);
}

#[test]
fn a_control_side_that_closes_early_ends_the_run_with_an_error() {
    let run = Plan::default().start_with_barrier();
    assert!(matches!(run.abandon(), Err(ServeError::ControlEnded)));
}

#[test]
fn a_journal_that_cannot_be_written_ends_the_run_with_an_error() {
    let run = Plan::default().start_with_barrier();
    assert!(matches!(run.lose_journal(), Err(ServeError::Journal(_))));
}
