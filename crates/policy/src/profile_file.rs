//! The wire form of a profile file, and its way into [`Profile`].
//!
//! The forms stand here; how each part becomes a domain value has a room of its own.

mod arguments;
mod attempts;
pub(super) mod environment;
mod files;
mod records;
mod requests;

use model::case::{Device, Origin, Root};
use model::profile::{ClientOption, InitField, Names, Profile, VARIABLE_PLACEHOLDERS};
use schemars::{JsonSchema, Schema, json_schema};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::error::Flaw;
use super::schema::{
    BodyKey, Destination, HeaderName, Method, Name, Prefix, Query, RequestPath, Sentence, TreePath,
    VariableName, Word,
};
use super::values::{PathRuleFile, name, path_rules, sentence};

/// How one client is told the abstract options of a case, and its own names for things. In most texts `{app}`,
/// `{vendor}`, `{cli_name}`, `{runtime}` and `{program}` stand for the names of the table `names`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Client profile of runner")]
pub(super) struct ProfileFile {
    /// The form of this file.
    #[serde(rename = "schema")]
    #[schemars(with = "String")]
    _schema: IgnoredAny,
    /// Short name, as in reports: `reference`.
    #[schemars(with = "Name")]
    name: Spanned<String>,
    /// One line for people.
    #[schemars(with = "Sentence")]
    summary: Spanned<String>,
    /// Queries of the message request that are no finding; the empty one never is.
    #[schemars(with = "Vec<Query>")]
    queries: Vec<Spanned<String>>,
    /// The client's own names.
    names: NamesFile,
    /// How each option is spelt, in the order of the command line.
    #[schemars(with = "Vec<ArgumentFile>", extend("contains" = needs_prompt()))]
    arguments: Spanned<Vec<ArgumentFile>>,
    /// The whole environment: nothing is inherited.
    environment: Vec<VariableFile>,
    /// Paths of the host that this client needs: its loader, libraries or interpreter.
    #[serde(default)]
    paths: Vec<PathRuleFile>,
    /// Devices that /dev holds, and no others.
    #[schemars(with = "Vec<Device>", extend("uniqueItems" = true))]
    devices: Vec<Spanned<String>>,
    /// Header names that the requests may carry.
    headers: HeadersFile,
    /// Requests beside the turn that are known by name; the first that fits counts.
    #[serde(default)]
    side_requests: Vec<SideRequestFile>,
    /// How its records spell things.
    records: RecordsFile,
    /// What it leaves behind.
    files: FilesFile,
    /// Attempts that are no finding. Nothing is let out by it.
    #[serde(default)]
    attempts: Vec<ExpectedAttemptFile>,
}

/// The client's own names, for the placeholders of the same names.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Names")]
struct NamesFile {
    /// The application, as in the path of its state file.
    #[schemars(with = "Name")]
    app: Spanned<String>,
    /// The vendor, as in the header `<vendor>-beta`.
    #[schemars(with = "Name")]
    vendor: Spanned<String>,
    /// The command-line client, as in the user agent of the message request.
    #[schemars(with = "Name")]
    cli_name: Spanned<String>,
    /// The runtime, as in the user agent of the preflight.
    #[schemars(with = "Name")]
    runtime: Spanned<String>,
    /// Name given to the program inside the sandbox.
    #[schemars(with = "Name")]
    program: Spanned<String>,
}

/// One option on the command line. An option that the client does not have is left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Argument")]
struct ArgumentFile {
    /// When the words are given; each option once.
    #[schemars(with = "ClientOption")]
    option: Spanned<String>,
    /// The words; `{value}` stands once for the value of an option that has one.
    #[schemars(with = "Vec<Word>", length(min = 1))]
    words: Spanned<Vec<Spanned<String>>>,
}

