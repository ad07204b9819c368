//! Bytes as text, and text of a bounded length.

use std::fmt::Write as _;

/// The bytes as text; what is no UTF-8 as `\xNN`, and a backslash as `\\`, so that no two spell the same.
pub(crate) fn printable(bytes: &[u8]) -> String {
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

/// The text, or its beginning of `most` characters and a sign that there is more.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
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
}
