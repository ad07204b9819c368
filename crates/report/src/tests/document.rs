//! Reading of stored JSON reports.

use super::*;
use model::report::document::{Document, DocumentError};

/// More values than any of these reports has.
const MAX_VALUES: usize = 10_000;

/// Report that version 0.1.0 wrote.
const OLD: &[u8] = include_bytes!("case-b-0.1.0.json");

fn old() -> Value {
    serde_json::from_slice(OLD).expect("JSON")
}

fn parse(value: &Value) -> Result<Document<'static>, DocumentError> {
    Document::parse(value.to_string().as_bytes(), MAX_VALUES)
}

#[test]
fn stored_report_of_an_old_version_is_read() {
    let read = Document::parse(OLD, MAX_VALUES).expect("a report");
    assert_eq!(read.verdict, Verdict::Passed);
    assert_eq!(read.client.exit, Exit::Code(0));
    let [request] = read.evidence.requests.as_slice() else {
        panic!("{:?}", read.evidence.requests);
    };
    assert!(request.is_post() && request.is_complete());
    assert_eq!(request.header("x-api-key"), ["<redacted>"]);
    let records = read.evidence.records.iter();
    let labels: Vec<String> = records.map(Record::label).collect();
    assert_eq!(labels.first().map(String::as_str), Some("system/init"));
    assert_eq!(labels.last().map(String::as_str), Some("result/success"));
    // The old version hashed every program, and named itself by its SHA-256.
    let Content::Read(sha256) = &read.client.client.content else {
        panic!("{:?}", read.client.client.content);
    };
    assert_eq!(*sha256, old()["client"]["sha256"]);
    let runner = &read.runner;
    assert_eq!((&*runner.commit, &*runner.build_id), (UNKNOWN, UNKNOWN));
    let state = &read.evidence.files[0];
    assert_eq!((state.kind, state.mode), (FileKind::Directory, 0o700));
}

#[test]
fn report_read_back_renders_the_same() {
    for report in [
        report(case_b()),
        hostile(),
        broken(),
        drifted("a \u{202e} b"),
        ci::audit(),
    ] {
        let rendered = json(&report);
        let read = Document::parse(rendered.as_bytes(), MAX_VALUES).expect("a report");
        let again = json::document(&read).expect("a report");
        assert_eq!(String::from_utf8(again).expect("UTF-8"), rendered);
    }
}

#[test]
fn unknown_keys_of_a_later_version_are_ignored() {
    let mut later = old();
    later["note"] = json!(1);
    later["evidence"]["files"][0]["owner"] = json!("nobody");
    later["checks"][0]["id"] = json!("bodies/new-check");
    assert!(parse(&later).is_ok());
}

#[test]
fn value_of_a_wrong_form_is_refused() {
    for (key, wrong) in [
        ("/verdict", json!("maybe")),
        ("/tier", json!(1)),
        ("/client/exit", json!({"explode": 1})),
        ("/client/args/0", json!({"bytes": -1})),
        ("/checks/0/status", json!("fine")),
        ("/isolation/layers/0/status", json!(null)),
        ("/evidence/requests", json!({})),
        ("/evidence/requests/0/class", json!("other")),
        ("/evidence/files/0/mode", json!("0999")),
        ("/evidence/files/0/mode", json!("17777")),
        ("/evidence/attempts/0/outcome", json!("denied")),
        ("/evidence/processes", json!(null)),
    ] {
        let mut wrong_report = old();
        *wrong_report.pointer_mut(key).expect(key) = wrong;
        let read = parse(&wrong_report);
        assert!(matches!(read, Err(DocumentError::Form { .. })), "{key}");
    }
}

#[test]
fn report_of_too_many_values_is_refused() {
    let report = Document::parse(OLD, 100);
    assert!(matches!(
        report,
        Err(DocumentError::TooMany { max_values: 100 })
    ));
}

#[test]
fn missing_key_is_refused() {
    for (object, key) in [
        ("", "checks"),
        ("/evidence", "records"),
        ("/evidence/requests/0", "headers"),
        ("/isolation", "canaries"),
    ] {
        let mut lacking = old();
        let object = lacking.pointer_mut(object).and_then(Value::as_object_mut);
        object.expect("an object").remove(key).expect(key);
        assert!(
            matches!(parse(&lacking), Err(DocumentError::Form { .. })),
            "{key}"
        );
    }
}

#[test]
fn document_of_another_schema_is_refused() {
    let mut other = old();
    other["schema"] = json!("runner.report/2");
    let error = parse(&other).expect_err("another schema");
    assert_eq!(
        error.to_string(),
        "expected the schema runner.report/1, found `runner.report/2`"
    );
}

#[test]
fn content_of_the_program_is_read_with_its_source() {
    let content = |from: Value, sha256: Value| {
        let mut report = old();
        let client = report["client"].as_object_mut().expect("an object");
        for (key, value) in [("from", from), ("sha256", sha256)] {
            client.remove(key);
            if !value.is_null() {
                client.insert(key.to_owned(), value);
            }
        }
        parse(&report).map(|report| report.client.client.content.clone())
    };
    let sha256 = || json!("00");
    for (from, expected) in [
        (json!(null), Content::Read("00".to_owned())),
        (json!("read"), Content::Read("00".to_owned())),
        (json!("cache"), Content::Cached("00".to_owned())),
    ] {
        assert_eq!(content(from, sha256()).expect("a report"), expected);
    }
    assert_eq!(
        content(json!("built-in"), Value::Null).expect("a report"),
        Content::BuiltIn
    );
    for (from, sha256) in [
        (json!("read"), Value::Null),
        (json!("cache"), Value::Null),
        (json!("built-in"), sha256()),
        (Value::Null, Value::Null),
        (json!("guess"), sha256()),
        (json!("read"), json!(1)),
    ] {
        let wrong = content(from, sha256);
        assert!(
            matches!(wrong, Err(DocumentError::Form { .. })),
            "{wrong:?}"
        );
    }
}
