//! Facts of requests: positions, names, and requests of one name.

use super::*;

/// Request `GET /v1/x` with this query.
fn get(query: &str, agent: &str) -> Request {
    let mut request = head_request();
    request.class = RequestClass::Unknown;
    set_header(&mut request, "user-agent", agent);
    if let Head::Request {
        method,
        path,
        query: of_it,
        ..
    } = &mut request.head
    {
        (*method, *path) = ("GET".to_owned(), "/v1/x".to_owned());
        *of_it = Some(query.to_owned());
    }
    request
}

/// Second message: short, and with a body of its own.
fn probe() -> Request {
    let mut probe = case_b().evidence.requests[0].clone();
    probe.body.as_mut().unwrap().sha256 = digest(77);
    shape(&mut probe, |body| *body = json!({"max_tokens": 1}));
    probe
}

#[test]
fn a_request_put_in_changes_nothing_about_the_others() {
    let found = changed(|run| run.evidence.requests.insert(0, head_request()));
    assert_eq!(
        found,
        [
            "requests HEAD /: - => preflight status 200",
            "headers HEAD / host: - => 127.0.0.1:{port}",
            "headers HEAD / user-agent: - => reqwest/0.13.1",
        ]
    );
    let again = changed(|run| {
        let again = run.evidence.requests[0].clone();
        let class = RequestClass::Retry;
        run.evidence.requests.push(Request { class, ..again });
    });
    assert_eq!(
        again[0],
        "requests POST /v1/messages #2: - => retry status 200"
    );
    assert!(
        again
            .iter()
            .all(|line| line.contains("POST /v1/messages #2"))
    );
}

#[test]
fn a_preflight_that_moves_behind_the_message_is_told_and_a_side_request_may_come_when_it_comes() {
    let side = || Request {
        class: RequestClass::Side,
        side: Some("session title".to_owned()),
        ..case_b().evidence.requests[0].clone()
    };
    let found = between(
        |run| run.evidence.requests.insert(0, side()),
        |run| run.evidence.requests.push(side()),
    );
    assert_eq!(found, Vec::<String>::new());
    let found = between(
        |run| run.evidence.requests.insert(0, head_request()),
        |run| run.evidence.requests.push(head_request()),
    );
    let [only] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert!(only.ends_with("preflight status 200 => preflight status 200 after the message"));
}

#[test]
fn query_status_and_completeness_of_a_request_are_compared() {
    let found = changed(|run| {
        let post = &mut run.evidence.requests[0];
        post.status = None;
        post.body.as_mut().unwrap().complete = false;
        if let Head::Request { query, .. } = &mut post.head {
            *query = Some("beta=true".to_owned());
        }
    });
    assert_eq!(
        found,
        [
            "requests POST /v1/messages: message status 200 => message query beta=true complete false"
        ]
    );
}

#[test]
fn requests_of_one_name_that_come_in_another_order_are_no_difference() {
    let four = || [("a=1", "x"), ("a=2", "x"), ("a=2", "y"), ("b=1", "a")];
    let asked = |order: [usize; 4]| {
        move |run: &mut Fixture| {
            let more = order.map(|index| four()[index]);
            let more = more.map(|(query, agent)| get(query, agent));
            run.evidence.requests.extend(more);
        }
    };
    for order in [[3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        let found = between(asked([0, 1, 2, 3]), asked(order));
        assert_eq!(found, Vec::<String>::new(), "{order:?}");
    }
}

#[test]
fn one_more_of_a_name_is_told_by_what_is_in_it_and_the_others_stay() {
    let found = between(
        |run| run.evidence.requests.extend([get("a", "x"), get("b", "x")]),
        |run| {
            let three = [get("c", "x"), get("b", "x"), get("a", "x")];
            run.evidence.requests.extend(three);
        },
    );
    assert_eq!(
        found[0],
        "requests GET /v1/x #3: - => unknown query c status 200"
    );
    assert!(found.iter().all(|line| line.contains("GET /v1/x #3")));
}

#[test]
fn requests_of_one_name_whose_bodies_come_in_another_order_are_no_difference() {
    let with = |seed: u64| {
        let mut request = probe();
        request.class = RequestClass::Retry;
        shape(&mut request, |body| {
            body["id"] = json!({"bytes": 15, "sha256": digest(seed)});
        });
        request
    };
    let found = between(
        |run| run.evidence.requests.extend([with(1), with(2)]),
        |run| run.evidence.requests.extend([with(2), with(1)]),
    );
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn another_message_before_the_message_is_one_further_request() {
    // The content of one request sorts before that of the message, and of the other after it.
    let bodies = [json!({"a": 1}), json!({"z": 1})];
    for at in [0, 1] {
        for body in &bodies {
            let mut probe = probe();
            shape(&mut probe, |shape| *shape = body.clone());
            let found = changed(|run| run.evidence.requests.insert(at, probe));
            assert_eq!(
                found[0],
                "requests POST /v1/messages #2: - => message status 200"
            );
            let of_it = |line: &String| line.contains("POST /v1/messages #2");
            assert!(found.iter().all(of_it), "{found:?}");
        }
    }
}

#[test]
fn a_message_to_the_second_host_is_not_the_message() {
    let found = changed(|run| {
        let mut other = case_b().evidence.requests[0].clone();
        other.host = model::journal::Host::Elsewhere;
        shape(&mut other, |body| body["more"] = json!([1, 2, 3]));
        run.evidence.requests.insert(0, other);
    });
    let of_it = |line: &String| line.contains("POST /v1/messages host elsewhere");
    assert!(found.iter().all(of_it), "{found:?}");
    assert!(found[0].ends_with("message status 200"));
}

#[test]
fn of_two_messages_of_one_size_it_is_no_matter_which_came_first() {
    let two = |seeds: [u64; 2]| {
        move |run: &mut Fixture| {
            let message = run.evidence.requests[0].clone();
            run.evidence.requests = seeds
                .map(|seed| {
                    let mut one = message.clone();
                    shape(&mut one, |body| {
                        body["model"] = json!({"bytes": 15, "sha256": digest(seed)});
                    });
                    one
                })
                .into();
        }
    };
    let found = between(two([1, 2]), two([2, 1]));
    assert_eq!(found, [""; 0]);
}

#[test]
fn equal_requests_are_one_fact_with_a_number() {
    let polls = |number: usize| {
        move |run: &mut Fixture| {
            let polls = std::iter::repeat_with(|| get("a", "x"));
            run.evidence.requests.extend(polls.take(number));
        }
    };
    assert_eq!(between(polls(3), polls(3)), [""; 0]);
    assert_eq!(
        between(polls(3), polls(4)),
        ["requests GET /v1/x: unknown query a status 200 × 3 => unknown query a status 200 × 4"]
    );
}
