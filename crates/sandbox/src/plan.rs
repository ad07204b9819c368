//! The plan of one sandbox: plain data that the runner resolves before a namespace exists.
//!
//! The runner sends the plan to the stage over the control socket, in a sealed memory file. The runner resolves each
//! host path and records its device and inode. Init mounts an object only if both are unchanged.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use model::case::{Access, Device, Root, Tier};
use model::layout::{HOME, INSIDE_ID, TMP, WORK};
use model::wire;
use serde::{Deserialize, Serialize};

use super::weaken::Protection;

pub use model::profile::BASE_URL;
pub use probes::canary::CanaryTargets;

/// World-readable file of a new root that no Landlock rule names.
pub(crate) const UNRULED_FILE: &str = "/.canary";
/// Path in a new root where no file exists.
const NEW_FILE: &str = "/canary";
/// The client's own directories, and the paths that the canary tries beside them.
#[derive(Clone, Debug)]
pub struct ClientPaths {
    /// Home directory.
    pub home: PathBuf,
    /// Temporary directory.
    pub tmp: PathBuf,
    /// Working directory.
    pub work: PathBuf,
    /// World-readable file that no rule names.
    pub unruled_file: PathBuf,
    /// Path outside the client's directories where no file exists.
    pub outside_file: PathBuf,
    /// Directory that file modes let the user open; with `None` the runner picks a directory of the host.
    pub closed_directory: Option<PathBuf>,
}

impl ClientPaths {
    /// Returns the paths in a new root.
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

/// Everything that the stage and init carry out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Process id of the runner: the stage ends if its parent differs after the death signal is armed.
    pub runner_pid: i32,
    /// Isolation: with namespaces and a new root, or in those of the container.
    pub tier: Tier,
    /// User and group of the client on the host.
    pub identity: Identity,
    /// The server that the client may reach.
    pub server: ServerPlan,
    /// Files that the client sees.
    pub root: RootPlan,
    /// Command line, environment and directory of the client.
    pub client: ClientPlan,
    /// Resource limits of the client.
    pub limits: ResourceLimits,
    /// Maximum number of processes and threads of the client. The supervisor counts them without a user namespace.
    pub process_limit: u64,
    /// Targets of the canary.
    pub probe: CanaryTargets,
    /// Records the paths that the client looks up.
    pub lookups: bool,
    /// Test builds only: protections that are switched off.
    #[cfg(feature = "weaken")]
    pub weakened: Vec<super::weaken::Protection>,
}

impl Plan {
    /// Checks for isolation `inherited`: network, processes and IPC are shared with the container.
    pub fn is_inherited(&self) -> bool {
        self.tier == Tier::Inherited
    }

    /// Checks whether the client may write to a path of the host.
    pub(crate) fn writes_on_host(&self) -> bool {
        self.root
            .binds
            .iter()
            .any(|bind| bind.access == Access::Write)
    }

    /// Returns the client's user id as seen inside.
    pub fn client_uid(&self) -> u32 {
        match self.identity {
            Identity::Mapped { .. } | Identity::Own { .. } => INSIDE_ID,
            Identity::Unmapped { uid, .. } => uid,
        }
    }

    /// Checks whether the plan shows a directory of the host, not only single files.
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
    /// Tests for a protection that is kept.
    pub fn keeps(&self, protection: Protection) -> bool {
        !self.weakened.contains(&protection)
    }
}

/// User and group of the client on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// Started by root: an unused host id, in maps that the runner writes.
    Mapped {
        /// Host user id and host group id.
        host_id: u32,
    },
    /// Started by an ordinary user: that user, in maps that the stage writes itself.
    Own {
        /// Host user id.
        uid: u32,
        /// Host group id.
        gid: u32,
    },
    /// Without a user namespace: the user who started the runner, without capabilities.
    Unmapped {
        /// User id, inside and outside.
        uid: u32,
        /// Group id, inside and outside.
        gid: u32,
    },
}

/// Settings of the only server that the client may reach: the function given to [`crate::stage::main`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerPlan {
    /// Settings in the server's own encoding; the sandbox passes them on unread.
    pub settings: String,
    /// Adds a listener on a second loopback host, 127.0.0.2.
    pub needs_elsewhere: bool,
    /// The client is given the server's address. Without that, a connection to the server counts as an attempt.
    pub is_known: bool,
    /// Credential of the run, for which the resolver scans queried names.
    pub credential: String,
}

