//! File form of the rules of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use model::case::Count;
use model::case::expect::{
    Auth, BodyField, BodyRules, CacheControl, HeaderRules, JsonKind, Order, ProfileRequest,
    Protocol, RequestRule, Requests,
};
use model::profile::template::{Piece, pieces};
use model::profile::{Names, TextPattern};
use schemars::JsonSchema;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::{CountFile, EXPECTED_TEXT, Tools, times};
use crate::case_file::not_empty;
use crate::error::Flaw;
use crate::placeholders::pattern;
use crate::profile_file::requests::{header_names, header_token, method, query, request_path};
use crate::schema::{HeaderName, Method, Name, Query, RequestPath, Sentence, Text};
use crate::values::{name, reject_repeated, sentence};

/// Maximum number of text blocks; a larger number is a typing error.
const MAX_BLOCKS: usize = 1_000;
/// Value of `auth` for requests without a credential.
const NO_CREDENTIAL: &str = "none";

/// Requests to the provider: any request that no rule matches is a finding.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectRequests")]
pub(super) struct RequestsFile {
    /// Order of the requests.
    order: Order,
    /// Rules; the first match by method and path counts.
    #[serde(default)]
    rule: Vec<RuleFile>,
}

/// Rule of one kind of requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RequestRule")]
struct RuleFile {
    /// Name, as in findings; each once.
    #[schemars(with = "Name")]
    name: Spanned<String>,
    /// Part of the profile that completes the rule: header names, queries, credential and beta families.
    profile: Option<ProfileRequest>,
    /// Protocol of a request for the turn; without this key, the request is beside it, as a preflight is.
    protocol: Option<Protocol>,
    /// Method.
    #[schemars(with = "Method")]
    method: Spanned<String>,
    /// Path without the query; placeholders as in paths of files.
    #[schemars(with = "RequestPath")]
    path: Spanned<String>,
    /// Number of such requests.
    count: CountFile,
    /// Accepted queries, without the question mark. A request without a query is always accepted.
    #[serde(default)]
    #[schemars(with = "Vec<Query>")]
    queries: Vec<Spanned<String>>,
    /// Header of the credential, or `none`; without this key, not judged.
    #[schemars(with = "Option<HeaderName>")]
    auth: Option<Spanned<String>>,
    /// Names of headers.
    #[serde(default)]
    headers: HeadersFile,
    /// User agent, with the placeholders of the profile's names and those of paths of files.
    #[schemars(with = "Option<Text>")]
    user_agent: Option<Spanned<String>>,
    /// Body; each key that is there is judged.
    #[serde(default)]
    body: BodyFile,
    /// Reason for the requests.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// Names of headers, in lower case.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectHeaders")]
struct HeadersFile {
    /// All names that a request may have; without this key, any.
    #[schemars(with = "Option<Vec<HeaderName>>", extend("uniqueItems" = true))]
    allowed: Option<Vec<Spanned<String>>>,
    /// Names that a request must have.
    #[serde(default)]
    #[schemars(with = "Vec<HeaderName>", extend("uniqueItems" = true))]
    required: Vec<Spanned<String>>,
    /// Names that a request must not have.
    #[serde(default)]
    #[schemars(with = "Vec<HeaderName>", extend("uniqueItems" = true))]
    forbidden: Vec<Spanned<String>>,
}

/// Body of a request.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectBody")]
struct BodyFile {
    /// Top-level fields and no others: a list of their names, or a table of names and JSON types.
    #[schemars(with = "Option<FieldsSchema>")]
    fields: Option<FieldsFile>,
    /// Number of text blocks of the one user message.
    #[schemars(with = "Option<usize>", range(max = MAX_BLOCKS))]
    user_blocks: Option<Spanned<usize>>,
    /// Number of text blocks of the system input.
    #[schemars(with = "Option<usize>", range(max = MAX_BLOCKS))]
    system_blocks: Option<Spanned<usize>>,
    /// Blocks with `cache_control`.
    cache_control: Option<CacheControlFile>,
    /// List of tools.
    tools: Option<Tools>,
    /// True if the body asks for a stream.
    #[serde(default)]
    stream: bool,
}

/// Top-level fields of a body.
#[derive(Debug)]
enum FieldsFile {
    Names(Vec<Spanned<String>>),
    Typed(BTreeMap<String, JsonKind>),
}

/// Schema of [`FieldsFile`].
#[derive(JsonSchema)]
#[schemars(rename = "ExpectFields", untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum FieldsSchema {
    /// Names, with any type.
    Names(#[schemars(extend("uniqueItems" = true))] Vec<String>),
    /// Names with their types.
    Typed(BTreeMap<String, JsonKind>),
}

impl<'de> Deserialize<'de> for FieldsFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = FieldsFile;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of names, or a table of names and types")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<FieldsFile, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element()? {
                    names.push(name);
                }
                Ok(FieldsFile::Names(names))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<FieldsFile, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((name, kind)) = table.next_entry()? {
                    fields.insert(name, kind);
                }
                Ok(FieldsFile::Typed(fields))
            }
        }

        deserializer.deserialize_any(Fields)
    }
}

