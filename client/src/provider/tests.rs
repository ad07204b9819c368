//! Tests of the time limits, the retries and the URL.

use std::{net::TcpListener, path::PathBuf};

use uuid::Uuid;

use super::*;
use crate::{
    cli::{Mode, PartialMessages},
    key::ApiKey,
};

const SHORT: Duration = Duration::from_millis(50);

fn invocation(base_url: &str) -> Invocation {
    Invocation {
        base_url: Url::parse(base_url).unwrap(),
        key: ApiKey::parse("sk-test").unwrap(),
        home: PathBuf::from("/h"),
        mode: Mode::Normal,
        partial_messages: PartialMessages::Included,
        prompt: "hi".to_owned(),
        system_prompt: None,
        model: "m".to_owned(),
        max_tokens: 1,
        max_retries: 0,
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn status(status: u16, retry_after: Option<u64>) -> ProviderError {
    ProviderError::Status {
        status,
        detail: ErrorDetail::default(),
        retry_after: retry_after.map(Duration::from_secs),
    }
}

#[test]
fn a_provider_that_sends_no_answer_times_out() {
    // The backlog of the listener takes the connections; no code accepts them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let invocation = invocation(&format!("http://{}", silent.local_addr().unwrap()));
    let timeouts = Timeouts {
        preflight: SHORT,
        read: SHORT,
        ..TIMEOUTS
    };
    let answer = block_on(async {
        let provider = Provider::new(&invocation, timeouts).unwrap();
        provider.preflight().await;
        provider.post(&Body::new(&invocation, Uuid::nil()), 0).await
    });
    assert!(matches!(answer, Err(ProviderError::TimedOut)), "{answer:?}");
}

#[test]
fn a_stream_that_stalls_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let invocation = invocation(&format!("http://{}", listener.local_addr().unwrap()));
    let stalling = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut connection, _) = listener.accept().unwrap();
        connection.read_exact(&mut [0; 4]).unwrap();
        connection
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n")
            .unwrap();
        // Reads until the client closes the connection.
        let _ = connection.read_to_end(&mut Vec::new());
    });
    let error = block_on(async {
        let timeouts = Timeouts {
            read: SHORT,
            ..TIMEOUTS
        };
        let provider = Provider::new(&invocation, timeouts).unwrap();
        let mut answer = provider
            .post(&Body::new(&invocation, Uuid::nil()), 0)
            .await
            .unwrap();
        loop {
            match answer.chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the stream has not ended"),
                Err(error) => break error,
            }
        }
    });
    assert!(matches!(error, ProviderError::Stalled), "{error:?}");
    stalling.join().unwrap();
}

#[test]
fn transient_statuses_are_worth_a_retry_and_others_are_not() {
    for worth in [408, 409, 429, 500, 502, 529, 599] {
        assert_eq!(
            status(worth, None).retry_delay(SHORT),
            Some(SHORT),
            "{worth}"
        );
    }
    for pointless in [201, 400, 401, 403, 404, 413, 600] {
        assert_eq!(
            status(pointless, Some(0)).retry_delay(SHORT),
            None,
            "{pointless}"
        );
    }
    assert_eq!(
        ProviderError::Redirect { status: 307 }.retry_delay(SHORT),
        None
    );
    assert_eq!(ProviderError::TimedOut.retry_delay(SHORT), Some(SHORT));
}

#[test]
fn retry_after_is_honoured_up_to_its_limit() {
    assert_eq!(
        status(429, Some(3)).retry_delay(SHORT),
        Some(Duration::from_secs(3))
    );
    assert_eq!(
        status(503, Some(60)).retry_delay(SHORT),
        Some(MAX_RETRY_AFTER)
    );
    assert_eq!(status(503, Some(61)).retry_delay(SHORT), None);
    assert_eq!(status(429, Some(u64::MAX)).retry_delay(SHORT), None);
}

#[test]
fn the_path_of_the_base_url_is_kept() {
    for (base, expected) in [
        ("http://h", "http://h/v1/messages"),
        ("http://h/", "http://h/v1/messages"),
        ("http://h:1/x/", "http://h:1/x/v1/messages"),
        ("http://[::1]:1/x", "http://[::1]:1/x/v1/messages"),
    ] {
        assert_eq!(messages_url(&Url::parse(base).unwrap()).as_str(), expected);
    }
}

#[test]
fn only_the_essence_of_the_content_type_counts() {
    for stream in [
        "text/event-stream",
        "text/event-stream; charset=utf-8",
        "Text/Event-Stream ;x=y",
    ] {
        assert!(is_event_stream(stream), "{stream}");
    }
    for other in [
        "",
        "application/json",
        "text/event-streams",
        "x; text/event-stream",
    ] {
        assert!(!is_event_stream(other), "{other}");
    }
}

#[test]
fn the_key_is_in_its_header_alone_and_shows_in_no_debug_output() {
    let provider = Provider::new(&invocation("http://127.0.0.1:1"), TIMEOUTS).unwrap();
    assert_eq!(provider.headers.get("x-api-key").unwrap(), "sk-test");
    assert!(!provider.headers.contains_key("authorization"));
    assert!(!format!("{provider:?}").contains("sk-test"));
}
