//! Masks of texts: replaced values, and similar values that stay.

use proptest::prelude::*;

use super::super::mask::{Kind, Masks};
use super::super::{Applied, RULES};

fn masked(of: &str, kind: Kind) -> (String, Applied) {
    let mut applied = Applied::default();
    let masks = Masks {
        stub: [4000].into(),
        own: Vec::new(),
        date: "20261127".to_owned(),
    };
    (masks.apply(of, kind, &mut applied), applied)
}

fn normal(of: &str) -> (String, Applied) {
    masked(of, Kind::Text)
}

#[track_caller]
fn assert_masked(kind: Kind, rule: &str, pairs: &[(&str, &str)]) {
    for (of, expected) in pairs {
        let (found, applied) = masked(of, kind);
        assert_eq!(found, *expected);
        assert_eq!(applied.of(rule), 1, "{of}");
        let all: u64 = RULES.iter().map(|rule| applied.of(rule.name)).sum();
        assert_eq!(all, 1, "{of}");
    }
}

#[track_caller]
fn assert_replaced(rule: &str, pairs: &[(&str, &str)]) {
    assert_masked(Kind::Text, rule, pairs);
}

#[track_caller]
fn assert_kept(texts: &[&str]) {
    for of in texts {
        assert_eq!(normal(of), ((*of).to_owned(), Applied::default()));
    }
}

#[test]
fn times_are_replaced_and_dates_stay() {
    assert_replaced(
        "times",
        &[
            ("at 2026-11-28T12:41:43Z.", "at {time}."),
            ("2026-11-28T12:41:43.250Z", "{time}"),
            ("2026-11-28T12:41:43+01:00", "{time}"),
            ("2026-11-28 16:03:24", "{time}"),
            ("[2026-11-28 16:03:24.337] up", "[{time}] up"),
            ("2026-11-28 16:03:24 +0100", "{time} +0100"),
            ("2026-11-28T16:03:24.337439", "{time}"),
            ("2026-11-28T16:03:24+0100", "{time}"),
            ("run-2026-11-28T16-03-24", "run-{time}"),
            ("2026-11-28T16-03-24-337Z.log", "{time}.log"),
            ("2026-11-28_16-03-24.log", "{time}.log"),
            ("since=2026-11-28T16%3A03%3A24Z&a", "since={time}&a"),
            ("20261128T160324Z", "{time}"),
            ("a-20261128T160324.b", "a-{time}.b"),
            ("20261128-160324", "{time}"),
            ("20261128160324", "{time}"),
            ("2026-11-28T12:41:43_x", "{time}_x"),
            ("Sat, 28 Nov 2026 16:03:24 GMT", "{time}"),
            ("at Sat, 28 Nov 2026 16:03:24 +0000 it", "at {time} it"),
            ("Sun, 6 Nov 1994 08:49:37", "{time}"),
            ("Sat Nov 28 16:03:24 2026", "{time}"),
            ("Sun Nov  6 08:49:37 UTC 1994", "{time}"),
            // The date of the run.
            ("log-2026-11-27.txt", "log-{date}.txt"),
            ("sessions/2026/11/27/x", "sessions/{date}/x"),
            ("20261127.log", "{date}.log"),
            ("took 37ms", "took {duration}"),
            ("took 1.25s", "took {duration}"),
        ],
    );
    assert_kept(&[
        "interleaved-thinking-2025-05-14",
        "claude-code-20250219",
        "2023-06-01",
        "2026-11-28T12:41",
        "2026-13-28 12:41:43",
        "2026-11-28T24:41:43",
        "2026-11-28T12:41:433",
        "2026-11-28T12:41:43a",
        "2026-11-28T12.41.43",
        "2026/11/28 12:41:43",
        "2026-11-28 124143",
        "12026-11-28T12:41:43",
        "20261128",
        "20261128T1603",
        "Sat, 28 Nov 2026",
        "Sat, 28 Nov 2026 16:03 GMT",
        "Sat, 28 Nix 2026 16:03:24 GMT",
        "28 Nov 2026 16:03:24 GMT",
        "Sat, 31 Feb 20266 16:03:24 GMT",
        "Sat Nov 28 16:03:24",
        "Sat Nov 28 2026 16:03:24",
        "16:03:24",
        "timeout=60s",
        "2.1.177",
        "32000",
    ]);
}

#[test]
fn long_token_is_read_once() {
    // 300,000 words: read to its end for each word, the token would take hours.
    for end in ["", "é"] {
        let token = format!("{}{end}", "g1H2k3L4m-".repeat(300_000));
        assert!(normal(&token).0.len() < 100);
    }
}

