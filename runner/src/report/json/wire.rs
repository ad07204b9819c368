//! The form of schema `runner.report/1`: its keys, in their order. It knows the domain types and no other.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use stub::journal::{Content, End, Head};

use crate::evidence::{self, Exit, Line};
use crate::report::{self, claims, clock, words};
use crate::verdict::Finding;

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
    profile: Profile<'a>,
    args: Vec<Arg<'a>>,
    env_names: &'a [String],
    exit: ExitForm,
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
    Interrupted(bool),
    NotStarted(bool),
}

#[derive(Serialize)]
struct Isolation<'a> {
    layers: Vec<Layer<'a>>,
    canaries: Vec<Canary<'a>>,
    not_proved: Vec<&'a str>,
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

/// `attempts`, `names` and `processes` are not recorded in this version and stay empty.
#[derive(Serialize)]
struct Evidence<'a> {
    connections: Vec<Connection>,
    requests: Vec<Request<'a>>,
    records: Vec<Record<'a>>,
    files: Vec<File<'a>>,
    attempts: [(); 0],
    names: [(); 0],
    processes: [(); 0],
    stderr: Stderr<'a>,
    gaps: Vec<Gap<'a>>,
    provider_events: Vec<ProviderEvent<'a>>,
    sightings: Vec<Sighting<'a>>,
    survivors: Vec<Survivor<'a>>,
}

#[derive(Serialize)]
struct Connection {
    seq: u64,
    at_us: u64,
    bytes: u64,
    unaccounted: u64,
    requests: u64,
    end: End,
}

#[derive(Serialize)]
struct Request<'a> {
    seq: u64,
    at_us: u64,
    connection: u64,
    class: &'static str,
    method: Option<&'a str>,
    path: Option<&'a str>,
    query: Option<&'a str>,
    headers: &'a [(String, String)],
    body: Option<Body<'a>>,
    complete: bool,
    status: Option<u16>,
    /// Why there is no head, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'a str>,
}

#[derive(Serialize)]
struct Body<'a> {
    bytes: u64,
    sha256: &'a str,
    shape: Option<&'a Value>,
    /// Why there is no shape, where there are bytes and no shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

#[derive(Serialize)]
struct Record<'a> {
    seq: u64,
    at_us: u64,
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    subtype: Option<&'a str>,
    event: Option<&'a str>,
    bytes: u64,
    before: &'static str,
    /// Why the line is no record, where it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'a str>,
}

#[derive(Serialize)]
struct File<'a> {
    root: &'static str,
    path: &'a str,
    kind: &'static str,
    mode: String,
    bytes: u64,
    sha256: Option<&'a str>,
    /// Files are listed after the end, so none of them is.
    transient: bool,
}

#[derive(Serialize)]
struct Stderr<'a> {
    bytes: u64,
    tail: &'a str,
}

#[derive(Serialize)]
struct Gap<'a> {
    what: &'static str,
    detail: &'a str,
}

#[derive(Serialize)]
struct ProviderEvent<'a> {
    at_us: u64,
    request: u64,
    event: &'a str,
    data: &'a Value,
}

#[derive(Serialize)]
struct Sighting<'a> {
    place: &'a str,
    form: &'a str,
}

#[derive(Serialize)]
struct Survivor<'a> {
    pid: i32,
    program: &'a str,
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
            tier: words::tier(report.tier),
            started_at: clock::rfc3339(evidence.wall.0),
            duration_ms: millis(evidence.duration),
            client: Client::new(&report.client, evidence.exit),
            isolation: Isolation {
                layers: evidence.layers.iter().map(Layer::from).collect(),
                canaries: evidence.canaries.iter().map(Canary::from).collect(),
                not_proved: claims::not_proved(report),
            },
            checks: report.checks.iter().map(Check::from).collect(),
            evidence: Evidence::from(evidence),
        }
    }
}

