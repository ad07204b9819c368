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
            environment: environment(self.environment, Ok)?,
        })
    }
}
