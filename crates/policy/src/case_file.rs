//! File form of a case, parsed into [`Case`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use model::case::{
    BodyField, CacheControl, Case, Expectations, Invocation, JsonKind, Origin, Preflight,
    SandboxRules, Switch, Tier,
};
use model::quote::quoted;
use scenario::Scenario;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::error::Flaw;
use super::limits::LimitsFile;
use super::schema::{Name, Sentence, Text};
use super::values::{PathRuleFile, name, one_of, path_rules, reject_repeated, sentence, word};

/// Maximum number of text blocks; a larger number is a typing error.
const MAX_BLOCKS: usize = 1_000;

/// Case of a run: the request to the client, the answers of the provider stub, the permissions of the sandbox, and the
/// expectations. Keys without a meaningful default are required; unknown keys are errors.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Case file of runner")]
pub(super) struct CaseFile {
    /// Schema of this file.
    #[serde(rename = "schema")]
    #[schemars(with = "String")]
    _schema: IgnoredAny,
    /// Short name, as in reports: `case-b`.
    #[schemars(with = "Name")]
    name: Spanned<String>,
    /// Another case, which this one copies: settings of a profile for that case apply to this one too.
    #[schemars(with = "Option<Name>")]
    like: Option<Spanned<String>>,
    /// Summary, one line.
    #[schemars(with = "Sentence")]
    summary: Spanned<String>,
    /// Request to the client, in terms of every client; the profile maps them to options.
    invocation: InvocationFile,
    /// Answer of the provider stub to the message request.
    stub: Scenario,
    /// Permissions of the sandbox.
    sandbox: SandboxFile,
    /// Expectations.
    expect: ExpectFile,
}

/// Request to the client.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Invocation")]
struct InvocationFile {
    /// Prompt of the user.
    #[schemars(with = "Text")]
    prompt: Spanned<String>,
    /// System prompt in place of the client's own.
    #[schemars(with = "Option<Text>")]
    system_prompt: Option<Spanned<String>>,
    /// Model to request; without this key, the client's own default.
    #[schemars(with = "Option<Text>")]
    model: Option<Spanned<String>>,
    /// Switches without a value, each once.
    #[schemars(with = "Vec<Switch>", extend("uniqueItems" = true))]
    switches: Vec<Spanned<String>>,
}

/// Permissions of the sandbox.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sandbox")]
pub(super) struct SandboxFile {
    /// Kinds of isolation in which a verdict of this case is meaningful, strongest first.
    #[schemars(with = "Vec<Tier>", length(min = 1), extend("uniqueItems" = true))]
    tiers: Spanned<Vec<Spanned<String>>>,
    /// Limits of a run.
    limits: LimitsFile,
    /// Further paths of the host to show, read-only. The profile has the paths that one client needs to start.
    #[serde(default)]
    paths: Vec<PathRuleFile>,
}

/// Expectations of the case.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Expect")]
struct ExpectFile {
    /// Expectations of the requests.
    requests: ExpectRequests,
    /// Expectations of the body of the message request.
    body: ExpectBody,
    /// Expectations of the records on standard output.
    records: ExpectRecords,
    /// Expectations of the client's other attempts; without this table, the ledger may have limits.
    outbound: Option<ExpectOutbound>,
}

/// Expectations of the requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExpectRequests {
    /// Permission for `HEAD /` before the message request.
    #[schemars(with = "Preflight")]
    preflight: Spanned<String>,
}

/// Expectations of the body of the message request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExpectBody {
    /// Number of text blocks of the one user message.
    #[schemars(with = "usize", range(max = MAX_BLOCKS))]
    user_blocks: Spanned<usize>,
    /// Number of text blocks of the system input.
    #[schemars(with = "usize", range(max = MAX_BLOCKS))]
    system_blocks: Spanned<usize>,
    /// Blocks with `cache_control`; without this table, no check is made.
    cache_control: Option<ExpectCacheControl>,
    /// Top-level fields with their JSON types, and no others.
    #[schemars(with = "BTreeMap<String, JsonKind>", extend("minProperties" = 1))]
    fields: Spanned<BTreeMap<String, Spanned<String>>>,
}

/// Blocks of the message request with `cache_control`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExpectCacheControl {
    /// Number of system blocks with the mark.
    #[schemars(with = "usize", range(max = MAX_BLOCKS))]
    system_count: Spanned<usize>,
    /// Blocks of the user message with the mark, counted from 1, and no others.
    #[schemars(with = "Vec<usize>", inner(range(min = 1, max = MAX_BLOCKS)), extend("uniqueItems" = true))]
    user: Vec<Spanned<usize>>,
}

/// Expectations of the records on standard output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExpectRecords {
    /// True if each provider event has a record. The value must agree with the switch `partial-messages`.
    #[schemars(with = "bool")]
    partial_messages: Spanned<bool>,
}

/// Expectations of the client's attempts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExpectOutbound {
    /// True if the run is errored when a filter outside of the sandbox hides a class of attempts from the ledger.
    complete_ledger: bool,
}

