//! Shapes: JSON without its text, for the journal.
//!
//! Numbers, booleans, null and the structure are kept. Each string becomes `{"bytes", "sha256"}`, except a *name* under
//! the keys `type` and `role`: at most [`MAX_NAME_BYTES`] of `[A-Za-z0-9_.-]`, too short to hide text. An object key
//! that is not a name becomes `…BYTES-SHA256`. A string that contains the credential is not a name. Nothing here does
//! I/O.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, json};

use crate::digest;
use crate::journal::Content;
use crate::secret::SecretScanner;

/// Largest name, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// Limits on the parsed part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Deepest nesting of arrays and objects; serde_json itself stops at 127.
    pub depth: usize,
    /// Largest number of values, including arrays and objects.
    pub values: usize,
}

/// Classifies `body`: empty, one JSON value, JSON with a duplicate key, or other content.
pub fn describe(body: &[u8], bounds: Bounds, credential: Option<&SecretScanner>) -> Content {
    if body.is_empty() {
        return Content::Empty;
    }
    let reader = Reader {
        bounds,
        credential,
        values: Cell::new(0),
        path: RefCell::default(),
        fault: RefCell::default(),
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let shape = Shape {
        reader: &reader,
        depth: 0,
        named: false,
    }
    .deserialize(&mut json);
    match (
        shape.and_then(|shape| json.end().map(|()| shape)),
        reader.fault.into_inner(),
    ) {
        (Ok(shape), _) => Content::Json { shape },
        (Err(_), Some(content)) => content,
        // The message is dropped, because it may quote the body.
        (Err(error), None) => Content::Other {
            reason: format!(
                "not JSON at line {}, column {}",
                error.line(),
                error.column()
            ),
        },
    }
}

/// Returns true if a shape represents a string: exactly a number `bytes` and a string `sha256`.
///
/// No object of a body has such a shape, because a string under `sha256` would itself be replaced by an object.
pub fn is_text(shape: &Value) -> bool {
    shape.as_object().is_some_and(|fields| {
        fields.len() == 2
            && fields.get("bytes").is_some_and(Value::is_u64)
            && fields.get("sha256").is_some_and(Value::is_string)
    })
}

/// Memory of an object besides that of its values, as a number of values: its map has space for eleven entries from the
/// first.
const OBJECT_WEIGHT: usize = 4;

/// Memory of `value`, as a number of values.
pub fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        Value::Array(items) => items.iter().map(weight).sum::<usize>() + 1,
        Value::Object(entries) => entries.values().map(weight).sum::<usize>() + OBJECT_WEIGHT,
    }
}

struct Reader<'a> {
    bounds: Bounds,
    credential: Option<&'a SecretScanner>,
    values: Cell<usize>,
    path: RefCell<Vec<String>>,
    fault: RefCell<Option<Content>>,
}

impl Reader<'_> {
    fn is_name(&self, text: &str) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        (1..=MAX_NAME_BYTES).contains(&text.len())
            && text.bytes().all(plain)
            && self
                .credential
                .is_none_or(|secrets| secrets.find(text.as_bytes()).is_none())
    }

    fn key(&self, key: &str) -> String {
        if self.is_name(key) {
            key.to_owned()
        } else {
            format!("\u{2026}{}-{}", key.len(), digest::of_bytes(key.as_bytes()))
        }
    }

    fn count<E: serde::de::Error>(&self) -> Result<(), E> {
        self.values.set(self.values.get() + 1);
        if self.values.get() > self.bounds.values {
            return Err(self.stop(Content::Other {
                reason: format!("more than {} values", self.bounds.values),
            }));
        }
        Ok(())
    }

    fn stop<E: serde::de::Error>(&self, content: Content) -> E {
        *self.fault.borrow_mut() = Some(content);
        E::custom("stopped")
    }

    fn inside<T>(&self, step: String, read: impl FnOnce() -> T) -> T {
        self.path.borrow_mut().push(step);
        let value = read();
        self.path.borrow_mut().pop();
        value
    }
}

/// Deserialiser of one value; `named` is true if its key allows a name.
#[derive(Clone, Copy)]
struct Shape<'a> {
    reader: &'a Reader<'a>,
    depth: usize,
    named: bool,
}

impl Shape<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        let max = self.reader.bounds.depth;
        if self.depth >= max {
            return Err(self.reader.stop(Content::Other {
                reason: format!("nested deeper than {max}"),
            }));
        }
        Ok(Self {
            depth: self.depth + 1,
            named: false,
            ..self
        })
    }
}

