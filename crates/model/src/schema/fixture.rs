//! Helper to take schemas apart in tests.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "compiled for tests only"
)]

use serde_json::Value;

/// Lists the properties of all objects: name and schema.
pub fn properties(schema: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        if let Some(Value::Object(properties)) = value.get("properties") {
            let named = properties.iter();
            found.extend(named.map(|(name, schema)| (name.clone(), schema.clone())));
        }
        match value {
            Value::Object(map) => open.extend(map.values()),
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}
