//! Values of a policy, parsed from a file or embedded by the build script, and their deserialiser.
//!
//! Both kinds share the deserialiser, because one of its own for each would double the code of every file form.

use std::fmt::{self, Display};
use std::ops::Range;
use std::{array, iter, slice};

use serde::de::value::SeqDeserializer;
use serde::de::{self, DeserializeSeed, IntoDeserializer, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_spanned::de::is_spanned;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use toml::map;

/// Value of a built-in policy.
#[derive(Debug)]
pub(super) enum Value {
    Text(&'static str),
    Integer(i64),
    Boolean(bool),
    List(&'static [Self]),
    Table(&'static [(&'static str, Self)]),
}

impl Value {
    /// Returns the text of a key, if the value is a table with such a key.
    pub(super) fn text(&self, name: &str) -> Option<&'static str> {
        let Self::Table(entries) = self else {
            return None;
        };
        let (_, value) = entries.iter().find(|(key, _)| *key == name)?;
        let Self::Text(text) = value else {
            return None;
        };
        Some(text)
    }
}

/// Value or key, which deserialises. An embedded one has no position.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node<'t> {
    Parsed(&'t Spanned<DeValue<'t>>),
    ParsedKey(&'t Spanned<DeString<'t>>),
    Embedded(&'t Value),
    EmbeddedKey(&'t str),
    /// Begin or end of the range of another value.
    Offset(usize),
}

/// Failure to deserialise a value.
#[derive(Debug)]
pub(super) struct ValueError {
    pub(super) message: String,
    /// Range of the innermost value or key at fault.
    pub(super) span: Option<Range<usize>>,
}

/// Content of a [`Node`], without its position.
enum Content<'t> {
    Text(&'t str),
    Integer(i64),
    Offset(usize),
    /// Integer that only a wider type holds.
    Wide(i128),
    Float(f64),
    Boolean(bool),
    Date,
    List(Items<'t>),
    Table(Entries<'t>),
}

enum Items<'t> {
    Parsed(slice::Iter<'t, Spanned<DeValue<'t>>>),
    Embedded(slice::Iter<'t, Value>),
}

enum Entries<'t> {
    Parsed(map::Iter<'t, Spanned<DeString<'t>>, Spanned<DeValue<'t>>>),
    Embedded(slice::Iter<'t, (&'static str, Value)>),
    /// Fields of a [`Spanned`]: begin, end, value.
    Spanned(iter::Zip<slice::Iter<'static, &'static str>, array::IntoIter<Node<'t>, 3>>),
}

/// Entries of a table while they are deserialised.
struct Table<'t> {
    entries: Entries<'t>,
    /// Value of the last key.
    value: Option<Node<'t>>,
}

impl<'t> Node<'t> {
    fn span(self) -> Range<usize> {
        match self {
            Self::Parsed(value) => value.span(),
            Self::ParsedKey(key) => key.span(),
            Self::Embedded(_) | Self::EmbeddedKey(_) | Self::Offset(_) => 0..0,
        }
    }

    fn content(self) -> Result<Content<'t>, ValueError> {
        Ok(match self {
            Self::Parsed(value) => return parsed(value.get_ref()),
            Self::ParsedKey(key) => Content::Text(key.get_ref()),
            Self::EmbeddedKey(key) => Content::Text(key),
            Self::Offset(offset) => Content::Offset(offset),
            Self::Embedded(value) => match value {
                Value::Text(text) => Content::Text(text),
                Value::Integer(number) => Content::Integer(*number),
                Value::Boolean(value) => Content::Boolean(*value),
                Value::List(items) => Content::List(Items::Embedded(items.iter())),
                Value::Table(entries) => Content::Table(Entries::Embedded(entries.iter())),
            },
        })
    }

    /// Sets the position of an error that has none.
    fn place<T>(self, result: Result<T, ValueError>) -> Result<T, ValueError> {
        result.map_err(|mut error| {
            error.span.get_or_insert_with(|| self.span());
            error
        })
    }
}

fn parsed<'t>(value: &'t DeValue<'t>) -> Result<Content<'t>, ValueError> {
    Ok(match value {
        DeValue::String(text) => Content::Text(text),
        DeValue::Integer(number) => {
            let number = i128::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| de::Error::custom("integer number overflowed"))?;
            i64::try_from(number).map_or(Content::Wide(number), Content::Integer)
        }
        DeValue::Float(number) => {
            let number = number.as_str().parse().map_err(de::Error::custom)?;
            Content::Float(number)
        }
        DeValue::Boolean(value) => Content::Boolean(*value),
        DeValue::Datetime(_) => Content::Date,
        DeValue::Array(items) => Content::List(Items::Parsed(items.iter())),
        DeValue::Table(table) => Content::Table(Entries::Parsed(DeTable::iter(table))),
    })
}

