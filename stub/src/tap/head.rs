//! Parser of one complete request head: its form in the journal, and the framing of its body.
//!
//! The rules are those of RFC 9112 without its leniencies, so that every other parser reads the head in the same
//! way. Error texts never quote the client. Knows no connections.

use std::collections::BTreeMap;

use httparse::{EMPTY_HEADER, Status};
use model::endpoint::Endpoint;
use model::journal::{Head, Host};
use model::secret::{Belongs, SecretScanner};
use model::text::printable;

use super::framing::Framing;
use super::redact::{bearer, header_value};

/// Largest number of header lines in a request; the HTTP server has the same limit.
const MAX_HEADERS: usize = 100;

/// A well-formed head.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) head: Head,
    pub(crate) framing: Framing,
    /// Number of bytes that the report does not show, such as extra white space around header values.
    pub(crate) surplus: u64,
    /// Places in which the credential was found but is not allowed.
    pub(crate) sightings: Vec<String>,
    /// The answer has no body, whatever its head says.
    pub(crate) bodiless: bool,
}

/// Reason for refusing a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeadError {
    #[error("a line of the head ends without a carriage return")]
    BareLineFeed,
    #[error("a control character in the head")]
    Control,
    #[error("the head does not follow the grammar: {0}")]
    Grammar(#[from] httparse::Error),
    #[error("the head ends elsewhere than at its empty line")]
    Border,
    #[error("Content-Length and Transfer-Encoding in one request")]
    TwoFramings,
    #[error("Content-Length is named twice")]
    TwoLengths,
    #[error("Content-Length is not a number")]
    Length,
    #[error("Transfer-Encoding is not `chunked`")]
    Coding,
    #[error("Transfer-Encoding in HTTP/1.0")]
    OldCoding,
    #[error("the head is longer than {0} bytes")]
    Long(usize),
    #[error("the heads of all requests are longer than {0} bytes together")]
    Sum(usize),
    #[error("more than {0} requests on one connection")]
    Many(u64),
}

/// Parses `raw`, which ends with the empty line.
pub(crate) fn read(
    raw: &[u8],
    credential: Option<&SecretScanner>,
    belongs: &Belongs,
    host: Host,
) -> Result<Parsed, HeadError> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let (Status::Complete(length), Some(method), Some(target), Some(minor)) = (
        request.parse(raw)?,
        request.method,
        request.path,
        request.version,
    ) else {
        return Err(HeadError::Border);
    };
    if length != raw.len() {
        return Err(HeadError::Border);
    }
    let framing = framing(request.headers, minor)?;
    let (path, query) = target
        .split_once('?')
        .map_or((target, None), |(path, query)| (path, Some(query)));
    let line = RequestLine {
        method,
        path,
        query,
    };

    let shown =
        |text: &str| credential.map_or_else(|| text.to_owned(), |secrets| secrets.redact(text));
    let head = Head::Request {
        method: shown(method),
        path: shown(&printable(path.as_bytes())),
        query: query.map(|query| shown(&printable(query.as_bytes()))),
        version: format!("HTTP/1.{minor}"),
        headers: request
            .headers
            .iter()
            .map(|header| {
                let value = header_value(header, credential, belongs);
                (shown(header.name), shown(&value))
            })
            .collect(),
    };
    let sightings = credential.map_or_else(Vec::new, |secrets| {
        sightings(secrets, line, request.headers, (belongs, host))
    });
    let surplus = surplus(raw, line, request.headers);
    Ok(Parsed {
        head,
        framing,
        surplus,
        sightings,
        bodiless: method == "HEAD",
    })
}

/// The request line.
#[derive(Clone, Copy)]
struct RequestLine<'a> {
    method: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

/// Returns the framing of the body. Refuses both framings together, two lengths, and codings other than
/// `chunked`.
fn framing(headers: &[httparse::Header<'_>], minor: u8) -> Result<Framing, HeadError> {
    let named = |name: &'static str| {
        headers
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
    };
    let mut lengths = named("content-length").map(|header| header.value);
    let mut codings = named("transfer-encoding").map(|header| header.value);
    match (lengths.next(), codings.next()) {
        (Some(_), Some(_)) => Err(HeadError::TwoFramings),
        (None, None) => Ok(Framing::Length(0)),
        (Some(_), None) if lengths.next().is_some() => Err(HeadError::TwoLengths),
        (Some(digits), None) => {
            let text = std::str::from_utf8(digits)
                .ok()
                .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            text.and_then(|text| text.parse().ok())
                .map(Framing::Length)
                .ok_or(HeadError::Length)
        }
        (None, Some(_)) if minor == 0 => Err(HeadError::OldCoding),
        (None, Some(coding))
            if coding.eq_ignore_ascii_case(b"chunked") && codings.next().is_none() =>
        {
            Ok(Framing::Chunked)
        }
        (None, Some(_)) => Err(HeadError::Coding),
    }
}

