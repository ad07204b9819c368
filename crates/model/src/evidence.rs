//! What was collected in one run, outside the client: owned, immutable, the same value for every check and report.
//!
//! Nothing in here judges. What could not be collected is a [`Gap`]; a check that needs what is missing is
//! *errored*, never *passed*. Times (`at_us`) are microseconds of the monotonic clock from the run's start.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::journal::{Body, End, Head, Host};

mod ledger;
mod lookup;
mod read;
mod target;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;

pub use crate::case::Root;
pub use ledger::{
    ARGUMENT_BYTES, Attempt, AttemptKind, MOST_ARGUMENTS, MOST_ATTEMPTS, MOST_PROCESSES,
    MOST_QUESTIONS, Outcome, Process, Question, Unlisted,
};
pub use lookup::{Advice, LOOKUP_BYTES, Lookup, LookupKind, MOST_LOOKUPS, Reason};
pub use read::UNDONE;
pub use target::RESOLVER;

/// Everything that one run left to judge.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Address on which the stub served the client; `None` where it never did.
    pub stub: Option<SocketAddr>,
    /// In the order in which they were accepted.
    pub connections: Vec<Connection>,
    /// In the order of their first byte, malformed and incomplete ones too.
    pub requests: Vec<Request>,
    /// What the stub sent, in order.
    pub provider_events: Vec<ProviderEvent>,
    /// Standard output, line by line.
    pub records: Vec<Record>,
    /// Home, temporary and working directory after everything had ended, without the roots themselves.
    pub files: Vec<FileEntry>,
    /// How many objects were made in each tree and are gone, named among the files or not; `None` where it is not
    /// known.
    pub made_and_removed: Vec<(Root, Option<u64>)>,
    /// Completeness of their names among the files.
    pub file_watch: FileWatch,
    /// Standard error.
    pub stderr: Stderr,
    /// Places in which the run's credential was found and does not belong.
    pub sightings: Vec<Sighting>,
    /// How the client ended.
    pub exit: Exit,
    /// The limit that ended it, as its case writes it: `cpu_time = "60s"`.
    pub limit: Option<String>,
    /// What the client tried.
    pub attempts: Vec<Attempt>,
    /// What it tried beyond the entries that are kept.
    pub unlisted: Unlisted,
    /// What it looked for and is not shown, or may not be written; empty where lookups are not asked for.
    pub lookups: Vec<Lookup>,
    /// Whom it asked for.
    pub names: Vec<Question>,
    /// What it started.
    pub processes: Vec<Process>,
    /// Processes of the client that were still there after it had ended.
    pub survivors: Vec<Survivor>,
    /// What seals the client, read back from the kernel.
    pub layers: Vec<Layer>,
    /// What was tried in the client's place, and its positive twins.
    pub canaries: Vec<Canary>,
    /// What could not be collected.
    pub gaps: Vec<Gap>,
    /// When the run went from one part to the next.
    pub moments: Moments,
    /// Wall clock at the start and the end of the run.
    pub wall: (SystemTime, SystemTime),
    /// Time from the run's start to the end of evidence.
    pub duration: Duration,
}

/// Completeness of the watch over names that were given and are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileWatch {
    /// The kernel told of every name.
    Whole,
    /// A directory was watched from the moment in which it was seen.
    #[default]
    BestEffort,
    /// Something was left out.
    Cut(WatchCut),
}

/// Reason why the watch over names left something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchCut {
    /// More names were given than are remembered.
    Names,
    /// More happened than is looked at.
    Steps,
    /// More directories at one time than this number, which are watched.
    Directories(usize),
    /// The user has no more watches (fs.inotify.max_user_watches).
    Watches,
    /// More happened at one time than the kernel's queue holds.
    Queue,
    /// An event that cannot be read, or tells of no known directory.
    Events,
}

impl WatchCut {
    /// A sentence's part, for a gap.
    pub fn words(self) -> String {
        let words = match self {
            Self::Names => "more was made and removed than is remembered",
            Self::Steps => "more was made and removed than is looked at",
            Self::Directories(most) => {
                return format!(
                    "names in directories that were not watched are not known: more than {most} at one time"
                );
            }
            Self::Watches => {
                "names in directories that were not watched are not known: the user has no more inotify watches"
            }
            Self::Queue => "more changed at one time than the kernel's queue holds",
            Self::Events => "what the kernel told of changes to files could not be read",
        };
        words.to_owned()
    }
}

impl Evidence {
    /// Adds the limit that ended the client to a text about its end.
    pub fn at_limit(&self, end: String) -> String {
        match &self.limit {
            Some(limit) => format!("{end} (limit: {limit})"),
            None => end,
        }
    }
}

/// When a run went from one part to the next, in microseconds from its start; `None` for what it never reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// The namespaces, the root and the filter stood, and the supervisor answered: the canaries were tried from here.
    pub supervised_us: Option<u64>,
    /// Every layer had been read back and every canary had held: the client was let go.
    pub released_us: Option<u64>,
    /// Init had reported the client's end, and ended what was left of it.
    pub ended_us: Option<u64>,
}

