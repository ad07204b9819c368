//! Checks of the bodies of the turn's requests, by their shapes, which hold no text.

use model::case::expect::{BodyField, CacheControl, JsonKind, RequestRule};
use model::digest;
use model::evidence::Request;
use model::journal::Content;
use model::shape::is_text;
use model::text::count;
use serde_json::{Map, Value};

use super::outcome::{Deviation, JudgedRun, Outcome, absent, list, name, not_asked};
use super::{NotPassed, REQUESTS};

pub(super) fn fields(run: &JudgedRun) -> Outcome {
    let asks = |rule: &RequestRule| rule.body.fields.is_some();
    if !run.rules()?.rules.iter().any(asks) {
        return not_asked("no rule of the requests lists the fields of its body");
    }
    let mut number = 0;
    for (rule, post) in run.bodies(asks)? {
        let Some(expected) = &rule.body.fields else {
            continue;
        };
        number = expected.len();
        let faults = field_faults(expected, object(post)?);
        if !faults.is_empty() {
            return Deviation::new("The top-level fields of the body differ.")
                .at(name(post))
                .expected(list(expected.iter().map(|field| field.name.as_str())))
                .found(list(faults))
                .failed();
        }
    }
    Ok(format!(
        "{}: exactly the listed ones, with their types.",
        count(number, "field")
    ))
}

pub(super) fn messages_blocks(run: &JudgedRun) -> Outcome {
    let mut number = 0;
    for (post, shape, blocks) in run.shapes(|rule| rule.body.user_blocks)? {
        let Some(messages) = shape.get("messages") else {
            return absent("the body has no messages");
        };
        let found = match messages.as_array().map(Vec::as_slice) {
            Some([message]) if message.get("role").and_then(Value::as_str) != Some("user") => {
                Err("a message whose role is not user".to_owned())
            }
            Some([message]) => text_blocks(message.get("content")),
            Some(all) => Err(count(all.len(), "message")),
            None => Err("no array".to_owned()),
        };
        expect_blocks(post, "one user message", blocks, found)?;
        number = blocks;
    }
    Ok(format!(
        "One user message with {}.",
        count(number, "text block")
    ))
}

pub(super) fn system_blocks(run: &JudgedRun) -> Outcome {
    let mut number = 0;
    for (post, shape, blocks) in run.shapes(|rule| rule.body.system_blocks)? {
        let Some(system) = shape.get("system") else {
            return absent("the body has no system input");
        };
        expect_blocks(post, "system input", blocks, text_blocks(Some(system)))?;
        number = blocks;
    }
    Ok(format!("System input of {}.", count(number, "text block")))
}

