//! The wire form of a case file, and its way into [`Case`].

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
use super::values::{PathRuleFile, name, once, one_of, path_rules, sentence, word};

/// Blocks beyond this many are a slip.
const MAX_BLOCKS: usize = 1_000;

/// What an agent client is asked to do, what the provider stub answers, what the sandbox allows, and what must be
/// seen. Every key without which the file has no meaning is required; unknown keys are errors.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Case file of runner")]
pub(super) struct CaseFile {
    /// The form of this file.
    #[serde(rename = "schema")]
    #[schemars(with = "String")]
    _schema: IgnoredAny,
    /// Short name, as in reports: `case-b`.
    #[schemars(with = "Name")]
    name: Spanned<String>,
    /// Another case, of which this one is a copy: what a profile sets for that one is set for this one too.
    #[schemars(with = "Option<Name>")]
    like: Option<Spanned<String>>,
    /// One line for people.
    #[schemars(with = "Sentence")]
    summary: Spanned<String>,
    /// What the client is asked to do, in terms that every client has; a profile spells them.
    invocation: InvocationFile,
    /// What the provider stub answers to the message request.
    stub: Scenario,
    /// What the sandbox allows beyond nothing.
    sandbox: SandboxFile,
    /// What must be seen.
    expect: ExpectFile,
}

/// What the client is asked to do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Invocation")]
struct InvocationFile {
    /// What the user says.
    #[schemars(with = "Text")]
    prompt: Spanned<String>,
    /// Replaces the client's own system prompt.
    #[schemars(with = "Option<Text>")]
    system_prompt: Option<Spanned<String>>,
    /// The model to ask for; without it the client's own default.
    #[schemars(with = "Option<Text>")]
    model: Option<Spanned<String>>,
    /// Switches without a value, each once.
    #[schemars(with = "Vec<Switch>", extend("uniqueItems" = true))]
    switches: Vec<Spanned<String>>,
}

/// What the sandbox allows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sandbox")]
pub(super) struct SandboxFile {
    /// Tiers in which a verdict of this case is meaningful, strongest first.
    #[schemars(with = "Vec<Tier>", length(min = 1), extend("uniqueItems" = true))]
    tiers: Spanned<Vec<Spanned<String>>>,
    /// The bounds of a run.
    limits: LimitsFile,
    /// Further paths of the host to show, read-only. What one client needs to start stands in its profile.
    #[serde(default)]
    paths: Vec<PathRuleFile>,
}

/// What must be seen.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Expect")]
struct ExpectFile {
    /// Of the requests.
    requests: ExpectRequests,
    /// Of the body of the message request.
    body: ExpectBody,
    /// Of the records on standard output.
    records: ExpectRecords,
    /// Of what the client tries beside its way to the stub; without this table the ledger may have limits.
    outbound: Option<ExpectOutbound>,
}

/// What must be seen of the requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExpectRequests {
    /// Whether `HEAD /` may come before the message request.
    #[schemars(with = "Preflight")]
    preflight: Spanned<String>,
}

/// What must be seen of the body of the message request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExpectBody {
    /// Text blocks of the one user message.
    #[schemars(with = "usize", range(max = MAX_BLOCKS))]
    user_blocks: Spanned<usize>,
    /// Text blocks of the system input.
    #[schemars(with = "usize", range(max = MAX_BLOCKS))]
    system_blocks: Spanned<usize>,
    /// Which blocks carry `cache_control`; without this table that is not checked.
    cache_control: Option<ExpectCacheControl>,
    /// The top-level fields with their JSON types: these and no others.
    #[schemars(with = "BTreeMap<String, JsonKind>", extend("minProperties" = 1))]
    fields: Spanned<BTreeMap<String, Spanned<String>>>,
}

/// Which blocks of the message request carry `cache_control`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExpectCacheControl {
    /// How many of the system blocks.
    #[schemars(with = "usize", range(max = MAX_BLOCKS))]
    system_count: Spanned<usize>,
    /// Which blocks of the user message, counted from 1; no other does.
    #[schemars(with = "Vec<usize>", inner(range(min = 1, max = MAX_BLOCKS)), extend("uniqueItems" = true))]
    user: Vec<Spanned<usize>>,
}

/// What must be seen of the records on standard output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExpectRecords {
    /// Each provider event has a record. It agrees with the switch `partial-messages`.
    #[schemars(with = "bool")]
    partial_messages: Spanned<bool>,
}

/// What must be seen of the client's attempts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExpectOutbound {
    /// A class of attempts that a filter outside of the sandbox hides from the ledger makes the run errored.
    complete_ledger: bool,
}

impl CaseFile {
    /// The whole file, or the first thing in it that is wrong.
    pub(super) fn into_case(self, origin: Origin) -> Result<Case, Flaw> {
        let invocation = Invocation::try_from(self.invocation)?;
        let records = self.expect.records.partial_messages;
        let outbound = self.expect.outbound;
        let partial_messages = agrees_with_switches(&records, &invocation.switches)?;
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
            once(&mut seen, switch, "each switch once")?;
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
                "each tier once, strongest first",
                quoted(value.get_ref()),
                hint,
            ));
        }
        parsed.push(tier);
    }
    if parsed.is_empty() {
        return Err(Flaw::new(file.span(), "at least one tier", "none", hint));
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
        "there are only so many system blocks",
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

/// A case that asks for partial messages and does not expect them, or the reverse, is a slip.
fn agrees_with_switches(expected: &Spanned<bool>, switches: &[Switch]) -> Result<bool, Flaw> {
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
