//! The wire form of the policy of audits, and its way into [`AuditPolicy`].

use serde::Deserialize;
use serde::de::IgnoredAny;
use stub::scenario::Scenario;
use toml::Spanned;

use super::case_file::SandboxFile;
use super::error::Flaw;
use super::profile_file::{VariableFile, environment};
use super::values::{name, sentence};
use crate::audit::AuditPolicy;
use crate::case::Origin;
use crate::profile::Variable;

/// A policy of audits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditFile {
    #[serde(rename = "schema")]
    _schema: IgnoredAny,
    name: Spanned<String>,
    summary: Spanned<String>,
    stub: Scenario,
    sandbox: SandboxFile,
    environment: Vec<VariableFile>,
}

impl AuditFile {
    /// The whole file, or the first thing in it that is wrong.
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
