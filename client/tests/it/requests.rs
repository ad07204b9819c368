//! Requests sent in the two cases, and the connections they use.

use serde_json::{Value, json};

use crate::kit::{Client, KEY, Request, Run, Server, answer, empty, raw, stream};

const POST_HEADERS: [&str; 8] = [
    "accept",
    "agent-beta",
    "connection",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "x-api-key",
];

fn case_a() -> (Run, Vec<Request>) {
    let server = Server::start(vec![empty("200 OK"), stream(answer())]);
    let run = Client::case_a(server.address).output();
    (run, server.requests())
}

fn case_b() -> (Run, Vec<Request>) {
    let server = Server::answering(stream(answer()));
    let run = Client::case_b(server.address).output();
    (run, server.requests())
}

fn lines(requests: &[Request]) -> Vec<&str> {
    requests
        .iter()
        .map(|request| request.line.as_str())
        .collect()
}

fn header_names(request: &Request) -> Vec<&str> {
    let mut names: Vec<&str> = request
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    names.sort_unstable();
    names
}

fn fields(object: &Value) -> Vec<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn case_a_sends_the_preflight_and_then_one_post() {
    let (run, requests) = case_a();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        lines(&requests),
        ["HEAD / HTTP/1.1", "POST /v1/messages HTTP/1.1"]
    );
}

#[test]
fn case_b_sends_one_post_and_nothing_else() {
    let (run, requests) = case_b();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(lines(&requests), ["POST /v1/messages HTTP/1.1"]);
}

#[test]
fn the_preflight_has_the_runtimes_user_agent_no_credential_and_no_body() {
    let (_, requests) = case_a();
    let head = &requests[0];
    assert_eq!(
        header_names(head),
        ["accept", "connection", "host", "user-agent"]
    );
    let version = head
        .header("user-agent")
        .unwrap()
        .strip_prefix("reqwest/")
        .unwrap();
    let lock = include_str!("../../../Cargo.lock");
    assert!(
        lock.contains(&format!("name = \"reqwest\"\nversion = \"{version}\"\n")),
        "{version}"
    );
    assert_eq!(head.body, b"");
}

#[test]
fn the_post_has_the_key_the_clients_user_agent_and_four_beta_families() {
    for (_, requests) in [case_a(), case_b()] {
        let post = requests.last().unwrap();
        assert_eq!(header_names(post), POST_HEADERS);
        assert_eq!(post.header("x-api-key"), Some(KEY));
        assert_eq!(post.header("authorization"), None);
        assert_eq!(
            post.header("user-agent"),
            Some("agent-cli/2.1.177 (external, sdk-cli)")
        );
        assert_eq!(post.header("content-type"), Some("application/json"));
        let families: Vec<&str> = post.header("agent-beta").unwrap().split(',').collect();
        assert_eq!(families.len(), 4);
        for family in [
            "agent-cli",
            "interleaved-thinking",
            "context-management",
            "prompt-caching-scope",
        ] {
            assert_eq!(
                families
                    .iter()
                    .filter(|name| name.starts_with(family))
                    .count(),
                1,
                "{family}"
            );
        }
    }
}

#[test]
fn the_body_of_case_a_has_exactly_the_tables_fields_and_no_cache_marks() {
    let (_, requests) = case_a();
    let body = requests[1].json();
    let expected = [
        "context_management",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "stream",
        "system",
        "thinking",
        "tools",
    ];
    assert_eq!(fields(&body), expected);
    assert_eq!(body["tools"], json!([]));
    assert_eq!(body["stream"], true);
    assert!(!String::from_utf8_lossy(&requests[1].body).contains("cache_control"));
    assert_eq!(body["system"].as_array().unwrap().len(), 3);
    assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 2);
    assert_eq!(
        body["messages"][0]["content"][1],
        json!({"type": "text", "text": "say hello"})
    );
}

