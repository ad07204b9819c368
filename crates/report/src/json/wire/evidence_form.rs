//! What stands under `evidence` in schema `runner.report/1`.

use model::evidence::{self, Line, Root};
use model::journal::{Content, End, Head, Host};
use model::labels;
use model::report::{Known, Report};
use model::schema::values::{FileMode, Sha256};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::ledger_form::{Attempt, Lookup, Name, Process};

/// What was collected, outside of the client.
#[derive(Serialize, JsonSchema)]
pub(super) struct Evidence<'a> {
    /// Connections that the stub accepted.
    connections: Vec<Connection>,
    /// Requests that the stub read.
    requests: Vec<Request<'a>>,
    /// Lines of the client's standard output.
    records: Vec<Record<'a>>,
    /// What lay in its two directories at the end, or for a time.
    files: Vec<File<'a>>,
    /// Calls that lead, or could lead, out of the client.
    attempts: Vec<Attempt<'a>>,
    /// Names that the resolver was asked for.
    names: Vec<Name<'a>>,
    /// Paths that were looked for in vain.
    lookups: Vec<Lookup<'a>>,
    /// Programs that were started.
    processes: Vec<Process<'a>>,
    /// What the client wrote to standard error.
    stderr: Stderr<'a>,
    /// Evidence that could not be collected. A check that needs it is never passed.
    gaps: Vec<Gap<'a>>,
    /// What the stub answered.
    provider_events: Vec<ProviderEvent<'a>>,
    /// Places in which the credential of the run was found.
    sightings: Vec<Sighting<'a>>,
    /// Processes that outlived the client.
    survivors: Vec<Survivor<'a>>,
    /// What was made and removed again, for each directory.
    made_and_removed: Vec<MadeAndRemoved>,
    /// When the run went from one part to the next.
    moments: Moments,
}

/// Moments of a run; null for what it never reached.
#[derive(Serialize, JsonSchema)]
struct Moments {
    /// The sandbox stood, and the canaries were tried from here.
    supervised_us: Option<u64>,
    /// Every layer was read back, every canary had held, and the client was let go.
    released_us: Option<u64>,
    /// The client had ended, and what was left of it.
    ended_us: Option<u64>,
}

/// Objects of one tree that were made and are gone.
#[derive(Serialize, JsonSchema)]
struct MadeAndRemoved {
    /// In which directory.
    #[schemars(with = "Root")]
    root: &'static str,
    /// How many; null where it is not known.
    count: Option<u64>,
}

/// One connection that the stub accepted.
#[derive(Serialize, JsonSchema)]
struct Connection {
    /// Counted from 1.
    seq: u64,
    /// When it was accepted.
    at_us: u64,
    /// The provider, or the second host to which only an answer can have led.
    host: Host,
    /// Bytes read from it.
    bytes: u64,
    /// Bytes among them that belong to no request.
    unaccounted: u64,
    /// Bytes that the kernel still held for the client one second after its end; the end of the stream counts one.
    held: u64,
    /// Requests that it carried.
    requests: u64,
    /// How it ended.
    end: End,
}

/// One request, as it stood on the wire.
#[derive(Serialize, JsonSchema)]
struct Request<'a> {
    /// Counted from 1.
    seq: u64,
    /// When its head was read.
    at_us: u64,
    /// The connection that carried it.
    connection: u64,
    /// Where it was asked, as in its connection.
    host: Host,
    /// What it is for.
    #[schemars(with = "evidence::RequestClass")]
    class: &'static str,
    /// The profile's name for a request beside the turn.
    side: Option<&'a str>,
    /// As spelt; null without a head.
    method: Option<&'a str>,
    /// The target up to the first `?`; null without a head.
    path: Option<&'a str>,
    /// What follows the first `?`.
    query: Option<&'a str>,
    /// Name and value of each, as spelt and in order. In the headers of credentials the run's own is `<redacted>`, any
    /// other value `<N bytes, sha256 HEX>`.
    headers: &'a [(String, String)],
    /// Null where none was read.
    body: Option<Body<'a>>,
    /// Head and body arrived whole.
    complete: bool,
    /// Status of the answer, if one was begun.
    status: Option<u16>,
    /// Why there is no head, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'a str>,
}

/// The body of a request, without its text.
#[derive(Serialize, JsonSchema)]
struct Body<'a> {
    /// Its length.
    bytes: u64,
    /// Its digest.
    #[schemars(with = "Sha256")]
    sha256: &'a str,
    /// The JSON value, each string but those of `type` and `role` replaced by its length and digest.
    shape: Option<&'a Value>,
    /// Why there is no shape, where there are bytes and no shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

/// One line of the client's standard output.
#[derive(Serialize, JsonSchema)]
struct Record<'a> {
    /// Counted from 1.
    seq: u64,
    /// When the runner read its end.
    at_us: u64,
    /// The record's own `type`.
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    /// The record's own `subtype`.
    subtype: Option<&'a str>,
    /// The provider event that it passes on.
    event: Option<&'a str>,
    /// Names of its fields, sorted; none where the line is no record.
    fields: Vec<&'a str>,
    /// Length without the line feed.
    bytes: u64,
    /// What had not happened yet when it was on the pipe.
    #[schemars(with = "evidence::Before")]
    before: &'static str,
    /// Why the line is no record, where it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'a str>,
}

/// One thing that lay in home, temporary or working directory.
#[derive(Serialize, JsonSchema)]
struct File<'a> {
    /// In which directory.
    #[schemars(with = "Root")]
    root: &'static str,
    /// Relative to it.
    path: &'a str,
    /// What it is.
    #[schemars(with = "evidence::FileKind")]
    kind: &'static str,
    /// Its permission bits.
    #[schemars(with = "FileMode")]
    mode: String,
    /// Its size.
    bytes: u64,
    /// Digest of a regular file.
    #[schemars(with = "Option<Sha256>")]
    sha256: Option<&'a str>,
    /// Where a symbolic link leads.
    target: Option<&'a str>,
    /// It was there for a time and is gone.
    transient: bool,
    /// Why it is no surprise, in the words of the profile or of the specification.
    expected: Option<&'a str>,
}

/// What the client wrote to standard error.
#[derive(Serialize, JsonSchema)]
struct Stderr<'a> {
    /// How much.
    bytes: u64,
    /// The last part of it.
    tail: &'a str,
}

/// Evidence that could not be collected.
#[derive(Serialize, JsonSchema)]
struct Gap<'a> {
    /// Which part of the evidence is incomplete.
    #[schemars(with = "evidence::GapKind")]
    what: &'static str,
    /// What is missing, and why.
    detail: &'a str,
}

/// One event that the stub handed to a connection.
#[derive(Serialize, JsonSchema)]
struct ProviderEvent<'a> {
    /// When.
    at_us: u64,
    /// The request that it answers.
    request: u64,
    /// Its name.
    event: &'a str,
    /// Its JSON.
    data: &'a Value,
}

/// One place in which the credential of the run was found.
#[derive(Serialize, JsonSchema)]
struct Sighting<'a> {
    /// Where: `request 2 header user-agent`.
    place: &'a str,
    /// `as written`, `base64`, `hex` or `percent-encoding`.
    form: &'a str,
}

/// A process that outlived the client.
#[derive(Serialize, JsonSchema)]
struct Survivor<'a> {
    /// As seen inside.
    pid: i32,
    /// Its name, from /proc.
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
