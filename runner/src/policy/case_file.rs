//! The wire form of a case file, and its way into [`Case`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use stub::scenario::Scenario;
use toml::Spanned;

use super::error::{Flaw, quoted};
use super::limits::LimitsFile;
use super::values::{PathRuleFile, name, once, one_of, path_rules, sentence, word};
use crate::case::{
    BodyField, CacheControl, Case, Expectations, Invocation, JsonKind, Origin, Preflight,
    SandboxRules, Switch, Tier,
};

/// Blocks beyond this many are a slip.
const MAX_BLOCKS: usize = 1_000;

/// A case file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseFile {
    #[serde(rename = "schema")]
    _schema: IgnoredAny,
    name: Spanned<String>,
    summary: Spanned<String>,
    invocation: InvocationFile,
    stub: Scenario,
    sandbox: SandboxFile,
    expect: ExpectFile,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InvocationFile {
    prompt: Spanned<String>,
    system_prompt: Option<Spanned<String>>,
    model: Option<Spanned<String>>,
    switches: Vec<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SandboxFile {
    tiers: Spanned<Vec<Spanned<String>>>,
    limits: LimitsFile,
    #[serde(default)]
    paths: Vec<PathRuleFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectFile {
    requests: ExpectRequests,
    body: ExpectBody,
    records: ExpectRecords,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectRequests {
    preflight: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectBody {
    user_blocks: Spanned<usize>,
    system_blocks: Spanned<usize>,
    /// Absent: not checked.
    cache_control: Option<ExpectCacheControl>,
    fields: Spanned<BTreeMap<String, Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectCacheControl {
    system_count: Spanned<usize>,
    user: Vec<Spanned<usize>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectRecords {
    partial_messages: Spanned<bool>,
}

impl CaseFile {
    /// The whole file, or the first thing in it that is wrong.
    pub(super) fn into_case(self, origin: Origin) -> Result<Case, Flaw> {
        let invocation = Invocation::try_from(self.invocation)?;
        let records = self.expect.records.partial_messages;
        let partial_messages = agrees_with_switches(&records, &invocation.switches)?;
        Ok(Case {
            name: name(self.name)?,
            summary: sentence(self.summary)?,
            origin,
            invocation,
            stub: self.stub,
            sandbox: SandboxRules::try_from(self.sandbox)?,
            expect: expectations(self.expect.requests, self.expect.body, partial_messages)?,
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
