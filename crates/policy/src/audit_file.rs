//! File form of the audit policy, parsed into [`AuditPolicy`].

use model::audit::AuditPolicy;
use model::case::Origin;
use model::profile::Variable;
use scenario::Scenario;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::case_file::SandboxFile;
use super::error::Flaw;
use super::profile_file::{VariableFile, environment};
use super::schema::{Name, Sentence};
use super::values::{name, sentence};

/// Paths, limits and environment of every audited program.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Policy of audits of runner")]
pub(super) struct AuditFile {
    /// Schema of this file.
    #[serde(rename = "schema")]
    #[schemars(with = "String")]
    _schema: IgnoredAny,
    /// Short name, as in reports: `audit`.
    #[schemars(with = "Name")]
    name: Spanned<String>,
    /// Summary, one line.
    #[schemars(with = "Sentence")]
    summary: Spanned<String>,
    /// Answers of the provider stub, if the audit has one.
    stub: Scenario,
    /// Permissions of the sandbox.
    sandbox: SandboxFile,
    /// Environment, before the options of the command line; no variable has `cases`.
    environment: Vec<VariableFile>,
}

impl AuditFile {
    /// Parses the whole file. Returns the first fault on error.
    pub(super) fn into_policy(self, origin: Origin) -> Result<AuditPolicy, Flaw> {
        sentence(self.summary)?;
        Ok(AuditPolicy {
            name: name(self.name)?,
            origin,
            stub: self.stub,
            sandbox: self.sandbox.try_into()?,
            environment: variables(self.environment)?,
        })
    }
}

fn variables(file: Vec<VariableFile>) -> Result<Vec<Variable>, Flaw> {
    if let Some(cases) = file.iter().find_map(|variable| variable.cases.as_ref()) {
        let hint = "an audit has no cases: leave `cases` out";
        return Err(Flaw::new(cases.span(), "no `cases`", "some", hint));
    }
    environment::parsed(file, Ok)
}
