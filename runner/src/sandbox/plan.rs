//! The plan of one sandbox: everything that allocates, resolves or compiles, done before a namespace exists.
//!
//! Plain data, sent to the stage over the control socket in a sealed memory file. Paths on the host are
//! resolved and identified (device and inode) by the runner; the stage mounts an object only if it is still
//! the one that was resolved.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use stub::scenario::Scenario;

use crate::case::{Access, Device};
pub(crate) use crate::profile::BASE_URL;

/// Home of the client inside.
pub(crate) const HOME: &str = "/home/sandbox";
/// Temporary directory of the client inside; `/dev/shm` leads here too, so that there is one place to walk.
pub(crate) const TMP: &str = "/tmp";
/// Directory in which the client's program lies inside.
pub(crate) const PROGRAM_DIRECTORY: &str = "/client";
/// Host name inside.
pub(crate) const HOST_NAME: &str = "sandbox";
/// User and group id inside.
pub(crate) const INSIDE_ID: u32 = 1000;

/// What the stage and init carry out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The process to which the stage must still belong when it has armed its death signal.
    pub(crate) runner_pid: i32,
    pub(crate) identity: Identity,
    pub(crate) stub: StubPlan,
    pub(crate) root: RootPlan,
    pub(crate) client: ClientPlan,
    pub(crate) limits: ResourceLimits,
    pub(crate) probe: ProbePlan,
    /// The paths that the client looks up are evidence.
    pub(crate) lookups: bool,
    /// Test builds only: the protections that are switched off.
    #[cfg(feature = "weaken")]
    pub(crate) weakened: Vec<super::weaken::Protection>,
}

impl Plan {
    /// Whether a directory of the host is shown, and not only single files.
    pub(crate) fn shows_host_directories(&self) -> bool {
        self.root
            .binds
            .iter()
            .any(|bind| bind.kind == BindKind::Directory)
    }
}

/// Which host user the client's user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Identity {
    /// Started by root: a free host id, in maps that the runner writes.
    Mapped { host_id: u32 },
    /// Started by an ordinary user: that user, in maps that the stage writes for itself.
    Own { uid: u32, gid: u32 },
}

/// What the stub serves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StubPlan {
    pub(crate) scenario: Scenario,
    /// The client is told where it is. Where it is not, a connection there is an attempt as any other.
    pub(crate) is_known: bool,
    pub(crate) credential: String,
    pub(crate) body_bytes: u64,
    pub(crate) requests: u64,
    pub(crate) connections: u64,
}

/// What the new root holds beside the files that are always the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RootPlan {
    /// Size of home and of the temporary directory, each.
    pub(crate) bytes: u64,
    /// Inodes of home and of the temporary directory, each.
    pub(crate) files: u64,
    pub(crate) binds: Vec<Bind>,
    /// Device nodes of the host that /dev holds; no other.
    pub(crate) devices: Vec<Device>,
}

/// One object of the host that the client sees: the same rule for the mount and for Landlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bind {
    /// Absolute path on the host, resolved.
    pub(crate) source: OsString,
    /// Absolute path inside.
    pub(crate) target: OsString,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) kind: BindKind,
    pub(crate) access: Access,
}

/// What a bind mount covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BindKind {
    File,
    Directory,
}

/// How the client is started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClientPlan {
    /// Absolute path inside.
    pub(crate) program: OsString,
    /// `argv`, from 0. In here and in the environment [`BASE_URL`] stands for the stub's base URL, which is known
    /// once it listens.
    pub(crate) arguments: Vec<OsString>,
    /// `NAME=value`.
    pub(crate) environment: Vec<OsString>,
    /// Absolute path inside of the directory that it starts in.
    pub(crate) directory: OsString,
}

/// setrlimit(2) values of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResourceLimits {
    pub(crate) core_bytes: u64,
    pub(crate) data_bytes: u64,
    pub(crate) processes: u64,
    pub(crate) cpu_seconds: u64,
    pub(crate) open_files: u64,
    pub(crate) file_bytes: u64,
}

/// Targets of the canaries that lie outside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProbePlan {
    /// Abstract name on which the runner listens in its own network namespace.
    pub(crate) outside_socket: String,
    /// A directory of the host that must not be visible.
    pub(crate) outside_directory: OsString,
}
