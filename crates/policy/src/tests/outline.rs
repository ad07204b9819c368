//! Lines of policy files that checks point at.

use std::fs;
use std::path::Path;

use model::case::Origin;
use model::finding::{ids, meaning};

use super::super::{Reference, audit, case, text};

/// Case with another layout of its tables, and with user-defined fields.
fn user_case() -> String {
    let built_in = text("case-b").unwrap();
    let (before, _) = built_in.split_once("# Each table judges").unwrap();
    let before = before
        .replace("case-b", "mine")
        .replace("schema", "# mine\n\nschema");
    format!(
        "{before}[expect]\nrecords = {{ format = \"agent-stream\", partial_messages = true }}\n\
         requests.order = \"any\"\n[[expect.requests.rule]]\nname = \"turn\"\nmethod = \"POST\"\npath = \"/\"\n\
         count = {{ from = 1 }}\nreason = \"the turn\"\n\
         body.fields = {{ messages = \"array\", name = \"string\" }}\n"
    )
}

/// Returns the line that a check points at.
fn pointed<'t>(text: &'t str, origin: &Origin, id: &str) -> &'t str {
    let line = origin.outline.line(meaning(id).key);
    text.lines().nth(line - 1).unwrap()
}

/// Returns the text that the line must contain: the key, otherwise its table, otherwise the name.
fn named(text: &str, key: &str) -> String {
    let document: toml::Table = text.parse().unwrap();
    let mut found = None;
    let mut tables = vec![&document];
    for part in key.split('.') {
        let values = tables.into_iter().filter_map(|table| table.get(part));
        let values: Vec<&toml::Value> = values.collect();
        found = (!values.is_empty()).then_some(part).or(found);
        let inner = values.into_iter().flat_map(|value| match value.as_array() {
            Some(items) => items.iter().collect(),
            None => vec![value],
        });
        tables = inner.filter_map(toml::Value::as_table).collect();
    }
    found.unwrap_or("name").to_owned()
}

#[track_caller]
fn assert_points_well(text: &str, origin: &Origin, ids: impl Iterator<Item = &'static str>) {
    for id in ids {
        let line = pointed(text, origin, id);
        let word = named(text, meaning(id).key);
        let code = line.split('#').next().unwrap();
        assert!(code.contains(&word), "{id}: no {word} in line {line}");
    }
}

#[test]
fn each_check_points_at_its_key_in_each_built_in_case() {
    for name in ["case-a", "case-b"] {
        let case = case(&Reference::BuiltIn(name.to_owned())).unwrap();
        assert_points_well(text(name).unwrap(), &case.origin, ids());
    }
}

#[test]
fn each_check_of_an_audit_points_at_its_key_in_the_policy_of_audits() {
    let policy = audit().unwrap();
    assert_points_well(
        text("audit").unwrap(),
        &policy.origin,
        [
            "secrets/credential-not-written",
            "outbound/denied",
            "outbound/no-attempts",
            "process/no-survivors",
        ]
        .into_iter(),
    );
}

#[test]
fn each_check_points_at_its_key_in_a_users_case() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("my case.toml");
    let text = user_case();
    fs::write(&path, &text).unwrap();
    let case = case(&Reference::File(path)).unwrap();
    assert_points_well(&text, &case.origin, ids());
    assert_eq!(case.origin.outline.path(), Path::new("my case.toml"));
    // The body has no such key, and another key has the same name as a key of the case.
    let pointed = |id| pointed(&text, &case.origin, id);
    assert!(pointed("body/stream").starts_with("body.fields = "));
    assert_eq!(pointed("files/modes"), "[expect]");
    assert_eq!(pointed("of/no-check"), "name = \"mine\"");
}

#[test]
fn the_lines_of_case_b_are_these() {
    let case = case(&Reference::BuiltIn("case-b".to_owned())).unwrap();
    for (id, line) in [
        ("requests/first-and-only", "[[expect.requests.rule]]"),
        ("requests/post-count", "[expect.requests]"),
        ("body/fields", "[expect.requests.rule.body.fields]"),
        (
            "body/cache-control",
            "[expect.requests.rule.body.cache_control]",
        ),
        ("body/system-blocks", "system_blocks = 3"),
        ("body/stream", "stream = true"),
        ("records/sequence", "[expect.records]"),
        ("records/events-match-provider", "partial_messages = true"),
        ("records/assistant-text", "[stub]"),
        ("outbound/no-attempts", "[sandbox]"),
        ("process/exit-zero", "[expect.exit]"),
        ("files/state-file", "[expect.files]"),
        ("of/no-check", "name = \"case-b\""),
    ] {
        assert_eq!(
            pointed(text("case-b").unwrap(), &case.origin, id),
            line,
            "{id}"
        );
    }
    let path = case.origin.outline.path();
    assert_eq!(path, Path::new("policies/case-b.toml"));
}
