//! The form of schema `runner.report/1`: its keys, in their order. It knows the domain types and no other.
//! The part under `evidence` has a room of its own.

use std::borrow::Cow;
use std::time::Duration;

use model::case::Tier;
use model::evidence::{self, Exit};
use model::finding::{self, Finding, Status, Verdict};
use model::profile::{Cases, Variable};
use model::schema::values::{Sha256, Timestamp};
use model::{labels, time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::{claims, phrases};

mod baseline_form;
mod evidence_form;
mod ledger_form;

use baseline_form::Baseline;
use evidence_form::Evidence;

pub(super) const SCHEMA: &str = "runner.report/1";

/// What one run of `runner` came to, and the evidence for it. Readers ignore keys that they do not know. Times
/// named `at_us` are microseconds on one monotonic clock from the start of the run. Texts may be the client's own
/// and hostile; control and invisible characters are escaped.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Report of runner")]
pub(super) struct Report<'a> {
    /// The form of this document.
    schema: &'static str,
    /// The program that made the run.
    pub runner: Runner<'a>,
    /// The machine.
    host: Host<'a>,
    /// What was asked, allowed and expected.
    pub case: Case<'a>,
    /// The word for the whole run.
    #[schemars(with = "Verdict")]
    verdict: &'static str,
    /// What sealed the network.
    #[schemars(with = "Tier")]
    pub tier: &'static str,
    /// When the run began.
    #[schemars(with = "Timestamp")]
    pub started_at: String,
    /// How long it took, in milliseconds.
    duration_ms: u64,
    /// The subject.
    pub client: Client<'a>,
    /// The sandbox, as found from inside.
    isolation: Isolation<'a>,
    /// One finding for each check, in a fixed order.
    checks: Vec<Check<'a>>,
    /// The lock file of `--baseline`, where the behaviour was compared with one or written to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<Baseline<'a>>,
    /// What was collected, outside of the client.
    evidence: Evidence<'a>,
}

/// The program that made the run.
#[derive(Serialize, JsonSchema)]
struct Runner<'a> {
    /// Its version: `0.1.0`.
    pub version: &'a str,
    /// Digest of its executable.
    #[schemars(with = "Sha256")]
    sha256: &'a str,
}

/// The machine.
#[derive(Serialize, JsonSchema)]
struct Host<'a> {
    /// Release of the kernel, as in uname(2).
    kernel: &'a str,
    /// Its architecture: `x86_64`.
    arch: &'a str,
    /// ABI of Landlock that the kernel offers; 0 without any.
    landlock_abi: u32,
}

/// The case of the run.
#[derive(Serialize, JsonSchema)]
struct Case<'a> {
    /// Its name: `case-b`.
    pub name: &'a str,
    /// `built in`, or the path of its file.
    source: String,
    /// Digest of its file.
    #[schemars(with = "Sha256")]
    sha256: &'a str,
}

/// The program under test, and what it was told.
#[derive(Serialize, JsonSchema)]
struct Client<'a> {
    /// Its path, or `built in`.
    pub program: &'a str,
    /// Digest of the program.
    #[schemars(with = "Sha256")]
    pub sha256: &'a str,
    /// How it was told what to do; null for an audited program.
    pub profile: Option<Profile<'a>>,
    /// Its command line, behind the name of the program.
    args: Vec<Arg<'a>>,
    /// Names of its environment variables.
    env_names: Vec<&'a str>,
    /// The variables, as the profile sets them.
    settings: Vec<Setting<'a>>,
    /// What `--plain` took away.
    left_out: Vec<Setting<'a>>,
    /// How it ended.
    exit: ExitForm,
    /// The limit of its case that ended it, with its value; null where none did.
    limit: Option<&'a str>,
}

/// One variable of the client's environment; placeholders are not filled in.
#[derive(Serialize, JsonSchema)]
struct Setting<'a> {
    /// Its name.
    name: &'a str,
    /// Its value, as in the profile.
    value: &'a str,
    /// Why it is set.
    reason: &'a str,
    /// Whether it belongs to some cases or to every one.
    #[schemars(with = "Cases")]
    scope: &'static str,
}

