//! Facts of bodies, leaf by leaf.

use super::*;

#[test]
fn body_of_very_many_values_is_cut() {
    let with = |items: usize| {
        let mut run = case_b();
        let long = json!({ "n".repeat(380): vec![json!([]); items] });
        shape(&mut run.evidence.requests[0], |shape| *shape = long);
        behaviour(run)
    };
    let found = with(300_000);
    let expected = "it shows more than 128 MiB of facts";
    assert_eq!(found.incomplete().unwrap(), expected);
    let kept = found
        .facts()
        .iter()
        .map(|(fact, value)| fact.key.len() + value.len());
    assert!(kept.sum::<usize>() <= MAX_BYTES);
    assert_eq!(with(100_000).incomplete(), None);
}

#[test]
fn a_long_name_above_many_values_is_written_out_for_none() {
    let found = changed(|run| {
        let long = json!({ "n".repeat(1_000_000): vec![1; 3000] });
        shape(&mut run.evidence.requests[0], |shape| *shape = long);
    });
    let keys = found.iter().filter(|line| line.contains("$.nnn"));
    assert_eq!(keys.clone().count(), 3000);
    assert!(keys.clone().all(|line| line.len() < 500));
}

#[test]
fn a_document_of_more_values_than_any_report_is_not_read() {
    let many = format!("[{}1]", "1,".repeat(8_000_000));
    let error = Report::parse(many.as_bytes()).unwrap_err();
    assert!(error.to_string().starts_with("expected at most 8000000"));
    let text = format!("[\"{}\"]", "\\\",[{".repeat(8_000_000));
    let error = Report::parse(text.as_bytes()).unwrap_err();
    assert!(!error.to_string().starts_with("expected at most"));
}

#[test]
fn change_beside_an_equal_placeholder_is_seen() {
    let of = |metadata: serde_json::Value| {
        let old = json!({"aaaaaaaa1": 1});
        between(
            |run| shape(&mut run.evidence.requests[0], |body| body["metadata"] = old),
            |run| {
                shape(&mut run.evidence.requests[0], |body| {
                    body["metadata"] = metadata
                })
            },
        )
    };
    assert_eq!(of(json!({"bbbbbbbb2": 1})), [""; 0]);
    for (changed, now) in [
        (json!({"aaaaaaaa1": 9}), "9"),
        (json!({"aaaaaaaa1": 1, "bbbbbbbb2": 1}), "1 and 1"),
        (json!({"aaaaaaaa1": 9, "bbbbbbbb2": 1}), "1 and 9"),
    ] {
        let expected = format!("body POST /v1/messages $.metadata.{{hex:16}}: 1 => {now}");
        assert_eq!(of(changed), [expected]);
    }
}

#[test]
fn names_and_numbers_of_a_body_are_compared() {
    let text = |text: &str| json!({"bytes": text.len(), "sha256": model::digest::of_bytes(text.as_bytes())});
    let of = |key: &str, old: serde_json::Value, new: serde_json::Value| {
        between(
            |run| shape(&mut run.evidence.requests[0], |body| body[key] = old),
            |run| shape(&mut run.evidence.requests[0], |body| body[key] = new),
        )
        .len()
    };
    let names = [
        "us.vendor.model-3-5-20241022-v2:0",
        "us.vendor.model-3-7-20250219-v1:0",
    ]
    .map(text);
    let [old, new] = names;
    assert_eq!(of("model", old.clone(), new.clone()), 1);
    assert_eq!(of("prompt", old, new), 0);
    assert_eq!(
        of("max_tokens", json!(1_000_000_000), json!(2_000_000_000)),
        1
    );
    assert_eq!(
        of(
            "sent_at",
            json!(1_795_868_778_606_u64),
            json!(1_795_868_778_999_u64)
        ),
        0
    );
}

#[test]
fn a_body_is_compared_leaf_by_leaf() {
    let of = |change: fn(&mut serde_json::Value)| {
        changed(|run| shape(&mut run.evidence.requests[0], change))
    };
    assert_eq!(
        of(|body| body["max_tokens"] = json!(64000)),
        ["body POST /v1/messages $.max_tokens: 32000 => 64000"]
    );
    assert_eq!(
        of(|body| body["thinking"]["type"] = json!("enabled")),
        ["body POST /v1/messages $.thinking.type: word adaptive => word enabled"]
    );
    assert_eq!(
        of(|body| body["tools"] = json!([{}])),
        [
            "body POST /v1/messages $.tools: empty array => -",
            "body POST /v1/messages $.tools[0]: - => empty object",
        ]
    );
    // A word and a number differ.
    assert_eq!(of(|body| body["type"] = json!("1")).len(), 1);
    let number = |body: &mut serde_json::Value| body["type"] = json!(1);
    let word = |body: &mut serde_json::Value| body["type"] = json!("1");
    let found = between(
        |run| shape(&mut run.evidence.requests[0], number),
        |run| shape(&mut run.evidence.requests[0], word),
    );
    assert_eq!(found, ["body POST /v1/messages $.type: 1 => word 1"]);
}