impl<'de> DeserializeSeed<'de> for Shape<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.reader.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Shape<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number without a finite value"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        if self.named && self.reader.is_name(text) {
            return Ok(Value::String(text.to_owned()));
        }
        Ok(json!({ "bytes": text.len(), "sha256": digest::of_bytes(text.as_bytes()) }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let seed = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = self
            .reader
            .inside(list.len().to_string(), || items.next_element_seed(seed))?
        {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let seed = self.deeper()?;
        let mut object = Map::new();
        while let Some(raw) = entries.next_key::<String>()? {
            let key = self.reader.key(&raw);
            if object.contains_key(&key) {
                self.reader.path.borrow_mut().push(key);
                let path = format!("/{}", self.reader.path.borrow().join("/"));
                return Err(self.reader.stop(Content::DuplicateKey { path }));
            }
            let named = matches!(key.as_str(), "type" | "role");
            let value = self.reader.inside(key.clone(), || {
                entries.next_value_seed(Shape { named, ..seed })
            })?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        depth: 4,
        values: 20,
    };

    fn shape(body: &str) -> Value {
        let content = describe(body.as_bytes(), BOUNDS, None);
        let Content::Json { shape } = content else {
            panic!("{content:?}")
        };
        shape
    }

    fn reason(body: &str) -> String {
        let content = describe(body.as_bytes(), BOUNDS, None);
        let Content::Other { reason } = content else {
            panic!("{content:?}")
        };
        reason
    }

    #[test]
    fn strings_go_and_everything_else_stays() {
        let digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert_eq!(
            shape(r#"{"type":"text","text":"hello","n":1.5,"on":true,"none":null,"list":[-1]}"#),
            json!({"type":"text","text":{"bytes":5,"sha256":digest},"n":1.5,"on":true,"none":null,"list":[-1]})
        );
    }

    #[test]
    fn text_under_type_or_role_goes_unless_it_is_a_short_name() {
        let long = "a".repeat(65);
        for text in ["two words", "é", "", long.as_str()] {
            let value = shape(&json!({ "type": text, "role": text }).to_string());
            assert_eq!(value["type"]["bytes"], text.len());
            assert_eq!(value["role"]["bytes"], text.len());
        }
        assert_eq!(
            shape(r#"{"role":"user","inner":{"type":"web_search.v1-a"}}"#)["inner"]["type"],
            "web_search.v1-a"
        );
        assert_eq!(shape(r#"{"type":["user"]}"#)["type"][0]["bytes"], 4);
    }

    #[test]
    fn a_key_that_is_no_name_becomes_its_length_and_digest() {
        let value = shape(r#"{"a key with text":1}"#);
        assert_eq!(
            value,
            json!({ format!("\u{2026}15-{}", digest::of_bytes(b"a key with text")): 1 })
        );
    }

    #[test]
    fn a_name_that_holds_the_credential_does_not_stay() {
        let secrets = SecretScanner::new("sk-stub-abcdef").unwrap();
        let content = describe(
            br#"{"type":"sk-stub-abcdef","sk-stub-abcdef":0}"#,
            BOUNDS,
            Some(&secrets),
        );
        assert!(!format!("{content:?}").contains("sk-stub"), "{content:?}");
    }

    #[test]
    fn a_key_named_twice_is_found_at_any_depth_with_its_path() {
        let content = |body: &str| describe(body.as_bytes(), BOUNDS, None);
        assert_eq!(
            content(r#"{"a":1,"a":1}"#),
            Content::DuplicateKey {
                path: "/a".to_owned()
            }
        );
        assert_eq!(
            content(r#"{"a":[0,{"b":1,"\u0062":2}]}"#),
            Content::DuplicateKey {
                path: "/a/1/b".to_owned()
            }
        );
        assert!(matches!(
            content(r#"{"a":{"b":1},"c":{"b":1}}"#),
            Content::Json { .. }
        ));
    }

    #[test]
    fn depth_and_number_of_values_have_a_limit() {
        assert!(matches!(
            describe(b"[[[[1]]]]", BOUNDS, None),
            Content::Json { .. }
        ));
        assert_eq!(reason("[[[[[1]]]]]"), "nested deeper than 4");
        assert_eq!(
            reason(&format!("[{}1]", "1,".repeat(19))),
            "more than 20 values"
        );
        let deep = describe(
            "[".repeat(100_000).as_bytes(),
            Bounds {
                depth: 100_000,
                values: 200_000,
            },
            None,
        );
        assert!(matches!(deep, Content::Other { .. }));
    }

    #[test]
    fn what_is_not_one_json_value_is_named_without_quoting_it() {
        assert_eq!(describe(b"", BOUNDS, None), Content::Empty);
        assert_eq!(reason("secret"), "not JSON at line 1, column 1");
        assert!(reason(r#"{"a":1} x"#).starts_with("not JSON"));
        assert!(reason("{\"a\":\"\u{1}\"}").starts_with("not JSON"));
        assert!(reason("[1e999]").starts_with("not JSON"));
        assert!(matches!(
            describe(&[0xff], BOUNDS, None),
            Content::Other { .. }
        ));
        assert!(matches!(
            describe(b"[\"\xff\"]", BOUNDS, None),
            Content::Other { .. }
        ));
    }
}
