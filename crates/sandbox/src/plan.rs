//! The plan of one sandbox: everything that allocates, resolves or compiles, done before a namespace exists.
//!
//! Plain data, sent to the stage over the control socket in a sealed memory file. Paths on the host are
//! resolved and identified (device and inode) by the runner; the stage mounts an object only if it is still
//! the one that was resolved.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use model::layout::{HOME, INSIDE_ID, TMP, WORK};
use probes::canary::ProbePlan;
use model::case::{Access, Device, Tier};
pub(crate) use model::profile::BASE_URL;

/// A file of a new root that everybody may read by its mode, and that no Landlock rule names.
pub(crate) const UNRULED_FILE: &str = "/.canary";
/// A file of a new root that is not there.
const NEW_FILE: &str = "/canary";
/// Where the client's own directories are, and what beside them must stay closed to it.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) home: PathBuf,
    pub(crate) tmp: PathBuf,
    pub(crate) work: PathBuf,
    /// A file that everybody may read by its mode, and that no rule names.
    pub(crate) unruled_file: PathBuf,
    /// A file that is not there.
    pub(crate) outside_file: PathBuf,
    /// A directory that its user may open; `None`: one of the host is to be found.
    pub(crate) closed_directory: Option<PathBuf>,
}

impl Places {
    /// In a root of the client's own.
    pub(crate) fn in_own_root() -> Self {
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
pub(crate) struct Plan {
    /// The process to which the stage must still belong when it has armed its death signal.
    pub(crate) runner_pid: i32,
    /// What seals the network, and whether there is a root of the client's own.
    pub(crate) tier: Tier,
    pub(crate) identity: Identity,
    pub(crate) server: ServerPlan,
    pub(crate) root: RootPlan,
    pub(crate) client: ClientPlan,
    pub(crate) limits: ResourceLimits,
    /// Processes and threads that the client may have, where the supervisor counts them: only without a user namespace.
    pub(crate) offspring: u64,
    pub(crate) probe: ProbePlan,
    /// The paths that the client looks up are evidence.
    pub(crate) lookups: bool,
    /// Test builds only: the protections that are switched off.
    #[cfg(feature = "weaken")]
    pub(crate) weakened: Vec<super::weaken::Protection>,
}

impl Plan {
    /// Whether the network, and everything else that is not a file, is shared with whoever else is in the container.
    pub(crate) fn is_inherited(&self) -> bool {
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
    pub(crate) fn client_uid(&self) -> u32 {
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

/// Which host user the client's user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Identity {
    /// Started by root: a free host id, in maps that the runner writes.
    Mapped { host_id: u32 },
    /// Started by an ordinary user: that user, in maps that the stage writes for itself.
    Own { uid: u32, gid: u32 },
    /// Without a user namespace: whoever started the runner, and only without capabilities.
    Unmapped { uid: u32, gid: u32 },
}

/// The one server that the client may reach: the function given to [`crate::stage::main`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServerPlan {
    /// Settings of the server's function, as it encodes them; the sandbox passes them on unread.
    pub(crate) settings: String,
    /// The server also listens on a second loopback host, 127.0.0.2.
    pub(crate) needs_elsewhere: bool,
    /// The client is told where it is. Where it is not, a connection there is an attempt as any other.
    pub(crate) is_known: bool,
    /// The credential of the run, which the resolver looks for in the names that it is asked for.
    pub(crate) credential: String,
}

/// What the client sees of files, beside those of a new root that are always the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RootPlan {
    /// Home of the client, as it names it.
    pub(crate) home: OsString,
    /// Its temporary directory, as it names it.
    pub(crate) tmp: OsString,
    /// Its own working directory, as it names it.
    pub(crate) work: OsString,
    /// Size of each of the three.
    pub(crate) bytes: u64,
    /// Inodes of each of the three.
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
    pub(crate) cpu_hard_seconds: u64,
    pub(crate) open_files: u64,
    pub(crate) file_bytes: u64,
    /// Of POSIX message queues.
    pub(crate) queue_bytes: u64,
}
