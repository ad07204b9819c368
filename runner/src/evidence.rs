//! What was collected in one run, outside the client: owned, immutable, the same value for every check and report.
//!
//! Nothing in here judges. What could not be collected is a [`Gap`]; a check that needs what is missing is
//! *errored*, never *passed*. Times (`at_us`) are microseconds of the monotonic clock from the run's start.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use stub::journal::{Body, End, Head};

/// Everything that one run left to judge.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub connections: Vec<Connection>,
    pub requests: Vec<Request>,
    /// What the stub sent, in order.
    pub provider_events: Vec<ProviderEvent>,
    pub records: Vec<Record>,
    pub files: Vec<FileEntry>,
    pub stderr: Stderr,
    /// Places in which the run's credential was found and does not belong.
    pub sightings: Vec<Sighting>,
    pub exit: Exit,
    /// Processes of the client that were still there after it had ended.
    pub survivors: Vec<Survivor>,
    pub layers: Vec<Layer>,
    pub canaries: Vec<Canary>,
    pub gaps: Vec<Gap>,
    /// Wall clock at the start and the end of the run.
    pub wall: (SystemTime, SystemTime),
    /// Time from the run's start to the end of evidence.
    pub duration: Duration,
}

/// One connection that the stub accepted (that of the positive canary is left out).
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    pub seq: u64,
    pub at_us: u64,
    pub bytes: u64,
    /// Bytes that belong to no request.
    pub unaccounted: u64,
    pub requests: u64,
    pub end: End,
}

/// One request that the stub was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub seq: u64,
    pub at_us: u64,
    pub connection: u64,
    pub class: RequestClass,
    pub head: Head,
    pub body: Option<Body>,
    pub status: Option<u16>,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// `POST /v1/messages`.
    Message,
    /// The same message again, or one whose retry count is above zero.
    Retry,
    /// `HEAD /`.
    Preflight,
    /// count_tokens, models, event logging, session title.
    Side,
    Unknown,
}

/// One event that the stub handed to a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderEvent {
    pub at_us: u64,
    pub request: u64,
    pub event: String,
    pub data: Value,
}

/// One line of the client's standard output.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub seq: u64,
    /// When the runner read its end.
    pub at_us: u64,
    /// Length without the line feed.
    pub bytes: u64,
    pub before: Before,
    pub line: Line,
}

/// What had not happened yet when a record was already on the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The connection that carried the message request.
    Connect,
    /// The first byte of the message request.
    Post,
    /// Neither.
    None,
}

/// What a line of standard output is.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A JSON object.
    Record(Value),
    /// Anything else, with the reason; also a last line without a line feed.
    NotJson { reason: String },
}

/// One thing that lay below a root after the end.
#[derive(Clone, Debug, PartialEq)]
pub struct FileEntry {
    pub root: Root,
    /// Relative to the root, `/` between names; bytes that are no UTF-8 are `\xNN`.
    pub path: String,
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    pub bytes: u64,
    /// SHA-256 of a regular file's content.
    pub sha256: Option<String>,
}

/// Which of the client's two writable trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    Home,
    Tmp,
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Device,
}

/// What the client wrote to standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stderr {
    pub bytes: u64,
    /// The last part, as text; hostile.
    pub tail: String,
}

/// One place in which the credential was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// `stdout record 3`, `file .agent/log`, `request 2 header user-agent`, `argument 4`.
    pub place: String,
    /// `as written`, `base64`, `hex`, `percent-encoding`.
    pub form: String,
}

/// How the client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// Ended by the runner after this long.
    Timeout(Duration),
    /// Ended by the runner: it wrote more than its output limit.
    OutputLimit,
    /// The run was interrupted before the client ended.
    Interrupted,
    /// It was never started.
    NotStarted,
}

/// A process that outlived the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// As seen inside.
    pub pid: i32,
    /// From /proc/PID/comm; hostile.
    pub program: String,
}

/// One layer of the sandbox, read back from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// `network namespace`, `landlock`, …
    pub name: String,
    pub status: LayerStatus,
    pub detail: String,
}

/// What the kernel says of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerStatus {
    Enforced,
    Partial,
    Absent,
}

/// One attempt that must fail, made by the runner's own code in the client's place before the client starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canary {
    pub name: String,
    pub mode: CanaryMode,
    /// `ENETUNREACH`; for a positive twin `ok`.
    pub expected: String,
    pub observed: String,
    pub status: CanaryStatus,
}

/// Who refused a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanaryMode {
    /// The supervisor, and it recorded it.
    Answered,
    /// The kernel itself.
    Continued,
}

/// What a canary says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanaryStatus {
    Held,
    NotHeld,
    /// Refused outside of the sandbox as well: supports no claim.
    NotApplicable,
}

/// Evidence that could not be collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub what: GapKind,
    pub detail: String,
}

/// Which part of the evidence is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// Which records were there before a request.
    Order,
    /// Requests, connections, provider events.
    Requests,
    Records,
    Stderr,
    Files,
    /// Exit status or surviving processes.
    Processes,
    /// Layers or canaries.
    Isolation,
    /// The search for the credential.
    Secrets,
}
