//! Cases: the task of the client, the answers of the stub, the rules of the sandbox, and the expectations.
//!
//! These types are parsed and always valid: a file becomes a whole [`Case`] or an error. They know neither the spelling
//! of one client (see [`crate::profile`]) nor the kernel.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use scenario::Scenario;
use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::values::Sha256;

pub mod outline;

pub use outline::{Lines, Outline};

/// A parsed case file.
#[derive(Clone, Debug)]
pub struct Case {
    /// Short name, as in reports: `case-b`.
    pub name: String,
    /// Name of another case, whose settings in a profile apply to this one too.
    pub like: Option<String>,
    /// Description in one line.
    pub summary: String,
    /// The file of the case.
    pub origin: Origin,
    /// Task of the client.
    pub invocation: Invocation,
    /// Answers of the provider stub.
    pub stub: Scenario,
    /// Rules of the sandbox.
    pub sandbox: SandboxRules,
    /// Expected behaviour of the client.
    pub expect: Expectations,
}

impl Case {
    /// Returns the names by which a profile can refer to the case, its own first.
    pub fn names(&self) -> [&str; 2] {
        let like = self.like.as_ref().unwrap_or(&self.name);
        [&self.name, like]
    }
}

/// Origin of a policy file: its source, its text, and the lines of its keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// `built in`, or the path of the file; empty for the profile in a report of version 0.1.0, which lacks it.
    #[serde(default)]
    pub source: Source,
    /// SHA-256 of the file's bytes, lower-case hex.
    #[schemars(with = "Sha256")]
    pub sha256: String,
    /// The whole file, which no report shows.
    #[serde(skip)]
    pub text: Arc<str>,
    /// Path and lines of the keys, for reports.
    #[serde(skip)]
    pub outline: Outline,
}

/// Source of a policy file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Source {
    /// Part of the executable.
    BuiltIn,
    /// Path as the user typed it.
    File(PathBuf),
}

/// Word for a policy file that is part of the executable.
const BUILT_IN: &str = "built in";

impl Default for Source {
    /// Returns the unknown file.
    fn default() -> Self {
        Self::File(PathBuf::new())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => out.write_str(BUILT_IN),
            Self::File(path) => path.display().fmt(out),
        }
    }
}

impl From<Source> for String {
    fn from(source: Source) -> Self {
        source.to_string()
    }
}

impl From<String> for Source {
    fn from(text: String) -> Self {
        match text.as_str() {
            BUILT_IN => Self::BuiltIn,
            _ => Self::File(text.into()),
        }
    }
}

/// Task of the client, in terms that every client has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// Prompt of the user.
    pub prompt: String,
    /// Replacement for the system prompt of the client.
    pub system_prompt: Option<String>,
    /// Name of the model; `None`: the default of the client.
    pub model: Option<String>,
    /// Switches without a value, in the order of the file.
    pub switches: Vec<Switch>,
}

impl Invocation {
    /// Lists the prompts, which no report shows.
    pub fn prompts(&self) -> Vec<&str> {
        let system = self.system_prompt.as_deref();
        Vec::from_iter([Some(self.prompt.as_str()), system].into_iter().flatten())
    }
}

closed_set! {
    /// A switch that a profile spells for its client.
    pub enum Switch {
        /// Run one turn without a dialogue.
        Print = "print",
        /// Ignore the customization of the user.
        Bare = "bare",
        /// Write one JSON record per line on standard output.
        StreamJson = "stream-json",
        /// Write a record for each event of the provider.
        PartialMessages = "partial-messages",
        /// Write no transcript of the conversation.
        NoSessionPersistence = "no-session-persistence",
        /// Select no tools.
        NoTools = "no-tools",
        /// Start in the safe mode of the client.
        SafeMode = "safe-mode",
    }
}

/// Rules of the sandbox. Paths and devices that one client needs are in its profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxRules {
    /// Isolations in which a verdict of this case is valid, strongest first.
    pub tiers: Vec<Tier>,
    /// Limits of the run.
    pub limits: Limits,
    /// Additional host paths that the client sees, read-only.
    pub paths: Vec<PathRule>,
}

closed_set! {
    /// Isolation of the network.
    pub enum Tier {
        /// A new network namespace that has loopback only.
        Namespace = "namespace",
        /// The network namespace of the container, verified to have loopback only.
        Inherited = "inherited",
    }
}

