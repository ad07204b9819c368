//! Types of a SARIF 2.1.0 log, limited to the parts that the report uses.
//!
//! serde-sarif 0.8 is not used: it adds two dozen crates and a build script that generates the whole standard. The
//! tests check the output against the schema of the standard and with a validator.

use serde::Serialize;

/// URL of the standard's schema, errata included.
pub(super) const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Version of the standard.
pub(super) const VERSION: &str = "2.1.0";

#[derive(Debug, Serialize)]
pub(super) struct Log {
    #[serde(rename = "$schema")]
    pub(super) schema: &'static str,
    pub(super) version: &'static str,
    pub(super) runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    pub(super) tool: Tool,
    pub(super) automation_details: AutomationDetails,
    pub(super) invocations: [Invocation; 1],
    pub(super) original_uri_base_ids: UriBases,
    pub(super) artifacts: Vec<Artifact>,
    pub(super) results: Vec<Finding>,
    pub(super) properties: RunProperties,
}

#[derive(Debug, Serialize)]
pub(super) struct Tool {
    pub(super) driver: Driver,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Driver {
    pub(super) name: &'static str,
    pub(super) version: String,
    pub(super) semantic_version: String,
    pub(super) rules: Vec<Rule>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) short_description: Text,
    pub(super) full_description: Text,
    pub(super) help: Text,
    pub(super) default_configuration: Configuration,
    pub(super) properties: RuleProperties,
}

#[derive(Debug, Serialize)]
pub(super) struct Configuration {
    pub(super) level: Level,
}

#[derive(Debug, Serialize)]
pub(super) struct RuleProperties {
    pub(super) tags: [String; 1],
    /// Section of the specification.
    pub(super) specification: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Text {
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Error,
    Warning,
    Note,
}

#[derive(Debug, Serialize)]
pub(super) struct AutomationDetails {
    pub(super) id: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Invocation {
    pub(super) execution_successful: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<u8>,
    pub(super) exit_code_description: String,
    pub(super) start_time_utc: String,
    pub(super) end_time_utc: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_execution_notifications: Vec<Notification>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Notification {
    pub(super) level: Level,
    pub(super) message: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) associated_rule: Option<RuleReference>,
}

#[derive(Debug, Serialize)]
pub(super) struct RuleReference {
    pub(super) id: String,
    pub(super) index: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct UriBases {
    #[serde(rename = "%SRCROOT%")]
    pub(super) source_root: UriBase,
}

#[derive(Debug, Serialize)]
pub(super) struct UriBase {
    pub(super) description: Text,
}

#[derive(Debug, Serialize)]
pub(super) struct Artifact {
    pub(super) location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hashes: Option<Hashes>,
}

#[derive(Debug, Serialize)]
pub(super) struct Hashes {
    #[serde(rename = "sha-256")]
    pub(super) sha256: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactLocation {
    pub(super) uri: String,
    pub(super) uri_base_id: &'static str,
    pub(super) index: usize,
}

/// A `result` of the standard.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Finding {
    pub(super) rule_id: String,
    pub(super) rule_index: usize,
    pub(super) kind: &'static str,
    pub(super) level: Level,
    pub(super) message: Text,
    pub(super) locations: Vec<Location>,
    pub(super) partial_fingerprints: Fingerprints,
    pub(super) properties: FindingProperties,
}

#[derive(Debug, Serialize)]
pub(super) struct Fingerprints {
    #[serde(rename = "runnerFinding/v1")]
    pub(super) own: String,
    #[serde(rename = "primaryLocationLineHash")]
    pub(super) github: String,
}

#[derive(Debug, Serialize)]
pub(super) struct FindingProperties {
    /// Status of the check, as in the other reports.
    pub(super) status: &'static str,
    /// TOML of the changes that accept the finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) accept: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Location {
    pub(super) physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logical_locations: Option<[LogicalLocation; 1]>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PhysicalLocation {
    pub(super) artifact_location: ArtifactLocation,
    pub(super) region: Region,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Region {
    pub(super) start_line: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct LogicalLocation {
    pub(super) name: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunProperties {
    pub(super) verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) findings: Option<usize>,
    pub(super) tier: &'static str,
    pub(super) case: String,
    pub(super) case_sha256: String,
    pub(super) client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_sha256: Option<String>,
    pub(super) client_from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<String>,
    pub(super) runner_commit: String,
    pub(super) runner_build_id: String,
}