/// Returns the places of the credential, except alone in the first header of its kind in a request to its own host.
fn sightings(
    secrets: &SecretScanner,
    line: RequestLine<'_>,
    headers: &[httparse::Header<'_>],
    (belongs, host): (&Belongs, Host),
) -> Vec<String> {
    let mut places = Vec::new();
    let mut look = |bytes: &[u8], place: &dyn Fn() -> String| {
        if secrets.find(bytes).is_some() {
            places.push(place());
        }
    };
    look(line.method.as_bytes(), &|| "method".to_owned());
    look(line.path.as_bytes(), &|| "path".to_owned());
    look(line.query.unwrap_or_default().as_bytes(), &|| {
        "query".to_owned()
    });
    let is_permitted = host == Host::Stub
        && match belongs {
            Belongs::InHeaderOfMessage(_) => {
                line.method == "POST" && Endpoint::of(line.path) == Some(Endpoint::Messages)
            }
            Belongs::InAnyAuthHeader => true,
        };
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for header in headers {
        look(header.name.as_bytes(), &|| "header name".to_owned());
        let name = header.name.to_ascii_lowercase();
        let is_key = belongs.is_in(&name);
        let lines = seen.entry(name.clone()).or_default();
        *lines += 1;
        let value = match name.as_str() {
            "authorization" => bearer(header.value),
            _ => Some(header.value),
        };
        let is_alone = *lines == 1 && value.is_some_and(|value| secrets.is(value));
        if is_key && is_permitted && is_alone {
            continue;
        }
        look(header.value, &|| {
            secrets.redact(&match (is_key, is_permitted, *lines) {
                (true, false, _) => format!("header {name} of {} {}", line.method, line.path),
                (true, true, 2..) => format!("second header {name}"),
                _ => format!("header {name}"),
            })
        });
    }
    places
}

/// Counts the bytes of `raw` that could be absent or different without changing the meaning of the head. Counted
/// are white space around header values beyond one space before each, that space if its presence differs from the
/// first header's, and leading zeros of Content-Length.
fn surplus(raw: &[u8], line: RequestLine<'_>, headers: &[httparse::Header<'_>]) -> u64 {
    let target = line.path.len() + line.query.map_or(0, |query| query.len() + 1);
    let request_line = line.method.len() + target + "  HTTP/1.1\r\n".len();
    // Both slices lie in `raw`, so the difference of their addresses is the offset of the name.
    let has_space = |header: &httparse::Header<'_>| {
        let colon =
            (header.name.as_ptr().addr() + header.name.len()).saturating_sub(raw.as_ptr().addr());
        raw.get(colon + 1) == Some(&b' ')
    };
    let shown = headers
        .iter()
        .fold(request_line + "\r\n".len(), |shown, header| {
            let space = usize::from(has_space(header));
            shown + header.name.len() + ":\r\n".len() + space + header.value.len()
        });
    let style = headers.first().map(has_space);
    let others = headers
        .iter()
        .filter(|header| Some(has_space(header)) != style);
    let zeros = headers.iter().filter_map(|header| {
        let is_length = header.name.eq_ignore_ascii_case("content-length");
        let (_, before) = header.value.split_last().filter(|_| is_length)?;
        Some(before.iter().take_while(|byte| **byte == b'0').count())
    });
    // For an empty value after two spaces `shown` is too small, never too large.
    let white = raw.len().saturating_sub(shown);
    (white + others.count() + zeros.sum::<usize>()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-stub-0123456789";

    fn parse(raw: &str) -> Result<Parsed, HeadError> {
        let secrets = SecretScanner::new(KEY).unwrap();
        read(
            raw.as_bytes(),
            Some(&secrets),
            &Belongs::default(),
            Host::Stub,
        )
    }

    fn error(raw: &str) -> HeadError {
        parse(raw).unwrap_err()
    }

    #[test]
    fn names_keep_their_spelling_and_order_and_the_target_is_split_at_its_first_question_mark() {
        let parsed =
            parse("POST /v1/messages?a?b HTTP/1.1\r\nHost: x\r\nB-c:d\r\na:\te \r\n\r\n").unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            parsed.head,
            Head::Request {
                method: "POST".to_owned(),
                path: "/v1/messages".to_owned(),
                query: Some("a?b".to_owned()),
                version: "HTTP/1.1".to_owned(),
                headers: vec![pair("Host", "x"), pair("B-c", "d"), pair("a", "e")],
            }
        );
        // The tab and the space around `e`, and two headers whose space before the value differs from the first
        // header's.
        assert_eq!(parsed.surplus, 4);
        assert_eq!(parsed.framing, Framing::Length(0));
    }

    #[test]
    fn white_space_that_the_report_does_not_show_is_surplus() {
        let surplus = |raw: &str| parse(raw).unwrap().surplus;
        assert_eq!(surplus("GET / HTTP/1.0\r\na: b\r\n\r\n"), 0);
        assert_eq!(
            surplus("GET / HTTP/1.0\r\na:   b\t\t\r\nc: \r\nd: \r\n\r\n"),
            4
        );
        assert_eq!(surplus("GET / HTTP/1.0\r\na:  \t \r\n\r\n"), 3);
    }

    #[test]
    fn backslashes_of_the_target_are_doubled() {
        let parsed = parse("GET /a\\x41?b\\ HTTP/1.1\r\n\r\n").unwrap();
        let Head::Request { path, query, .. } = parsed.head else {
            panic!("a request");
        };
        assert_eq!(
            (path.as_str(), query.as_deref()),
            (r"/a\\x41", Some(r"b\\"))
        );
    }

    #[test]
    fn spelling_that_changes_in_a_head_is_surplus() {
        let surplus = |raw: &str| parse(raw).unwrap().surplus;
        assert_eq!(surplus("GET / HTTP/1.0\r\na:b\r\nc:d\r\n\r\n"), 0);
        assert_eq!(surplus("GET / HTTP/1.0\r\na: b\r\nc:d\r\ne: f\r\n\r\n"), 1);
        assert_eq!(surplus("GET / HTTP/1.0\r\na:b\r\nc: d\r\n\r\n"), 1);
    }

    #[test]
    fn leading_zeros_of_a_length_are_surplus() {
        let length = |digits: &str| {
            let raw = format!("POST / HTTP/1.1\r\nContent-Length: {digits}\r\n\r\n");
            let parsed = parse(&raw).unwrap();
            (parsed.framing, parsed.surplus)
        };
        assert_eq!(length("0"), (Framing::Length(0), 0));
        assert_eq!(length("42"), (Framing::Length(42), 0));
        assert_eq!(length("100"), (Framing::Length(100), 0));
        assert_eq!(length("00042"), (Framing::Length(42), 3));
        assert_eq!(length("00"), (Framing::Length(0), 1));
    }

    #[test]
    fn the_credential_belongs_in_the_key_of_the_message_and_nowhere_else() {
        let places = |raw: &str| parse(raw).unwrap().sightings;
        assert!(
            places(&format!(
                "POST /v1/messages?beta=true HTTP/1.1\r\nx-api-key: {KEY}\r\n\r\n"
            ))
            .is_empty()
        );
        assert_eq!(
            places(&format!("HEAD / HTTP/1.1\r\nx-api-key: {KEY}\r\n\r\n")),
            ["header x-api-key of HEAD /"]
        );
        for (path, belongs) in [
            ("/proxy/v1/messages", true),
            ("//v1/messages", false),
            ("/v1/messages/", false),
            ("/a/../v1/messages", false),
            ("http://127.0.0.1/v1/messages", false),
            ("/v1/messages/count_tokens", false),
        ] {
            let found = places(&format!("POST {path} HTTP/1.1\r\nx-api-key: {KEY}\r\n\r\n"));
            assert_eq!(found.is_empty(), belongs, "{path}");
        }
        assert_eq!(
            places(&format!(
                "POST /v1/messages HTTP/1.1\r\nx-api-key: {KEY}\r\nx-api-key: {KEY}\r\n\r\n"
            )),
            ["second header x-api-key"]
        );
        assert_eq!(
            places(&format!(
                "POST /{KEY}?k={KEY} HTTP/1.1\r\nUser-Agent: a {KEY}\r\n{KEY}: 1\r\n\r\n"
            )),
            ["path", "query", "header user-agent", "header name"]
        );
        assert_eq!(
            places(&format!(
                "POST /v1/messages HTTP/1.1\r\nauthorization: Bearer {KEY}\r\n\r\n"
            )),
            ["header authorization"]
        );
        let parsed = parse(&format!("GET /{KEY} HTTP/1.1\r\nq: {KEY}\r\n\r\n")).unwrap();
        assert!(!format!("{:?}", parsed.head).contains(KEY));
    }

    #[test]
    fn where_either_header_will_do_the_credential_belongs_alone_in_the_first_one_at_its_host() {
        let at = |host: Host, raw: &str| {
            let secrets = SecretScanner::new(KEY).unwrap();
            let parsed = read(
                raw.as_bytes(),
                Some(&secrets),
                &Belongs::InAnyAuthHeader,
                host,
            );
            parsed.unwrap().sightings
        };
        for line in ["POST /v1/messages", "GET /v1/models", "HEAD /"] {
            for header in [
                "X-Api-Key: ",
                "Authorization: Bearer ",
                "x-goog-api-key: ",
                "Api-Key: ",
                "authorization: bearer ",
            ] {
                let raw = format!("{line} HTTP/1.1\r\n{header}{KEY}\r\n\r\n");
                assert_eq!(at(Host::Stub, &raw), [""; 0], "{raw}");
                assert_eq!(at(Host::Elsewhere, &raw).len(), 1, "{raw}");
            }
        }
        for (headers, place) in [
            (
                format!("authorization: Basic {KEY}"),
                "header authorization",
            ),
            (
                format!("authorization: Bearer {KEY}x"),
                "header authorization",
            ),
            (
                format!("authorization: Bearer {KEY}\r\nauthorization: Bearer {KEY}"),
                "second header authorization",
            ),
            (
                format!("x-api-key: {KEY}\r\nx-api-key: {KEY}"),
                "second header x-api-key",
            ),
            (format!("user-agent: {KEY}"), "header user-agent"),
        ] {
            let raw = format!("POST /v1/messages HTTP/1.1\r\n{headers}\r\n\r\n");
            assert_eq!(at(Host::Stub, &raw), [place], "{raw}");
        }
    }

    #[test]
    fn a_framing_that_two_readers_could_take_in_two_ways_is_refused() {
        let with = |headers: &str| {
            parse(&format!("POST / HTTP/1.1\r\n{headers}\r\n")).map(|parsed| parsed.framing)
        };
        assert_eq!(with("Content-Length: 12\r\n").unwrap(), Framing::Length(12));
        assert_eq!(
            with("Transfer-Encoding: Chunked\r\n").unwrap(),
            Framing::Chunked
        );
        assert_eq!(
            with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n").unwrap_err(),
            HeadError::TwoFramings
        );
        assert_eq!(
            with("Content-Length: 1\r\ncontent-length: 1\r\n").unwrap_err(),
            HeadError::TwoLengths
        );
        for length in ["1, 1", "+1", "-1", "0x1", "1 1", "99999999999999999999", ""] {
            assert_eq!(
                with(&format!("Content-Length: {length}\r\n")).unwrap_err(),
                HeadError::Length,
                "{length}"
            );
        }
        for coding in [
            "gzip, chunked",
            "identity",
            "chunked, chunked",
            "xchunked",
            "",
        ] {
            assert_eq!(
                with(&format!("Transfer-Encoding: {coding}\r\n")).unwrap_err(),
                HeadError::Coding,
                "{coding}"
            );
        }
        assert_eq!(
            error("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            HeadError::OldCoding
        );
    }

    #[test]
    fn what_is_off_the_grammar_is_refused() {
        for raw in [
            "GET / HTTP/1.1\r\na: b\r\n folded\r\n\r\n",
            "GET / HTTP/1.1\r\na : b\r\n\r\n",
            "GET / HTTP/2.0\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "GET  / HTTP/1.1\r\n\r\n",
            "hello\r\n\r\n",
            "GET / HTTP/1.1\r\n: b\r\n\r\n",
        ] {
            assert!(matches!(error(raw), HeadError::Grammar(_)), "{raw}");
        }
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "a: b\r\n".repeat(MAX_HEADERS + 1)
        );
        assert_eq!(
            error(&many),
            HeadError::Grammar(httparse::Error::TooManyHeaders)
        );
    }
}
