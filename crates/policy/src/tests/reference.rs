//! Accuracy of the reference: its examples parse, and it has every key.

use model::schema::fixture::properties;
use serde_json::Value;

use super::parse;
use super::schema::{as_toml, schema_of};
use crate::{Kind, schema, text};

const REFERENCE: &str = include_str!("../reference.md");

/// Parts of the reference on one form each, with the built-in policy that its examples are merged into.
fn parts() -> [(Kind, &'static str, &'static str); 3] {
    let part = |heading: &str| {
        let (_, rest) = REFERENCE.split_once(&format!("\n## {heading}\n")).unwrap();
        rest.split("\n## ").next().unwrap()
    };
    [
        (Kind::Case, part("Case files"), "case-a"),
        (Kind::Profile, part("Profiles"), "reference"),
        (Kind::Audit, part("The audit policy"), "audit"),
    ]
}

fn examples(part: &str) -> Vec<&str> {
    let blocks = part.split("\n```toml\n").skip(1);
    blocks
        .map(|block| block.split_once("```").unwrap().0)
        .collect()
}

/// Merges an example into a file: tables are merged, other values are replaced.
fn put(example: Value, file: &mut Value) {
    match (example, file) {
        (Value::Object(example), Value::Object(file)) => {
            for (key, value) in example {
                match file.get_mut(&key).filter(|_| key != "fields") {
                    Some(known) => put(value, known),
                    None => drop(file.insert(key, value)),
                }
            }
        }
        (example, file) => *file = example,
    }
}

#[test]
fn each_example_is_right_to_the_parser_and_to_the_schema() {
    let mut count = 0;
    for (kind, part, base) in parts() {
        for example in examples(part) {
            let mut file: Value = toml::from_str(text(base).unwrap()).unwrap();
            let example_file: Value = toml::from_str(example).unwrap();
            if example_file.get("client").is_some() {
                // A case has one of the two, and its records follow the switches of the invocation.
                let file = file.as_object_mut().unwrap();
                file.retain(|key, _| !["invocation", "expect"].contains(&key.as_str()));
            }
            put(example_file, &mut file);
            let error = parse(&as_toml(&file).unwrap()).err();
            assert!(error.is_none(), "{}\n{example}", error.unwrap());
            assert!(schema_of(kind).is_valid(&file), "{example}");
            count += 1;
        }
    }
    assert!(count >= 15, "{count}");
}

#[test]
fn every_key_of_each_form_has_its_line() {
    for (kind, part, _) in parts() {
        let known: Vec<String> = match kind {
            // The reference describes the tables with the other two forms.
            Kind::Audit => {
                let schema = schema(kind);
                let own = schema.get("properties").and_then(Value::as_object).unwrap();
                own.keys().cloned().collect()
            }
            Kind::Case | Kind::Profile => {
                let known = properties(schema(kind).as_value());
                known.into_iter().map(|(name, _)| name).collect()
            }
        };
        let absent: Vec<_> = known
            .iter()
            .filter(|name| !part.contains(&format!("`{name}`")))
            .collect();
        assert!(absent.is_empty(), "{kind:?}: {absent:?}");
    }
}

#[test]
fn the_bounds_of_the_limits_are_those_of_the_parser() {
    let schema = schema(Kind::Case);
    let limits = schema.pointer("/$defs/Limits/properties").unwrap();
    for (name, limit) in limits.as_object().unwrap() {
        let bounds = match (limit.get("minimum"), limit.get("maximum")) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            // The description of a size or time ends with its bounds.
            _ => {
                let description = limit["description"].as_str().unwrap();
                description
                    .trim_end_matches('.')
                    .rsplit(". ")
                    .next()
                    .unwrap()
                    .to_owned()
            }
        };
        let line = REFERENCE
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("no line for {name}"));
        assert!(line.ends_with(&format!("| {bounds} |")), "{name}: {bounds}");
    }
}