/// Blocks of a body with `cache_control`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectCacheControl")]
struct CacheControlFile {
    /// Number of system blocks with the mark.
    #[schemars(with = "usize", range(max = MAX_BLOCKS))]
    system_count: Spanned<usize>,
    /// Blocks of the user message with the mark, counted from 1, and no others.
    #[schemars(with = "Vec<usize>", inner(range(min = 1, max = MAX_BLOCKS)), extend("uniqueItems" = true))]
    user: Vec<Spanned<usize>>,
}

/// Parses the rules, each name once.
pub(super) fn parsed(file: RequestsFile) -> Result<Requests, Flaw> {
    let mut seen = BTreeSet::new();
    let mut rules = Vec::new();
    for file in file.rule {
        reject_repeated(&mut seen, &file.name, "each rule once")?;
        rules.push(rule(file)?);
    }
    Ok(Requests {
        order: file.order,
        rules,
    })
}

fn rule(file: RuleFile) -> Result<RequestRule, Flaw> {
    let path = request_path(file.path)?;
    let queries = file.queries.into_iter().map(query);
    let headers = |names| header_names(names, Ok);
    Ok(RequestRule {
        name: name(file.name)?,
        profile: file.profile,
        protocol: file.protocol,
        method: method(file.method)?,
        path: pattern(&path, path.get_ref(), EXPECTED_TEXT)?,
        count: times(Some(file.count), Count::ANY)?,
        queries: queries.collect::<Result<_, _>>()?,
        auth: file.auth.map(auth).transpose()?.unwrap_or(Auth::Any),
        headers: HeaderRules {
            allowed: file.headers.allowed.map(headers).transpose()?,
            required: headers(file.headers.required)?,
            forbidden: headers(file.headers.forbidden)?,
        },
        user_agent: file.user_agent.map(user_agent).transpose()?,
        families: Vec::new(),
        beta_header: String::new(),
        body: body(file.body)?,
        reason: sentence(file.reason)?,
    })
}

fn auth(value: Spanned<String>) -> Result<Auth, Flaw> {
    if value.get_ref() == NO_CREDENTIAL {
        return Ok(Auth::None);
    }
    Ok(Auth::Header(header_token(value)?.into_inner()))
}

/// Checks a user agent. The names of the profile, which are filled in later, are words.
fn user_agent(value: Spanned<String>) -> Result<String, Flaw> {
    let value = Spanned::new(value.span(), not_empty(value)?);
    let filled = pieces(value.get_ref()).into_iter();
    let filled = filled.map(|piece| match piece {
        Piece::Placeholder(name) if Names::PLACEHOLDERS.contains(&name) => "name".to_owned(),
        Piece::Placeholder(name) => format!("{{{name}}}"),
        Piece::Text(text) => text.to_owned(),
    });
    let filled: String = filled.collect();
    pattern::<TextPattern>(&value, &filled, EXPECTED_TEXT)?;
    Ok(value.into_inner())
}

fn body(file: BodyFile) -> Result<BodyRules, Flaw> {
    let user_blocks = file.user_blocks.as_ref().map(blocks).transpose()?;
    let system_blocks = file.system_blocks.as_ref().map(blocks).transpose()?;
    let limits = [user_blocks, system_blocks].map(|blocks| blocks.unwrap_or(MAX_BLOCKS));
    let marks = file.cache_control.map(|marks| marked(&marks, limits));
    Ok(BodyRules {
        fields: file.fields.map(fields).transpose()?,
        user_blocks,
        system_blocks,
        cache_control: marks.transpose()?,
        no_tools: file.tools == Some(Tools::Empty),
        stream: file.stream,
    })
}

fn fields(file: FieldsFile) -> Result<Vec<BodyField>, Flaw> {
    let typed = |(name, kind)| BodyField {
        name,
        kind: Some(kind),
    };
    let mut seen = BTreeSet::new();
    let named = |name: Spanned<String>| {
        reject_repeated(&mut seen, &name, "each field once")?;
        let name = name.into_inner();
        Ok(BodyField { name, kind: None })
    };
    match file {
        FieldsFile::Names(names) => names.into_iter().map(named).collect(),
        FieldsFile::Typed(fields) => Ok(fields.into_iter().map(typed).collect()),
    }
}

fn marked(marks: &CacheControlFile, [user, system]: [usize; 2]) -> Result<CacheControl, Flaw> {
    let hint = "the system input has no more blocks";
    let system_count = between(&marks.system_count, 0..system + 1, hint)?;
    let mut numbers = Vec::new();
    for block in &marks.user {
        let number = between(block, 1..user + 1, "user blocks are counted from 1")?;
        if numbers.contains(&number) {
            return Err(Flaw::new(
                block.span(),
                "each block once",
                format!("{number} a second time"),
                "remove one of the two",
            ));
        }
        numbers.push(number);
    }
    Ok(CacheControl {
        system_count,
        user: numbers,
    })
}

fn blocks(value: &Spanned<usize>) -> Result<usize, Flaw> {
    between(value, 0..MAX_BLOCKS + 1, "count the text blocks")
}

fn between(value: &Spanned<usize>, range: Range<usize>, hint: &str) -> Result<usize, Flaw> {
    let number = *value.get_ref();
    if range.contains(&number) {
        return Ok(number);
    }
    let expected = format!(
        "a number from {} to {}",
        range.start,
        range.end.saturating_sub(1)
    );
    Err(Flaw::new(value.span(), expected, number, hint))
}
