//! The API key: where it may be read, and how it stays out of every message.
//!
//! Must not know: HTTP, records, where the key came from.

use std::fmt;

/// A key that can be sent in a header: visible ASCII, not empty.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ApiKey(String);

impl ApiKey {
    /// The key, unless it is empty or could not stand in a header as it is.
    pub(crate) fn parse(key: &str) -> Option<Self> {
        let visible = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        visible.then(|| Self(key.to_owned()))
    }

    /// The key as it is sent. For the request's header only.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with each occurrence of the key replaced.
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