#[test]
fn ids_are_replaced_and_names_stay() {
    assert_replaced(
        "ids",
        &[
            ("ef58ac57-72c4-499b-a5ea-c80665eac254", "{uuid}"),
            (
                "1p.EF58AC57-72C4-499B-A5EA-C80665EAC254.json",
                "1p.{uuid}.json",
            ),
            ("device 0123456789abcdef", "device {hex:16}"),
            ("0123456789abcdef0123456789abcdef", "{hex:32}"),
            ("123456789abcdef0123456789abcdef", "{hex:32}"),
            ("b049b47b3618", "{hex:16}"),
            ("a1b2c3d4", "{hex:8}"),
            ("90817263", "{hex:8}"),
            (
                ".agent.json.backup.1795868778606",
                ".agent.json.backup.{digits}",
            ),
            ("t=1795868778", "t={digits}"),
            ("t=1795868778.337439;", "t={digits};"),
            ("1795868778.", "{digits}."),
            ("1795868778.5a", "{digits}.5a"),
            ("18446744073709551615", "{hex:16}"),
            ("012345678901", "{hex:16}"),
            ("0.8273645123", "{digits}"),
            ("req_011CSHoEeqs5C35K2UUqR7Fy", "req_{id:24}"),
            ("req_zbi8e2pwnjl6tlo3bxml2aan", "req_{id:24}"),
            ("req-zbi8e2pwnjl6tlo3bxml2aan", "req-{id:24}"),
            ("msg_01ARZ3NDEKTSV4RRFFQ69G5FAV.", "msg_{id:26}."),
            ("V1StGXR8_Z5jdHi6B-myT", "{id:21}"),
            ("s_VqStGXRaZkjdHixBmyTq", "{id:22}"),
            ("V1StGXR8_Z5jdHi6B-myT-final", "{id:21}-final"),
            ("----WebKitFormBoundary7MA4YWxkTrZu0gWx", "----{boundary}"),
            ("WebKitFormBoundaryoPUpIwyQOdbsfAWy", "{boundary}"),
        ],
    );
    assert_masked(
        Kind::Header,
        "ids",
        &[
            ("kFzR/3x+Vq0aGm9LwT8eYg==", "{id:24}"),
            ("s=kFzR/3x+Vq0aGm9LwT8eYg==; a", "s={id:24}; a"),
        ],
    );
    assert_eq!(
        normal("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").0,
        "00-{hex:32}-{hex:16}-01"
    );
    assert_kept(&[
        "ef58ac5-72c4",
        "0123456789abcdefg",
        "facade-efface-defaced",
        "a1b2c3d",
        "req_short1A",
        "clear_thinking20251015",
        "effort_Thinking",
        "isInterleavedThinkingEnabled",
        "x86_64-unknown-linux-musl",
        "AppleWebKit/537.36 (KHTML, like Gecko)",
        "agent-cli/2.1.177 (external, sdk-cli)",
        "x_sha256withrsaencryption",
        "req_ZbiaeapwnjlbtlocbxmlAaan",
        "getUserProfileData",
        "gpt4o-mini-8b-16k",
        "r1-distill-llama3-8b",
        "qwen2-72b-instruct-q4k",
        "sdk2/py3/linux6/x64",
        "agent/1.20241022",
        "2024.102201",
        "AppleWebKitFramework",
        "HTTPServerURLMap",
        "XMLHttpRequest",
        "12345678a9é",
        "v1/messages/count/tokens/and/more",
        "1234567",
        "0.12345",
    ]);
}

/// A path of hostile length is masked in linear time.
#[test]
fn long_text_of_words_is_masked() {
    for part in ["a1-", "tmp-abcdef", "Zx9", "1", "/tmp/abcdef", "{"] {
        let long = part.repeat(300_000 / part.len());
        assert!(!masked(&long, Kind::Tmp).0.is_empty());
    }
}

#[test]
fn given_ports_of_loopback_are_replaced_and_others_stay() {
    assert_replaced(
        "ports",
        &[
            ("http://127.0.0.1:41187/x", "http://127.0.0.1:{port}/x"),
            ("localhost:32768", "localhost:{port}"),
            ("[::1]:65535", "[::1]:{port}"),
            ("127.0.0.2:41187", "127.0.0.2:{port}"),
            ("at 0.0.0.0:41187", "at 0.0.0.0:{port}"),
            ("[::]:41188", "[::]:{port}"),
            ("[::ffff:127.0.0.1]:41187", "[::ffff:127.0.0.1]:{port}"),
        ],
    );
    assert_kept(&[
        "127.0.0.1:1",
        "127.0.0.1:32767",
        "127.0.0.1:65536",
        "127.0.0.1:5432",
        "192.0.2.1:41187",
        "example.com:41187",
        "127.0.0:41187",
        "x127.0.0.1:41187",
        "[::2]:41187",
        "[::1:41187",
        "[]:41187",
        "[",
        "[žluť]:41187",
        "127.0.0.1",
    ]);
}