pub(super) fn cache_control(run: &JudgedRun) -> Outcome {
    for (post, shape, expected) in run.shapes(|rule| rule.body.cache_control.as_ref())? {
        let CacheControl { system_count, user } = expected;
        let system = shape.get("system").and_then(Value::as_array);
        let content = shape
            .get("messages")
            .and_then(|messages| messages.get(0)?.get("content")?.as_array());
        let (Some(system), Some(content)) = (system, content) else {
            return absent("the body lacks the blocks that could carry it");
        };
        if let Some(place) =
            other_mark("system block", system).or_else(|| other_mark("user block", content))
        {
            return Deviation::new("cache_control has another value than the interface knows.")
                .at(name(post))
                .expected(r#"{"type": "ephemeral"}, with a known ttl or scope"#)
                .found(format!("another value on {place}"))
                .failed();
        }
        let (system_marks, user_marks) = (marked(system), marked(content));
        if system_marks.len() != *system_count || user_marks != *user {
            let say = |number, user: &[usize]| {
                let user = list(user.iter().map(usize::to_string));
                format!(
                    "on {number} of the system blocks, and on these blocks of the user message: {user}"
                )
            };
            return Deviation::new("cache_control is not on the expected blocks.")
                .at(name(post))
                .expected(say(*system_count, user))
                .found(say(system_marks.len(), &user_marks))
                .failed();
        }
    }
    Ok("cache_control is on the expected blocks and no other.".to_owned())
}

pub(super) fn tools_empty(run: &JudgedRun) -> Outcome {
    for (post, shape, ()) in run.shapes(|rule| rule.body.no_tools.then_some(()))? {
        match shape.get("tools") {
            None => return absent("the body has no tools"),
            Some(Value::Array(tools)) if tools.is_empty() => {}
            Some(tools) => {
                return Deviation::new("The body's tool list is not empty.")
                    .at(name(post))
                    .expected("an empty array")
                    .found(
                        tools
                            .as_array()
                            .map_or("no array".to_owned(), |all| count(all.len(), "tool")),
                    )
                    .failed();
            }
        }
    }
    Ok("The body's tool list is empty.".to_owned())
}

pub(super) fn stream(run: &JudgedRun) -> Outcome {
    for (post, shape, ()) in run.shapes(|rule| rule.body.stream.then_some(()))? {
        match shape.get("stream") {
            None => return absent("the body has no stream"),
            Some(Value::Bool(true)) => {}
            Some(_) => {
                return Deviation::new("The message request does not ask for a stream.")
                    .at(name(post))
                    .expected("stream: true")
                    .found("another value")
                    .failed();
            }
        }
    }
    Ok("The message request asks for a stream.".to_owned())
}

/// Body as an object, or a deviation.
fn object(post: &Request) -> Result<&Map<String, Value>, NotPassed> {
    let found = match &post.body {
        None => "no body".to_owned(),
        Some(body) if !body.complete => format!("{} bytes, then the connection ended", body.bytes),
        Some(body) => match &body.content {
            Content::Json {
                shape: Value::Object(fields),
            } => return Ok(fields),
            Content::Json { .. } => "JSON, but no object".to_owned(),
            Content::Empty => "no body".to_owned(),
            Content::DuplicateKey { path } => format!("a key that is named twice: {path}"),
            Content::Other { reason } => format!("no JSON: {reason}"),
        },
    };
    Deviation::new("The body is not one whole JSON object.")
        .at(name(post))
        .expected("a JSON object without duplicate keys")
        .found(found)
        .failed_if_complete(if post.is_complete() { &[] } else { REQUESTS })
}

fn field_faults(expected: &[BodyField], body: &Map<String, Value>) -> Vec<String> {
    let missing = expected
        .iter()
        .filter_map(|field| match body.get(&field.name) {
            None => Some(format!("{} is missing", field.name)),
            Some(value) if field.kind.is_none_or(|wanted| wanted == kind(value)) => None,
            Some(_) => Some(format!("{} has another type", field.name)),
        });
    let further = body
        .keys()
        .filter(|key| !expected.iter().any(|field| field.name == **key))
        .map(|key| format!("{key} is not expected"));
    missing.chain(further).collect()
}

/// JSON type of a shape.
fn kind(shape: &Value) -> JsonKind {
    if is_text(shape) {
        JsonKind::String
    } else {
        JsonKind::of(shape)
    }
}

/// Number of blocks, if all are text blocks.
fn text_blocks(content: Option<&Value>) -> Result<usize, String> {
    let blocks = content
        .and_then(Value::as_array)
        .ok_or("no array of blocks")?;
    let is_text_block = |block: &&Value| {
        block.get("type").and_then(Value::as_str) == Some("text")
            && block.get("text").is_some_and(is_text)
    };
    let texts = blocks.iter().filter(is_text_block).count();
    if texts == blocks.len() {
        Ok(texts)
    } else {
        Err(format!(
            "{}, {} of them text",
            count(blocks.len(), "block"),
            texts
        ))
    }
}

fn expect_blocks(
    post: &Request,
    of: &str,
    blocks: usize,
    found: Result<usize, String>,
) -> Result<(), NotPassed> {
    let found = match found {
        Ok(found) if found == blocks => return Ok(()),
        Ok(found) => count(found, "text block"),
        Err(found) => found,
    };
    Deviation::new("The body does not have the expected blocks.")
        .at(name(post))
        .expected(format!("{of}: {}", count(blocks, "text block")))
        .found(found)
        .failed()
}

/// Positions, from 1, of the blocks that carry `cache_control`.
fn marked(blocks: &[Value]) -> Vec<usize> {
    let positions = blocks.iter().zip(1..);
    positions
        .filter(|(block, _)| mark(block).is_some())
        .map(|(_, position)| position)
        .collect()
}

/// First block with an unknown value of `cache_control`: `user block 2`.
fn other_mark(kind: &str, blocks: &[Value]) -> Option<String> {
    let other = |block: &Value| mark(block).is_some_and(|mark| !is_known_mark(mark));
    let position = blocks.iter().position(other)?;
    Some(format!("{kind} {}", position + 1))
}

/// Value of `cache_control` of a block; null counts as missing.
fn mark(block: &Value) -> Option<&Value> {
    block.get("cache_control").filter(|mark| !mark.is_null())
}

/// Checks for a known value of `cache_control`. `scope` belongs to the beta family of that name.
fn is_known_mark(mark: &Value) -> bool {
    let Some(fields) = mark.as_object() else {
        return false;
    };
    let one_of = |value: &Value, texts: [&str; 2]| {
        let digest = value.get("sha256").and_then(Value::as_str);
        texts
            .iter()
            .any(|text| digest == Some(&digest::of_bytes(text.as_bytes())))
    };
    let is_known = |(key, value): (&String, &Value)| match key.as_str() {
        "type" => value.as_str() == Some("ephemeral"),
        "ttl" => one_of(value, ["5m", "1h"]),
        "scope" => one_of(value, ["global", "org"]),
        _ => false,
    };
    fields.contains_key("type") && fields.iter().all(is_known)
}
