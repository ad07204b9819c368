//! Structural faults: a key that is unknown, missing or of the wrong type.
//!
//! Translates serde's messages into our own with hints, and byte ranges into dotted paths of keys.

use std::ops::Range;

use model::escape::visible;
use model::quote::{known_words, quoted};
use model::text::truncated;
use toml::de::{DeTable, DeValue};

use super::error::Flaw;
use super::lines::push_tables;

/// Translates a message of serde into a fault with a hint.
pub(super) fn explain(file: &str, message: &str, span: Range<usize>) -> Flaw {
    unknown(message, &span)
        .or_else(|| missing(message, &span))
        .or_else(|| mismatch(message, &span))
        .unwrap_or_else(|| Flaw {
            span: named_key(file, message, &span).unwrap_or(span),
            problem: visible(message),
            hint: "`runner policy show case-a` prints a valid file".into(),
        })
}

/// Translates "unknown field `x`, expected one of `a`, `b`", also with "variant".
fn unknown(message: &str, span: &Range<usize>) -> Option<Flaw> {
    let field = message
        .strip_prefix("unknown field `")
        .map(|rest| ("a known key", rest));
    let (expected, rest) = field.or_else(|| {
        message
            .strip_prefix("unknown variant `")
            .map(|rest| ("a known word", rest))
    })?;
    // The name comes from the user and may contain the separator, so split at the last one.
    let (found, known) = rest
        .rsplit_once("`, expected ")
        .or_else(|| rest.rsplit_once("`, there are no "))?;
    let known = known.split('`').skip(1).step_by(2);
    Some(Flaw::new(
        span.clone(),
        expected,
        quoted(found),
        known_words(found, known),
    ))
}

/// Translates "missing field `x`".
fn missing(message: &str, span: &Range<usize>) -> Option<Flaw> {
    let key = message.strip_prefix("missing field `")?.strip_suffix('`')?;
    let hint = format!("add `{key} = …` here");
    Some(Flaw::new(
        span.clone(),
        format!("the key `{key}`"),
        "none",
        hint,
    ))
}

/// Translates "invalid type: string \"x\", expected u64", also with "value" or "length".
fn mismatch(message: &str, span: &Range<usize>) -> Option<Flaw> {
    let rest = message.strip_prefix("invalid ")?.split_once(": ")?.1;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    let (expected, hint) = match expected {
        "a string" => ("a string", "put the value between double quotes"),
        "u64" | "usize" => (
            "a whole number of 0 or more",
            "write the digits without quotes or unit",
        ),
        "a boolean" => ("true or false", "write it without quotes"),
        "a sequence" => ("an array", "write it as [ … ]"),
        other if other == "a map" || other.starts_with("struct ") => (
            "a table",
            "begin it with a line [name], or write it as { … }",
        ),
        other => (other, "compare `runner policy show case-a`"),
    };
    let found: String = visible(&truncated(found, 80));
    Some(Flaw::new(span.clone(), expected, found, hint))
}

/// Returns the range of the value that a message on a whole table names: "`pings` is 200".
fn named_key(file: &str, message: &str, span: &Range<usize>) -> Option<Range<usize>> {
    let name = message.split('`').nth(1)?;
    let document = DeTable::parse(file).ok()?;
    let mut table = document.get_ref();
    for key in key_at(file, span)?.split('.') {
        let DeValue::Table(inner) = table.get(key)?.get_ref() else {
            return None;
        };
        table = inner;
    }
    table.get(name).map(toml::Spanned::span)
}

fn joined(prefix: &str, key: &str) -> String {
    let key = visible(key);
    if prefix.is_empty() {
        key
    } else {
        format!("{prefix}.{key}")
    }
}

/// Returns the dotted path of the innermost key whose name or value contains the span; `None` at the top level.
pub(super) fn key_at(text: &str, span: &Range<usize>) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let mut best: Option<(usize, String)> = None;
    let mut open: Vec<(String, &DeTable<'_>)> = vec![(String::new(), document.get_ref())];
    while let Some((prefix, table)) = open.pop() {
        for (key, value) in table {
            let path = joined(&prefix, key.get_ref());
            for range in [key.span(), value.span()] {
                let contains = range.start <= span.start && span.start < range.end;
                if contains && best.as_ref().is_none_or(|(size, _)| range.len() <= *size) {
                    best = Some((range.len(), path.clone()));
                }
            }
            push_tables(&mut open, path, value.get_ref());
        }
    }
    best.map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_with_the_mark_in_its_name_is_still_told_from_the_list() {
        let flaw = explain(
            "",
            "unknown field `a`, expected `b`, expected one of `x`, `y`",
            0..0,
        );
        assert_eq!(
            flaw.problem,
            "expected a known key, found `a`, expected `b`"
        );
        assert_eq!(flaw.hint, "known here: `x`, `y`");
    }

    #[test]
    fn a_sentence_that_serde_may_say_one_day_is_passed_on() {
        assert_eq!(
            explain("", "something\nnew", 0..0).problem,
            r"something\nnew"
        );
    }

    #[test]
    fn a_sentence_about_a_table_is_placed_at_the_key_that_it_names() {
        let file = "[a]\nb = 1\n[c]\nb = 2\n";
        let table = file.find("[c]").unwrap();
        let flaw = explain(file, "`b` is 2, at most 1", table..table + 3);
        assert_eq!(&file[flaw.span], "2");
        for other in ["`x` is missing", "nothing is named"] {
            assert_eq!(explain(file, other, table..table + 3).span.start, table);
        }
    }

    #[test]
    fn the_key_is_the_innermost_one() {
        let text = "[a]\nb = { c = [1, { d = \"x\" }] }\n[[e]]\nf = 1\n[[e]]\nf = 2\n";
        let at = |found: &str| {
            key_at(
                text,
                &(text.find(found).unwrap()..text.find(found).unwrap()),
            )
        };
        assert_eq!(at("\"x\"").as_deref(), Some("a.b.c.d"));
        assert_eq!(at("1, {").as_deref(), Some("a.b.c"));
        assert_eq!(at("f = 2").as_deref(), Some("e.f"));
        assert_eq!(key_at(text, &(text.len()..text.len())), None);
    }
}