impl CaseFile {
    /// Parses the whole file. Returns the first fault on error.
    pub(super) fn into_case(self, origin: Origin) -> Result<Case, Flaw> {
        let invocation = Invocation::try_from(self.invocation)?;
        let records = self.expect.records.partial_messages;
        let outbound = self.expect.outbound;
        let partial_messages = check_agreement(&records, &invocation.switches)?;
        Ok(Case {
            name: name(self.name)?,
            like: self.like.map(name).transpose()?,
            summary: sentence(self.summary)?,
            origin,
            invocation,
            stub: self.stub,
            sandbox: SandboxRules::try_from(self.sandbox)?,
            expect: Expectations {
                complete_ledger: outbound.is_some_and(|outbound| outbound.complete_ledger),
                ..expectations(self.expect.requests, self.expect.body, partial_messages)?
            },
        })
    }
}

impl TryFrom<InvocationFile> for Invocation {
    type Error = Flaw;

    fn try_from(file: InvocationFile) -> Result<Self, Flaw> {
        let mut seen = BTreeSet::new();
        let mut switches = Vec::new();
        for switch in &file.switches {
            reject_repeated(&mut seen, switch, "each switch once")?;
            switches.push(one_of(switch, &Switch::ALL, Switch::word)?);
        }
        Ok(Self {
            prompt: not_empty(file.prompt)?,
            system_prompt: file.system_prompt.map(not_empty).transpose()?,
            model: file.model.map(not_empty).transpose()?,
            switches,
        })
    }
}

impl TryFrom<SandboxFile> for SandboxRules {
    type Error = Flaw;

    fn try_from(file: SandboxFile) -> Result<Self, Flaw> {
        Ok(Self {
            tiers: tiers(&file.tiers)?,
            limits: file.limits.try_into()?,
            paths: path_rules(file.paths, Ok)?,
        })
    }
}

fn tiers(file: &Spanned<Vec<Spanned<String>>>) -> Result<Vec<Tier>, Flaw> {
    let hint = "tiers = [\"namespace\", \"inherited\"] accepts both";
    let mut parsed: Vec<Tier> = Vec::new();
    for value in file.get_ref() {
        let tier = one_of(value, &Tier::ALL, Tier::word)?;
        if parsed.last().is_some_and(|stronger| *stronger >= tier) {
            return Err(Flaw::new(
                value.span(),
                "each isolation once, strongest first",
                quoted(value.get_ref()),
                hint,
            ));
        }
        parsed.push(tier);
    }
    if parsed.is_empty() {
        return Err(Flaw::new(
            file.span(),
            "at least one isolation",
            "none",
            hint,
        ));
    }
    Ok(parsed)
}

fn expectations(
    requests: ExpectRequests,
    body: ExpectBody,
    partial_messages: bool,
) -> Result<Expectations, Flaw> {
    let user_blocks = blocks(&body.user_blocks)?;
    let system_blocks = blocks(&body.system_blocks)?;
    let cache_control = match body.cache_control {
        None => CacheControl::NotChecked,
        Some(marks) => marked(&marks, user_blocks, system_blocks)?,
    };
    Ok(Expectations {
        preflight: one_of(&requests.preflight, &Preflight::ALL, Preflight::word)?,
        body_fields: body_fields(body.fields)?,
        user_blocks,
        system_blocks,
        cache_control,
        partial_messages,
        complete_ledger: false,
    })
}

fn body_fields(fields: Spanned<BTreeMap<String, Spanned<String>>>) -> Result<Vec<BodyField>, Flaw> {
    if fields.get_ref().is_empty() {
        return Err(Flaw::new(
            fields.span(),
            "at least one field",
            "none",
            "write it as messages = \"array\"",
        ));
    }
    let field = |(name, kind): (String, Spanned<String>)| {
        one_of(&kind, &JsonKind::ALL, JsonKind::word).map(|kind| BodyField { name, kind })
    };
    fields.into_inner().into_iter().map(field).collect()
}

fn marked(
    marks: &ExpectCacheControl,
    user_blocks: usize,
    system_blocks: usize,
) -> Result<CacheControl, Flaw> {
    let system_count = between(
        &marks.system_count,
        0..system_blocks + 1,
        "the system input has no more blocks",
    )?;
    let mut user = Vec::new();
    for block in &marks.user {
        let number = between(block, 1..user_blocks + 1, "user blocks are counted from 1")?;
        if user.contains(&number) {
            return Err(Flaw::new(
                block.span(),
                "each block once",
                format!("{number} a second time"),
                "remove one of the two",
            ));
        }
        user.push(number);
    }
    Ok(CacheControl::Marked { system_count, user })
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

/// Rejects a case that has the switch `partial-messages` without expecting the records, or the reverse.
fn check_agreement(expected: &Spanned<bool>, switches: &[Switch]) -> Result<bool, Flaw> {
    let switched_on = switches.contains(&Switch::PartialMessages);
    if *expected.get_ref() == switched_on {
        return Ok(switched_on);
    }
    let hint = "it must agree with the switch `partial-messages` under [invocation]";
    Err(Flaw::new(
        expected.span(),
        switched_on,
        expected.get_ref(),
        hint,
    ))
}

fn not_empty(value: Spanned<String>) -> Result<String, Flaw> {
    if value.get_ref().is_empty() {
        return Err(Flaw::new(
            value.span(),
            "some text",
            "none",
            "leave the key out if there is nothing to say",
        ));
    }
    word(value)
}
