//! JSON Schemas (draft 2020-12) of what the runner reads and writes.
//!
//! A schema is made from the very types that serde reads or writes: it is derived where the (de)serialiser is, and
//! closed words come from the tables that the parser looks them up in, so that neither can change alone. Owned here
//! is what all schemas share: the settings, the values that several of them hold, and how one is printed.
//! No run makes a schema; only `runner policy schema` does.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod print;
pub mod values;

pub use print::print;

/// What a file that is read must hold: unknown keys and null are refused, as the parser does.
pub fn of_file<T: JsonSchema>(form: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let settings = settings.with_transform(RecursiveTransform(without_null));
    document::<T>(settings, form)
}

/// What a document that is written holds, now and in later versions of the same form: readers ignore unknown keys.
pub fn of_document<T: JsonSchema>(form: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(open_to_more_keys));
    document::<T>(settings, form)
}

/// `form` is the value of the key `schema`: `runner.case/1`.
fn document<T: JsonSchema>(settings: SchemaSettings, form: &str) -> Schema {
    let settings = settings
        .with_transform(RecursiveTransform(without_integer_formats))
        .with_transform(RecursiveTransform(with_whole_paragraphs));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let identifier = format!("urn:{}", form.replacen('.', ":", 1));
    schema.insert("$id".into(), identifier.into());
    let key = schema.pointer_mut("/properties/schema");
    if let Some(key) = key.and_then(Value::as_object_mut) {
        key.insert("const".into(), form.into());
    }
    schema
}

/// Formats such as `uint64` are no part of JSON Schema, and strict validators stumble over them. The bounds stay.
fn without_integer_formats(schema: &mut Schema) {
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| format.contains("int")) {
        schema.remove("format");
    }
}

/// A doc comment is broken into lines for whoever reads the source.
fn with_whole_paragraphs(schema: &mut Schema) {
    let description = schema.get("description").and_then(Value::as_str);
    if let Some(description) = description {
        let paragraphs = description.split("\n\n");
        let whole: Vec<String> = paragraphs.map(|text| text.replace('\n', " ")).collect();
        schema.insert("description".into(), whole.join("\n\n").into());
    }
}

/// TOML has no null: an optional key is left out.
fn without_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|word| word != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            schema.insert("type".into(), only);
        }
    }
    let Some(Value::Array(choices)) = schema.get_mut("anyOf") else {
        return;
    };
    choices.retain(|choice| choice.get("type").is_none_or(|word| word != "null"));
    if let [Value::Object(only)] = choices.as_mut_slice() {
        let only = std::mem::take(only);
        schema.remove("anyOf");
        for (key, value) in only {
            if schema.get(&key).is_none() {
                schema.insert(key, value);
            }
        }
    }
}

/// Enums with one key for each variant forbid any other; a reader must not.
fn open_to_more_keys(schema: &mut Schema) {
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
}
