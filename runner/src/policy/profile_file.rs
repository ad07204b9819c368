//! The wire form of a profile file, and its way into [`Profile`].
//!
//! The forms stand here; how each part becomes a domain value has a room of its own.

mod arguments;
mod attempts;
pub(super) mod environment;
mod files;
mod records;
mod requests;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::error::Flaw;
use super::values::{PathRuleFile, name, path_rules, sentence};
use crate::case::Origin;
use crate::profile::{Names, Profile, VARIABLE_PLACEHOLDERS};

/// A profile file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileFile {
    #[serde(rename = "schema")]
    _schema: IgnoredAny,
    name: Spanned<String>,
    summary: Spanned<String>,
    queries: Vec<Spanned<String>>,
    names: NamesFile,
    arguments: Spanned<Vec<ArgumentFile>>,
    environment: Vec<VariableFile>,
    #[serde(default)]
    paths: Vec<PathRuleFile>,
    devices: Vec<Spanned<String>>,
    headers: HeadersFile,
    #[serde(default)]
    side_requests: Vec<SideRequestFile>,
    records: RecordsFile,
    files: FilesFile,
    #[serde(default)]
    attempts: Vec<ExpectedAttemptFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamesFile {
    app: Spanned<String>,
    vendor: Spanned<String>,
    cli_name: Spanned<String>,
    runtime: Spanned<String>,
    program: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArgumentFile {
    option: Spanned<String>,
    words: Spanned<Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariableFile {
    name: Spanned<String>,
    value: Spanned<String>,
    /// Absent: in every case.
    pub(super) cases: Option<Spanned<Vec<Spanned<String>>>>,
    reason: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadersFile {
    message: Vec<Spanned<String>>,
    preflight: Vec<Spanned<String>>,
    beta_families: Vec<BetaFamilyFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BetaFamilyFile {
    family: Spanned<String>,
    prefix: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SideRequestFile {
    name: Spanned<String>,
    method: Spanned<String>,
    path: Spanned<String>,
    #[serde(default)]
    with: Vec<Spanned<String>>,
    #[serde(default)]
    without: Vec<Spanned<String>>,
    expected: bool,
    reason: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordsFile {
    version_field: Spanned<String>,
    init_fields: Spanned<Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilesFile {
    state: Spanned<String>,
    backup_prefix: Spanned<String>,
    #[serde(default)]
    expected: Vec<ExpectedFileFile>,
    #[serde(default)]
    transient: Vec<ExpectedFileFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedFileFile {
    #[serde(rename = "in")]
    root: Spanned<String>,
    path: Spanned<String>,
    reason: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedAttemptFile {
    destination: Spanned<String>,
    reason: Spanned<String>,
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
                names.fill(value, &VARIABLE_PLACEHOLDERS)
            })?,
            paths: path_rules(self.paths, |path| names.fill(path, &[]))?,
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
