//! Endpoints of the provider, known by the end of a path: the base URL of a client may have any prefix.
//!
//! The stub, the class of a request and the place of the credential use the same rule, so a request is served where it
//! is classified. A path that another server could read in two ways has no endpoint.

use crate::profile::MESSAGES;

/// Ends of the paths with a name.
const NAMED: [(&str, Endpoint); 3] = [
    ("/v1/messages/count_tokens", Endpoint::CountTokens),
    (MESSAGES, Endpoint::Messages),
    ("/v1/models", Endpoint::Models),
];

/// Percent-encoded characters that some servers decode before they split a path: `.`, `/` and `\`.
const ENCODED: [&str; 3] = ["%2e", "%2f", "%5c"];

/// An endpoint of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `/`
    Root,
    /// `/v1/messages`
    Messages,
    /// `/v1/messages/count_tokens`
    CountTokens,
    /// `/v1/models`
    Models,
}

impl Endpoint {
    /// Returns the endpoint of a path without its query, after any prefix of whole segments.
    pub fn of(path: &str) -> Option<Self> {
        if !is_plain(path) {
            return None;
        }
        let mut named = NAMED.into_iter();
        if let Some((_, endpoint)) = named.find(|(end, _)| path.ends_with(end)) {
            return Some(endpoint);
        }
        // `/v1/messages/` is a misspelt message request.
        let prefix = path.strip_suffix('/')?;
        Self::of(prefix).is_none().then_some(Self::Root)
    }
}

/// Checks for an absolute path of visible ASCII characters, without empty segments, dot segments and encoded
/// separators. Only the last segment may be empty.
fn is_plain(path: &str) -> bool {
    let Some(inside) = path.strip_prefix('/') else {
        return false;
    };
    let segments = inside.strip_suffix('/').unwrap_or(inside);
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..");
    let is_visible = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let lower = path.to_ascii_lowercase();
    (inside.is_empty() || segments.split('/').all(is_segment))
        && path.bytes().all(is_visible)
        && !ENCODED.iter().any(|encoded| lower.contains(encoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_is_known_after_any_prefix() {
        for (end, endpoint) in [
            ("/", Endpoint::Root),
            ("/v1/messages", Endpoint::Messages),
            ("/v1/messages/count_tokens", Endpoint::CountTokens),
            ("/v1/models", Endpoint::Models),
        ] {
            for prefix in [
                "",
                "/proxy",
                "/openai",
                "/v1",
                "/v1/messages",
                "/a/b.c/d-e_f~g:h@i",
                "/a%20b",
                "/{x}",
            ] {
                let path = format!("{prefix}{end}");
                let is_misspelt = path == "/v1/messages/";
                let expected = Some(endpoint).filter(|_| !is_misspelt);
                assert_eq!(Endpoint::of(&path), expected, "{path}");
            }
        }
    }

    #[test]
    fn path_of_two_readings_has_no_endpoint() {
        for path in [
            "",
            "*",
            "/messages",
            "/xv1/messages",
            "/V1/messages",
            "v1/messages",
            "//v1/messages",
            "/a//v1/messages",
            "/v1//messages",
            "/v1/messages/",
            "/v1/messages//",
            "/v1/messages/x",
            "/v1/models/",
            "/./v1/messages",
            "/a/../v1/messages",
            "/../v1/messages",
            "/v1/../v1/messages",
            "/v1%2Fmessages",
            "/a%2fb/v1/messages",
            "/%2e%2E/v1/messages",
            "/a%5cb/v1/messages",
            "/a\\b/v1/messages",
            "/a b/v1/messages",
            "/é/v1/messages",
            "http://127.0.0.1/v1/messages",
            "//",
            "/a//",
        ] {
            assert_eq!(Endpoint::of(path), None, "{path}");
        }
    }
}
