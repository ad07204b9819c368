//! Evidence of one run, collected outside the client: owned, immutable, and the same value for every check and report.
//!
//! Nothing here judges. Evidence that could not be collected is a [`Gap`]; a check that needs it is *errored*, never
//! *passed*. Times (`at_us`) are microseconds of the monotonic clock since the start of the run.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::journal::{Body, End, Head, Host};
use crate::schema::values::{FileMode, Sha256};

mod form;
mod isolation;
mod ledger;
mod lookup;
mod read;
mod redact_args;
mod sensitive;
mod target;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;

pub use crate::policy::Root;
pub use isolation::{Canary, CanaryMode, CanaryStatus, Layer, LayerNeed, LayerStatus};
pub use ledger::{
    Attempt, AttemptKind, MAX_ARGUMENT_BYTES, MAX_ARGUMENTS, MAX_ATTEMPTS, MAX_PROCESSES,
    MAX_QUESTIONS, Outcome, Question, Started, StartedArg, Unlisted, Whole,
};
pub use lookup::{Advice, Lookup, LookupKind, MAX_LOOKUP_BYTES, MAX_LOOKUPS, Reason};
pub use read::{Answers, UNDONE};
pub use redact_args::{Arg, Process};
pub use sensitive::{Sensitive, SensitivePath};
pub use target::{RESOLVER, UNREADABLE};

/// All evidence of one run.
///
/// The JSON document of a report has the skipped fields in other places, or leaves them out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Connections to the stub, in the order of acceptance.
    pub connections: Vec<Connection>,
    /// Requests in the order of their first byte, including malformed and incomplete ones.
    pub requests: Vec<Request>,
    /// Lines of standard output.
    pub records: Vec<Record>,
    /// Contents of the home, temporary and working directory after the end of all processes, without the roots.
    pub files: Vec<FileEntry>,
    /// The ledger: attempts of the client.
    pub attempts: Vec<Attempt>,
    /// Names that the client asked the resolver for.
    pub names: Vec<Question>,
    /// Paths that the client looked up but does not see or may not write; empty unless lookups are enabled.
    pub lookups: Vec<Lookup>,
    /// Sensitive paths that the client looked up, found or not; empty unless lookups are enabled.
    #[serde(default)]
    pub sensitive: Vec<SensitivePath>,
    /// Programs that the client started, itself included, without the prompts in their arguments.
    pub processes: Vec<Process>,
    /// Standard error.
    pub stderr: Stderr,
    /// Evidence that could not be collected. A check that needs it never passes.
    pub gaps: Vec<Gap>,
    /// Events that the stub sent, in order.
    pub provider_events: Vec<ProviderEvent>,
    /// Locations where the credential of the run was found but does not belong.
    pub sightings: Vec<Sighting>,
    /// Processes that were still running after the end of the client.
    pub survivors: Vec<Survivor>,
    /// Objects created and removed in each tree, including unnamed ones.
    pub made_and_removed: Vec<MadeAndRemoved>,
    /// Times of the phases of the run.
    pub moments: Moments,
    /// Address on which the stub served the client; `None` if it never did.
    #[serde(skip)]
    pub stub: Option<SocketAddr>,
    /// Completeness of the names of removed objects in `files`.
    #[serde(skip)]
    pub file_watch: FileWatch,
    /// Counts of attempts beyond the largest kept number.
    #[serde(skip)]
    pub unlisted: Unlisted,
    /// End of the client: `client.exit` in JSON.
    #[serde(skip)]
    pub exit: Exit,
    /// The limit that ended the client, as a case file writes it: `cpu_time = "60s"`; `client.limit` in JSON.
    #[serde(skip)]
    pub limit: Option<String>,
    /// Layers of the sandbox, as verified from inside: `isolation.layers` in JSON.
    #[serde(skip)]
    pub layers: Vec<Layer>,
    /// Probes made in the client's place, and their positive twins: `isolation.canaries` in JSON.
    #[serde(skip)]
    pub canaries: Vec<Canary>,
    /// Start of the run by the wall clock, and its end: `started_at` in JSON.
    #[serde(skip, default = "form::unknown_wall")]
    pub wall: (SystemTime, SystemTime),
    /// Time from the start of the run to the end of collection: `duration_ms` in JSON.
    #[serde(skip)]
    pub duration: Duration,
}

/// Objects of one tree that were created and removed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MadeAndRemoved {
    /// Tree of the objects.
    pub root: Root,
    /// Number of objects; null if unknown.
    pub count: Option<u64>,
}

/// Completeness of the watch for created and removed names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileWatch {
    /// The kernel reported every name.
    Whole,
    /// Best effort: each directory was watched only after it was noticed.
    #[default]
    BestEffort,
    /// Some names are missing.
    Cut(WatchCut),
}

