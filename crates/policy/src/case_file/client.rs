//! File form of a client inside a case, parsed into [`InlineClient`].

use std::collections::BTreeSet;

use model::case::client::{InlineClient, InlineVariable, PROJECT, ToolchainRule, VariableValue};
use model::profile::template::{Piece, pieces};
use model::quote::{known_words, quoted};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use crate::error::Flaw;
use crate::schema::{Sentence, Text, Upwards, VariableName, Word};
use crate::values::{
    PathRuleFile, check_variable_name, one_of, path_rules, reject_repeated, sentence, word,
};

/// Reason of a variable without one.
const NO_REASON: &str = "the client's environment in the case";

/// Client of the case, in place of a profile.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Client")]
pub(super) struct ClientFile {
    /// Way from the directory of this file up to the project, for `{project}`: `..`, `../..` and so on; without this key,
    /// the directory itself.
    #[schemars(with = "Option<Upwards>")]
    project: Option<Spanned<String>>,
    /// Path, or a name that is looked up in PATH. `{project}` is the project.
    #[schemars(with = "Text")]
    program: Spanned<String>,
    /// Arguments after the program's name; `{project}`, `{prompt}`, `{base_url}`, `{credential}`, `{home}` and `{tmp}`
    /// are replaced.
    #[serde(default)]
    #[schemars(with = "Vec<Word>")]
    arguments: Vec<Spanned<String>>,
    /// Prompt for `{prompt}`. Reports never show it.
    #[schemars(with = "Option<Text>")]
    prompt: Option<Spanned<String>>,
    /// Working directory, read-only and shown; without this key, an empty directory of the sandbox.
    #[schemars(with = "Option<Text>")]
    cwd: Option<Spanned<String>>,
    /// File for standard input, which may begin with `{project}`; without this key, an empty input.
    #[schemars(with = "Option<Text>")]
    stdin: Option<Spanned<String>>,
    /// Directories of interpreters: `follow` shows the roots that the program leads to, found anew on each machine.
    #[schemars(with = "Option<ToolchainRule>")]
    toolchain: Option<Spanned<String>>,
    /// Environment, beside PATH, HOME, TMPDIR, LANG and TERM.
    #[serde(default)]
    environment: Vec<VariableFile>,
    /// Further paths of the host to show, read-only.
    #[serde(default)]
    paths: Vec<PathFile>,
}

/// One environment variable.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ClientVariable")]
struct VariableFile {
    /// Name of the variable; each once.
    #[schemars(with = "VariableName")]
    name: Spanned<String>,
    /// Value; placeholders as in arguments.
    #[schemars(with = "Option<Word>")]
    value: Option<Spanned<String>>,
    /// True to take the value from the caller's environment instead. Reports never show it.
    #[serde(default)]
    from_env: bool,
    /// Reason for the variable.
    #[schemars(with = "Option<Sentence>")]
    reason: Option<Spanned<String>>,
}

/// Path of the host that the client sees, read-only.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ClientPath")]
struct PathFile {
    /// Path, which may begin with `{project}`.
    #[schemars(with = "Text")]
    path: Spanned<String>,
    /// Access of the client below the path.
    #[schemars(schema_with = "crate::values::access_in_policies")]
    access: Spanned<String>,
    /// True if a host may lack the path; otherwise a missing path is an error.
    #[serde(default)]
    if_present: bool,
    /// Reason why the client needs the path.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

impl From<PathFile> for PathRuleFile {
    fn from(file: PathFile) -> Self {
        Self {
            path: file.path,
            access: file.access,
            if_present: file.if_present,
            reason: file.reason,
        }
    }
}

/// Parses the table.
pub(super) fn parsed(file: ClientFile) -> Result<InlineClient, Flaw> {
    let mut arguments = Vec::new();
    for argument in file.arguments {
        arguments.push(filled_later(argument, &InlineClient::placeholders())?.into_inner());
    }
    let path = |value: Spanned<String>| {
        let span = value.span();
        let text = super::not_empty(value)?;
        filled_later(Spanned::new(span, text), &[PROJECT])
    };
    let cwd = file.cwd.map(path).transpose()?;
    let rules = file.paths.into_iter().map(PathRuleFile::from);
    let stdin = file.stdin.map(path).transpose()?;
    let project = file.project.map(upwards).transpose()?;
    let toolchain = file.toolchain.as_ref();
    let toolchain = toolchain.map(|word| one_of(word, &ToolchainRule::ALL, ToolchainRule::word));
    let prompt = file.prompt.map(super::not_empty).transpose()?;
    Ok(InlineClient {
        program: path(file.program)?.into_inner(),
        arguments,
        prompt,
        cwd: cwd.map(Spanned::into_inner),
        project,
        stdin: stdin.map(Spanned::into_inner),
        toolchain: toolchain.transpose()?,
        environment: environment(file.environment)?,
        paths: path_rules(rules, path)?,
    })
}

/// Parses a way up from the directory of the file.
fn upwards(value: Spanned<String>) -> Result<String, Flaw> {
    if value.get_ref().split('/').any(|part| part != "..") {
        let found = quoted(value.get_ref());
        let hint = "write `..` for the directory above that of this file, `../..` for the next one";
        return Err(Flaw::new(value.span(), "a way up", found, hint));
    }
    Ok(value.into_inner())
}

fn environment(file: Vec<VariableFile>) -> Result<Vec<InlineVariable>, Flaw> {
    let mut seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for variable in file {
        reject_repeated(&mut seen, &variable.name, "each variable once")?;
        check_variable_name(&variable.name)?;
        let value = match (variable.value, variable.from_env) {
            (Some(value), false) => VariableValue::Text(
                filled_later(value, &InlineClient::placeholders())?.into_inner(),
            ),
            (None, true) => VariableValue::OfCaller,
            (value, from_env) => {
                let found = if from_env { "both" } else { "neither" };
                let span = value.map_or(variable.name.span(), |value| value.span());
                let hint = "write value = \"…\", or from_env = true to pass on your own value";
                return Err(Flaw::new(span, "`value` or `from_env`", found, hint));
            }
        };
        let reason = variable.reason.map(sentence).transpose()?;
        parsed.push(InlineVariable {
            name: variable.name.into_inner(),
            value,
            reason: reason.unwrap_or_else(|| NO_REASON.to_owned()),
        });
    }
    Ok(parsed)
}

/// Checks the placeholders of a text, which the run fills in.
fn filled_later(value: Spanned<String>, known: &[&str]) -> Result<Spanned<String>, Flaw> {
    for piece in pieces(value.get_ref()) {
        if let Piece::Placeholder(name) = piece
            && !known.contains(&name)
        {
            let found = quoted(&format!("{{{name}}}"));
            let hint = known_words(name, known.iter().copied());
            return Err(Flaw::new(value.span(), "a known placeholder", found, hint));
        }
    }
    let span = value.span();
    Ok(Spanned::new(span, word(value)?))
}
