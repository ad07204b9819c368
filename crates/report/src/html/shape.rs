//! Shape of a JSON body as lines: names, numbers and nesting, with length and digest for each text.

use std::borrow::Cow;

use maud::{Markup, html};
use model::text::count;
use serde_json::{Map, Value};

use super::budget::Budget;
use super::text::digest;
use crate::html::text::ClientText;
use crate::phrases::grouped;

/// Maximum number of lines of one body.
const MAX_LINES: usize = 300;

/// One line of a shape.
struct ShapeRow<'a> {
    depth: usize,
    /// Name or index; `None` for the whole body.
    name: Option<Cow<'a, str>>,
    value: ShapeValue<'a>,
}

/// Value of a line.
enum ShapeValue<'a> {
    /// Number, unredacted word, or `null`.
    Plain(String),
    Text {
        bytes: u64,
        sha256: &'a str,
    },
}

/// Draws the shape, cut at [`MAX_LINES`] and at [`Budget::PART`].
pub(super) fn lines(shape: &Value) -> Markup {
    let mut lines = Vec::new();
    let mut cut = 0;
    add(&mut lines, &mut cut, 0, None, shape);
    let all = lines.len() + cut;
    let (shown, unfit) = Budget::PART.entries(&lines, line);
    let cut = cut + unfit;
    html! {
        ol.shape { (shown) }
        @if cut > 0 { p.cut { "Cut: " (count(cut, "more value")) " of " (grouped(all as u64)) "." } }
    }
}

fn line(line: &ShapeRow) -> Markup {
    html! {
        li class={ "d" (line.depth.min(9)) } {
            @if let Some(name) = &line.name { span.name { (ClientText(name)) } " " }
            @match &line.value {
                ShapeValue::Plain(text) => code { (ClientText(text)) },
                ShapeValue::Text { bytes, sha256 } => {
                    span.hidden { "text of " (super::text::bytes(*bytes)) " " (digest(sha256)) }
                },
            }
        }
    }
}

fn add<'a>(
    lines: &mut Vec<ShapeRow<'a>>,
    cut: &mut usize,
    depth: usize,
    name: Option<Cow<'a, str>>,
    value: &'a Value,
) {
    if lines.len() >= MAX_LINES {
        *cut += 1;
        return;
    }
    let line = |value| ShapeRow { depth, name, value };
    if let Some((bytes, sha256)) = value.as_object().and_then(text) {
        lines.push(line(ShapeValue::Text { bytes, sha256 }));
        return;
    }
    let words = match value {
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(_) => String::new(),
        Value::Array(values) if values.is_empty() => "[]".to_owned(),
        Value::Array(values) => count(values.len(), "element"),
        Value::String(word) => format!("\"{word}\""),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    lines.push(line(ShapeValue::Plain(words)));
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                add(lines, cut, depth + 1, Some(name.into()), value);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                add(lines, cut, depth + 1, Some(index.to_string().into()), value);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns length and digest of a text that was replaced by them.
fn text(map: &Map<String, Value>) -> Option<(u64, &str)> {
    let bytes = map.get("bytes")?.as_u64()?;
    let sha256 = map.get("sha256")?.as_str()?;
    (map.len() == 2).then_some((bytes, sha256))
}
