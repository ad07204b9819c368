//! A case: what the client is asked to do, what the stub answers, what the sandbox allows, and what must be seen.
//!
//! These are the parsed types. They are never half-valid: a file becomes a [`Case`] whole or not at all.
//! They know nothing of one client's spelling (that is [`crate::profile`]) and nothing of the kernel.

use std::path::PathBuf;
use std::time::Duration;

use scenario::Scenario;
use serde::{Deserialize, Serialize};

use crate::schema::values::closed_sets;

pub mod outline;

pub use outline::Outline;

/// A parsed case file.
#[derive(Clone, Debug)]
pub struct Case {
    /// Short name, as in reports: `case-b`.
    pub name: String,
    /// Another case: what a profile sets for that one is set for this one too.
    pub like: Option<String>,
    /// One line for people.
    pub summary: String,
    /// The file that it was read from.
    pub origin: Origin,
    /// What the client is asked to do.
    pub invocation: Invocation,
    /// What the provider stub answers.
    pub stub: Scenario,
    /// What the sandbox allows.
    pub sandbox: SandboxRules,
    /// What must be seen.
    pub expect: Expectations,
}

impl Case {
    /// Names by which a profile may mean the case, its own first.
    pub fn names(&self) -> [&str; 2] {
        let like = self.like.as_ref().unwrap_or(&self.name);
        [&self.name, like]
    }
}

/// Where a policy file came from, the digest of its bytes, and the place of its keys in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Built in, or a file.
    pub source: Source,
    /// SHA-256 of the file's bytes, lower-case hex.
    pub sha256: String,
    /// Where a reader finds it, and its keys.
    pub outline: Outline,
}

/// Where a policy file came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Carried by the executable.
    BuiltIn,
    /// The path as the user gave it.
    File(PathBuf),
}

/// What the client is asked to do, in terms that every client has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// What the user says.
    pub prompt: String,
    /// Replaces the client's own system prompt.
    pub system_prompt: Option<String>,
    /// `None`: the client's own default.
    pub model: Option<String>,
    /// Switches without a value, in the order of the file.
    pub switches: Vec<Switch>,
}

impl Invocation {
    /// What is said to the client, and is shown by no report.
    pub fn prompts(&self) -> Vec<&str> {
        let system = self.system_prompt.as_deref();
        Vec::from_iter([Some(self.prompt.as_str()), system].into_iter().flatten())
    }
}

/// A switch that a profile spells for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Switch {
    /// One turn without a dialogue.
    Print,
    /// Without the user's customization.
    Bare,
    /// One JSON record a line on standard output.
    StreamJson,
    /// A record for each event of the provider.
    PartialMessages,
    /// No transcript of the conversation.
    NoSessionPersistence,
    /// An empty selection of tools.
    NoTools,
    /// The client's safe mode.
    SafeMode,
}

impl Switch {
    /// Every switch there is.
    pub const ALL: [Self; 7] = [
        Self::Print,
        Self::Bare,
        Self::StreamJson,
        Self::PartialMessages,
        Self::NoSessionPersistence,
        Self::NoTools,
        Self::SafeMode,
    ];

    /// The word for it in case and profile files: `no-tools`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Print => "print",
            Self::Bare => "bare",
            Self::StreamJson => "stream-json",
            Self::PartialMessages => "partial-messages",
            Self::NoSessionPersistence => "no-session-persistence",
            Self::NoTools => "no-tools",
            Self::SafeMode => "safe-mode",
        }
    }
}

/// What the sandbox allows beyond nothing. What one client needs to start stands in its profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxRules {
    /// Tiers in which a verdict of this case is meaningful, strongest first.
    pub tiers: Vec<Tier>,
    /// Bounds of the run.
    pub limits: Limits,
    /// Further host paths to show, read-only.
    pub paths: Vec<PathRule>,
}

/// What seals the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Tier {
    /// An own network namespace that has loopback only.
    Namespace,
    /// The container's own namespace, verified to be loopback only.
    Inherited,
}

impl Tier {
    /// Every tier, strongest first.
    pub const ALL: [Self; 2] = [Self::Namespace, Self::Inherited];

    /// The word for it in case files, on the command line and in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Inherited => "inherited",
        }
    }
}

/// One host path that the client sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// Absolute path on the host. It may not resolve to a socket, /proc, /sys, /dev, /run or an output of the run.
    pub path: PathBuf,
    /// What the client may do below it.
    pub access: Access,
    /// Whether a host that does not have it is an error.
    pub presence: Presence,
    /// Why the client needs it.
    pub reason: String,
}

/// What a path rule says of a host that does not have the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is an error.
    Required,
    /// The rule says nothing there: one of several layouts of a distribution.
    IfPresent,
}

/// What the client may do below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Read files and list directories.
    Read,
    /// The same, and run programs.
    ReadExecute,
    /// Read, write, make and remove, and run nothing. No policy file can ask for it, only the command line of an
    /// audit.
    Write,
}

