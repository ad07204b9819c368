//! Fixtures: a run of each case without findings. Tests change one value and check the result.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "compiled for tests only"
)]

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::*;
use crate::case::expect::{AgentStream, RequestRule, Requests};
use crate::case::{Case, Expectations};
use crate::journal::{Body, Content, End, Head, Host};
use crate::profile::Profile;

mod change;
mod isolation;
mod ledger;
mod policy;

use policy::{case, profile};

pub use change::*;
pub use ledger::PROMPTS;
pub use policy::{limits, rule};

/// Start of every fixture, in milliseconds of the epoch.
pub const STARTED_MS: u64 = 1_780_000_000_000;
/// Text of the stub, in three deltas.
const TEXT: [&str; 3] = ["This is ", "a synthetic ", "answer."];

/// A case, a profile and the evidence of a run.
pub struct Fixture {
    /// The case.
    pub case: Case,
    /// The profile of the client.
    pub profile: Profile,
    /// Evidence of the run.
    pub evidence: Evidence,
}

impl Fixture {
    /// Expectations of the case for the client of the profile.
    pub fn expect(&self) -> Expectations {
        self.case.expect.of_client(&self.profile)
    }

    /// Rules of the requests.
    pub fn rules(&mut self) -> &mut Requests {
        self.case.expect.requests.as_mut().expect("rules")
    }

    /// Expected records.
    pub fn stream(&mut self) -> &mut AgentStream {
        let records = self.case.expect.records.as_mut();
        let stream = records.and_then(|records| records.stream.as_mut());
        stream.expect("an agent-stream")
    }

    /// Rule of the message request.
    pub fn message(&mut self) -> &mut RequestRule {
        &mut self.rules().rules[1]
    }
}

/// Case A with its preflight.
pub fn case_a() -> Fixture {
    let mut run = case_b();
    run.case.name = "case-a".to_owned();
    run.rules().rules[0].count.to = Some(1);
    let body = &mut run.message().body;
    body.cache_control = None;
    let fields = body.fields.as_mut().expect("fields");
    fields.retain(|field| field.name != "output_config");

    let evidence = &mut run.evidence;
    let connection = &evidence.connections[0];
    let preflight = Connection {
        at_us: 180_000,
        bytes: 70,
        ..connection.clone()
    };
    evidence.connections.insert(0, preflight);
    evidence.connections[1].seq = 2;

    let post = &mut evidence.requests[0];
    (post.seq, post.connection) = (2, 2);
    shape(post, |fields| {
        fields
            .as_object_mut()
            .expect("an object")
            .remove("output_config");
        unmark(&mut fields["system"]);
        unmark(&mut fields["messages"][0]["content"]);
    });
    evidence.requests.insert(0, head_request());
    evidence
        .provider_events
        .iter_mut()
        .for_each(|event| event.request = 2);
    run
}

/// Case B.
pub fn case_b() -> Fixture {
    Fixture {
        case: case(),
        profile: profile(),
        evidence: evidence(),
    }
}

/// Builds `HEAD /` as the reference client sends it.
pub fn head_request() -> Request {
    Request {
        seq: 1,
        at_us: 181_000,
        connection: 1,
        host: Host::Stub,
        class: RequestClass::Preflight,
        side: None,
        head: head(
            "HEAD",
            "/",
            &[("user-agent", "reqwest/0.13.1"), ("host", "127.0.0.1:4000")],
        ),
        body: None,
        status: Some(200),
        expected: None,
    }
}

fn evidence() -> Evidence {
    let started = UNIX_EPOCH + Duration::from_millis(STARTED_MS);
    let duration = Duration::from_micros(412_345);
    Evidence {
        stub: Some(([127, 0, 0, 1], 4000).into()),
        connections: vec![Connection {
            seq: 1,
            at_us: 211_000,
            host: Host::Stub,
            bytes: 1_604,
            unaccounted: 0,
            held: 0,
            requests: 1,
            end: End::Closed,
        }],
        requests: vec![post()],
        provider_events: provider_events(),
        records: records(),
        files: files(),
        made_and_removed: Root::ALL
            .map(|root| MadeAndRemoved {
                root,
                count: Some(0),
            })
            .into(),
        file_watch: FileWatch::Whole,
        stderr: Stderr::default(),
        sightings: Vec::new(),
        exit: Exit::Code(0),
        limit: None,
        attempts: ledger::setup(),
        unlisted: Default::default(),
        lookups: Vec::new(),
        sensitive: Vec::new(),
        names: Vec::new(),
        processes: ledger::processes(),
        survivors: Vec::new(),
        layers: isolation::layers(),
        canaries: isolation::canaries(),
        gaps: Vec::new(),
        moments: Moments {
            supervised_us: Some(6_800),
            released_us: Some(9_400),
            ended_us: Some(398_000),
        },
        wall: (started, started + duration),
        duration,
    }
}