/// TCP ports of the stub, which the stage sends to init.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Ports {
    pub(super) stub: u16,
    /// Port of the second host, if the scenario has one.
    pub(super) elsewhere: Option<u16>,
}

/// Files that the client sees, in addition to the fixed files of a new root.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RootPlan {
    /// Home directory, as a path inside.
    #[serde(with = "wire::string")]
    pub home: OsString,
    /// Temporary directory, as a path inside.
    #[serde(with = "wire::string")]
    pub tmp: OsString,
    /// Working directory of the client's own, as a path inside.
    #[serde(with = "wire::string")]
    pub work: OsString,
    /// Size of each of these three directories, in bytes.
    pub bytes: u64,
    /// Maximum number of inodes of each of these three directories.
    pub files: u64,
    /// Those of the three directories whose files the client may execute; usually none.
    pub exec: Vec<Root>,
    /// Host paths that the client sees, each with its access.
    pub binds: Vec<Bind>,
    /// Device nodes of the host in /dev, a complete list.
    pub devices: Vec<Device>,
}

impl RootPlan {
    /// Lists the client's writable directories, as paths inside.
    pub(crate) fn trees(&self) -> [(Root, &OsString); 3] {
        [
            (Root::Home, &self.home),
            (Root::Tmp, &self.tmp),
            (Root::Work, &self.work),
        ]
    }

    /// Lists the paths inside below which the client may execute files.
    pub(crate) fn executable(&self) -> Vec<PathBuf> {
        let trees = self.trees().into_iter();
        let trees = trees.filter(|(root, _)| self.exec.contains(root));
        let binds = self.binds.iter();
        let binds = binds.filter(|bind| bind.access == Access::ReadExecute);
        trees
            .map(|(_, path)| path)
            .chain(binds.map(|bind| &bind.target))
            .map(PathBuf::from)
            .collect()
    }

    /// Names directly below the client's temporary directory that hold shown paths, each once.
    pub fn names_in_tmp(&self) -> Vec<&OsStr> {
        let targets = self.binds.iter().map(|bind| Path::new(&bind.target));
        let below = targets.filter_map(|target| target.strip_prefix(&self.tmp).ok());
        let mut names: Vec<&OsStr> = below.filter_map(|below| below.iter().next()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Host path that the client sees: one rule for the mount and for Landlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// Absolute path on the host, resolved.
    #[serde(with = "wire::string")]
    pub source: OsString,
    /// Absolute path inside.
    #[serde(with = "wire::string")]
    pub target: OsString,
    /// Device number of the checked object (`st_dev`).
    pub device: u64,
    /// Inode number of the checked object.
    pub inode: u64,
    /// File or directory.
    pub kind: BindKind,
    /// Access of the client.
    pub access: Access,
}

/// Kind of object that a bind mount shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindKind {
    /// Anything but a directory.
    File,
    /// A directory with everything below it.
    Directory,
}

/// Command line, environment and directory of the client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClientPlan {
    /// Absolute path inside.
    #[serde(with = "wire::string")]
    pub program: OsString,
    /// `argv`, from 0. Init replaces [`BASE_URL`] in arguments and environment, once the stub listens and its port is
    /// known.
    #[serde(with = "wire::strings")]
    pub arguments: Vec<OsString>,
    /// Environment, each entry as `NAME=value`.
    #[serde(with = "wire::strings")]
    pub environment: Vec<OsString>,
    /// Current directory at the start, as an absolute path inside.
    #[serde(with = "wire::string")]
    pub directory: OsString,
    /// Standard input is a pipe from the runner; otherwise it is /dev/null.
    pub reads_input: bool,
}

/// setrlimit(2) values of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// RLIMIT_CORE: size of a core dump.
    pub core_bytes: u64,
    /// RLIMIT_DATA: private writable memory of each process.
    pub data_bytes: u64,
    /// RLIMIT_NPROC: processes and threads of the user.
    pub processes: u64,
    /// RLIMIT_CPU, soft: processor time until SIGXCPU.
    pub cpu_seconds: u64,
    /// RLIMIT_CPU, hard: processor time until SIGKILL.
    pub cpu_hard_seconds: u64,
    /// RLIMIT_NOFILE: open descriptors of each process.
    pub open_files: u64,
    /// RLIMIT_FSIZE: size of a written file.
    pub file_bytes: u64,
    /// RLIMIT_MSGQUEUE: memory of POSIX message queues.
    pub queue_bytes: u64,
}
