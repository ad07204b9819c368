//! File form of a case, parsed into [`Case`].

mod client;
mod expect;

use std::collections::BTreeSet;

use model::case::{Case, Invocation, Origin, Root, SandboxRules, Switch, Tier};
use model::quote::quoted;
use scenario::Scenario;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use self::client::ClientFile;
use self::expect::ExpectFile;
use super::error::Flaw;
use super::limits::LimitsFile;
use super::schema::{Name, Sentence, Text};
use super::values::{PathRuleFile, host_path, name, path_rules, reject_repeated, sentence, word};

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
    #[schemars(with = "Option<Sentence>")]
    summary: Option<Spanned<String>>,
    /// Request to the client, in terms of every client; the profile maps them to options.
    invocation: Option<InvocationFile>,
    /// Client of the case, in place of a request and a profile.
    client: Option<ClientFile>,
    /// Answer of the provider stub to the message request.
    #[serde(default)]
    stub: Scenario,
    /// Permissions of the sandbox.
    #[serde(default)]
    sandbox: SandboxFile,
    /// Expectations; a table that is absent is not judged.
    #[serde(default)]
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
    switches: Vec<Spanned<Switch>>,
}

/// Permissions of the sandbox.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sandbox")]
pub(super) struct SandboxFile {
    /// Kinds of isolation in which a verdict of this case is meaningful, strongest first; without this key, both.
    #[schemars(with = "Option<Vec<Tier>>", length(min = 1), extend("uniqueItems" = true))]
    tiers: Option<Spanned<Vec<Spanned<Tier>>>>,
    /// Limits of a run.
    #[serde(default)]
    limits: LimitsFile,
    /// Further paths of the host to show, read-only. The profile has the paths that one client needs to start.
    #[serde(default)]
    paths: Vec<PathRuleFile>,
    /// Writable trees whose files the client may execute and map as programs; without this key, none.
    #[serde(default)]
    #[schemars(with = "Vec<Root>", extend("uniqueItems" = true))]
    allow_exec: Vec<Spanned<Root>>,
}

impl CaseFile {
    /// Parses the whole file. Returns the first fault on error.
    pub(super) fn into_case(self, origin: Origin) -> Result<Case, Flaw> {
        let span = self.name.span();
        let (invocation, client) = match (self.invocation, self.client) {
            (Some(invocation), None) => (Invocation::try_from(invocation)?, None),
            (None, Some(client)) => {
                let client = client::parsed(client)?;
                (client.task(), Some(client))
            }
            (invocation, _) => {
                let found = if invocation.is_some() {
                    "both"
                } else {
                    "neither"
                };
                let hint = "a case has [client], or [invocation] for the client of a profile";
                return Err(Flaw::new(span, "[invocation] or [client]", found, hint));
            }
        };
        let expect = self.expect.into_expectations(&invocation.switches)?;
        Ok(Case {
            name: name(self.name)?,
            like: self.like.map(name).transpose()?,
            summary: self.summary.map(sentence).transpose()?.unwrap_or_default(),
            origin,
            invocation,
            client,
            stub: self.stub,
            sandbox: SandboxRules::try_from(self.sandbox)?,
            expect,
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
            switches.push(*switch.get_ref());
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
            tiers: file.tiers.as_ref().map_or(Ok(Tier::ALL.into()), tiers)?,
            limits: file.limits.try_into()?,
            paths: path_rules(file.paths, host_path)?,
            exec: exec(&file.allow_exec)?,
        })
    }
}

fn exec(trees: &[Spanned<Root>]) -> Result<Vec<Root>, Flaw> {
    let mut seen = BTreeSet::new();
    let parsed = trees.iter().map(|tree| {
        reject_repeated(&mut seen, tree, "each tree once")?;
        Ok(*tree.get_ref())
    });
    parsed.collect()
}

fn tiers(file: &Spanned<Vec<Spanned<Tier>>>) -> Result<Vec<Tier>, Flaw> {
    let hint = "tiers = [\"namespace\", \"inherited\"] accepts both";
    let mut parsed: Vec<Tier> = Vec::new();
    for value in file.get_ref() {
        let tier = *value.get_ref();
        if parsed.last().is_some_and(|stronger| *stronger >= tier) {
            return Err(Flaw::new(
                value.span(),
                "each isolation once, strongest first",
                quoted(tier.word()),
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
