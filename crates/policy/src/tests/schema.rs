//! Agreement of schemas and parser: a schema accepts every file that the parser accepts, and rejects structural faults.
//!
//! A third-party validator applies the schemas.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::deviations::{deviating, listed};
use super::{builtin, parse};
use crate::{Kind, text};

/// Third-party validator of a schema.
fn validator(schema: &schemars::Schema) -> Validator {
    jsonschema::draft202012::new(schema.as_value()).unwrap()
}

static CASE: LazyLock<Validator> = LazyLock::new(|| validator(&crate::schema(Kind::Case)));
static AUDIT: LazyLock<Validator> = LazyLock::new(|| validator(&crate::schema(Kind::Audit)));
static PROFILE: LazyLock<Validator> = LazyLock::new(|| validator(&crate::schema(Kind::Profile)));

pub(super) fn schema_of(kind: Kind) -> &'static Validator {
    match kind {
        Kind::Case => &CASE,
        Kind::Profile => &PROFILE,
        Kind::Audit => &AUDIT,
    }
}

fn kind_of(name: &str) -> Kind {
    builtin::find(name, None).unwrap().kind
}

/// Returns true for the parser's message on a structural fault.
fn is_structural(error: &str) -> bool {
    let expected = [
        "a known key",
        "the key `",
        "a known word",
        "a string",
        "an array",
        "a table",
        "true or false",
        "a whole number",
        "a size",
        "a duration",
        "a schema",
    ];
    let (_, rest) = error.split_once("expected ").unwrap_or_default();
    expected.iter().any(|words| rest.starts_with(words))
}

#[test]
fn every_file_of_the_policies_is_valid() {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies");
    let mut valid = 0;
    for directory in ["", "profiles"] {
        for entry in fs::read_dir(policies.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let file: Value = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
                let mut kinds = Kind::ALL.into_iter();
                let kind = kinds.find(|kind| file["schema"] == kind.schema()).unwrap();
                let result = schema_of(kind).validate(&file);
                assert!(result.is_ok(), "{path:?}: {}", result.unwrap_err());
                valid += 1;
            }
        }
    }
    assert_eq!(valid, builtin::ALL.len());
}

#[test]
fn each_listed_fault_of_structure_is_one_to_the_schema_too() {
    let mut structural = 0;
    for deviation in listed() {
        let Ok(file) = toml::from_str::<Value>(&deviating(&deviation)) else {
            continue;
        };
        if is_structural(deviation.says) {
            structural += 1;
            let valid = schema_of(kind_of(deviation.file)).is_valid(&file);
            assert!(!valid, "{}: {}", deviation.file, deviation.says);
        }
    }
    assert!(structural > 20, "{structural}");
}

/// Change of one value in a file.
#[derive(Clone, Debug)]
enum Change {
    Remove,
    AddKey,
    Replace(Value),
    /// Inserts or removes a character of a text.
    Edit(prop::sample::Index, Option<char>),
}

fn change() -> impl Strategy<Value = Change> {
    let other = prop_oneof![
        Just(Value::from("x")),
        Just(Value::from("")),
        Just(Value::from(7)),
        Just(Value::from(-1)),
        Just(Value::from(1.5)),
        Just(Value::from(true)),
        Just(Value::Array(Vec::new())),
        Just(Value::Object(Map::new())),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z0-9 {}\\[\\]./:@*_=-]{0,12}".prop_map(Value::from),
    ];
    let character = prop::option::of("[ -~\u{0}\n\t\u{7f}é]".prop_map(|text| text.chars().next()));
    prop_oneof![
        Just(Change::Remove),
        Just(Change::AddKey),
        other.prop_map(Change::Replace),
        (any::<prop::sample::Index>(), character)
            .prop_map(|(at, character)| Change::Edit(at, character.flatten())),
    ]
}

/// Collects the JSON pointers of all values.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                places(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn apply(change: Change, file: &mut Value, place: &str) {
    match change {
        Change::Remove => {
            let (parent, key) = place.rsplit_once('/').unwrap_or_default();
            match file.pointer_mut(parent) {
                Some(Value::Object(map)) => drop(map.remove(key)),
                Some(Value::Array(items)) => drop(items.remove(key.parse().unwrap())),
                Some(_) | None => {}
            }
        }
        Change::AddKey => {
            if let Some(Value::Object(map)) = file.pointer_mut(place) {
                map.insert("zzz".into(), Value::Bool(true));
            }
        }
        Change::Replace(value) => {
            let old = file.pointer_mut(place).unwrap();
            // serde accepts a list of values for a table in order of its keys; only the schema rejects that.
            if !(old.is_object() && value.is_array()) {
                *old = value;
            }
        }
        Change::Edit(at, character) => {
            if let Some(Value::String(text)) = file.pointer_mut(place) {
                let at = text.floor_char_boundary(at.index(text.len() + 1));
                match character {
                    Some(character) => text.insert(at, character),
                    None if at < text.len() => drop(text.remove(at)),
                    None => {}
                }
            }
        }
    }
}

/// Formats the value as TOML with inline tables. JSON escapes text as TOML does, except DEL.
pub(super) fn as_toml(file: &Value) -> Option<String> {
    let line = |(key, value): (&String, &Value)| format!("{key:?} = {}\n", inline(value));
    Some(file.as_object()?.iter().map(line).collect())
}

fn inline(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| format!("{key:?} = {}", inline(value));
            let entries: Vec<String> = map.iter().map(entry).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            value.to_string().replace('\u{7f}', "\\u007f")
        }
    }
}

#[test]
fn a_built_in_file_written_with_inline_tables_is_the_same_file() {
    for builtin in builtin::ALL {
        let file: Value = toml::from_str(builtin.text).unwrap();
        let again: Value = toml::from_str(&as_toml(&file).unwrap()).unwrap();
        assert_eq!(again, file);
        parse(&as_toml(&file).unwrap()).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_the_schema_refuses_the_parser_refuses_and_faults_of_structure_both_do(
        which in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        change in change(),
    ) {
        let builtin = which.get(builtin::ALL);
        let mut file: Value = toml::from_str(text(builtin.name).unwrap()).unwrap();
        let mut all = Vec::new();
        places(&file, "", &mut all);
        apply(change, &mut file, place.get::<String>(&all));
        let Some(toml) = as_toml(&file) else { return Ok(()) };
        let valid = schema_of(builtin.kind).is_valid(&file);
        match parse(&toml) {
            Ok(_) => prop_assert!(valid, "the schema alone refuses:\n{toml}"),
            Err(error) => {
                let structural = is_structural(&error.to_string());
                prop_assert!(!(valid && structural), "the parser alone: {error}");
            }
        }
    }
}
