//! Rules for texts: replaced values, and similar values that stay.

use proptest::prelude::*;

use super::super::normal::{StubPorts, text};
use super::super::{Applied, Rule};

fn normal(of: &str) -> (String, Applied) {
    let mut applied = Applied::default();
    (text(of, &StubPorts::new(), &mut applied), applied)
}

#[track_caller]
fn assert_replaced(rule: Rule, pairs: &[(&str, &str)]) {
    for (of, expected) in pairs {
        let (found, applied) = normal(of);
        assert_eq!(found, *expected);
        assert_eq!(applied.of(rule), 1, "{of}");
        let all: u64 = Rule::ALL.iter().map(|rule| applied.of(*rule)).sum();
        assert_eq!(all, 1, "{of}");
    }
}

#[track_caller]
fn assert_kept(texts: &[&str]) {
    for of in texts {
        assert_eq!(normal(of), ((*of).to_owned(), Applied::default()));
    }
}

#[test]
fn times_are_replaced_and_dates_and_versions_stay() {
    assert_replaced(
        Rule::Times,
        &[
            ("at 2026-11-28T12:41:43Z.", "at {time}."),
            ("2026-11-28T12:41:43.250Z", "{time}"),
            ("2026-11-28T12:41:43+01:00", "{time}"),
            (
                ".agent.json.backup.1795868778606",
                ".agent.json.backup.{digits}",
            ),
            ("t=1795868778", "t={digits}"),
            ("t=1795868778.337439;", "t={digits};"),
            ("1795868778.", "{digits}."),
            ("1795868778.5a", "{digits}.5a"),
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
            ("Sat, 28 Nov 2026 16:03:24 GMT", "{time}"),
            ("at Sat, 28 Nov 2026 16:03:24 +0000 it", "at {time} it"),
            ("Sun, 6 Nov 1994 08:49:37", "{time}"),
            ("Sat Nov 28 16:03:24 2026", "{time}"),
            ("Sun Nov  6 08:49:37 UTC 1994", "{time}"),
        ],
    );
    assert_kept(&[
        "interleaved-thinking-2025-05-14",
        "claude-code-20250219",
        "2023-06-01",
        "2026-11-28T12:41",
        "2026-11-28 12:41",
        "2026-13-28 12:41:43",
        "2026-11-28T24:41:43",
        "2026-11-28T12:41:433",
        "2026-11-28T12:41:43a",
        "2026-11-28T12:41-43",
        "2026-11-28T12.41.43",
        "2026/11/28 12:41:43",
        "2026-11-28 124143",
        "12026-11-28T12:41:43",
        "20261128",
        "20261328T160324Z",
        "20261128-160324",
        "20261128160324",
        "20261128T1603",
        "20261128T160324b",
        "Sat, 28 Nov 2026",
        "Sat, 28 Nov 2026 16:03 GMT",
        "Sat, 28 Nix 2026 16:03:24 GMT",
        "Sam, 28 Nix 2026 16:03:24",
        "28 November 2026 16:03:24",
        "28 Nov 2026 16:03:24 GMT",
        "Sat, 28-Nov-2026 16:03:24 GMT",
        "Sat, 31 Feb 20266 16:03:24 GMT",
        "Sat Nov 28 2026",
        "Sat Nov 28 16:03:24",
        "Sat Nov 28 2026 16:03:24",
        "16:03:24",
        "2595868778.5",
        "1.0.1795868778606a",
        "179586877860",
        "17958687786061",
        "2026112801",
        "9007199254740",
        "2.1.177",
        "32000",
    ]);
}

