//! Form of `evidence` in schema `runner.report/1`.

use model::evidence::{self, Line, Root};
use model::journal::{Content, End, Head, Host};
use model::labels;
use model::report::{Known, Report};
use model::schema::values::{FileMode, Sha256};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::ledger_form::{Attempt, Lookup, Name, Process};

/// Evidence, collected outside of the client.
#[derive(Serialize, JsonSchema)]
pub(super) struct Evidence<'a> {
    /// Connections that the stub accepted.
    connections: Vec<Connection>,
    /// Requests that the stub read.
    requests: Vec<Request<'a>>,
    /// Lines of the client's standard output.
    records: Vec<Record<'a>>,
    /// Files in the client's directories, at the end or earlier.
    files: Vec<File<'a>>,
    /// Calls that led, or could lead, out of the client.
    attempts: Vec<Attempt<'a>>,
    /// Names queried at the resolver.
    names: Vec<Name<'a>>,
    /// Failed path lookups.
    lookups: Vec<Lookup<'a>>,
    /// Programs that were started.
    processes: Vec<Process<'a>>,
    /// Standard error of the client.
    stderr: Stderr<'a>,
    /// Missing evidence. A check that needs it never passes.
    gaps: Vec<Gap<'a>>,
    /// Events that the stub sent.
    provider_events: Vec<ProviderEvent<'a>>,
    /// Places that contain the credential of the run.
    sightings: Vec<Sighting<'a>>,
    /// Processes that outlived the client.
    survivors: Vec<Survivor<'a>>,
    /// Objects created and removed again, for each directory.
    made_and_removed: Vec<MadeAndRemoved>,
    /// Times at which the phases of the run began.
    moments: Moments,
}

/// Phases of a run; null for a phase that was not reached.
#[derive(Serialize, JsonSchema)]
struct Moments {
    /// The sandbox was complete, and the canary began.
    supervised_us: Option<u64>,
    /// Every layer and the canary were verified, and the client was started.
    released_us: Option<u64>,
    /// The client and its remaining processes had ended.
    ended_us: Option<u64>,
}

/// Objects of one directory that were created and removed again.
#[derive(Serialize, JsonSchema)]
struct MadeAndRemoved {
    /// Directory of the objects.
    #[schemars(with = "Root")]
    root: &'static str,
    /// Number of objects; null if unknown.
    count: Option<u64>,
}

/// One connection that the stub accepted.
#[derive(Serialize, JsonSchema)]
struct Connection {
    /// Number, from 1.
    seq: u64,
    /// Time of accept(2).
    at_us: u64,
    /// Host that accepted the connection: the provider, or the second host, known only from an answer of the stub.
    host: Host,
    /// Bytes read from the connection.
    bytes: u64,
    /// Bytes read that belong to no request.
    unaccounted: u64,
    /// Bytes still in the kernel's send queue one second after the client's end; the end of the stream counts as one.
    held: u64,
    /// Requests on the connection.
    requests: u64,
    /// End of the connection.
    end: End,
}

/// One request, as received.
#[derive(Serialize, JsonSchema)]
struct Request<'a> {
    /// Number, from 1.
    seq: u64,
    /// Time at which the head was read.
    at_us: u64,
    /// Number of the connection.
    connection: u64,
    /// Host of the connection.
    host: Host,
    /// Purpose of the request.
    #[schemars(with = "evidence::RequestClass")]
    class: &'static str,
    /// Name of the side request in the profile.
    side: Option<&'a str>,
    /// Method, as received; null without a head.
    method: Option<&'a str>,
    /// Request target up to the first `?`; null without a head.
    path: Option<&'a str>,
    /// Request target after the first `?`.
    query: Option<&'a str>,
    /// Names and values, as received and in order. In credential headers, the run's own credential is `<redacted>`
    /// and any other value is `<N bytes, sha256 HEX>`.
    headers: &'a [(String, String)],
    /// Body; null if no body was read.
    body: Option<Body<'a>>,
    /// True if head and body are complete.
    complete: bool,
    /// Status of the response, if the stub began one.
    status: Option<u16>,
    /// Reason for the missing head; absent if there is a head.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'a str>,
}

/// The body of a request, without its text.
#[derive(Serialize, JsonSchema)]
struct Body<'a> {
    /// Length in bytes.
    bytes: u64,
    /// Digest of the body.
    #[schemars(with = "Sha256")]
    sha256: &'a str,
    /// JSON value with each string replaced by its length and digest, except those of `type` and `role`.
    shape: Option<&'a Value>,
    /// Reason for the missing shape of a body with bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

/// One line of the client's standard output.
#[derive(Serialize, JsonSchema)]
struct Record<'a> {
    /// Number, from 1.
    seq: u64,
    /// Time at which the end of the line was read.
    at_us: u64,
    /// Field `type` of the record.
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    /// Field `subtype` of the record.
    subtype: Option<&'a str>,
    /// Provider event inside the record.
    event: Option<&'a str>,
    /// Names of the fields, sorted; empty if the line is no record.
    fields: Vec<&'a str>,
    /// Length in bytes, without the line feed.
    bytes: u64,
    /// Event that had not happened yet when the line was on the pipe.
    #[schemars(with = "evidence::Before")]
    before: &'static str,
    /// Reason why the line is no record; absent for a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'a str>,
}

