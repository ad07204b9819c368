//! Rules of the records.

use model::case::expect::{FieldRule, Order, RecordRules};
use model::evidence::fixture::{Fixture, case_b};
use model::evidence::{Line, Record};
use model::finding::{Status, Verdict};
use serde_json::{Value, json};

use super::super::{Observed, observed};
use crate::check::{check, verdict};

/// A run that printed these records.
fn printed(records: &[Value]) -> Fixture {
    let mut run = case_b();
    let first = run.evidence.records[0].clone();
    let record = |json: &Value| Record {
        line: Line::Record(json.clone()),
        ..first.clone()
    };
    run.evidence.records = records.iter().map(record).collect();
    run
}

fn of(runs: &[&Fixture]) -> Observed {
    let runs: Vec<_> = runs.iter().map(|run| &run.evidence).collect();
    observed(&runs, "seen, not reviewed")
}

fn rules(observed: Observed) -> RecordRules {
    observed.expect.records.unwrap().rules.unwrap()
}

fn texts(fields: &[FieldRule]) -> Vec<String> {
    fields.iter().map(FieldRule::to_string).collect()
}

#[test]
fn fields_are_values_patterns_or_types() {
    let record = |session: &str, time: &str, tokens: u64| {
        json!({
            "type": "result", "session_id": session, "time": time, "subtype": "success",
            "is_error": false, "tokens": tokens, "tools": [], "text": "A whole sentence.",
            "cwd": "/home/user/project", "version": "v1.2.3", "parent": null, "usage": {"type": "x"},
            "date": "2026-11-30", "braces": "a{uuid}", "a key": 1,
        })
    };
    let one = record("s_0b7f3a", "2026-11-30T19:34:35Z", 17);
    let other = record("s_1c8f3b", "2026-11-30T19:35:36Z", 17);
    let rules = rules(of(&[&printed(&[one]), &printed(&[other])]));
    assert_eq!(rules.rules.len(), 1);
    let rule = &rules.rules[0];
    assert_eq!(
        texts(&rule.conditions),
        [
            "/subtype \"success\"",
            "/type \"result\"",
            "/usage/type \"x\""
        ]
    );
    assert_eq!(
        texts(&rule.fields),
        [
            "/braces string",
            "/cwd string",
            "/date string",
            "/is_error false",
            "/parent null",
            "/session_id \"s_{hex}\"",
            "/text string",
            "/time string",
            "/tokens number",
            "/tools []",
            "/usage object",
            "/version \"{version}\"",
        ]
    );
}

#[test]
fn reason_names_the_fields_that_only_have_a_type() {
    let reason = |records: &[Value]| {
        let runs: Vec<Fixture> = records
            .iter()
            .map(|one| printed(std::slice::from_ref(one)))
            .collect();
        let runs: Vec<&Fixture> = runs.iter().collect();
        rules(of(&runs)).rules.remove(0).reason
    };
    let seen = "seen, not reviewed";
    let record =
        |text: &str, id: &str, n: u64| json!({"type": "t", "text": text, "id": id, "n": n});
    let (one, id) = (record("a b", "s_0b7f3a", 1), "s_1c8f3b");
    assert_eq!(reason(&[one.clone(), record("a b", id, 1)]), seen);
    assert_eq!(
        reason(&[one.clone(), record("c d", id, 2)]),
        format!("any value of its type in /n, /text, because the values differ; {seen}")
    );
    let many = |n: u64| {
        let key = |at: usize| (format!("{}{at}/", "k".repeat(60)), json!(n));
        Value::from_iter((0..9).map(key))
    };
    let many = reason(&[many(1), many(2)]);
    assert!(many.contains("~1 and 6 more, because"), "{many}");
    assert!(many.len() < 300, "{many}");
}

#[test]
fn pointers_of_odd_keys_find_their_fields() {
    let record = json!({
        "type": "t", "a/b": 1, "a~b": 2, "": 3, "a~1b/c": "x", "a": {"b": "y", "type": "z"},
        "a/type": "w",
    });
    let run = printed(&[record]);
    let observed = of(&[&run, &run]);
    let findings = check(&observed.expect, &run.evidence);
    let judged = findings.iter().find(|one| one.id == "records/rules");
    assert_eq!(judged.unwrap().status, Status::Passed);
    let rule = &rules(observed).rules[0];
    assert_eq!(texts(&rule.conditions), ["/a/type \"z\"", "/type \"t\""]);
    assert_eq!(
        texts(&rule.fields),
        [
            "/ number",
            "/a object",
            "/a~01b~1c \"x\"",
            "/a~0b number",
            "/a~1b number",
            "/a~1type \"w\"",
        ]
    );
}

#[test]
fn records_get_their_own_rule_in_any_order() {
    let (start, item) = (json!({"type": "a"}), json!({"type": "a", "subtype": "b"}));
    let one = printed(&[start.clone(), item.clone(), item.clone()]);
    let other = printed(&[start, item]);
    let rules = rules(of(&[&one, &other]));
    assert_eq!(rules.order, Order::Any);
    let words: Vec<String> = rules
        .rules
        .iter()
        .map(|rule| format!("{} {}", rule.words(), rule.count.words()))
        .collect();
    assert_eq!(
        words,
        [
            "/subtype \"b\", /type \"a\" 1 to 2 times",
            "/type \"a\" once"
        ]
    );
}

#[test]
fn runs_meet_the_rules_of_their_records() {
    let run = case_b();
    let observed = of(&[&run, &run]);
    let rules = observed.expect.records.clone().unwrap().rules.unwrap();
    assert_eq!(rules.order, Order::Listed);
    assert_eq!(observed.records_not_judged, None);
    let findings = check(&observed.expect, &run.evidence);
    let judged = findings
        .iter()
        .find(|finding| finding.id == "records/rules");
    assert_eq!(judged.unwrap().status, Status::Passed);
    assert_eq!(verdict(&findings, &run.evidence), Verdict::Passed);
}

#[test]
fn output_without_rules_has_a_reason() {
    let mut text = printed(&[json!({})]);
    text.evidence.records[0].line = Line::NotJson {
        reason: "not JSON".to_owned(),
    };
    let kinds: Vec<Value> = (0..33)
        .map(|number| json!({"type": format!("t{number}")}))
        .collect();
    for (run, has_form, why) in [
        (
            printed(&[]),
            false,
            "Standard output is not judged: it was empty.",
        ),
        (
            text,
            false,
            "Standard output is not judged: it is not one JSON object on each line.",
        ),
        (
            printed(&kinds),
            true,
            "Fields of records are not judged: there are more than 32 kinds.",
        ),
        (printed(&kinds[..32]), true, ""),
    ] {
        let observed = of(&[&run]);
        assert_eq!(observed.expect.records.is_some(), has_form, "{why}");
        assert_eq!(observed.records_not_judged.unwrap_or_default(), why);
    }
}
