//! Types of values that several schemas share, so that each schema defines a value once.
//!
//! A wire field that is a string for serde names its type with `#[schemars(with = "Sha256")]`.

use schemars::{Schema, json_schema};

/// Defines an empty type for one kind of string; its doc comment is the description in the schema.
#[macro_export]
macro_rules! value {
    ($($(#[doc = $doc:literal])+ $name:ident => { $($keywords:tt)* })+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub enum $name {}

        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                let keywords = ::schemars::json_schema!({ $($keywords)* });
                $crate::schema::values::described(concat!($($doc),+), keywords)
            }
        }
    )+};
}

pub use value;

value! {
    /// A SHA-256, in lower-case hexadecimal digits.
    Sha256 => { "type": "string", "pattern": "^[0-9a-f]{64}$" }

    /// A date and time of RFC 3339, in UTC.
    Timestamp => { "type": "string", "format": "date-time" }

    /// The permission bits of a file, four octal digits.
    FileMode => { "type": "string", "pattern": "^[0-7]{4}$" }
}

/// Returns the schema of a string that is one of these words.
pub fn one_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

/// Adds the text of a doc comment as the description.
pub fn described(comment: &str, mut schema: Schema) -> Schema {
    schema.insert("description".into(), comment.trim().into());
    schema
}
