//! The shape of a JSON body as lines: its names, numbers and nesting, and for each text its length and digest.

use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::check::count;

use super::text::{Client, digest};

/// Lines of one body.
const LINES: usize = 300;

/// One line of a shape.
struct Line<'a> {
    depth: usize,
    name: Option<&'a str>,
    value: Shown<'a>,
}

/// What stands behind a name.
enum Shown<'a> {
    /// A number, a word that is kept, `null`.
    Plain(String),
    Text {
        bytes: u64,
        sha256: &'a str,
    },
}

/// The shape, cut at a number of lines.
pub(super) fn lines(shape: &Value) -> Markup {
    let mut lines = Vec::new();
    let mut cut = 0;
    add(&mut lines, &mut cut, 0, None, shape);
    html! {
        ol.shape {
            @for line in &lines {
                li class={ "d" (line.depth.min(9)) } {
                    @if let Some(name) = line.name { span.name { (Client(name)) } " " }
                    @match &line.value {
                        Shown::Plain(text) => code { (Client(text)) },
                        Shown::Text { bytes, sha256 } => {
                            span.hidden { "text of " (super::text::bytes(*bytes)) " " (digest(sha256)) }
                        },
                    }
                }
            }
        }
        @if cut > 0 { p.cut { "Cut: " (count(cut, "more value")) "." } }
    }
}

fn add<'a>(
    lines: &mut Vec<Line<'a>>,
    cut: &mut usize,
    depth: usize,
    name: Option<&'a str>,
    value: &'a Value,
) {
    if lines.len() >= LINES {
        *cut += 1;
        return;
    }
    let mut line = |value| lines.push(Line { depth, name, value });
    match value {
        Value::Object(map) => match text(map) {
            Some((bytes, sha256)) => line(Shown::Text { bytes, sha256 }),
            None => {
                line(Shown::Plain(match map.is_empty() {
                    true => "{}".to_owned(),
                    false => String::new(),
                }));
                for (name, value) in map {
                    add(lines, cut, depth + 1, Some(name), value);
                }
            }
        },
        Value::Array(values) => {
            line(Shown::Plain(match values.len() {
                0 => "[]".to_owned(),
                number => count(number, "element"),
            }));
            for value in values {
                add(lines, cut, depth + 1, None, value);
            }
        }
        Value::String(word) => line(Shown::Plain(format!("\"{word}\""))),
        Value::Null | Value::Bool(_) | Value::Number(_) => line(Shown::Plain(value.to_string())),
    }
}

/// A text that was replaced by its length and digest.
fn text(map: &Map<String, Value>) -> Option<(u64, &str)> {
    let bytes = map.get("bytes")?.as_u64()?;
    let sha256 = map.get("sha256")?.as_str()?;
    (map.len() == 2).then_some((bytes, sha256))
}