#[test]
fn a_short_text_is_compared_by_its_digest_and_a_long_one_by_its_length() {
    let of = |at: &'static str, bytes: u64, seed: u64| {
        changed(|run| {
            shape(&mut run.evidence.requests[0], |body| {
                *body.pointer_mut(at).unwrap() = json!({"bytes": bytes, "sha256": digest(seed)});
            });
        })
    };
    assert_eq!(of("/model", 15, 99).len(), 1);
    assert_eq!(of("/system/2/text", 31, 99).len(), 1);
    assert_eq!(of("/metadata/user_id", 36, 99), Vec::<String>::new());
    assert_eq!(
        of("/metadata/user_id", 37, 99),
        ["body POST /v1/messages $.metadata.user_id: text of 36 bytes => text of 37 bytes"]
    );
}

#[test]
fn a_number_that_is_a_time_is_no_difference_and_a_size_is_one() {
    let with = |number: serde_json::Value| {
        move |run: &mut Fixture| {
            shape(&mut run.evidence.requests[0], |body| body["at"] = number);
        }
    };
    let alike = [
        [json!(1_795_868_778), json!(1_795_868_779)],
        [json!(1_795_868_778.25), json!(1_795_868_779.5)],
        [json!(1_795_868_778_606_u64), json!(1_795_868_778_607_u64)],
    ];
    for [one, other] in alike {
        assert_eq!(between(with(one), with(other)), Vec::<String>::new());
    }
    assert_eq!(between(with(json!(0.5)), with(json!(0.25))).len(), 1);
}

/// The stub writes such keys with their length and digest.
#[test]
fn a_key_that_is_no_name_is_compared_like_a_text() {
    let with = |bytes: u64, seed: u64| {
        move |run: &mut Fixture| {
            let key = format!("\u{2026}{bytes}-{}", digest(seed));
            shape(&mut run.evidence.requests[0], |body| {
                body[key] = json!(null)
            });
        }
    };
    assert_eq!(between(with(15, 1), with(15, 2)).len(), 2);
    assert_eq!(between(with(40, 1), with(40, 2)), Vec::<String>::new());
    let longer = between(with(40, 1), with(41, 1));
    assert_eq!(
        longer,
        [
            "body POST /v1/messages $[key of 40 bytes]: null => -",
            "body POST /v1/messages $[key of 41 bytes]: - => null",
        ]
    );
}

#[test]
fn a_body_that_is_no_json_is_told() {
    let found = changed(|run| {
        let body = run.evidence.requests[0].body.as_mut().unwrap();
        body.content = model::journal::Content::Other {
            reason: "not JSON".to_owned(),
        };
    });
    let line = "body POST /v1/messages $: - => no shape: not JSON, ";
    assert!(
        found.iter().any(|found| found.starts_with(line)),
        "{found:?}"
    );
}

#[test]
fn a_body_without_a_shape_is_compared_like_a_text() {
    let with = |bytes: u64, seed: u64| {
        move |run: &mut Fixture| {
            let body = run.evidence.requests[0].body.as_mut().unwrap();
            (body.bytes, body.sha256) = (bytes, digest(seed));
            body.content = model::journal::Content::Other {
                reason: "not JSON".to_owned(),
            };
        }
    };
    assert_eq!(between(with(31, 1), with(31, 2)).len(), 1);
    assert_eq!(between(with(32, 1), with(32, 2)), Vec::<String>::new());
    assert_eq!(
        between(with(33, 1), with(34, 1)),
        ["body POST /v1/messages $: no shape: not JSON, 33 bytes => no shape: not JSON, 34 bytes"]
    );
}

#[test]
fn a_field_with_a_dot_in_its_name_is_no_field_of_a_field() {
    let found = between(
        |run| {
            shape(&mut run.evidence.requests[0], |body| {
                body["a"] = json!({"b": 1})
            })
        },
        |run| shape(&mut run.evidence.requests[0], |body| body["a.b"] = json!(1)),
    );
    assert_eq!(
        found,
        [
            "body POST /v1/messages $.a.b: 1 => -",
            "body POST /v1/messages $[\"a.b\"]: - => 1",
        ]
    );
}