impl<'a> Client<'a> {
    fn new(client: &'a report::Client, exit: Exit) -> Self {
        Client {
            program: &client.program,
            sha256: &client.sha256,
            profile: Profile {
                name: &client.profile.name,
                sha256: &client.profile.origin.sha256,
            },
            args: client.args.iter().map(Arg::from).collect(),
            env_names: &client.env_names,
            exit: ExitForm::from(exit),
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

impl<'a> From<&'a evidence::Evidence> for Evidence<'a> {
    fn from(evidence: &'a evidence::Evidence) -> Self {
        let gap = |gap: &'a evidence::Gap| Gap {
            what: words::gap(gap.what),
            detail: &gap.detail,
        };
        let event = |event: &'a evidence::ProviderEvent| ProviderEvent {
            at_us: event.at_us,
            request: event.request,
            event: &event.event,
            data: &event.data,
        };
        let sighting = |sighting: &'a evidence::Sighting| Sighting {
            place: &sighting.place,
            form: &sighting.form,
        };
        let survivor = |survivor: &'a evidence::Survivor| Survivor {
            pid: survivor.pid,
            program: &survivor.program,
        };
        Evidence {
            connections: evidence.connections.iter().map(Connection::from).collect(),
            requests: evidence.requests.iter().map(Request::from).collect(),
            records: evidence.records.iter().map(Record::from).collect(),
            files: evidence.files.iter().map(File::from).collect(),
            attempts: [],
            names: [],
            processes: [],
            stderr: Stderr {
                bytes: evidence.stderr.bytes,
                tail: &evidence.stderr.tail,
            },
            gaps: evidence.gaps.iter().map(gap).collect(),
            provider_events: evidence.provider_events.iter().map(event).collect(),
            sightings: evidence.sightings.iter().map(sighting).collect(),
            survivors: evidence.survivors.iter().map(survivor).collect(),
        }
    }
}

impl From<&evidence::Connection> for Connection {
    fn from(connection: &evidence::Connection) -> Self {
        Connection {
            seq: connection.seq,
            at_us: connection.at_us,
            bytes: connection.bytes,
            unaccounted: connection.unaccounted,
            requests: connection.requests,
            end: connection.end,
        }
    }
}

impl<'a> From<&'a evidence::Request> for Request<'a> {
    fn from(request: &'a evidence::Request) -> Self {
        let (method, path, query, fault) = match &request.head {
            Head::Request {
                method,
                path,
                query,
                ..
            } => (
                Some(method.as_str()),
                Some(path.as_str()),
                query.as_deref(),
                None,
            ),
            Head::Malformed { reason } => (None, None, None, Some(reason.as_str())),
            Head::Incomplete => (
                None,
                None,
                None,
                Some("the connection ended before the head did"),
            ),
        };
        Request {
            seq: request.seq,
            at_us: request.at_us,
            connection: request.connection,
            class: words::class(request.class),
            method,
            path,
            query,
            headers: request.headers(),
            body: request.body.as_ref().map(Body::from),
            complete: request.is_complete(),
            status: request.status,
            fault,
        }
    }
}

impl<'a> From<&'a stub::journal::Body> for Body<'a> {
    fn from(body: &'a stub::journal::Body) -> Self {
        let (shape, fault) = match &body.content {
            Content::Empty => (None, None),
            Content::Json { shape } => (Some(shape), None),
            Content::DuplicateKey { path } => (None, Some(format!("a key is named twice: {path}"))),
            Content::Other { reason } => (None, Some(reason.clone())),
        };
        Body {
            bytes: body.bytes,
            sha256: &body.sha256,
            shape,
            fault,
        }
    }
}

impl<'a> From<&'a evidence::Record> for Record<'a> {
    fn from(record: &'a evidence::Record) -> Self {
        let fault = match &record.line {
            Line::Record(_) => None,
            Line::NotJson { reason } => Some(reason.as_str()),
        };
        Record {
            seq: record.seq,
            at_us: record.at_us,
            kind: record.kind(),
            subtype: record.subtype(),
            event: record.event(),
            bytes: record.bytes,
            before: words::before(record.before),
            fault,
        }
    }
}

impl<'a> From<&'a evidence::FileEntry> for File<'a> {
    fn from(entry: &'a evidence::FileEntry) -> Self {
        File {
            root: words::root(entry.root),
            path: &entry.path,
            kind: words::file_kind(entry.kind),
            mode: format!("{:04o}", entry.mode),
            bytes: entry.bytes,
            sha256: entry.sha256.as_deref(),
            transient: false,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