impl<'t> Iterator for Items<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        match self {
            Self::Parsed(items) => items.next().map(Node::Parsed),
            Self::Embedded(items) => items.next().map(Node::Embedded),
        }
    }
}

impl<'t> Iterator for Entries<'t> {
    type Item = (Node<'t>, Node<'t>);

    fn next(&mut self) -> Option<(Node<'t>, Node<'t>)> {
        match self {
            Self::Parsed(entries) => {
                let (key, value) = entries.next()?;
                Some((Node::ParsedKey(key), Node::Parsed(value)))
            }
            Self::Embedded(entries) => {
                let (key, value) = entries.next()?;
                Some((Node::EmbeddedKey(key), Node::Embedded(value)))
            }
            Self::Spanned(fields) => {
                let (key, value) = fields.next()?;
                Some((Node::EmbeddedKey(key), value))
            }
        }
    }
}

impl<'de> MapAccess<'de> for Table<'de> {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ValueError> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        seed.deserialize(key).map(Some)
    }

    // A form that is converted after its keys were read has its errors at its table, and not at the whole document.
    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ValueError> {
        let missing = || de::Error::custom("a value was asked for before its key");
        let value = self.value.take().ok_or_else(missing)?;
        value.place(seed.deserialize(value))
    }
}

impl Display for ValueError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for ValueError {}

impl de::Error for ValueError {
    fn custom<T: Display>(message: T) -> Self {
        Self {
            message: message.to_string(),
            span: None,
        }
    }
}

impl<'t> IntoDeserializer<'t, ValueError> for Node<'t> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.place(self.content().and_then(|content| match content {
            Content::Text(text) => visitor.visit_borrowed_str(text),
            Content::Integer(number) => visitor.visit_i64(number),
            Content::Offset(offset) => visitor.visit_u64(offset as u64),
            Content::Wide(number) => match u64::try_from(number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i128(number),
            },
            Content::Float(number) => visitor.visit_f64(number),
            Content::Boolean(value) => visitor.visit_bool(value),
            Content::Date => Err(de::Error::invalid_type(Unexpected::Other("date"), &visitor)),
            Content::List(items) => visitor.visit_seq(SeqDeserializer::new(items)),
            Content::Table(entries) => visitor.visit_map(Table {
                entries,
                value: None,
            }),
        }))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        if is_spanned(name) {
            let Range { start, end } = self.span();
            let values = [Self::Offset(start), Self::Offset(end), self];
            // The same type as of a table, because each type instantiates the visitor of every form.
            return visitor.visit_map(Table {
                entries: Entries::Spanned(iter::zip(fields, values)),
                value: None,
            });
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.place(visitor.visit_some(self))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        self.place(visitor.visit_newtype_struct(self))
    }

    /// Deserialises a word. No key of a policy is an enum with values that serde tags from outside.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let word = String::deserialize(self);
        self.place(word.and_then(|word| visitor.visit_enum(word.into_deserializer())))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}