fn post() -> Request {
    let beta = "agent-client-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,\
                prompt-caching-scope-2026-01-05";
    let headers = [
        ("host", "127.0.0.1:4000"),
        ("content-type", "application/json"),
        ("user-agent", "agent-cli/2.1.177 (external, sdk-cli)"),
        ("x-api-key", "<redacted>"),
        ("agent-beta", beta),
        ("content-length", "1204"),
    ];
    let shape = json!({
        "context_management": {"edits": []},
        "max_tokens": 32000,
        "messages": [{"role": "user", "content": [block(306), marked_block(14)]}],
        "metadata": {"user_id": text(36)},
        "model": text(15),
        "output_config": {"effort": text(4)},
        "stream": true,
        "system": [block(85), marked_block(62), marked_block(32)],
        "thinking": {"type": "adaptive"},
        "tools": [],
    });
    Request {
        seq: 1,
        at_us: 212_000,
        connection: 1,
        host: Host::Stub,
        class: RequestClass::Message,
        side: None,
        head: head("POST", "/v1/messages", &headers),
        body: Some(Body {
            bytes: 1_204,
            sha256: digest(3),
            complete: true,
            content: Content::Json { shape },
        }),
        status: Some(200),
        expected: None,
    }
}

fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> Head {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Head::Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: None,
        version: "HTTP/1.1".to_owned(),
        headers: headers.iter().map(owned).collect(),
    }
}

fn provider_events() -> Vec<ProviderEvent> {
    let delta = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": []}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
    ];
    events.extend(TEXT.map(delta));
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]);
    let event = |(data, at_us): (Value, u64)| ProviderEvent {
        at_us: 214_000 + at_us,
        request: 1,
        event: data["type"].as_str().expect("a type").to_owned(),
        data,
    };
    events.into_iter().zip(0..).map(event).collect()
}

fn records() -> Vec<Record> {
    let mut lines = vec![
        json!({
            "type": "system", "subtype": "init", "cwd": "/home/user", "session_id": "s", "tools": [],
            "mcp_servers": [], "model": "agent-model", "permissionMode": "default", "slash_commands": [],
            "apiKeySource": "AGENT_API_KEY", "output_style": "default", "agents": [], "skills": [], "plugins": [],
            "uuid": "u", "agent_version": "2.1.177",
        }),
        json!({"type": "system", "subtype": "status", "status": "requesting", "session_id": "s", "uuid": "u"}),
    ];
    for event in provider_events()
        .into_iter()
        .filter(|event| event.event != "ping")
    {
        if event.event == "content_block_stop" {
            let content = json!([{"type": "text", "text": TEXT.concat()}]);
            lines.push(
                json!({"type": "assistant", "message": {"role": "assistant", "content": content}}),
            );
        }
        lines.push(
            json!({"type": "stream_event", "event": event.data, "session_id": "s", "uuid": "u"}),
        );
    }
    lines.push(
        json!({"type": "result", "subtype": "success", "is_error": false, "result": TEXT.concat()}),
    );

    let record = |(json, seq): (Value, u64)| Record {
        seq,
        at_us: 190_000 + seq * 10_000,
        bytes: json.to_string().len() as u64,
        before: if seq <= 2 {
            Before::Connect
        } else {
            Before::None
        },
        line: Line::Record(json),
    };
    lines.into_iter().zip(1..).map(record).collect()
}

fn files() -> Vec<FileEntry> {
    let directory = |path| FileEntry {
        kind: FileKind::Directory,
        mode: 0o700,
        bytes: 0,
        sha256: None,
        target: None,
        ..file(Root::Home, path)
    };
    let backup = format!(".agent/backups/.agent.json.backup.{}", STARTED_MS + 120);
    vec![
        directory(".agent"),
        file(Root::Home, ".agent/.agent.json"),
        directory(".agent/backups"),
        FileEntry {
            bytes: 50,
            ..file(Root::Home, &backup)
        },
    ]
}

fn block(bytes: u64) -> Value {
    json!({"type": "text", "text": text(bytes)})
}

fn marked_block(bytes: u64) -> Value {
    json!({"type": "text", "text": text(bytes), "cache_control": {"type": "ephemeral"}})
}

fn unmark(blocks: &mut Value) {
    for block in blocks.as_array_mut().expect("blocks") {
        block
            .as_object_mut()
            .expect("a block")
            .remove("cache_control");
    }
}

/// Builds the shape of a string.
pub fn text(bytes: u64) -> Value {
    json!({"bytes": bytes, "sha256": digest(bytes)})
}

/// Builds a text in the form of a SHA-256.
pub fn digest(seed: u64) -> String {
    format!("{:064x}", u128::from(seed) * 0x9e37_79b9_7f4a_7c15).replace(
        "00000000000000000000000000000000",
        "5eed5eed5eed5eed5eed5eed5eed5eed",
    )
}
