//! Classes of requests.

use serde_json::json;

use super::*;

fn title() -> SideRequest {
    SideRequest {
        name: "session title".to_owned(),
        method: "POST".to_owned(),
        path: "/v1/messages".to_owned(),
        with: vec!["output_config.format".parse().unwrap()],
        without: vec!["context_management".parse().unwrap()],
        expected: false,
        reason: "it names the session".to_owned(),
    }
}

#[test]
fn requests_are_classed_by_method_path_body_and_retry_count() {
    let served = Journal::default()
        .accepted(1)
        .asked(1, 1, "HEAD", "/")
        .asked(1, 2, "POST", "/v1/messages")
        .body(1, 2, "aa")
        .asked(1, 3, "POST", "/v1/messages")
        .body(1, 3, "bb")
        .asked(1, 4, "POST", "/v1/messages")
        .body(1, 4, "aa")
        .asked_with(
            1,
            5,
            "POST",
            "/v1/messages",
            &[("X-Stainless-Retry-Count", "1")],
        )
        .body(1, 5, "cc")
        .asked_with(
            1,
            6,
            "POST",
            "/v1/messages",
            &[("x-stainless-retry-count", "0")],
        )
        .body(1, 6, "dd")
        .asked(1, 7, "POST", "/v1/messages/count_tokens")
        .asked(1, 8, "GET", "/v1/models")
        .asked(1, 9, "POST", "/api/event_logging/batch")
        .asked(1, 10, "GET", "/v1/messages")
        .closed(1, 3_000, 10)
        .done();
    use RequestClass::*;
    assert_eq!(
        classes(&served),
        [
            Preflight, Message, Message, Retry, Retry, Message, Side, Side, Unknown, Unknown
        ]
    );
    assert_eq!(gaps(&served), [""; 0]);
}

#[test]
fn class_of_a_request_follows_its_endpoint() {
    use RequestClass::*;
    let rows = [
        ("HEAD", "/proxy/", Preflight),
        ("POST", "/openai/v1/messages", Message),
        ("POST", "/proxy/v1/messages/count_tokens", Side),
        ("GET", "/proxy/v1/models", Side),
        ("HEAD", "/proxy", Unknown),
        ("POST", "/messages", Unknown),
        ("POST", "//v1/messages", Unknown),
        ("POST", "/v1/messages/", Unknown),
        ("POST", "/a/../v1/messages", Unknown),
        ("POST", "/a%2Fb/v1/messages", Unknown),
        ("POST", "http://127.0.0.1/v1/messages", Unknown),
    ];
    let mut journal = Journal::default().accepted(1);
    for ((method, path, _), request) in rows.iter().zip(1..) {
        journal = journal.asked(1, request, method, path);
    }
    let served = journal.closed(1, 3_000, rows.len() as u64).done();
    assert_eq!(classes(&served), rows.map(|(_, _, class)| class));
}

#[test]
fn a_request_that_the_profile_names_is_beside_the_turn_again_and_again() {
    let format = json!({"output_config": {"format": {"type": "json_schema"}}});
    let managed = json!({"output_config": {"format": {}}, "context_management": {}});
    let served = Journal::default()
        .accepted(1)
        .asked(1, 1, "POST", "/v1/messages")
        .shaped(1, 1, "aa", format.clone())
        .asked(1, 2, "POST", "/v1/messages")
        .shaped(1, 2, "bb", managed)
        .asked(1, 3, "POST", "/v1/messages")
        .shaped(1, 3, "aa", format)
        .asked(1, 4, "POST", "/v1/messages")
        .shaped(1, 4, "bb", json!({}))
        .asked(1, 5, "GET", "/v1/models")
        .closed(1, 900, 5)
        .entry(Entry::Done { at_us: START_US })
        .cut_with(&[title()]);
    use RequestClass::*;
    assert_eq!(classes(&served), [Side, Message, Side, Retry, Side]);
    let names: Vec<_> = served
        .requests
        .iter()
        .map(|one| one.side.as_deref())
        .collect();
    let title = Some("session title");
    assert_eq!(names, [title, None, title, None, None]);
}

#[test]
fn a_body_that_did_not_arrive_whole_is_not_told_by_its_keys() {
    let mut journal = Journal::default()
        .accepted(1)
        .asked(1, 1, "POST", "/v1/messages")
        .shaped(1, 1, "aa", json!({"output_config": {"format": {}}}))
        .closed(1, 300, 1)
        .entry(Entry::Done { at_us: START_US });
    for entry in &mut journal.0 {
        if let Entry::Body { body, .. } = entry {
            body.complete = false;
        }
    }
    assert_eq!(
        classes(&journal.cut_with(&[title()])),
        [RequestClass::Message]
    );
}
