//! Header values in the journal: replaces the values of credential headers.
//!
//! The run's own credential and any other value get different replacements. With one replacement for all values, a
//! client could hide arbitrary text in a credential header.

use model::digest;
use model::journal::REDACTED;
use model::secret::{AUTH_HEADERS, Belongs, SecretScanner};
use model::text::printable;

/// Headers whose values are never kept, in addition to the headers in which providers accept a credential.
const HEADERS: [&str; 2] = ["proxy-authorization", "cookie"];

/// Returns the text of a header value, or its replacement in a credential header. The replacement is [`REDACTED`]
/// for exactly the run's credential, `Bearer <redacted>` for the credential after that scheme, otherwise length
/// and digest. Empty values are kept.
pub(super) fn header_value(
    header: &httparse::Header<'_>,
    credential: Option<&SecretScanner>,
    belongs: &Belongs,
) -> String {
    let name = header.name.to_ascii_lowercase();
    let name = name.as_str();
    let is_credential_header =
        AUTH_HEADERS.contains(&name) || HEADERS.contains(&name) || belongs.is_in(name);
    let is_kept = header.value.is_empty() || !is_credential_header;
    if is_kept {
        return printable(header.value);
    }
    let is_credential = |value: &[u8]| credential.is_some_and(|secrets| secrets.is(value));
    if is_credential(header.value) {
        return REDACTED.to_owned();
    }
    if let Some(key) = bearer(header.value).filter(|key| is_credential(key)) {
        let scheme = &header.value[..header.value.len() - key.len()];
        return format!("{}{REDACTED}", printable(scheme));
    }
    let bytes = header.value.len();
    format!("<{bytes} bytes, sha256 {}>", digest::of_bytes(header.value))
}

/// Returns the token after `Bearer` (RFC 6750, section 2.1). Schemes are case-insensitive.
pub(super) fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-stub-0123456789";

    fn kept(name: &str, value: &[u8]) -> String {
        let secrets = SecretScanner::new(KEY).unwrap();
        let belongs = Belongs::InHeaderOfMessage("x-own-key".to_owned());
        header_value(&httparse::Header { name, value }, Some(&secrets), &belongs)
    }

    fn by_digest(value: &[u8]) -> String {
        format!(
            "<{} bytes, sha256 {}>",
            value.len(),
            digest::of_bytes(value)
        )
    }

    #[test]
    fn the_credential_alone_is_redacted() {
        for name in [
            "X-Api-Key",
            "authorization",
            "cookie",
            "Proxy-Authorization",
            "x-goog-api-key",
            "Api-Key",
            "X-Own-Key",
        ] {
            assert_eq!(kept(name, KEY.as_bytes()), "<redacted>");
        }
        let bearer = format!("bEARER {KEY}");
        assert_eq!(
            kept("Authorization", bearer.as_bytes()),
            "bEARER <redacted>"
        );
    }

    #[test]
    fn another_value_is_kept_by_length_and_digest() {
        let longer = [KEY.as_bytes(), b"x"].concat();
        let twice = format!("{KEY}, {KEY}");
        let spaced = format!("Bearer  {KEY}");
        for value in [
            &b"another"[..],
            b"<redacted>",
            b"Bearer <redacted>",
            b"\xff",
            &longer,
            &longer[1..],
            twice.as_bytes(),
            spaced.as_bytes(),
        ] {
            assert_eq!(kept("x-api-key", value), by_digest(value));
        }
        let header = httparse::Header {
            name: "x-api-key",
            value: KEY.as_bytes(),
        };
        assert_eq!(
            header_value(&header, None, &Belongs::default()),
            by_digest(KEY.as_bytes())
        );
    }

    #[test]
    fn an_empty_value_and_other_headers_are_kept_as_text() {
        assert_eq!(kept("authorization", b""), "");
        assert_eq!(kept("other", b"\xff\xe9"), "\\xff\\xe9");
    }
}
