//! JSON report: one document of schema `runner.report/1`.
//!
//! Readers ignore unknown keys. Texts read back unchanged: each dangerous character is a `\u` escape, so that the
//! document is safe to print.

use std::io::{self, Write};

use model::report::Report;
use model::report::document::{self, Document};
use model::{escape, schema};
use schemars::Schema;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

use super::{RenderError, claims};

/// Renders the report as UTF-8 JSON, indented, with a line feed at the end.
pub fn render(report: &Report) -> Result<Vec<u8>, RenderError> {
    Ok(document(&Document::of(report, claims::not_proved(report)))?)
}

/// Writes any value in the form of [`render`].
///
/// # Errors
/// A value without a JSON form.
pub fn document(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let formatter = Escaping {
        pretty: PrettyFormatter::new(),
    };
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    value.serialize(&mut serializer)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Returns the schema of the documents that [`render`] writes.
pub fn schema() -> Schema {
    schema::of_document::<Document<'_>>(document::SCHEMA)
}

/// Pretty formatter that also escapes dangerous characters.
struct Escaping {
    pretty: PrettyFormatter<'static>,
}

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut before = None;
        let mut plain_from = 0;
        for (at, c) in fragment.char_indices() {
            if escape::is_dangerous(before, c) {
                writer.write_all(fragment.get(plain_from..at).unwrap_or_default().as_bytes())?;
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
                plain_from = at + c.len_utf8();
            }
            before = Some(c);
        }
        writer.write_all(fragment.get(plain_from..).unwrap_or_default().as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.pretty.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}
