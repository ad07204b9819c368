//! The API key, which no message contains.
//!
//! Knows no HTTP, records, or source of the key.

use std::fmt;

/// A key that is valid in a header: visible ASCII, not empty.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ApiKey(String);

impl ApiKey {
    /// Parses a key. Returns `None` if it is empty or not visible ASCII.
    pub(crate) fn parse(key: &str) -> Option<Self> {
        let visible = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        visible.then(|| Self(key.to_owned()))
    }

    /// Returns the key, for the header of the request only.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces each occurrence of the key in `text`.
    pub(crate) fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey([key])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_visible_ascii_and_not_empty() {
        assert!(ApiKey::parse("sk-test_1~").is_some());
        for malformed in ["", "a b", "a\n", "ä", "a\0"] {
            assert_eq!(ApiKey::parse(malformed), None, "{malformed:?}");
        }
    }

    #[test]
    fn a_key_never_shows_in_debug_output_or_redacted_text() {
        let key = ApiKey::parse("sk-1").unwrap();
        assert_eq!(format!("{key:?}"), "ApiKey([key])");
        assert_eq!(key.redact("bad key sk-1, sk-1!"), "bad key [key], [key]!");
    }
}