/// One host path that the client sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// Absolute path on the host. It must not resolve to a socket, below /proc, /sys, /dev or /run, or to an output of
    /// the run.
    pub path: PathBuf,
    /// Rights of the client below the path.
    pub access: Access,
    /// Rule for a host without the path.
    pub presence: Presence,
    /// Reason why the client needs the path.
    pub reason: String,
}

/// Rule for a host that does not have a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The missing path is an error.
    Required,
    /// The missing path is ignored: the rule is for one of several distribution layouts.
    IfPresent,
}

closed_set! {
    /// Rights of the client below a path.
    pub enum Access {
        /// Read files and list directories.
        Read = "read",
        /// Read files, list directories and execute programs.
        ReadExecute = "read-execute",
        /// Read, write, create and remove files, and execute none. Only the command line of an audit can grant it.
        Write = "write",
    }
}

impl Access {
    /// The rights that a policy file can grant.
    pub const IN_POLICIES: [Self; 2] = [Self::Read, Self::ReadExecute];
}

closed_set! {
    /// A host device that /dev can contain; /dev has no other devices.
    pub enum Device {
        /// /dev/null
        Null = "null",
        /// /dev/zero
        Zero = "zero",
        /// /dev/full
        Full = "full",
        /// /dev/random
        Random = "random",
        /// /dev/urandom
        Urandom = "urandom",
    }
}

closed_set! {
    /// A writable directory tree of the client.
    pub enum Root {
        /// The home directory.
        Home = "home",
        /// The temporary directory.
        Tmp = "tmp",
        /// The working directory, if no host directory replaces it.
        Work = "work",
    }
}

/// Limits of one run. Reaching a limit ends the run or fails a call of the client; the runner continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time of the client.
    pub timeout: Duration,
    /// Size of the home, of the temporary and of the working directory, each.
    pub home_bytes: u64,
    /// Number of inodes of the home, of the temporary and of the working directory, each.
    pub home_files: u64,
    /// RLIMIT_DATA of each process; with a cgroup also part of its memory.max.
    pub memory_bytes: u64,
    /// RLIMIT_NPROC; with a cgroup also part of its pids.max.
    pub processes: u64,
    /// RLIMIT_CPU, in whole seconds.
    pub cpu: Duration,
    /// RLIMIT_NOFILE.
    pub open_files: u64,
    /// RLIMIT_FSIZE.
    pub file_bytes: u64,
    /// Bytes of standard output and of standard error, each; the runner ends a client that writes more.
    pub output_bytes: u64,
    /// Lines of standard output; the runner ends a client that writes more.
    pub output_lines: u64,
    /// Number of requests that the stub serves.
    pub requests: u64,
    /// Number of connections that the stub accepts.
    pub connections: u64,
    /// Largest request body that is parsed for its shape; a larger body is only counted and hashed.
    pub body_bytes: u64,
}

/// Expected behaviour. There is one field for each difference between cases; constant rules are in the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectations {
    /// Rule for `HEAD /`.
    pub preflight: Preflight,
    /// Exact top-level fields of the message request, with their types.
    pub body_fields: Vec<BodyField>,
    /// Number of text blocks in the single user message.
    pub user_blocks: usize,
    /// Number of text blocks in the system prompt.
    pub system_blocks: usize,
    /// Blocks that carry `cache_control`.
    pub cache_control: CacheControl,
    /// True if partial messages are on: each provider event has a record.
    pub partial_messages: bool,
    /// True if the ledger must be able to show every class of attempts.
    pub complete_ledger: bool,
}

closed_set! {
    /// Rule for `HEAD /` before the message request.
    pub enum Preflight {
        /// The POST is the first and only request (case B): check `requests/first-and-only`.
        Forbidden = "forbidden",
        /// The preflight comes first or is absent (case A): check `requests/sequence`.
        OptionalFirst = "optional-first",
    }
}

/// One expected top-level field of the message request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyField {
    /// Name of the field.
    pub name: String,
    /// JSON type of its value.
    pub kind: JsonKind,
}

closed_set! {
    /// A JSON type.
    pub enum JsonKind {
        /// `{…}`
        Object = "object",
        /// `[…]`
        Array = "array",
        /// `"…"`
        String = "string",
        /// Any number.
        Number = "number",
        /// `true` or `false`.
        Boolean = "boolean",
    }
}

/// Blocks of the message request that carry `cache_control`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheControl {
    /// The case has no rule; the check is skipped.
    NotChecked,
    /// Exactly these blocks carry `cache_control`.
    Marked {
        /// Number of system blocks that carry it.
        system_count: usize,
        /// Numbers of the user message's blocks that carry it, from 1.
        user: Vec<usize>,
    },
}