#[test]
fn the_body_of_case_b_has_output_config_and_three_cache_marks() {
    let (_, requests) = case_b();
    let body = requests[0].json();
    assert!(body["output_config"].is_object());
    assert_eq!(fields(&body).len(), 10);
    let marks = |blocks: &Value| -> Vec<bool> {
        let blocks = blocks.as_array().unwrap();
        blocks
            .iter()
            .map(|block| block["cache_control"].is_object())
            .collect()
    };
    assert_eq!(marks(&body["system"]), [false, true, true]);
    assert_eq!(marks(&body["messages"][0]["content"]), [false, true]);
    assert_eq!(body["system"][2]["text"], "be brief");
}

#[test]
fn model_and_max_tokens_are_taken_from_the_command_line() {
    let server = Server::answering(stream(answer()));
    let run = Client::case_b(server.address)
        .args(&["--model", "other", "--max-tokens", "77"])
        .output();
    let body = server.requests()[0].json();
    assert_eq!(
        (&body["model"], &body["max_tokens"]),
        (&json!("other"), &json!(77))
    );
    assert_eq!(run.records()[0]["model"], "other");
}

#[test]
fn the_prompt_may_come_on_standard_input() {
    let server = Server::answering(stream(answer()));
    let run = Client::bare(&["--print", "--safe-mode"])
        .env("AGENT_BASE_URL", &format!("http://{}", server.address))
        .env("AGENT_API_KEY", KEY)
        .stdin("from a pipe")
        .output();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        server.requests()[0].json()["messages"][0]["content"][1]["text"],
        "from a pipe"
    );
}

#[test]
fn nothing_of_the_host_and_nothing_stable_identifies_the_user() {
    let (run, one) = case_b();
    let (_, other) = case_b();
    assert_ne!(one[0].json()["metadata"], other[0].json()["metadata"]);
    let home = run.home.path().to_string_lossy().into_owned();
    let body = String::from_utf8(one[0].body.clone()).unwrap();
    assert!(!body.contains(&home), "{body}");
}

#[test]
fn each_connection_carries_one_request_and_nothing_after_it() {
    let (_, requests) = case_a();
    for request in requests {
        assert_eq!(request.rest, b"", "{}", request.line);
        assert_eq!(request.header("connection"), Some("close"));
    }
}

#[test]
fn the_preflights_connection_is_closed_before_the_post_is_sent() {
    // The server handles connections in sequence and reads the first to its end. If the client kept that connection
    // open, the POST would not be accepted.
    let keep_alive = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n";
    let held_open = Box::new(move |connection: &mut std::net::TcpStream| {
        use std::io::{Read, Write};
        connection.write_all(keep_alive.as_bytes()).unwrap();
        assert_eq!(connection.read(&mut [0; 1]).unwrap(), 0);
    });
    let server = Server::start(vec![held_open, stream(answer())]);
    let run = Client::case_a(server.address).output();
    assert_eq!(run.code, Some(0), "{run:?}");
    server.requests();
}

#[test]
fn whatever_comes_of_the_preflight_the_turn_goes_on() {
    for reply in [
        empty("404 Not Found"),
        empty("405 Method Not Allowed"),
        empty("500 Internal Server Error"),
        raw("HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"),
        raw("nonsense\r\n\r\n"),
        raw(""),
    ] {
        let server = Server::start(vec![reply, stream(answer())]);
        let run = Client::case_a(server.address).output();
        assert_eq!(run.code, Some(0), "{run:?}");
        let requests = server.requests();
        assert_eq!(
            lines(&requests),
            ["HEAD / HTTP/1.1", "POST /v1/messages HTTP/1.1"]
        );
    }
}

#[test]
fn proxy_variables_are_not_looked_at() {
    let server = Server::answering(stream(answer()));
    let proxy = "http://127.0.0.1:1";
    let run = Client::case_b(server.address)
        .env("HTTP_PROXY", proxy)
        .env("http_proxy", proxy)
        .env("ALL_PROXY", proxy)
        .env("all_proxy", proxy)
        .output();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(server.requests().len(), 1);
}
