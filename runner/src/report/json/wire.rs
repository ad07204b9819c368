//! The form of schema `runner.report/1`: its keys, in their order. It knows the domain types and no other.
//! The part under `evidence` has a room of its own.

use std::time::Duration;

use serde::Serialize;

use crate::evidence::{self, Exit};
use crate::profile::Variable;
use crate::report::{self, claims, clock, words};
use crate::verdict::Finding;

mod evidence_form;
mod ledger_form;

use evidence_form::Evidence;

const SCHEMA: &str = "runner.report/1";

#[derive(Serialize)]
pub(super) struct Report<'a> {
    schema: &'static str,
    runner: Runner<'a>,
    host: Host<'a>,
    case: Case<'a>,
    verdict: &'static str,
    tier: &'static str,
    started_at: String,
    duration_ms: u64,
    client: Client<'a>,
    isolation: Isolation<'a>,
    checks: Vec<Check<'a>>,
    evidence: Evidence<'a>,
}

#[derive(Serialize)]
struct Runner<'a> {
    version: &'a str,
    sha256: &'a str,
}

#[derive(Serialize)]
struct Host<'a> {
    kernel: &'a str,
    arch: &'a str,
    landlock_abi: u32,
}

#[derive(Serialize)]
struct Case<'a> {
    name: &'a str,
    source: String,
    sha256: &'a str,
}

#[derive(Serialize)]
struct Client<'a> {
    program: &'a str,
    sha256: &'a str,
    /// `null` for an audited program.
    profile: Option<Profile<'a>>,
    args: Vec<Arg<'a>>,
    env_names: Vec<&'a str>,
    settings: Vec<Setting<'a>>,
    /// What `--plain` took away.
    left_out: Vec<Setting<'a>>,
    exit: ExitForm,
}

/// One variable of the client's environment; placeholders are not filled in.
#[derive(Serialize)]
struct Setting<'a> {
    name: &'a str,
    value: &'a str,
    reason: &'a str,
    /// `always`, or `case`: set in some cases only.
    scope: &'static str,
}

#[derive(Serialize)]
struct Profile<'a> {
    name: &'a str,
    sha256: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Arg<'a> {
    Word(&'a str),
    Prompt { bytes: u64, sha256: &'a str },
}

/// One key that says how the client ended. `timeout` is in milliseconds.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ExitForm {
    Code(i32),
    Signal(i32),
    Timeout(u64),
    OutputLimit(bool),
    RequestLimit(bool),
    Interrupted(bool),
    NotStarted(bool),
}

#[derive(Serialize)]
struct Isolation<'a> {
    layers: Vec<Layer<'a>>,
    canaries: Vec<Canary<'a>>,
    not_proved: Vec<String>,
}

#[derive(Serialize)]
struct Layer<'a> {
    name: &'a str,
    status: &'static str,
    detail: &'a str,
    need: &'static str,
}

#[derive(Serialize)]
struct Canary<'a> {
    name: &'a str,
    mode: &'static str,
    expected: &'a str,
    observed: &'a str,
    status: &'static str,
}

#[derive(Serialize)]
struct Check<'a> {
    id: &'static str,
    status: &'static str,
    message: &'a str,
    object: Option<&'a str>,
    expected: Option<&'a str>,
    found: Option<&'a str>,
    because: Option<&'a str>,
    spec: &'static str,
}

impl<'a> From<&'a report::Report> for Report<'a> {
    fn from(report: &'a report::Report) -> Self {
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
                source: words::source(&report.case.origin.source),
                sha256: &report.case.origin.sha256,
            },
            verdict: report.verdict.word(),
            tier: report.tier.word(),
            started_at: clock::rfc3339(evidence.wall.0),
            duration_ms: millis(evidence.duration),
            client: Client::new(&report.client, evidence.exit),
            isolation: Isolation {
                layers: evidence.layers.iter().map(Layer::from).collect(),
                canaries: evidence.canaries.iter().map(Canary::from).collect(),
                not_proved: claims::not_proved(report),
            },
            checks: report.checks.iter().map(Check::from).collect(),
            evidence: Evidence::from(report),
        }
    }
}

impl<'a> Client<'a> {
    fn new(client: &'a report::Client, exit: Exit) -> Self {
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
            exit: ExitForm::from(exit),
        }
    }
}

impl<'a> From<&'a Variable> for Setting<'a> {
    fn from(variable: &'a Variable) -> Self {
        Setting {
            name: &variable.name,
            value: &variable.value,
            reason: &variable.reason,
            scope: words::scope(&variable.cases),
        }
    }
}

impl<'a> From<&'a report::Arg> for Arg<'a> {
    fn from(arg: &'a report::Arg) -> Self {
        match arg {
            report::Arg::Word(word) => Arg::Word(word),
            report::Arg::Prompt { bytes, sha256 } => Arg::Prompt {
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
            status: words::layer_status(layer.status),
            detail: &layer.detail,
            need: words::layer_need(layer.need),
        }
    }
}

impl<'a> From<&'a evidence::Canary> for Canary<'a> {
    fn from(canary: &'a evidence::Canary) -> Self {
        Canary {
            name: &canary.name,
            mode: words::canary_mode(canary.mode),
            expected: &canary.expected,
            observed: &canary.observed,
            status: words::canary_status(canary.status),
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
            spec: finding.spec,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
