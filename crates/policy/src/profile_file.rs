//! File form of a profile, parsed into [`Profile`].
//!
//! This file has the forms; a submodule parses each part.

mod arguments;
pub(super) mod attempts;
pub(super) mod environment;
pub(super) mod files;
mod records;
pub(super) mod requests;

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
use super::values::{PathRuleFile, host_path, name, path_rules, sentence};

/// Profile of one client: its command line, names and known behaviour. In most texts, `{app}`, `{vendor}`,
/// `{cli_name}`, `{runtime}` and `{program}` are placeholders for the names in the table `names`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Client profile of runner")]
pub(super) struct ProfileFile {
    /// Schema of this file.
    #[serde(rename = "schema")]
    #[schemars(with = "String")]
    _schema: IgnoredAny,
    /// Short name, as in reports: `reference`.
    #[schemars(with = "Name")]
    name: Spanned<String>,
    /// Summary, one line.
    #[schemars(with = "Sentence")]
    summary: Spanned<String>,
    /// Accepted queries of the message request. A request without a query is always accepted.
    #[schemars(with = "Vec<Query>")]
    queries: Vec<Spanned<String>>,
    /// Names of the client.
    names: NamesFile,
    /// Words of each option, in the order of the command line.
    #[schemars(with = "Vec<ArgumentFile>", extend("contains" = needs_prompt()))]
    arguments: Spanned<Vec<ArgumentFile>>,
    /// The whole environment: the client inherits no other variable.
    environment: Vec<VariableFile>,
    /// Paths of the host that the client needs: its loader, libraries or interpreter.
    #[serde(default)]
    paths: Vec<PathRuleFile>,
    /// Devices in /dev, and no others.
    #[schemars(with = "Vec<Device>", extend("uniqueItems" = true))]
    devices: Vec<Spanned<Device>>,
    /// Accepted header names of the requests.
    headers: HeadersFile,
    /// Known side requests; the first match counts.
    #[serde(default)]
    side_requests: Vec<SideRequestFile>,
    /// Names of fields in the records.
    records: RecordsFile,
    /// Files that the client leaves behind.
    files: FilesFile,
    /// Accepted attempts. These rules do not open the sandbox.
    #[serde(default)]
    attempts: Vec<ExpectedAttemptFile>,
}

/// Names of the client, which fill the placeholders of the same names.
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

/// One option on the command line. Options that the client lacks are left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Argument")]
struct ArgumentFile {
    /// Option that adds the words; each once.
    #[schemars(with = "ClientOption")]
    option: Spanned<String>,
    /// Words of the option. For an option with a value, `{value}` appears exactly once.
    #[schemars(with = "Vec<Word>", length(min = 1))]
    words: Spanned<Vec<Spanned<String>>>,
}

