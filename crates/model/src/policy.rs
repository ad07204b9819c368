//! Parts that cases share with profiles and audits: origin, task, limits, and rules of the sandbox.
//!
//! These types are parsed and always valid. They know neither the spelling of one client (see [`crate::profile`]) nor
//! the kernel.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use scenario::closed_set;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::values::Sha256;

pub mod outline;

pub use outline::{Lines, Outline};

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
        let prompts = [Some(self.prompt.as_str()), self.system_prompt.as_deref()];
        let prompts = prompts.into_iter().flatten();
        prompts.filter(|prompt| !prompt.is_empty()).collect()
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
    /// Writable trees whose files the client may execute and map as programs; usually none.
    pub exec: Vec<Root>,
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
    /// A device that /dev can contain; /dev has no other devices.
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
        /// /dev/ptmx and /dev/pts, with pseudo-terminals of the run only.
        Ptmx = "ptmx",
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

/// Number of times that something may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Smallest number.
    pub from: u64,
    /// Largest number; `None` for no limit.
    pub to: Option<u64>,
}

impl Count {
    /// Exactly once.
    pub const ONCE: Self = Self {
        from: 1,
        to: Some(1),
    };
    /// Any number.
    pub const ANY: Self = Self { from: 0, to: None };

    /// Returns true if the number is allowed.
    pub fn allows(self, number: u64) -> bool {
        number >= self.from && self.to.is_none_or(|to| number <= to)
    }

    /// Returns the text for messages: `once`, `2 times`, `0 to 3 times`, `2 times or more`.
    pub fn words(self) -> String {
        match (self.from, self.to) {
            (0, Some(0)) => "never".to_owned(),
            (1, Some(1)) => "once".to_owned(),
            (0, Some(1)) => "at most once".to_owned(),
            (from, Some(to)) if from == to => format!("{from} times"),
            (from, Some(to)) => format!("{from} to {to} times"),
            (0, None) => "any number of times".to_owned(),
            (1, None) => "once or more".to_owned(),
            (from, None) => format!("{from} times or more"),
        }
    }
}