#[test]
fn ids_are_replaced_and_short_numbers_and_words_stay() {
    assert_replaced(
        Rule::Ids,
        &[
            ("ef58ac57-72c4-499b-a5ea-c80665eac254", "{uuid}"),
            (
                "1p.EF58AC57-72C4-499B-A5EA-C80665EAC254.json",
                "1p.{uuid}.json",
            ),
            ("device 0123456789abcdef", "device {hex:16}"),
            ("0123456789abcdef0123456789abcdef", "{hex:32}"),
            ("123456789abcdef0123456789abcdef", "{hex:32}"),
            ("123456789abcdef0123456789abcd", "{hex:30}"),
            ("9223372036854775807", "{hex:16}"),
            ("18446744073709551615", "{hex:16}"),
            ("340282366920938463463374607431768211455", "{hex:32}"),
            ("req_011CSHoEeqs5C35K2UUqR7Fy", "req_{id:24}"),
            ("req_011CSHoEeqs5C35K2UUqR7Fyz", "req_{id:25}"),
            ("req_zbi8e2pwnjl6tlo3bxml2aan", "req_{id:24}"),
            ("msg_01ARZ3NDEKTSV4RRFFQ69G5FAV.", "msg_{id:26}."),
        ],
    );
    assert_kept(&[
        "ef58ac57-72c4-499b-a5ea-c80665eac25",
        "ef58ac57-72c4-499b-a5ea-c80665eac2544",
        "ef58ac57-72c4-499b-a5ea",
        "b049b47b3618",
        "0123456789abcde",
        "0123456789abcdefg",
        "abcdefabcdefabcdef",
        "req_short1A",
        "clear_thinking20251015",
        "effort_Thinking",
        "req_zbiaeapwnjlbtlocbxmlaaan",
        "req_ZbiaeapwnjlbtlocbxmlAaan",
        "req_zbi8e2pwnjl6tl3",
        "x_sha256withrsaencryption",
        "req_1234567890",
        "req-zbi8e2pwnjl6tlo3bxml2aan",
        "req_zbi8e2pwnjl6tlo3bxml2aané",
        "011CSHoEeqs5C35K2UUqR7Fy",
    ]);
}

#[test]
fn given_ports_of_loopback_are_replaced_and_others_stay() {
    assert_replaced(
        Rule::Ports,
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
fn the_port_of_the_stub_is_replaced_whichever_it_is() {
    let mut applied = Applied::default();
    let of = "127.0.0.1:4000 127.0.0.1:4001 192.0.2.1:4000 127.0.0.1:40000";
    let found = text(of, &StubPorts::from([4000]), &mut applied);
    assert_eq!(
        found,
        "127.0.0.1:{port} 127.0.0.1:4001 192.0.2.1:4000 127.0.0.1:40000".replace("40000", "{port}")
    );
}

#[test]
fn random_names_are_replaced_where_they_are_made_and_nowhere_else() {
    assert_replaced(
        Rule::RandomNames,
        &[
            ("/tmp/tmp5jcky1i1", "/tmp/tmp{random}"),
            ("cp /tmp/tmp.AbCdEf0123/x y", "cp /tmp/tmp.{random}/x y"),
        ],
    );
    assert_kept(&[
        "tmp5jcky1i1",
        "/var/tmp5jcky1i1",
        "/tmp/tmpfile",
        "/tmp/tmp5jcky1i1x",
        "/tmp/claude-1000",
    ]);
}

#[test]
fn every_rule_says_what_it_leaves_out() {
    let mut words: Vec<_> = Rule::ALL.iter().map(|rule| rule.word()).collect();
    assert!(Rule::ALL.iter().all(|rule| rule.what().ends_with('.')));
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Rule::ALL.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_taken_and_what_is_replaced_once_is_not_replaced_again(of in any::<String>()) {
        let once = normal(&of).0;
        prop_assert_eq!(normal(&once).1, Applied::default());
    }

    #[test]
    fn text_of_ids_and_times_never_panics(of in "(Sat|, |Nov|28|2026|[-_.+/:0-9a-fTZ\\[\\]é ]){0,80}") {
        let once = normal(&of).0;
        prop_assert_eq!(normal(&once).1, Applied::default());
    }
}
