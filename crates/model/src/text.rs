//! Conversion of bytes to text, and text of bounded length.

use std::fmt::Write as _;

use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Characters that draw nothing although no Unicode property says so: the empty braille cell, a musical note without a
/// head, and the filler of Khitan.
const BLANK: [char; 3] = ['\u{2800}', '\u{1d159}', '\u{16fe4}'];

/// Converts bytes to text: a byte that is not UTF-8 is `\xNN`, and a backslash is `\\`, so that different bytes give
/// different texts.
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\\"));
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Returns true for a character that draws nothing, changes the text direction, or looks like a space but is not one.
pub fn is_invisible(c: char) -> bool {
    if c.is_ascii() {
        return c != ' ' && c.is_ascii_whitespace();
    }
    CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || CodePointMapData::<GeneralCategory>::new().get(c) == GeneralCategory::Format
        || BLANK.contains(&c)
        || (c != ' ' && c.is_whitespace())
}

/// Returns the text, or its first `max` characters followed by `…`.
pub fn truncated(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Groups the digits by thousands: `1,204`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a count: `1 request`, `12,345 requests`.
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    match number.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        more => format!("{} {noun}s", grouped(more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_the_text_of_their_escapes_differ() {
        assert_eq!(printable(b"a\xffb"), r"a\xffb");
        assert_eq!(printable(br"a\xffb"), r"a\\xffb");
        assert_eq!(printable(b"\\\xff"), r"\\\xff");
        assert_eq!(printable("grün \u{1b}".as_bytes()), "grün \u{1b}");
    }

    #[test]
    fn characters_without_a_glyph_are_invisible() {
        let blanks = "\u{2800}\u{3164}\u{115f}\u{1160}\u{ffa0}\u{17b4}\u{17b5}\u{1d159}\u{16fe4}";
        let selectors = "\u{fe0f}\u{180b}\u{e0100}\u{e0041}\u{e0fff}\u{34f}";
        let formats = "\u{ad}\u{200b}\u{202e}\u{2066}\u{feff}\u{600}\u{13430}\u{1bca0}\u{fff9}";
        let spaces = "\u{a0}\u{3000}\u{2028}\u{1680}";
        for c in [blanks, selectors, formats, spaces].concat().chars() {
            assert!(is_invisible(c), "{c:?}");
        }
        let seen = "a Zé日本語 grün \u{e1}\u{2801}\u{1f600}-_.~";
        assert!(!seen.contains(is_invisible));
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let shown = [0, 999, 1_204, 1_000_000].map(grouped);
        assert_eq!(shown, ["0", "999", "1,204", "1,000,000"]);
        let counts = [0_usize, 1, 12_345].map(|number| count(number, "byte"));
        assert_eq!(counts, ["0 bytes", "1 byte", "12,345 bytes"]);
        assert_eq!(count(u64::MAX, "byte"), "18,446,744,073,709,551,615 bytes");
    }
}