impl Access {
    /// Every access that a policy file can ask for.
    pub const IN_POLICIES: [Self; 2] = [Self::Read, Self::ReadExecute];

    /// The word for it in policy files and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadExecute => "read-execute",
            Self::Write => "write",
        }
    }
}

/// A device of the host that /dev may hold; there is no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Device {
    /// /dev/null
    Null,
    /// /dev/zero
    Zero,
    /// /dev/full
    Full,
    /// /dev/random
    Random,
    /// /dev/urandom
    Urandom,
}

impl Device {
    /// Every device there is.
    pub const ALL: [Self; 5] = [
        Self::Null,
        Self::Zero,
        Self::Full,
        Self::Random,
        Self::Urandom,
    ];

    /// Its name in /dev, which is also the word for it in profile files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Zero => "zero",
            Self::Full => "full",
            Self::Random => "random",
            Self::Urandom => "urandom",
        }
    }
}

/// A writable tree of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// The home directory.
    Home,
    /// The temporary directory.
    Tmp,
    /// The working directory, where none of the host is shown in its place.
    Work,
}

impl Root {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Home, Self::Tmp, Self::Work];

    /// The word for it in profile files and in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Tmp => "tmp",
            Self::Work => "work",
        }
    }
}

/// Bounds of one run. Crossing one ends the run or fails the call inside, never the runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall time of the client.
    pub timeout: Duration,
    /// Size of home, temporary and working directory, each.
    pub home_bytes: u64,
    /// Inodes of home, temporary and working directory, each.
    pub home_files: u64,
    /// RLIMIT_DATA, or the cgroup's memory.max.
    pub memory_bytes: u64,
    /// RLIMIT_NPROC, or the cgroup's pids.max.
    pub processes: u64,
    /// RLIMIT_CPU, whole seconds.
    pub cpu: Duration,
    /// RLIMIT_NOFILE.
    pub open_files: u64,
    /// RLIMIT_FSIZE.
    pub file_bytes: u64,
    /// Standard output and standard error that are kept, each; beyond it the client is ended.
    pub output_bytes: u64,
    /// Lines of standard output that become records; beyond it the client is ended.
    pub output_lines: u64,
    /// Requests that the stub serves.
    pub requests: u64,
    /// Connections that the stub accepts.
    pub connections: u64,
    /// Request body that is read for its shape; a longer one is counted and hashed only.
    pub body_bytes: u64,
}

/// What must be seen. One field for each thing on which cases differ; what never differs is in the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectations {
    /// Whether `HEAD /` may come.
    pub preflight: Preflight,
    /// Top-level fields of the message request: exactly these, with these types.
    pub body_fields: Vec<BodyField>,
    /// Text blocks of the one user message.
    pub user_blocks: usize,
    /// Text blocks of the system input.
    pub system_blocks: usize,
    /// Which blocks carry `cache_control`.
    pub cache_control: CacheControl,
    /// Partial messages are on: each provider event has a record.
    pub partial_messages: bool,
    /// The ledger must be able to show every class of attempts.
    pub complete_ledger: bool,
}

/// Whether `HEAD /` may come before the message request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preflight {
    /// The POST is the first and only request (case B): check `requests/first-and-only`.
    Forbidden,
    /// The preflight comes first or not at all (case A): check `requests/sequence`.
    OptionalFirst,
}

impl Preflight {
    /// Every rule there is.
    pub const ALL: [Self; 2] = [Self::Forbidden, Self::OptionalFirst];

    /// The word for it in case files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::OptionalFirst => "optional-first",
        }
    }
}

/// One expected top-level field of the message request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyField {
    /// The key.
    pub name: String,
    /// The type of its value.
    pub kind: JsonKind,
}

/// A JSON type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
}

impl JsonKind {
    /// Every type that a case can ask for.
    pub const ALL: [Self; 5] = [
        Self::Object,
        Self::Array,
        Self::String,
        Self::Number,
        Self::Boolean,
    ];

    /// JSON's own word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// Which blocks of the message request carry `cache_control`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheControl {
    /// The case says nothing of it; the check is skipped.
    NotChecked,
    /// These blocks carry it, and no others.
    Marked {
        /// How many of the system blocks carry it.
        system_count: usize,
        /// Which blocks of the user message carry it, counted from 1; no other does.
        user: Vec<usize>,
    },
}

closed_sets! {
    /// One of the client's two writable trees.
    Root of ALL,

    /// A device of the host that /dev may hold.
    Device of ALL,

    /// A switch that a profile spells for its client.
    Switch of ALL,

    /// What seals the network: an own namespace that has loopback only, or the container's, verified to have no more.
    Tier of ALL,

    /// What the client may do below a path. By a policy file nothing on the host is ever writable.
    Access of IN_POLICIES,

    /// Whether `HEAD /` may come before the message request.
    Preflight of ALL,

    /// A JSON type.
    JsonKind of ALL,
}