/// One environment variable.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Variable")]
pub(super) struct VariableFile {
    /// Name of the variable.
    #[schemars(with = "VariableName")]
    name: Spanned<String>,
    /// Value; the run fills in `{base_url}`, `{credential}`, `{home}` and `{tmp}`.
    #[schemars(with = "Word")]
    value: Spanned<String>,
    /// Cases that set the variable; without this key, every case. `--plain` leaves such variables out.
    #[schemars(with = "Option<Vec<Name>>", length(min = 1), extend("uniqueItems" = true))]
    pub(super) cases: Option<Spanned<Vec<Spanned<String>>>>,
    /// Reason for the variable.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// Headers of the client's requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Headers")]
struct HeadersFile {
    /// Accepted header names of the message request, and no others.
    #[schemars(with = "Vec<HeaderName>", extend("uniqueItems" = true))]
    message: Vec<Spanned<String>>,
    /// Accepted header names of the preflight, and no others.
    #[schemars(with = "Vec<HeaderName>", extend("uniqueItems" = true))]
    preflight: Vec<Spanned<String>>,
    /// Header of the credential in the message request; `x-api-key` without this key. In `authorization`, `Bearer`
    /// precedes the credential.
    #[schemars(with = "Option<HeaderName>")]
    credential: Option<Spanned<String>>,
    /// Families in the beta header.
    beta_families: Vec<BetaFamilyFile>,
}

/// One protocol family in the beta header.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BetaFamily")]
struct BetaFamilyFile {
    /// Name for reports; each once.
    #[schemars(with = "Sentence")]
    family: Spanned<String>,
    /// Prefix of its value in the header; a date follows.
    #[schemars(with = "Prefix")]
    prefix: Spanned<String>,
}

/// Known request in addition to the preflight and the message request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SideRequest")]
struct SideRequestFile {
    /// Name for reports; each once.
    #[schemars(with = "Sentence")]
    name: Spanned<String>,
    /// Method of the request.
    #[schemars(with = "Method")]
    method: Spanned<String>,
    /// Path of the request, without the query.
    #[schemars(with = "RequestPath")]
    path: Spanned<String>,
    /// Keys that the body has.
    #[serde(default)]
    #[schemars(with = "Vec<BodyKey>", extend("uniqueItems" = true))]
    with: Vec<Spanned<String>>,
    /// Keys that the body does not have.
    #[serde(default)]
    #[schemars(with = "Vec<BodyKey>", extend("uniqueItems" = true))]
    without: Vec<Spanned<String>>,
    /// True if a case that allows other requests accepts this one.
    expected: bool,
    /// Reason why the client sends the request.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// Names of fields in the client's records.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Records")]
struct RecordsFile {
    /// Field of `system/init` with the version.
    #[schemars(with = "String")]
    version_field: Spanned<String>,
    /// Required fields of `system/init`, including that of the version.
    #[schemars(with = "Vec<String>", length(min = 1), extend("uniqueItems" = true))]
    init_fields: Spanned<Vec<Spanned<String>>>,
    /// Value of `permissionMode` in `system/init`; without this key, `default`.
    #[schemars(with = "Option<Name>")]
    permission_mode: Option<Spanned<String>>,
    /// Lists of `system/init` that may have entries; every other list must be empty.
    #[serde(default)]
    init_lists: Vec<InitListFile>,
}

/// List of `system/init` that may have entries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "InitList")]
struct InitListFile {
    /// Field of the list; each once.
    #[schemars(with = "InitField")]
    field: Spanned<InitField>,
    /// Accepted names of entries, and no others; without this key, any name.
    #[schemars(with = "Option<Vec<Word>>", extend("uniqueItems" = true))]
    names: Option<Vec<Spanned<String>>>,
    /// Reason for the entries.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// Files that the client leaves behind.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Files")]
struct FilesFile {
    /// State file, relative to the home.
    #[schemars(with = "TreePath")]
    state: Spanned<String>,
    /// Directory and prefix of the backup of the state file, relative to the home; thirteen digits follow.
    #[schemars(with = "TreePath")]
    backup_prefix: Spanned<String>,
    /// Further accepted files and directories.
    #[serde(default)]
    expected: Vec<ExpectedFileFile>,
    /// Known files and directories that the client removes before its end.
    #[serde(default)]
    transient: Vec<ExpectedFileFile>,
}

/// File or directory that the client is known to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectedFile")]
pub(super) struct ExpectedFileFile {
    /// Directory that contains the file.
    #[serde(rename = "in")]
    pub(super) root: Root,
    /// Path relative to the directory; `{uid}`, `{pid}`, `{digits}`, `{hex}`, `{alnum}` and `{uuid}` match parts that
    /// differ between runs.
    #[schemars(with = "TreePath")]
    pub(super) path: Spanned<String>,
    /// Reason why the client creates the file.
    #[schemars(with = "Sentence")]
    pub(super) reason: Spanned<String>,
}

/// Attempt that the client is known to make.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectedAttempt")]
pub(super) struct ExpectedAttemptFile {
    /// Destination of the attempt; each once.
    #[schemars(with = "Destination")]
    destination: Spanned<String>,
    /// Reason for accepting the attempt.
    #[schemars(with = "Sentence")]
    reason: Spanned<String>,
}

/// Schema that requires the option `prompt`, because every case has a prompt.
fn needs_prompt() -> Schema {
    json_schema!({
        "properties": { "option": { "const": ClientOption::Prompt.word() } },
        "required": ["option"],
    })
}

impl ProfileFile {
    /// Parses the whole file. Returns the first fault on error.
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
                host_path(crate::placeholders::fill(&names, path, &[])?)
            })?,
            devices: environment::devices(&self.devices)?,
            headers: requests::headers(self.headers, &names)?,
            queries: requests::queries(self.queries)?,
            side_requests: requests::side_requests(self.side_requests, &names)?,
            records: records::parsed(self.records, &names)?,
            files: files::parsed(self.files, &names)?,
            attempts: attempts::parsed(self.attempts, |value| {
                crate::placeholders::fill(&names, value, &[])
            })?,
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
