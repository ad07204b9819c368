//! What stands under `evidence` in schema `runner.report/1`.

use serde::Serialize;
use serde_json::Value;
use stub::journal::{Content, End, Head};

use super::ledger_form::{Attempt, Lookup, Name, Process};
use crate::evidence::{self, Line};
use crate::report::{Known, Report, words};

#[derive(Serialize)]
pub(super) struct Evidence<'a> {
    connections: Vec<Connection>,
    requests: Vec<Request<'a>>,
    records: Vec<Record<'a>>,
    files: Vec<File<'a>>,
    attempts: Vec<Attempt<'a>>,
    names: Vec<Name<'a>>,
    lookups: Vec<Lookup<'a>>,
    processes: Vec<Process<'a>>,
    stderr: Stderr<'a>,
    gaps: Vec<Gap<'a>>,
    provider_events: Vec<ProviderEvent<'a>>,
    sightings: Vec<Sighting<'a>>,
    survivors: Vec<Survivor<'a>>,
    made_and_removed: Vec<MadeAndRemoved>,
}

/// Objects of one tree that were made and are gone; null where it is not known.
#[derive(Serialize)]
struct MadeAndRemoved {
    root: &'static str,
    count: Option<u64>,
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
    /// The profile's name for a request beside the turn.
    side: Option<&'a str>,
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
    transient: bool,
    /// Why it is no surprise, in the words of the profile or of the specification.
    expected: Option<&'a str>,
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

impl<'a> From<&'a Report> for Evidence<'a> {
    fn from(report: &'a Report) -> Self {
        let evidence = &report.evidence;
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

impl<'a> File<'a> {
    fn new(entry: &'a evidence::FileEntry, known: &'a Known) -> Self {
        File {
            root: entry.root.word(),
            path: &entry.path,
            kind: words::file_kind(entry.kind),
            mode: format!("{:04o}", entry.mode),
            bytes: entry.bytes,
            sha256: entry.sha256.as_deref(),
            transient: entry.transient,
            expected: known.reason_for_file(entry),
        }
    }
}