/// One file in the home, temporary or working directory.
#[derive(Serialize, JsonSchema)]
struct File<'a> {
    /// Directory of the file.
    #[schemars(with = "Root")]
    root: &'static str,
    /// Path relative to the directory.
    path: &'a str,
    /// Type of the file.
    #[schemars(with = "evidence::FileKind")]
    kind: &'static str,
    /// Permission bits.
    #[schemars(with = "FileMode")]
    mode: String,
    /// Size in bytes.
    bytes: u64,
    /// Digest of a regular file.
    #[schemars(with = "Option<Sha256>")]
    sha256: Option<&'a str>,
    /// Target of a symbolic link.
    target: Option<&'a str>,
    /// True if the file was removed before the end.
    transient: bool,
    /// Reason for the file in the profile or the specification; null for an unexpected file.
    expected: Option<&'a str>,
}

/// Standard error of the client.
#[derive(Serialize, JsonSchema)]
struct Stderr<'a> {
    /// Total length in bytes.
    bytes: u64,
    /// Last part of the text.
    tail: &'a str,
}

/// Missing evidence.
#[derive(Serialize, JsonSchema)]
struct Gap<'a> {
    /// Part of the evidence that is incomplete.
    #[schemars(with = "evidence::GapKind")]
    what: &'static str,
    /// Missing data and the reason.
    detail: &'a str,
}

/// One event that the stub wrote to a connection.
#[derive(Serialize, JsonSchema)]
struct ProviderEvent<'a> {
    /// Time of the event.
    at_us: u64,
    /// Number of the answered request.
    request: u64,
    /// Name of the event.
    event: &'a str,
    /// JSON data of the event.
    data: &'a Value,
}

/// One place that contains the credential of the run.
#[derive(Serialize, JsonSchema)]
struct Sighting<'a> {
    /// Place: `request 2 header user-agent`.
    place: &'a str,
    /// Encoding of the credential: `as written`, `base64`, `hex` or `percent-encoding`.
    form: &'a str,
}

/// A process that outlived the client.
#[derive(Serialize, JsonSchema)]
struct Survivor<'a> {
    /// Process id inside the sandbox.
    pid: i32,
    /// Name of the program, from /proc.
    program: &'a str,
}

impl<'a> From<&'a Report> for Evidence<'a> {
    fn from(report: &'a Report) -> Self {
        let evidence = &report.evidence;
        let gap = |gap: &'a evidence::Gap| Gap {
            what: labels::gap(gap.what),
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
            files: evidence
                .files
                .iter()
                .map(|entry| File::new(entry, &report.known))
                .collect(),
            attempts: evidence
                .attempts
                .iter()
                .map(|attempt| Attempt::new(attempt, report))
                .collect(),
            names: evidence
                .names
                .iter()
                .map(|question| Name::new(question, &report.known))
                .collect(),
            lookups: evidence.lookups.iter().map(Lookup::from).collect(),
            processes: report.processes.iter().map(Process::from).collect(),
            stderr: Stderr {
                bytes: evidence.stderr.bytes,
                tail: &evidence.stderr.tail,
            },
            gaps: evidence.gaps.iter().map(gap).collect(),
            provider_events: evidence.provider_events.iter().map(event).collect(),
            sightings: evidence.sightings.iter().map(sighting).collect(),
            survivors: evidence.survivors.iter().map(survivor).collect(),
            made_and_removed: evidence
                .made_and_removed
                .iter()
                .map(|(root, count)| MadeAndRemoved {
                    root: root.word(),
                    count: *count,
                })
                .collect(),
            moments: Moments {
                supervised_us: evidence.moments.supervised_us,
                released_us: evidence.moments.released_us,
                ended_us: evidence.moments.ended_us,
            },
        }
    }
}

impl From<&evidence::Connection> for Connection {
    fn from(connection: &evidence::Connection) -> Self {
        Connection {
            seq: connection.seq,
            at_us: connection.at_us,
            host: connection.host,
            bytes: connection.bytes,
            unaccounted: connection.unaccounted,
            held: connection.held,
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
            host: request.host,
            class: labels::class(request.class),
            side: request.side.as_deref(),
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

impl<'a> From<&'a model::journal::Body> for Body<'a> {
    fn from(body: &'a model::journal::Body) -> Self {
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
            fields: record.fields(),
            bytes: record.bytes,
            before: labels::before(record.before),
            fault,
        }
    }
}

impl<'a> File<'a> {
    fn new(entry: &'a evidence::FileEntry, known: &'a Known) -> Self {
        File {
            root: entry.root.word(),
            path: &entry.path,
            kind: labels::file_kind(entry.kind),
            mode: format!("{:04o}", entry.mode),
            bytes: entry.bytes,
            sha256: entry.sha256.as_deref(),
            target: entry.target.as_deref(),
            transient: entry.transient,
            expected: known.reason_for_file(entry),
        }
    }
}
