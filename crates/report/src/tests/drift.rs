//! Lock file in the reports: drift with the lines that would accept it, and accepted changes.

use super::ci::markdown;
use super::*;

/// Report with a drift and an outcome of the lock file.
fn after(outcome: BaselineOutcome) -> Report {
    let mut report = drifted("x-new");
    report
        .checks
        .retain(|finding| finding.id != model::finding::BASELINE);
    report.verdict = Verdict::Passed;
    report.baseline.as_mut().unwrap().outcome = outcome;
    report
}

#[test]
fn only_a_file_that_was_compared_has_lines_that_are_still_to_be_accepted() {
    for outcome in BaselineOutcome::ALL {
        let is_open = outcome == BaselineOutcome::Compared;
        let report = after(outcome);
        let html = String::from_utf8(html::render(&report).unwrap()).unwrap();
        for text in [&html, &markdown(&report)] {
            assert_eq!(text.contains("Drift from the lock file"), is_open);
            assert_ne!(text.contains("What changed in the lock file"), is_open);
        }
        for text in [human(&report), html, markdown(&report)] {
            assert!(text.contains("x-new"), "{outcome:?}: {text}");
            assert_eq!(
                text.contains("headers x-new"),
                is_open,
                "{outcome:?}: {text}"
            );
        }
        let value: Value = serde_json::from_str(&json(&report)).unwrap();
        let differences = value["baseline"]["differences"].as_array().unwrap();
        assert_eq!(differences.len(), 3);
        for difference in differences {
            let accept = difference.get("accept").unwrap();
            let line = accept.get("line").and_then(Value::as_str);
            let expected = is_open.then_some("\"headers x-new\" = \"x-new\"");
            assert_eq!(line, expected, "{outcome:?}");
            assert_eq!(accept.is_null(), !is_open, "{outcome:?}");
        }
        assert!(
            jsonschema::draft202012::new(json::schema().as_value())
                .unwrap()
                .is_valid(&value),
            "{value:#}"
        );
    }
}

/// The schema requires the key, and allows null.
#[test]
fn the_schema_has_the_key_for_what_to_accept_in_each_difference() {
    let schema = json::schema();
    let drift = schema.pointer("/$defs/Drift").unwrap();
    let required = drift["required"].as_array().unwrap();
    assert!(required.contains(&json!("accept")), "{drift:#}");
    let forms = drift["properties"]["accept"]["anyOf"].as_array().unwrap();
    assert!(forms.contains(&json!({"type": "null"})), "{drift:#}");
}