/// The profile of the run.
#[derive(Serialize, JsonSchema)]
struct Profile<'a> {
    /// Its name: `reference`.
    pub name: &'a str,
    /// Digest of its file.
    #[schemars(with = "Sha256")]
    sha256: &'a str,
}

/// One argument: as it is, or a prompt, which no report shows.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Argument")]
enum Arg<'a> {
    /// As it is.
    Word(&'a str),
    /// A prompt of the case.
    Prompt {
        /// Its length.
        bytes: u64,
        /// Its digest.
        #[schemars(with = "Sha256")]
        sha256: &'a str,
    },
}

/// One key that says how the client ended.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Exit")]
enum ExitForm {
    /// It exited with this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Ended by the runner after so many milliseconds.
    Timeout(u64),
    /// Ended by the runner: it wrote more than the case allows.
    OutputLimit(bool),
    /// Ended by the runner: it made more requests than the case allows.
    RequestLimit(bool),
    /// The run was interrupted.
    Interrupted(bool),
    /// It was never started.
    NotStarted(bool),
}

/// The sandbox, as found from inside.
#[derive(Serialize, JsonSchema)]
struct Isolation<'a> {
    /// Why the tier is not a stronger one that would have done; null where it is the strongest.
    because: Option<&'a str>,
    /// What the kernel enforces, read back.
    pub layers: Vec<Layer<'a>>,
    /// Forbidden calls, tried in the client's place just before it started.
    pub canaries: Vec<Canary<'a>>,
    /// Classes of attempts that are in no ledger, by the names of their canaries: a filter outside of the sandbox
    /// refuses them first.
    unseen: Vec<&'a str>,
    /// What this run does not prove, a sentence each.
    not_proved: Vec<String>,
}

/// One layer of the sandbox, read back from the kernel.
#[derive(Serialize, JsonSchema)]
struct Layer<'a> {
    /// Which: `network namespace`.
    name: &'a str,
    /// What the kernel says of it.
    #[schemars(with = "evidence::LayerStatus")]
    status: &'static str,
    /// What exactly is enforced, or what is missing.
    detail: &'a str,
    /// Whether the run counts without it.
    #[schemars(with = "evidence::LayerNeed")]
    need: &'static str,
}

/// One call that must fail, or a positive twin that must not.
#[derive(Serialize, JsonSchema)]
struct Canary<'a> {
    /// Which: `tcp4`. The positive twins are `stub` and `home`.
    name: &'a str,
    /// Who was to refuse it.
    #[schemars(with = "evidence::CanaryMode")]
    mode: &'static str,
    /// The errno that must come: `ENETUNREACH`; for a positive twin `ok`.
    expected: &'a str,
    /// What came, in the same words.
    observed: &'a str,
    /// What it says.
    #[schemars(with = "evidence::CanaryStatus")]
    status: &'static str,
}

/// What one check came to.
#[derive(Serialize, JsonSchema)]
struct Check<'a> {
    /// Its stable id: `requests/first-and-only`.
    #[schemars(with = "CheckId")]
    id: &'static str,
    /// How it came out.
    #[schemars(with = "Status")]
    status: &'static str,
    /// One sentence for people.
    message: &'a str,
    /// What was looked at: `request 2`.
    object: Option<&'a str>,
    /// What the specification asks for.
    expected: Option<&'a str>,
    /// What the evidence shows.
    found: Option<&'a str>,
    /// Why it was skipped, or could not be made.
    because: Option<&'a str>,
    /// Section of the specification: `2.1`; `-` where none asks for it.
    spec: &'static str,
}

/// Stands for [`Check::id`].
#[derive(Debug)]
enum CheckId {}

impl JsonSchema for CheckId {
    fn schema_name() -> Cow<'static, str> {
        "CheckId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The stable id of a check. A later version may have more.",
            "type": "string",
            "pattern": "^[a-z-]+/[a-z-]+$",
            "examples": Vec::from_iter(finding::ids()),
        })
    }
}

