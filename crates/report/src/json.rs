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
    let mut writer = Escaping {
        out: Vec::new(),
        before: None,
    };
    serde_json::to_writer_pretty(&mut writer, value)?;
    writer.out.push(b'\n');
    Ok(writer.out)
}

/// Returns the schema of the documents that [`render`] writes.
pub fn schema() -> Schema {
    schema::of_document::<Document<'_>>(document::SCHEMA)
}

/// Writer of JSON that replaces each dangerous character of a text by its `\u` escape. Line feeds are the layout's: those
/// of a text are escaped already.
struct Escaping {
    out: Vec<u8>,
    before: Option<char>,
}

impl Write for Escaping {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        // serde_json writes whole characters.
        let piece = str::from_utf8(piece).map_err(io::Error::other)?;
        for c in piece.chars() {
            if c != '\n' && escape::is_dangerous(self.before, c) {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04x}")?;
                }
            } else {
                self.out
                    .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            self.before = Some(c);
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
