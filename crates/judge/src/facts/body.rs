//! Facts of a request's body: one for each leaf of its shape.

use model::difference::Area;
use model::shape::is_text;
use serde_json::Value;

use super::form::Body;
use super::{Facts, Rule, SHORT_TEXT, bounded, times};

pub(super) fn read(request: &str, body: &Body, facts: &mut Facts) {
    if body.bytes > 0 {
        facts.apply(Rule::Lengths);
    }
    if let Some(shape) = &body.shape {
        value(&format!("{request} $"), shape, facts);
    } else if let Some(fault) = &body.fault {
        let fault = facts.text(fault);
        let bytes = body.bytes;
        let content = if bytes <= SHORT_TEXT {
            format!("{bytes} bytes, sha256 {}", body.sha256)
        } else {
            facts.apply(Rule::Texts);
            format!("{bytes} bytes")
        };
        facts.insert(
            Area::Body,
            &format!("{request} $"),
            &format!("no shape: {fault}, {content}"),
        );
    }
}

/// Adds the facts of a value. The stub limits the depth of a body, and the collector the number of facts. `at` is cut
/// to a limit, since each leaf repeats it.
fn value(at: &str, shape: &Value, facts: &mut Facts) {
    if !facts.has_room() {
        return;
    }
    let leaf = match shape {
        Value::Object(_) if is_text(shape) => text(shape, facts),
        Value::Object(fields) if fields.is_empty() => "empty object".to_owned(),
        Value::Object(fields) => {
            for (name, inner) in fields {
                let step = step(name, facts);
                value(&bounded(&format!("{at}{step}")), inner, facts);
                if facts.is_full {
                    return;
                }
            }
            return;
        }
        Value::Array(items) if items.is_empty() => "empty array".to_owned(),
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                value(&bounded(&format!("{at}[{index}]")), inner, facts);
                if facts.is_full {
                    return;
                }
            }
            return;
        }
        Value::String(word) => format!("word {}", facts.text(word)),
        Value::Number(number) => {
            let number = number.to_string();
            if times::since_1970(&number) == Some(number.len()) {
                facts.apply(Rule::Times);
                "{digits}".to_owned()
            } else {
                number
            }
        }
        Value::Null | Value::Bool(_) => shape.to_string(),
    };
    facts.insert(Area::Body, at, &leaf);
}

fn text(shape: &Value, facts: &mut Facts) -> String {
    let bytes = shape.get("bytes").and_then(Value::as_u64).unwrap_or(0);
    match shape.get("sha256").and_then(Value::as_str) {
        Some(sha256) if bytes <= SHORT_TEXT => format!("text of {bytes} bytes, sha256 {sha256}"),
        Some(_) | None => {
            facts.apply(Rule::Texts);
            format!("text of {bytes} bytes")
        }
    }
}

/// Step of a path: `.name` or `["na.me"]`. For a key that is no name, the shape has `…`, length and digest
/// ([`model::shape`]).
fn step(name: &str, facts: &mut Facts) -> String {
    let hidden = name.strip_prefix('\u{2026}');
    if let Some((bytes, sha256)) = hidden.and_then(|hidden| hidden.split_once('-')) {
        let is_short = bytes.parse().is_ok_and(|bytes: u64| bytes <= SHORT_TEXT);
        return if is_short {
            format!("[key of {bytes} bytes, sha256 {sha256}]")
        } else {
            facts.apply(Rule::Texts);
            format!("[key of {bytes} bytes]")
        };
    }
    let name = facts.text(name);
    // Quotes tell the field `a.b` from the field `b` of `a`.
    if name.contains('.') {
        format!("[\"{name}\"]")
    } else {
        format!(".{name}")
    }
}
