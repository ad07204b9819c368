//! JSON Schemas (draft 2020-12) of the files that the runner reads and writes.
//!
//! A schema is derived from the types that serde reads or writes. Its closed words come from the tables of the parser.
//! So neither the schema nor the parser can change alone.
//!
//! This module owns the parts that all schemas share: settings, common values, and printing. Only `runner policy
//! schema` makes a schema; a run makes none.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod print;
pub mod values;

pub use print::print;

/// Returns the schema of an input file. Unknown keys and null are rejected, as in the parser.
pub fn of_file<T: JsonSchema>(form: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let settings = settings.with_transform(RecursiveTransform(without_null));
    document::<T>(settings, form)
}

/// Returns the schema of an output document. It allows unknown keys, so that later versions of the form stay valid.
pub fn of_document<T: JsonSchema>(form: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(open_to_more_keys));
    document::<T>(settings, form)
}

/// Returns a schema; `form` is the value of the key `schema`: `runner.case/1`.
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

/// Removes formats such as `uint64`, which are not part of JSON Schema and which strict validators reject. Bounds stay.
fn without_integer_formats(schema: &mut Schema) {
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| format.contains("int")) {
        schema.remove("format");
    }
}

/// Joins the lines of each paragraph in a description, because doc comments are wrapped.
fn with_whole_paragraphs(schema: &mut Schema) {
    let description = schema.get("description").and_then(Value::as_str);
    if let Some(description) = description {
        let paragraphs = description.split("\n\n");
        let whole: Vec<String> = paragraphs.map(|text| text.replace('\n', " ")).collect();
        schema.insert("description".into(), whole.join("\n\n").into());
    }
}

/// Removes null from the types of an optional key, because TOML has no null.
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

/// Allows additional keys in enums with one key per variant, because readers must ignore unknown keys.
fn open_to_more_keys(schema: &mut Schema) {
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
}