/// Reason why the watch for names is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchCut {
    /// There were more names than the largest kept number.
    Names,
    /// There were more events than the largest handled number.
    Steps,
    /// At one time there were more directories than this number, the largest that is watched.
    Directories(usize),
    /// The user has no inotify watches left (fs.inotify.max_user_watches).
    Watches,
    /// The event queue of the kernel overflowed.
    Queue,
    /// An event could not be parsed, or names no known directory.
    Events,
}

impl WatchCut {
    /// Returns the reason as a phrase for a gap.
    pub fn words(self) -> String {
        let words = match self {
            Self::Names => "more files were created and removed than are recorded",
            Self::Steps => "more changes to files happened than are examined",
            Self::Directories(max) => {
                return format!(
                    "file names in unwatched directories are unknown: more than {max} directories at one time"
                );
            }
            Self::Watches => {
                "file names in unwatched directories are unknown: the user has no inotify watches left"
            }
            Self::Queue => "more files changed at one time than the kernel's queue holds",
            Self::Events => "an event of the kernel about changed files could not be parsed",
        };
        words.to_owned()
    }
}

impl Evidence {
    /// Appends the limit that ended the client to a text about its end.
    pub fn at_limit(&self, end: String) -> String {
        match &self.limit {
            Some(limit) => format!("{end} (limit: {limit})"),
            None => end,
        }
    }
}

/// Times of the phases of a run, in microseconds since its start; `None` for a phase that was not reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moments {
    /// Namespaces, root and filter were set up and the supervisor answered: the canary started.
    pub supervised_us: Option<u64>,
    /// All layers were verified and all probes held: the client was started.
    pub released_us: Option<u64>,
    /// Init had reported the end of the client and ended the remaining processes.
    pub ended_us: Option<u64>,
}

/// One connection that the stub accepted, except that of the positive twin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connection {
    /// Number of the connection, from 1.
    pub seq: u64,
    /// Time of acceptance.
    pub at_us: u64,
    /// Host that accepted the connection.
    pub host: Host,
    /// Bytes read from the connection.
    pub bytes: u64,
    /// Bytes that belong to no request.
    pub unaccounted: u64,
    /// Bytes still in the client's kernel buffers one second after its end; an unsent end of stream counts as one.
    pub held: u64,
    /// Number of requests that began on the connection.
    pub requests: u64,
    /// End of the connection.
    pub end: End,
}

/// One request to the stub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "form::RequestForm", into = "form::RequestForm")]
pub struct Request {
    /// Number of the request in the run, from 1.
    pub seq: u64,
    /// Time of its first byte.
    pub at_us: u64,
    /// [`Connection::seq`]; 0 if the journal names a connection that was never accepted.
    pub connection: u64,
    /// Host that received the request.
    pub host: Host,
    /// Purpose of the request.
    pub class: RequestClass,
    /// Name of the side request in the profile, if the profile has it.
    pub side: Option<String>,
    /// The head as received.
    pub head: Head,
    /// The body, if one was read.
    pub body: Option<Body>,
    /// Status of the response, if it was started.
    pub status: Option<u16>,
    /// Reason in the profile for a request besides the turn; null for a finding, and before the report is built.
    pub expected: Option<String>,
}

closed_set! {
    /// Purpose of a request.
    pub enum RequestClass {
        /// POST to the message endpoint, such as `/v1/messages`.
        Message = "message",
        /// A repeated message request, or one with a retry count above zero.
        Retry = "retry",
        /// `HEAD /`.
        Preflight = "preflight",
        /// A side request of the profile, or one of the provider's other two endpoints.
        Side = "side",
        /// Any other request, including malformed and incomplete heads.
        Unknown = "unknown",
    }
}

/// One event that the stub sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderEvent {
    /// Time of sending.
    pub at_us: u64,
    /// [`Request::seq`] of the answered request.
    pub request: u64,
    /// Name on the `event:` line.
    pub event: String,
    /// JSON on the `data:` line.
    pub data: Value,
}

/// One line of the client's standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "form::RecordForm", into = "form::RecordForm")]
pub struct Record {
    /// Number of the line, from 1.
    pub seq: u64,
    /// Time at which the runner read its end.
    pub at_us: u64,
    /// Length in bytes, without the line feed.
    pub bytes: u64,
    /// Event that had not happened when the line was on the pipe.
    pub before: Before,
    /// Content of the line.
    pub line: Line,
}

closed_set! {
    /// Event that had not happened when a record was on the pipe.
    pub enum Before {
        /// The connection that carries the message request.
        Connect = "connect",
        /// The first byte of the message request.
        Post = "post",
        /// Both events had happened.
        None = "none",
    }
}

