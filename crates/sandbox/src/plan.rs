//! The plan of one sandbox: everything that allocates, resolves or compiles, done before a namespace exists.
//!
//! Plain data, sent to the stage over the control socket in a sealed memory file. Paths on the host are
//! resolved and identified (device and inode) by the runner; the stage mounts an object only if it is still
//! the one that was resolved.

use std::ffi::OsString;
use std::path::PathBuf;

use model::case::{Access, Device, Tier};
use model::layout::{HOME, INSIDE_ID, TMP, WORK};
use serde::{Deserialize, Serialize};

use super::weaken::Protection;

pub use model::profile::BASE_URL;
pub use probes::canary::CanaryTargets;

/// A file of a new root that everybody may read by its mode, and that no Landlock rule names.
pub(crate) const UNRULED_FILE: &str = "/.canary";
/// A file of a new root that is not there.
const NEW_FILE: &str = "/canary";
/// Where the client's own directories are, and what beside them must stay closed to it.
#[derive(Clone, Debug)]
pub struct ClientPaths {
    pub home: PathBuf,
    pub tmp: PathBuf,
    pub work: PathBuf,
    /// A file that everybody may read by its mode, and that no rule names.
    pub unruled_file: PathBuf,
    /// A file that is not there.
    pub outside_file: PathBuf,
    /// A directory that its user may open; `None`: one of the host is to be found.
    pub closed_directory: Option<PathBuf>,
}

impl ClientPaths {
    /// In a root of the client's own.
    pub fn in_own_root() -> Self {
        Self {
            home: HOME.into(),
            tmp: TMP.into(),
            work: WORK.into(),
            unruled_file: UNRULED_FILE.into(),
            outside_file: NEW_FILE.into(),
            closed_directory: None,
        }
    }
}

/// What the stage and init carry out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The process to which the stage must still belong when it has armed its death signal.
    pub runner_pid: i32,
    /// What seals the network, and whether there is a root of the client's own.
    pub tier: Tier,
    pub identity: Identity,
    pub server: ServerPlan,
    pub root: RootPlan,
    pub client: ClientPlan,
    pub limits: ResourceLimits,
    /// Processes and threads that the client may have, where the supervisor counts them: only without a user namespace.
    pub offspring: u64,
    pub probe: CanaryTargets,
    /// The paths that the client looks up are evidence.
    pub lookups: bool,
    /// Test builds only: the protections that are switched off.
    #[cfg(feature = "weaken")]
    pub(crate) weakened: Vec<super::weaken::Protection>,
}

impl Plan {
    /// Whether the network, and everything else that is not a file, is shared with whoever else is in the container.
    pub fn is_inherited(&self) -> bool {
        self.tier == Tier::Inherited
    }

    /// Whether files that the client makes may lie where the host has them.
    pub(crate) fn writes_on_host(&self) -> bool {
        self.root
            .binds
            .iter()
            .any(|bind| bind.access == Access::Write)
    }

    /// The client's user id, as it sees it.
    pub fn client_uid(&self) -> u32 {
        match self.identity {
            Identity::Mapped { .. } | Identity::Own { .. } => INSIDE_ID,
            Identity::Unmapped { uid, .. } => uid,
        }
    }

    /// Whether a directory of the host is shown, and not only single files.
    pub(crate) fn shows_host_directories(&self) -> bool {
        self.root
            .binds
            .iter()
            .any(|bind| bind.kind == BindKind::Directory)
    }
}

#[cfg(not(feature = "weaken"))]
impl Plan {
    /// Every protection is kept.
    pub const fn keeps(&self, _: Protection) -> bool {
        true
    }
}

#[cfg(feature = "weaken")]
impl Plan {
    /// Whether a protection is kept.
    pub fn keeps(&self, protection: Protection) -> bool {
        !self.weakened.contains(&protection)
    }
}

/// Which host user the client's user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// Started by root: a free host id, in maps that the runner writes.
    Mapped { host_id: u32 },
    /// Started by an ordinary user: that user, in maps that the stage writes for itself.
    Own { uid: u32, gid: u32 },
    /// Without a user namespace: whoever started the runner, and only without capabilities.
    Unmapped { uid: u32, gid: u32 },
}

/// The one server that the client may reach: the function given to [`crate::stage::main`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerPlan {
    /// Settings of the server's function, as it encodes them; the sandbox passes them on unread.
    pub settings: String,
    /// The server also listens on a second loopback host, 127.0.0.2.
    pub needs_elsewhere: bool,
    /// The client is told where it is. Where it is not, a connection there is an attempt as any other.
    pub is_known: bool,
    /// The credential of the run, which the resolver looks for in the names that it is asked for.
    pub credential: String,
}

/// Where the stub listens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) stub: u16,
    /// Of the second host, where the scenario leads to one.
    pub(super) elsewhere: Option<u16>,
}

/// What the client sees of files, beside those of a new root that are always the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RootPlan {
    /// Home of the client, as it names it.
    pub home: OsString,
    /// Its temporary directory, as it names it.
    pub tmp: OsString,
    /// Its own working directory, as it names it.
    pub work: OsString,
    /// Size of each of the three.
    pub bytes: u64,
    /// Inodes of each of the three.
    pub files: u64,
    pub binds: Vec<Bind>,
    /// Device nodes of the host that /dev holds; no other.
    pub devices: Vec<Device>,
}

/// One object of the host that the client sees: the same rule for the mount and for Landlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// Absolute path on the host, resolved.
    pub source: OsString,
    /// Absolute path inside.
    pub target: OsString,
    pub device: u64,
    pub inode: u64,
    pub kind: BindKind,
    pub access: Access,
}

/// What a bind mount covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindKind {
    File,
    Directory,
}

/// How the client is started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientPlan {
    /// Absolute path inside.
    pub program: OsString,
    /// `argv`, from 0. In here and in the environment [`BASE_URL`] stands for the stub's base URL, which is known
    /// once it listens.
    pub arguments: Vec<OsString>,
    /// `NAME=value`.
    pub environment: Vec<OsString>,
    /// Absolute path inside of the directory that it starts in.
    pub directory: OsString,
}

/// setrlimit(2) values of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    pub core_bytes: u64,
    pub data_bytes: u64,
    pub processes: u64,
    pub cpu_seconds: u64,
    pub cpu_hard_seconds: u64,
    pub open_files: u64,
    pub file_bytes: u64,
    /// Of POSIX message queues.
    pub queue_bytes: u64,
}
