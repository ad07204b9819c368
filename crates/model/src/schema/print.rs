//! Printing of a schema: keywords in reading order, and required keys in the order of the type.

use schemars::Schema;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// Keywords printed first, and keywords printed last; the others are between them, in alphabetical order.
const FIRST: [&str; 5] = ["$schema", "$id", "title", "description", "type"];
const LAST: [&str; 4] = ["properties", "required", "additionalProperties", "$defs"];

/// Keywords whose values map names, not keywords.
const OF_NAMES: [&str; 2] = ["properties", "$defs"];

/// Prints a schema as indented JSON with a final line feed.
pub fn print(schema: &Schema) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = serde_json::to_vec_pretty(&Ordered(schema.as_value()))?;
    text.push(b'\n');
    Ok(text)
}

/// A schema, or a value inside one.
struct Ordered<'s>(&'s Value);

/// The value of one of [`OF_NAMES`], and the names to print first.
struct Named<'s> {
    schemas: &'s Map<String, Value>,
    first: Vec<&'s str>,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(keywords) => serialize_keywords(keywords, serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(Ordered)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.0.serialize(serializer)
            }
        }
    }
}

fn serialize_keywords<S: Serializer>(
    keywords: &Map<String, Value>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut order: Vec<(usize, &String, &Value)> = keywords
        .iter()
        .map(|(key, value)| (rank(key), key, value))
        .collect();
    order.sort_by_key(|(rank, ..)| *rank);
    let mut map = serializer.serialize_map(Some(order.len()))?;
    for (_, key, value) in order {
        match value
            .as_object()
            .filter(|_| OF_NAMES.contains(&key.as_str()))
        {
            Some(schemas) => {
                let first = required(keywords);
                map.serialize_entry(key, &Named { schemas, first })?;
            }
            None => map.serialize_entry(key, &Ordered(value))?,
        }
    }
    map.end()
}

fn rank(keyword: &str) -> usize {
    let first = FIRST.iter().position(|word| *word == keyword);
    let last = LAST.iter().position(|word| *word == keyword);
    first
        .or(last.map(|at| FIRST.len() + 1 + at))
        .unwrap_or(FIRST.len())
}

fn required(keywords: &Map<String, Value>) -> Vec<&str> {
    let names = keywords.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let first = self.first.iter().copied();
        let first = first.filter(|name| self.schemas.contains_key(*name));
        let rest = self.schemas.keys().map(String::as_str);
        let rest = rest.filter(|name| !self.first.contains(name));
        let names = first.chain(rest);
        serializer.collect_map(names.filter_map(|name| {
            let schema = self.schemas.get(name)?;
            Some((name, Ordered(schema)))
        }))
    }
}