impl<'a> From<&'a model::report::Report> for Report<'a> {
    fn from(report: &'a model::report::Report) -> Self {
        let evidence = &report.evidence;
        Report {
            schema: SCHEMA,
            runner: Runner {
                version: &report.runner.version,
                sha256: &report.runner.sha256,
            },
            host: Host {
                kernel: &report.host.kernel,
                arch: &report.host.arch,
                landlock_abi: report.host.landlock_abi,
            },
            case: Case {
                name: &report.case.name,
                source: phrases::source(&report.case.origin.source),
                sha256: &report.case.origin.sha256,
            },
            verdict: report.verdict.word(),
            tier: report.tier.word(),
            started_at: time::rfc3339(evidence.wall.0),
            duration_ms: millis(evidence.duration),
            client: Client::new(&report.client, evidence),
            isolation: Isolation {
                because: report.tier_because.as_deref(),
                layers: evidence.layers.iter().map(Layer::from).collect(),
                canaries: evidence.canaries.iter().map(Canary::from).collect(),
                unseen: evidence.unseen(),
                not_proved: claims::not_proved(report),
            },
            checks: report.checks.iter().map(Check::from).collect(),
            baseline: report.baseline.as_ref().map(Baseline::from),
            evidence: Evidence::from(report),
        }
    }
}

impl<'a> Client<'a> {
    fn new(client: &'a model::report::Client, evidence: &'a evidence::Evidence) -> Self {
        Client {
            program: &client.program,
            sha256: &client.sha256,
            profile: client.profile.as_ref().map(|profile| Profile {
                name: &profile.name,
                sha256: &profile.origin.sha256,
            }),
            args: client.args.iter().map(Arg::from).collect(),
            env_names: client
                .settings
                .iter()
                .map(|setting| setting.name.as_str())
                .collect(),
            settings: client.settings.iter().map(Setting::from).collect(),
            left_out: client.left_out.iter().map(Setting::from).collect(),
            exit: ExitForm::from(evidence.exit),
            limit: evidence.limit.as_deref(),
        }
    }
}

impl<'a> From<&'a Variable> for Setting<'a> {
    fn from(variable: &'a Variable) -> Self {
        Setting {
            name: &variable.name,
            value: &variable.value,
            reason: &variable.reason,
            scope: labels::scope(&variable.cases),
        }
    }
}

impl<'a> From<&'a model::report::Arg> for Arg<'a> {
    fn from(arg: &'a model::report::Arg) -> Self {
        match arg {
            model::report::Arg::Word(word) => Arg::Word(word),
            model::report::Arg::Prompt { bytes, sha256 } => Arg::Prompt {
                bytes: *bytes,
                sha256,
            },
        }
    }
}

impl From<Exit> for ExitForm {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => ExitForm::Code(code),
            Exit::Signal(signal) => ExitForm::Signal(signal),
            Exit::Timeout(after) => ExitForm::Timeout(millis(after)),
            Exit::OutputLimit => ExitForm::OutputLimit(true),
            Exit::RequestLimit => ExitForm::RequestLimit(true),
            Exit::Interrupted => ExitForm::Interrupted(true),
            Exit::NotStarted => ExitForm::NotStarted(true),
        }
    }
}

impl<'a> From<&'a evidence::Layer> for Layer<'a> {
    fn from(layer: &'a evidence::Layer) -> Self {
        Layer {
            name: &layer.name,
            status: labels::layer_status(layer.status),
            detail: &layer.detail,
            need: labels::layer_need(layer.need),
        }
    }
}

impl<'a> From<&'a evidence::Canary> for Canary<'a> {
    fn from(canary: &'a evidence::Canary) -> Self {
        Canary {
            name: &canary.name,
            mode: labels::canary_mode(canary.mode),
            expected: &canary.expected,
            observed: &canary.observed,
            status: labels::canary_status(canary.status),
        }
    }
}

impl<'a> From<&'a Finding> for Check<'a> {
    fn from(finding: &'a Finding) -> Self {
        Check {
            id: finding.id,
            status: finding.status.word(),
            message: &finding.message,
            object: finding.object.as_deref(),
            expected: finding.expected.as_deref(),
            found: finding.found.as_deref(),
            because: finding.because.as_deref(),
            spec: finding.asked_by.section(),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
