//! Templates of `runner policy init`: valid as printed, and with each optional part.

use std::collections::BTreeSet;

use model::schema::fixture::properties;
use serde_json::Value;

use super::super::init::{self, PolicyName};
use super::super::{Kind, schema};
use super::parse;

fn named(name: &str) -> PolicyName {
    PolicyName::parse(name).unwrap()
}

fn printed() -> [(Kind, String); 2] {
    let name = named("mine.1");
    [
        (Kind::Case, init::case(&name)),
        (Kind::Profile, init::profile(&name, None)),
    ]
}

/// Returns a commented-out setting without its `#`. Prose has a space after the `#`.
fn optional(line: &str) -> Option<&str> {
    line.strip_prefix('#')
        .filter(|rest| !rest.is_empty() && !rest.starts_with(' '))
}

/// Returns the line ranges of consecutive commented-out settings.
fn blocks(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut blocks: Vec<std::ops::Range<usize>> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match blocks.last_mut() {
            _ if optional(line).is_none() => {}
            Some(block) if block.end == number => block.end += 1,
            Some(_) | None => blocks.push(number..number + 1),
        }
    }
    blocks
}

/// Returns true for a block of the client's own table, which excludes the table `invocation`.
fn is_client(text: &str, block: &std::ops::Range<usize>) -> bool {
    let first = text.lines().nth(block.start).unwrap_or_default();
    first == "#[client]" || first.starts_with("#[[client.")
}

/// Returns the text with these blocks enabled.
fn with(text: &str, blocks: &[std::ops::Range<usize>]) -> String {
    let line = |(number, line): (usize, &str)| {
        let set = blocks.iter().any(|block| block.contains(&number));
        let line = optional(line).filter(|_| set).unwrap_or(line);
        format!("{line}\n")
    };
    text.lines().enumerate().map(line).collect()
}

#[test]
fn as_printed_it_is_right_and_has_the_name() {
    for (kind, text) in printed() {
        let entry = parse(&text).unwrap();
        assert_eq!((entry.kind, entry.name.as_str()), (kind, "mine.1"));
        assert!(!text.contains("my-c"), "{text}");
    }
}

#[test]
fn each_optional_part_alone_is_right_and_so_are_all_that_do_not_exclude_each_other() {
    for (kind, text) in printed() {
        let blocks = blocks(&text);
        assert!(blocks.len() > 4, "{kind:?}");
        for block in blocks.iter().filter(|block| !is_client(&text, block)) {
            let text = with(&text, std::slice::from_ref(block));
            let error = parse(&text).err().map(|error| error.to_string());
            assert_eq!(error, None, "{kind:?}, line {}", block.start + 1);
        }
        // The answers of a stub are mutually exclusive.
        let stub = line_of(&text, "[stub]")..line_of(&text, "[sandbox]");
        let apart = |block: &std::ops::Range<usize>| {
            !stub.contains(&block.start) && !is_client(&text, block)
        };
        let together: Vec<_> = blocks
            .iter()
            .filter(|block| apart(block))
            .cloned()
            .collect();
        parse(&with(&text, &together)).unwrap();
    }
}

#[test]
fn client_is_right_in_place_of_the_invocation() {
    let text = init::case(&named("mine"));
    let mut blocks = blocks(&text);
    blocks.retain(|block| is_client(&text, block));
    let text = with(&text, &blocks);
    let (before, rest) = text.split_once("\n[invocation]\n").unwrap();
    let (_, after) = rest.split_once("\n[stub]\n").unwrap();
    let after = after.replace("partial_messages = true", "partial_messages = false");
    parse(&format!("{before}\n[stub]\n{after}")).unwrap();
}

/// Returns the index of a line; 0 if there is no such line.
fn line_of(text: &str, line: &str) -> usize {
    text.lines().position(|other| other == line).unwrap_or(0)
}

#[test]
fn every_key_that_a_file_can_have_is_there() {
    for (kind, text) in printed() {
        let whole: Value = toml::from_str(&with(&text, &blocks(&text))).unwrap();
        let there = keys(&whole);
        let known: BTreeSet<String> = properties(schema(kind).as_value())
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let absent: Vec<_> = known.difference(&there).collect();
        assert!(absent.is_empty(), "{kind:?}: {absent:?}");
    }
}

fn keys(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(map) => {
            let below = map.values().flat_map(keys);
            map.keys().cloned().chain(below).collect()
        }
        Value::Array(items) => items.iter().flat_map(keys).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => BTreeSet::new(),
    }
}

#[test]
fn a_name_that_no_file_may_have_is_none() {
    for text in ["", ".", "a b", "a\"b", "../a", &"a".repeat(65)] {
        assert_eq!(PolicyName::parse(text), None, "{text}");
    }
}

#[test]
fn nearest_name_of_any_text_is_a_name() {
    let long = "a".repeat(65);
    for (text, name) in [
        ("my-case.2", "my-case.2"),
        ("a b/ü", "a-b--"),
        ("..", "my-case"),
        ("", "my-case"),
        (long.as_str(), &long[..64]),
    ] {
        assert_eq!(
            Some(PolicyName::nearest(text)),
            PolicyName::parse(name),
            "{text}"
        );
    }
}