#[test]
fn port_of_the_stub_is_replaced_whichever_it_is() {
    let of = "127.0.0.1:4000 127.0.0.1:4001 192.0.2.1:4000 127.0.0.1:40000";
    let expected = "127.0.0.1:{port} 127.0.0.1:4001 192.0.2.1:4000 127.0.0.1:{port}";
    assert_eq!(normal(of).0, expected);
}

#[test]
fn random_names_are_replaced_where_they_are_made_and_nowhere_else() {
    assert_replaced(
        "names-of-files",
        &[
            ("/tmp/tmp5jcky1i1", "/tmp/tmp{random}"),
            ("cp /tmp/tmp.AbCdEf0123/x y", "cp /tmp/tmp.{random}/x y"),
            ("/tmp/claude-aB3dEf/x", "/tmp/claude-{random}/x"),
            ("/tmp/tmp.Ab3dE9xKq1", "/tmp/tmp.{random}"),
            ("/tmp/tmp.AbcdEfxKqz", "/tmp/tmp.{random}"),
            ("/tmp/tmpqwertzui", "/tmp/tmp{random}"),
            ("/tmp/tmpx8k2_q1z", "/tmp/tmp{random}"),
            ("/tmp/tmpk3Zq9X", "/tmp/tmp{random}"),
            ("/tmp/.tmpAb3dE9/x", "/tmp/.tmp{random}/x"),
            ("/tmp/pymp-x8k2_q1z", "/tmp/pymp-{random}"),
            ("/tmp/pymp-qwertzui", "/tmp/pymp-{random}"),
            ("/tmp/pip-unpack-6c7_l0ae", "/tmp/pip-unpack-{random}"),
            ("/tmp/build_m0_kq3rx", "/tmp/build_{random}"),
            // All letters, and no word.
            ("/tmp/agent-QwErTz", "/tmp/agent-{random}"),
            ("/tmp/agent.qwertZ", "/tmp/agent.{random}"),
            ("/tmp/agent-271828", "/tmp/agent-{random}"),
            ("/tmp/agent-rwgyhx/x", "/tmp/agent-{random}/x"),
            ("/tmp/tmp.qwertzuiop", "/tmp/tmp.{random}"),
        ],
    );
    // A hexadecimal id keeps its placeholder with the length.
    assert_replaced("ids", &[("/tmp/agent-a1b2c3d4", "/tmp/agent-{hex:8}")]);
    assert_kept(&[
        "tmp5jcky1i1",
        "/var/tmp5jcky1i1",
        "/tmp/tmpfile",
        "/tmp/tmp5jcky1i1x",
        "/tmp/a/claude-aB3dEf",
        "/tmp/claude-aB3dE",
        "/tmp/claude-1000",
        "/tmp/server",
        "/tmp/config",
        "/tmp/agent-server",
        "/tmp/agent-config",
        "/tmp/agent.socket",
        "/tmp/tmpconfig",
        "/tmp/.tmpserver",
        "/tmp/tmp.properties",
        "/tmp/agent-terminal",
        "/tmp/agent-linux_64",
        "/tmp/agent-version2",
        "/tmp/HTTPServerURLMap",
    ]);
}

#[test]
fn every_rule_has_a_name_and_one_sentence() {
    let mut names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
    assert!(RULES.iter().all(|rule| rule.what.ends_with('.')));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RULES.len());
}

#[test]
fn numbers_in_names_of_files_are_replaced() {
    assert_masked(
        Kind::Path,
        "names-of-files",
        &[
            (".agent/ide/12345.txt", ".agent/ide/{digits}.txt"),
            (".agent/7.lock", ".agent/{digits}.lock"),
            ("2026/x.8.db-wal", "2026/x.{digits}.db-wal"),
        ],
    );
    assert_masked(
        Kind::Tmp,
        "names-of-files",
        &[("agent-x9Kq2Z/a", "agent-{random}/a")],
    );
    for kept in [
        "node-22.1.0/bin",
        "a.7",
        "1234",
        "file7.lock",
        "claude-20250219",
    ] {
        assert_eq!(masked(kept, Kind::Path).0, kept);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_taken_and_what_is_replaced_once_is_not_replaced_again(of in any::<String>()) {
        let once = normal(&of).0;
        prop_assert_eq!(normal(&once).1, Applied::default());
    }

    #[test]
    fn text_of_ids_and_times_has_a_fixed_point(of in "(Sat|, |Nov|28|2026|[-_.+/:0-9a-fTZ\\[\\]é ]){0,80}") {
        prop_assert_eq!(normal(&of).0.is_empty(), of.is_empty());
        // A second pass may find more: a placeholder shortens the token beside it, which then looks random.
        let mut text = of.clone();
        let is_fixed = (0..=of.len()).any(|_| {
            let (next, applied) = normal(&text);
            text = next;
            applied == Applied::default()
        });
        prop_assert!(is_fixed, "{} is still replaced in {}", text, of);
    }
}
