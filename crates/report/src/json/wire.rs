//! Form of schema `runner.report/1`: the keys in their order.
//!
//! It depends on the model only. The module `evidence_form` has the part under `evidence`.

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

/// Result of one run of `runner`, with the evidence. Readers ignore unknown keys. Times named `at_us` are
/// microseconds on one monotonic clock from the start of the run. Texts may come from the client and be hostile;
/// control and invisible characters are escaped.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Report of runner")]
pub(super) struct Report<'a> {
    /// Schema of this document.
    schema: &'static str,
    /// The `runner` executable that made the run.
    runner: Runner<'a>,
    /// Machine of the run.
    host: Host<'a>,
    /// Case of the run: the request, the permissions and the expectations.
    case: Case<'a>,
    /// Verdict of the whole run.
    #[schemars(with = "Verdict")]
    verdict: &'static str,
    /// Isolation of the network.
    #[schemars(with = "Tier")]
    tier: &'static str,
    /// Start of the run.
    #[schemars(with = "Timestamp")]
    started_at: String,
    /// Duration of the run, in milliseconds.
    duration_ms: u64,
    /// Program under test.
    client: Client<'a>,
    /// The sandbox, as verified from inside.
    isolation: Isolation<'a>,
    /// One finding for each check, in a fixed order.
    checks: Vec<Check<'a>>,
    /// Lock file of `--baseline`; absent if the option was not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<Baseline<'a>>,
    /// Evidence, collected outside of the client.
    evidence: Evidence<'a>,
}

/// The `runner` executable that made the run.
#[derive(Serialize, JsonSchema)]
struct Runner<'a> {
    /// Version: `0.1.0`.
    version: &'a str,
    /// Digest of the executable.
    #[schemars(with = "Sha256")]
    sha256: &'a str,
}

/// The machine of the run.
#[derive(Serialize, JsonSchema)]
struct Host<'a> {
    /// Kernel release, from uname(2).
    kernel: &'a str,
    /// Architecture: `x86_64`.
    arch: &'a str,
    /// Landlock ABI of the kernel; 0 without Landlock.
    landlock_abi: u32,
}

/// The case of the run.
#[derive(Serialize, JsonSchema)]
struct Case<'a> {
    /// Name of the case: `case-b`.
    name: &'a str,
    /// `built in`, or the path of the case file.
    source: String,
    /// Digest of the file.
    #[schemars(with = "Sha256")]
    sha256: &'a str,
}

/// The program under test, with its arguments and environment.
#[derive(Serialize, JsonSchema)]
struct Client<'a> {
    /// Path of the program, or `built in`.
    program: &'a str,
    /// Digest of the program.
    #[schemars(with = "Sha256")]
    sha256: &'a str,
    /// Profile of the client; null for an audited program.
    profile: Option<Profile<'a>>,
    /// Arguments, without the name of the program.
    args: Vec<Arg<'a>>,
    /// Names of the environment variables.
    env_names: Vec<&'a str>,
    /// Environment variables, as in the profile.
    settings: Vec<Setting<'a>>,
    /// Variables that `--plain` left out.
    left_out: Vec<Setting<'a>>,
    /// End of the program.
    exit: ExitForm,
    /// Limit of the case that ended the program, with its value; null for any other end.
    limit: Option<&'a str>,
}

/// One variable of the client's environment; placeholders are not filled in.
#[derive(Serialize, JsonSchema)]
struct Setting<'a> {
    /// Name of the variable.
    name: &'a str,
    /// Value, as in the profile.
    value: &'a str,
    /// Reason for the variable.
    reason: &'a str,
    /// Cases that set the variable: some or every one.
    #[schemars(with = "Cases")]
    scope: &'static str,
}

/// The profile of the run.
#[derive(Serialize, JsonSchema)]
struct Profile<'a> {
    /// Name of the profile: `reference`.
    name: &'a str,
    /// Digest of the file.
    #[schemars(with = "Sha256")]
    sha256: &'a str,
}

/// One argument: a plain word, or a prompt, which no report shows.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Argument")]
enum Arg<'a> {
    /// Any argument but a prompt.
    Word(&'a str),
    /// A prompt of the case.
    Prompt {
        /// Length in bytes.
        bytes: u64,
        /// Digest of the prompt.
        #[schemars(with = "Sha256")]
        sha256: &'a str,
    },
}

/// End of the client, as an object with one key.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Exit")]
enum ExitForm {
    /// The client exited with this status.
    Code(i32),
    /// This signal ended the client.
    Signal(i32),
    /// The runner ended the client after this time, in milliseconds.
    Timeout(u64),
    /// The runner ended the client, because it wrote more than the case allows.
    OutputLimit(bool),
    /// The runner ended the client, because it made more requests than the case allows.
    RequestLimit(bool),
    /// The run was interrupted.
    Interrupted(bool),
    /// The client was never started.
    NotStarted(bool),
}

/// The sandbox, as verified from inside.
#[derive(Serialize, JsonSchema)]
struct Isolation<'a> {
    /// Reason for the weaker isolation; null for the strongest one.
    because: Option<&'a str>,
    /// Layers of the sandbox, verified from the kernel.
    layers: Vec<Layer<'a>>,
    /// Probes of the canary: forbidden calls, made in the client's place just before its start.
    canaries: Vec<Canary<'a>>,
    /// Classes of attempts missing in the ledger, because a filter outside of the sandbox refuses them first; named
    /// by their probes.
    unseen: Vec<&'a str>,
    /// Limits of the run, a sentence each.
    not_proved: Vec<String>,
}

/// One layer of the sandbox, verified from the kernel.
#[derive(Serialize, JsonSchema)]
struct Layer<'a> {
    /// Name of the layer: `network namespace`.
    name: &'a str,
    /// State of the layer in the kernel.
    #[schemars(with = "evidence::LayerStatus")]
    status: &'static str,
    /// Enforced rules, or the missing part.
    detail: &'a str,
    /// Need for the layer: required, or only if the kernel offers it.
    #[schemars(with = "evidence::LayerNeed")]
    need: &'static str,
}

/// One probe: a call that must fail, or a positive twin that must succeed.
#[derive(Serialize, JsonSchema)]
struct Canary<'a> {
    /// Name of the probe: `tcp4`. The positive twins are `stub` and `home`.
    name: &'a str,
    /// Layer that must refuse the call: the supervisor or the kernel.
    #[schemars(with = "evidence::CanaryMode")]
    mode: &'static str,
    /// Expected errno: `ENETUNREACH`; `ok` for a positive twin.
    expected: &'a str,
    /// Observed errno, or `ok`.
    observed: &'a str,
    /// Result of the probe.
    #[schemars(with = "evidence::CanaryStatus")]
    status: &'static str,
}

/// Result of one check.
#[derive(Serialize, JsonSchema)]
struct Check<'a> {
    /// Stable id of the check: `requests/first-and-only`.
    #[schemars(with = "CheckId")]
    id: &'static str,
    /// Status of the check.
    #[schemars(with = "Status")]
    status: &'static str,
    /// One sentence for people.
    message: &'a str,
    /// Object of the check: `request 2`.
    object: Option<&'a str>,
    /// Value that the specification requires.
    expected: Option<&'a str>,
    /// Value that the evidence shows.
    found: Option<&'a str>,
    /// Reason for a skipped or errored check.
    because: Option<&'a str>,
    /// Section of the specification: `2.1`; `-` for a check that no section requires.
    spec: &'static str,
}

/// Schema of [`Check::id`].
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