/// Content of a line of standard output.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A JSON object.
    Record(Value),
    /// Any other content, or a last line without a line feed.
    NotJson {
        /// Reason why the line is not a record.
        reason: String,
    },
}

/// Reason for a last line without a line feed.
pub const UNFINISHED: &str = "the last line has no line feed";

/// One object below a root at the end of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// Tree that contains the object.
    pub root: Root,
    /// Path relative to the root, with `/` between names; a byte that is not UTF-8 is `\xNN`, a backslash `\\`.
    pub path: String,
    /// Type of the object.
    pub kind: FileKind,
    /// Permission bits, including set-uid, set-gid and sticky.
    #[serde(with = "form::octal")]
    #[schemars(with = "FileMode")]
    pub mode: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the content of a regular file.
    #[schemars(with = "Option<Sha256>")]
    pub sha256: Option<String>,
    /// Target of a symbolic link, escaped like `path`; hostile, and never followed.
    pub target: Option<String>,
    /// True for an object that existed for a time and was removed (best effort, from watching directories).
    pub transient: bool,
    /// Reason in the profile or the specification for the object; null for an unexpected one, and before the report is
    /// built.
    pub expected: Option<String>,
}

closed_set! {
    /// Type of a file system object.
    pub enum FileKind {
        /// A regular file.
        File = "file",
        /// A directory.
        Directory = "directory",
        /// A symbolic link; never followed.
        Symlink = "symlink",
        /// A named pipe; never opened.
        Fifo = "fifo",
        /// A socket.
        Socket = "socket",
        /// A character or block device.
        Device = "device",
    }
}

impl FileKind {
    /// Returns the name for messages: `a file`.
    pub fn with_article(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::Device => "a device",
        }
    }
}

/// Standard error of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stderr {
    /// Bytes written, including those not kept.
    pub bytes: u64,
    /// Last part of the text; hostile.
    pub tail: String,
}

/// One location where the credential was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sighting {
    /// `stdout record 3`, `file home: .agent/log`, `request 2 header user-agent`, `argument 4`.
    pub place: String,
    /// `as written`, `base64`, `hex`, `percent-encoding`.
    pub form: String,
}

impl Sighting {
    /// The credential in the content of a file; `path` is a [`FileEntry::path`].
    pub fn in_file(root: Root, path: &str, form: String) -> Self {
        Self {
            place: format!("file {}: {path}", root.word()),
            form,
        }
    }

    /// Returns tree and path of the file whose content holds the credential.
    pub fn file(&self) -> Option<(Root, &str)> {
        let (word, path) = self.place.strip_prefix("file ")?.split_once(": ")?;
        let root = Root::ALL.into_iter().find(|root| root.word() == word)?;
        Some((root, path))
    }
}

/// End of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "form::ExitForm", into = "form::ExitForm")]
pub enum Exit {
    /// The client exited with this status.
    Code(i32),
    /// This signal ended the client.
    Signal(i32),
    /// The runner ended the client after this time.
    Timeout(Duration),
    /// The runner ended the client because it exceeded an output limit.
    OutputLimit,
    /// The runner ended the client because it exceeded the request limit.
    RequestLimit,
    /// The run was interrupted before the end of the client.
    Interrupted,
    /// The client was never started.
    #[default]
    NotStarted,
}

impl Exit {
    /// Checks for an end by the runner, at a limit of the case.
    pub fn is_by_limit(self) -> bool {
        matches!(
            self,
            Self::Timeout(_) | Self::OutputLimit | Self::RequestLimit
        )
    }
}

/// Time after the client's end in which its remaining processes may exit before they count as survivors.
pub const GRACE: Duration = Duration::from_millis(200);

/// A process that outlived the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Survivor {
    /// Process id inside the sandbox.
    pub pid: i32,
    /// Name from /proc/PID/comm; hostile.
    pub program: String,
}

/// Evidence that could not be collected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// The incomplete part of the evidence.
    pub what: GapKind,
    /// Missing evidence and the cause.
    pub detail: String,
}

closed_set! {
    /// Part of the evidence that is incomplete.
    pub enum GapKind {
        /// Records that preceded a request.
        Order = "order",
        /// Requests, connections, provider events.
        Requests = "requests",
        /// Standard output.
        Records = "records",
        /// Standard error.
        Stderr = "stderr",
        /// Home, temporary or working directory.
        Files = "files",
        /// Exit status or surviving processes.
        Processes = "processes",
        /// Layers or canaries.
        Isolation = "isolation",
        /// Attempts of the client.
        Attempts = "attempts",
        /// Search for the credential.
        Secrets = "secrets",
        /// Paths that the client looked up.
        Lookups = "lookups",
        /// A truncated list; the missing entries are counted, so the checks can judge them.
        Cut = "cut",
    }
}
