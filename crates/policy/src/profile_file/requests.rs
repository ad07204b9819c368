//! Requests of a client: headers, queries and side requests.

use std::collections::BTreeSet;

use model::profile::{BetaFamily, Headers, KeyPath, MESSAGES, Names, SideRequest};
use model::quote::quoted;
use toml::Spanned;

use super::{HeadersFile, SideRequestFile};
use crate::error::Flaw;
use crate::placeholders::fill;
use crate::values::{name, reject_repeated, sentence};

/// Header of the credential, if the profile has none.
const DEFAULT_CREDENTIAL: &str = "x-api-key";

/// Parses header names and the families of the beta header.
pub(super) fn headers(file: HeadersFile, names: &Names) -> Result<Headers, Flaw> {
    let filled = |value| fill(names, value, &[]);
    let mut seen = BTreeSet::new();
    let mut beta_families = Vec::new();
    for family in file.beta_families {
        reject_repeated(&mut seen, &family.family, "each family once")?;
        let prefix = filled(family.prefix)?;
        beta_families.push(BetaFamily {
            family: sentence(family.family)?,
            prefix: name(prefix)?,
        });
    }
    Ok(Headers {
        message: header_names(file.message, filled)?,
        preflight: header_names(file.preflight, filled)?,
        credential: match file.credential {
            None => DEFAULT_CREDENTIAL.to_owned(),
            Some(value) => header_token(filled(value)?)?.into_inner(),
        },
        beta_families,
    })
}

/// Parses header names, each once. `filled` fills in the names of the profile.
pub(crate) fn header_names(
    file: Vec<Spanned<String>>,
    filled: impl Fn(Spanned<String>) -> Result<Spanned<String>, Flaw>,
) -> Result<Vec<String>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for value in file {
        let header = header_token(filled(value)?)?;
        reject_repeated(&mut seen, &header, "each header once")?;
        parsed.push(header.into_inner());
    }
    Ok(parsed)
}

/// Parses a header name: a token (RFC 9110, section 5.6.2) in lower case, because names are compared in lower case.
pub(crate) fn header_token(header: Spanned<String>) -> Result<Spanned<String>, Flaw> {
    let fits =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "!#$%&'*+-.^_`|~".contains(c);
    if header.get_ref().is_empty() || !header.get_ref().chars().all(fits) {
        let hint = "write the name in lower case, without a colon or value";
        return Err(Flaw::new(
            header.span(),
            "a header name",
            quoted(header.get_ref()),
            hint,
        ));
    }
    Ok(header)
}

/// Parses queries, without the question mark.
pub(super) fn queries(file: Vec<Spanned<String>>) -> Result<Vec<String>, Flaw> {
    file.into_iter().map(query).collect()
}

/// Parses a query, without the question mark.
pub(crate) fn query(value: Spanned<String>) -> Result<String, Flaw> {
    let fits = |c: char| c.is_ascii_graphic() && c != '#';
    let text = value.get_ref();
    if text.is_empty() || text.starts_with('?') || !text.chars().all(fits) {
        let hint = "write what follows the question mark, as in \"beta=true\"";
        return Err(Flaw::new(value.span(), "a query", quoted(text), hint));
    }
    Ok(value.into_inner())
}

/// Parses side requests, each name once.
pub(super) fn side_requests(
    file: Vec<SideRequestFile>,
    names: &Names,
) -> Result<Vec<SideRequest>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for request in file {
        reject_repeated(&mut seen, &request.name, "each side request once")?;
        let path = request_path(fill(names, request.path, &[])?)?;
        let with = keys(&request.with, &[])?;
        let without = keys(&request.without, &with)?;
        if path.get_ref() == MESSAGES && with.is_empty() && without.is_empty() {
            let hint = "the turn is a POST there as well: say which keys tell them apart";
            return Err(Flaw::new(
                path.span(),
                "`with` or `without` beside it",
                "neither",
                hint,
            ));
        }
        parsed.push(SideRequest {
            name: sentence(request.name)?,
            method: method(request.method)?,
            path: path.into_inner(),
            with,
            without,
            expected: request.expected,
            reason: sentence(request.reason)?,
        });
    }
    Ok(parsed)
}

/// Parses keys of the body that are not among `others`.
fn keys(file: &[Spanned<String>], others: &[KeyPath]) -> Result<Vec<KeyPath>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for value in file {
        reject_repeated(&mut seen, value, "each key once")?;
        let found = quoted(value.get_ref());
        let key: KeyPath = value.get_ref().parse().map_err(|error| {
            let found = format!("{found} ({error})");
            let hint = "write it as tools, or as output_config.format for a key inside another";
            Flaw::new(value.span(), "a key of the body", found, hint)
        })?;
        if others.contains(&key) {
            let found = format!("{found} in both");
            let hint = "a body cannot have a key and lack it";
            return Err(Flaw::new(
                value.span(),
                "other keys than `with` has",
                found,
                hint,
            ));
        }
        parsed.push(key);
    }
    Ok(parsed)
}

/// Parses the method of a request.
pub(crate) fn method(value: Spanned<String>) -> Result<String, Flaw> {
    let text = value.get_ref();
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_uppercase()) {
        let hint = "write it in capital letters, as in \"POST\"";
        return Err(Flaw::new(
            value.span(),
            "a request method",
            quoted(text),
            hint,
        ));
    }
    Ok(value.into_inner())
}

/// Parses the path of a request, without the query.
pub(crate) fn request_path(value: Spanned<String>) -> Result<Spanned<String>, Flaw> {
    let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#');
    let text = value.get_ref();
    if !text.starts_with('/') || !text.chars().all(fits) {
        let hint = "write it as it stands in the request, without the query";
        return Err(Flaw::new(
            value.span(),
            "a request's path",
            quoted(text),
            hint,
        ));
    }
    Ok(value)
}
