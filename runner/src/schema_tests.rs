//! Tests of the JSON Schemas. Tests beside the parsers compare each schema with its parser.

use model::schema::fixture::properties;
use model::schema::print;
use policy::{self, Kind};
use report::json;
use serde_json::Value;

use crate::{diff, doctor, selftest};

fn all() -> Vec<(&'static str, schemars::Schema)> {
    let files = Kind::ALL.map(|kind| (kind.schema(), policy::schema(kind)));
    let report = ("runner.report/1", json::schema());
    let fleet = ("runner.fleet/1", report::fleet::schema());
    let doctor = ("runner.doctor/1", doctor::json::schema());
    let selftest = ("runner.selftest/1", selftest::schema());
    let diff = ("runner.diff/1", diff::schema());
    let all = (files.into_iter()).chain([report, fleet, doctor, selftest, diff]);
    all.map(|(form, schema)| (form.strip_prefix("runner.").unwrap(), schema))
        .collect()
}

#[test]
fn each_is_valid_against_the_meta_schema() {
    for (name, schema) in all() {
        let result = jsonschema::draft202012::meta::validate(schema.as_value());
        assert!(result.is_ok(), "{name}: {}", result.unwrap_err());
    }
}

#[test]
fn each_has_its_name_and_says_what_it_is() {
    for (name, schema) in all() {
        let text = |key: &str| schema.get(key).unwrap().as_str().unwrap().to_owned();
        assert_eq!(text("$id"), format!("urn:runner:{name}"));
        assert_eq!(
            text("$schema"),
            "https://json-schema.org/draft/2020-12/schema"
        );
        assert!(text("title").ends_with("of runner"), "{name}");
        assert!(text("description").len() > 40, "{name}");
        let form = schema.pointer("/properties/schema/const").unwrap();
        assert_eq!(form, &Value::from(format!("runner.{name}")));
    }
}

/// Each key has a description. A variant with one key has it at the variant, and a constant describes itself.
#[test]
fn every_key_is_described() {
    let described = |schema: &Value| {
        ["description", "const"]
            .iter()
            .any(|key| schema.get(key).is_some())
    };
    for (form, schema) in all() {
        let variants = ["code", "signal", "timeout", "output_limit", "request_limit"];
        let variants = [&variants[..], &["interrupted", "not_started"]].concat();
        let silent: Vec<String> = properties(schema.as_value())
            .into_iter()
            .filter(|(name, schema)| !described(schema) && !variants.contains(&name.as_str()))
            .map(|(name, _)| name)
            .collect();
        assert!(silent.is_empty(), "{form}: {silent:?}");
    }
}

#[test]
fn only_files_forbid_unknown_keys_and_only_documents_know_null() {
    for (form, schema) in all() {
        let text = schema.as_value().to_string();
        let is_document =
            ["report/1", "fleet/1", "doctor/1", "selftest/1", "diff/1"].contains(&form);
        let closed = text.contains("\"additionalProperties\":false");
        assert_eq!(closed, !is_document, "{form}");
        let null = text.contains(",\"null\"]") || text.contains("\"type\":\"null\"");
        assert_eq!(null, is_document, "{form}");
        assert!(!text.contains("\"format\":\"u"), "{form}");
    }
}

#[test]
fn what_is_printed_is_the_schema_in_the_order_of_reading() {
    for (form, schema) in all() {
        let text = print(&schema).unwrap();
        let read: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(&read, schema.as_value());
        let text = String::from_utf8(text).unwrap();
        let at = |key: &str| {
            text.find(&format!("\n  \"{key}\":"))
                .unwrap_or_else(|| panic!("{form} has no {key}"))
        };
        let keys = ["$schema", "$id", "title", "description", "properties"];
        let keys = [&keys[..], &["required", "$defs"]].concat();
        assert!(keys.is_sorted_by_key(|key| at(key)), "{form}");
        assert!(text.ends_with("}\n"));
    }
}