/// One connection that the stub accepted (that of the positive canary is left out).
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Counted from 1.
    pub seq: u64,
    /// When it was accepted.
    pub at_us: u64,
    /// Where it was accepted.
    pub host: Host,
    /// Bytes read from it.
    pub bytes: u64,
    /// Bytes that belong to no request.
    pub unaccounted: u64,
    /// Bytes that the kernel still held for the client one second after its end; the end of the stream counts one.
    pub held: u64,
    /// Requests that began on it.
    pub requests: u64,
    /// How it ended.
    pub end: End,
}

/// One request that the stub was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Counted from 1 over the whole run.
    pub seq: u64,
    /// When its first byte was read.
    pub at_us: u64,
    /// [`Connection::seq`]; 0 where the journal named a connection that it never accepted.
    pub connection: u64,
    /// Where it was asked.
    pub host: Host,
    /// What it is for.
    pub class: RequestClass,
    /// The profile's name for a side request that it knows.
    pub side: Option<String>,
    /// The head as it stood on the wire.
    pub head: Head,
    /// The body, unless none was read.
    pub body: Option<Body>,
    /// Status of the answer, if one was begun.
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
    /// Beside the turn: what the profile names so, and the provider's other two endpoints.
    Side,
    /// Anything else, malformed and incomplete heads too.
    Unknown,
}

/// One event that the stub handed to a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderEvent {
    /// When it was handed over.
    pub at_us: u64,
    /// [`Request::seq`] of the request that it answers.
    pub request: u64,
    /// The name on the `event:` line.
    pub event: String,
    /// The JSON on the `data:` line.
    pub data: Value,
}

/// One line of the client's standard output.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Counted from 1.
    pub seq: u64,
    /// When the runner read its end.
    pub at_us: u64,
    /// Length without the line feed.
    pub bytes: u64,
    /// What had not happened yet when it was on the pipe.
    pub before: Before,
    /// The line itself.
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
    NotJson {
        /// Why it is none.
        reason: String,
    },
}

/// Reason of a last line without a line feed.
pub const UNFINISHED: &str = "the last line has no line feed";

/// One thing that lay below a root after the end.
#[derive(Clone, Debug, PartialEq)]
pub struct FileEntry {
    /// The tree in which it lay.
    pub root: Root,
    /// Relative to the root, `/` between names; bytes that are no UTF-8 are `\xNN`, a backslash `\\`.
    pub path: String,
    /// What lay there.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    /// Size.
    pub bytes: u64,
    /// SHA-256 of a regular file's content.
    pub sha256: Option<String>,
    /// Where a symbolic link leads, as text like `path`; hostile, and never followed.
    pub target: Option<String>,
    /// It was there for a time and is gone; best effort, from watching the directories.
    pub transient: bool,
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; never followed.
    Symlink,
    /// A named pipe; never opened.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
}

/// What the client wrote to standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stderr {
    /// Bytes written, those that were not kept too.
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
    /// It exited with this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Ended by the runner after this long.
    Timeout(Duration),
    /// Ended by the runner: it wrote more than its output limit.
    OutputLimit,
    /// Ended by the runner: it made more requests than the case allows.
    RequestLimit,
    /// The run was interrupted before the client ended.
    Interrupted,
    /// It was never started.
    NotStarted,
}

/// Time in which processes that the client left may end by themselves before they are survivors.
pub const GRACE: Duration = Duration::from_millis(200);

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
    /// Whether the run counts without it.
    pub need: LayerNeed,
    /// What the kernel says.
    pub status: LayerStatus,
    /// What exactly is enforced, or what is missing.
    pub detail: String,
}

/// Whether a run counts without a layer. The tier decides it, not the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerNeed {
    /// Anything but [`LayerStatus::Enforced`] makes the verdict *errored*.
    Required,
    /// Taken where the kernel offers it; its absence is reported and nothing more.
    IfOffered,
}

/// What the kernel says of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerStatus {
    /// All of it.
    Enforced,
    /// Some of it; the detail says what is missing.
    Partial,
    /// None of it.
    Absent,
}

/// One attempt that must fail, made by the runner's own code in the client's place before the client starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canary {
    /// `tcp4`, `packet`, `ptrace`; the positive twins are `stub` and `home`.
    pub name: String,
    /// Who was to refuse it.
    pub mode: CanaryMode,
    /// `ENETUNREACH`; for a positive twin `ok`.
    pub expected: String,
    /// What happened, in the same words.
    pub observed: String,
    /// What it says.
    pub status: CanaryStatus,
    /// The supervisor should have recorded it and was never asked: a filter outside of the sandbox refused first.
    pub unseen: bool,
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
    /// What was expected happened.
    Held,
    /// Something else happened: the sandbox leaks, or the instrument is broken.
    NotHeld,
    /// Refused outside of the sandbox as well: supports no claim.
    NotApplicable,
}

/// Evidence that could not be collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Which evidence is incomplete.
    pub what: GapKind,
    /// What is missing, and why.
    pub detail: String,
}

/// Which part of the evidence is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// Which records were there before a request.
    Order,
    /// Requests, connections, provider events.
    Requests,
    /// Standard output.
    Records,
    /// Standard error.
    Stderr,
    /// Home, temporary or working directory.
    Files,
    /// Exit status or surviving processes.
    Processes,
    /// Layers or canaries.
    Isolation,
    /// What the client tried.
    Attempts,
    /// The search for the credential.
    Secrets,
    /// Which paths the client looked for.
    Lookups,
    /// A list that was cut: what is missing from it is counted, and whoever judges it knows.
    Cut,
}