/// One environment variable.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Variable")]
pub(super) struct VariableFile {
    /// Its name.
    #[schemars(with = "VariableName")]
    name: Spanned<String>,
    /// Its value; `{base_url}`, `{credential}`, `{home}` and `{tmp}` are filled in by the run.
    #[schemars(with = "Word")]
    value: Spanned<String>,
    /// The cases in which it is set; without this key, every one. `--plain` leaves such variables out.
    #[schemars(with = "Option<Vec<Name>>", length(min = 1), extend("uniqueItems" = true))]
    pub(super) cases: Option<Spanned<Vec<Spanned<String>>>>,
    /// Why it is set.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// What the client's requests look like.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Headers")]
struct HeadersFile {
    /// Header names that the message request may carry, and no others.
    #[schemars(with = "Vec<HeaderName>", extend("uniqueItems" = true))]
    message: Vec<Spanned<String>>,
    /// Header names that the preflight may carry, and no others.
    #[schemars(with = "Vec<HeaderName>", extend("uniqueItems" = true))]
    preflight: Vec<Spanned<String>>,
    /// The header in which the message carries the credential, `x-api-key` without this key; in `authorization` it
    /// stands behind `Bearer`.
    #[schemars(with = "Option<HeaderName>")]
    credential: Option<Spanned<String>>,
    /// The families that the beta header names.
    beta_families: Vec<BetaFamilyFile>,
}

/// One protocol family that the beta header names.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BetaFamily")]
struct BetaFamilyFile {
    /// Its name for people; each once.
    #[schemars(with = "Sentence")]
    family: Spanned<String>,
    /// How its value of the header begins; a date follows.
    #[schemars(with = "Prefix")]
    prefix: Spanned<String>,
}

/// A request beside the turn that is known by name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SideRequest")]
struct SideRequestFile {
    /// What it is called in reports; each once.
    #[schemars(with = "Sentence")]
    name: Spanned<String>,
    /// Its method.
    #[schemars(with = "Method")]
    method: Spanned<String>,
    /// Its path, without the query.
    #[schemars(with = "RequestPath")]
    path: Spanned<String>,
    /// Keys that its body has.
    #[serde(default)]
    #[schemars(with = "Vec<BodyKey>", extend("uniqueItems" = true))]
    with: Vec<Spanned<String>>,
    /// Keys that its body does not have.
    #[serde(default)]
    #[schemars(with = "Vec<BodyKey>", extend("uniqueItems" = true))]
    without: Vec<Spanned<String>>,
    /// Whether it is no finding in a case that allows other requests.
    expected: bool,
    /// Why the client sends it.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// How the client's records spell things.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Records")]
struct RecordsFile {
    /// The field of `system/init` that holds the version.
    #[schemars(with = "String")]
    version_field: Spanned<String>,
    /// Fields that `system/init` must have, the version's among them.
    #[schemars(with = "Vec<String>", length(min = 1), extend("uniqueItems" = true))]
    init_fields: Spanned<Vec<Spanned<String>>>,
    /// The value of `permissionMode` in `system/init`; without it, `default`.
    #[schemars(with = "Option<Name>")]
    permission_mode: Option<Spanned<String>>,
    /// Lists of `system/init` that may have entries; every other one is empty.
    #[serde(default)]
    init_lists: Vec<InitListFile>,
}

/// A list of `system/init` that may have entries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "InitList")]
struct InitListFile {
    /// Which list; each once.
    #[schemars(with = "InitField")]
    field: Spanned<String>,
    /// The names of its entries, and no others; without this key, any.
    #[schemars(with = "Option<Vec<Word>>", extend("uniqueItems" = true))]
    names: Option<Vec<Spanned<String>>>,
    /// Why the client lists them.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// What the client leaves behind.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Files")]
struct FilesFile {
    /// The state file, relative to the home.
    #[schemars(with = "TreePath")]
    state: Spanned<String>,
    /// Directory and prefix of its backup, relative to the home; thirteen digits follow.
    #[schemars(with = "TreePath")]
    backup_prefix: Spanned<String>,
    /// Further files and directories that are no finding.
    #[serde(default)]
    expected: Vec<ExpectedFileFile>,
    /// Files and directories that are known to be there for a time.
    #[serde(default)]
    transient: Vec<ExpectedFileFile>,
}

/// A file or directory that the client is known to make.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectedFile")]
struct ExpectedFileFile {
    /// The tree in which it lies.
    #[serde(rename = "in")]
    #[schemars(with = "Root")]
    root: Spanned<String>,
    /// Relative to the tree; `{uid}`, `{pid}`, `{digits}`, `{hex}`, `{alnum}` and `{uuid}` stand for what differs.
    #[schemars(with = "TreePath")]
    path: Spanned<String>,
    /// Why the client makes it.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// An attempt that the client is known to make.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectedAttempt")]
struct ExpectedAttemptFile {
    /// Where it goes; each destination once.
    #[schemars(with = "Destination")]
    destination: Spanned<String>,
    /// Why it is no finding.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// Without a prompt no case can be run.
fn needs_prompt() -> Schema {
    json_schema!({
        "properties": { "option": { "const": ClientOption::Prompt.word() } },
        "required": ["option"],
    })
}

impl ProfileFile {
    /// The whole file, or the first thing in it that is wrong.
    pub(super) fn into_profile(self, origin: Origin) -> Result<Profile, Flaw> {
        sentence(self.summary)?;
        let names = Names::try_from(self.names)?;
        Ok(Profile {
            name: name(self.name)?,
            origin,
            arguments: arguments::parsed(self.arguments, &names)?,
            environment: environment::parsed(self.environment, |value| {
                crate::placeholders::fill(&names, value, &VARIABLE_PLACEHOLDERS)
            })?,
            paths: path_rules(self.paths, |path| {
                crate::placeholders::fill(&names, path, &[])
            })?,
            devices: environment::devices(&self.devices)?,
            headers: requests::headers(self.headers, &names)?,
            queries: requests::queries(self.queries)?,
            side_requests: requests::side_requests(self.side_requests, &names)?,
            records: records::parsed(self.records, &names)?,
            files: files::parsed(self.files, &names)?,
            attempts: attempts::parsed(self.attempts, &names)?,
            names,
        })
    }
}

impl TryFrom<NamesFile> for Names {
    type Error = Flaw;

    fn try_from(file: NamesFile) -> Result<Self, Flaw> {
        Ok(Self {
            app: name(file.app)?,
            vendor: name(file.vendor)?,
            cli_name: name(file.cli_name)?,
            runtime: name(file.runtime)?,
            program: name(file.program)?,
        })
    }
}
