//! The self-check: reads the layers back and runs the canary in the client's process, just before its exec.
//!
//! The values are gathered inside: namespaces and mounts just before the filter, the rest in a child of that process.
//! [`crate::verify`] judges them outside, the layers while the canary still runs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;

use model::evidence::CanaryMode;
use model::wire;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::{self, fstat};
use nix::unistd::Pid;
use probes::canary::{self, Observation, ProbeEnv};
use probes::probe::Kind;
use serde::{Deserialize, Serialize};
use sys::errno_of;
use sys::fds::survives_exec;

use super::core_dumps;
use super::error::{At as _, SetupError, Step};
use super::landlock::LandlockReport;
use super::plan::Plan;
use super::proc::{Proc, ProcView};

/// Namespaces that differ from the runner's, by their names in /proc/self/ns.
pub(super) const NAMESPACES: [&str; 7] = ["user", "net", "mnt", "pid", "ipc", "uts", "cgroup"];

/// Values of the layers, read back inside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SelfCheck {
    /// Fields of /proc/self/status, by key.
    pub(crate) status: BTreeMap<String, String>,
    /// Namespaces and mounts.
    pub(crate) surroundings: Surroundings,
    /// The client has a whole /proc.
    pub(crate) shows_proc: bool,
    /// Descriptors above 2 without FD_CLOEXEC.
    pub(crate) inherited: Vec<i32>,
    /// Soft and hard resource limits, by name (`RLIMIT_CORE`).
    pub(crate) limits: BTreeMap<String, (u64, u64)>,
    /// Landlock rights that the kernel enforces.
    pub landlock: LandlockReport,
}

/// Results of the canary.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CanaryReport {
    /// Results of the probes.
    pub(crate) observations: Vec<Observation>,
    /// Client address of the canary's connection to the stub, which distinguishes it from the client's connections.
    pub stub_peer: Option<SocketAddr>,
}

/// Namespaces and mounts of the client's process, without any right to change them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    /// Links of /proc/self/ns, by name: `net:[4026531840]`.
    pub(crate) namespaces: BTreeMap<String, String>,
    /// Text of /proc/self/mountinfo.
    #[serde(with = "wire::bytes")]
    pub(crate) mounts: Vec<u8>,
    /// Objects at the targets of the binds, in the plan's order; empty in tier `inherited`.
    pub(crate) binds: Vec<SeenBind>,
    /// Node name of uname(2).
    pub(crate) host_name: String,
    /// Text of /proc/self/coredump_filter.
    pub(crate) dump_filter: Option<String>,
}

/// Object that the client finds at the target of a bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SeenBind {
    There {
        device: u64,
        inode: u64,
        /// Id of its mount, as in mountinfo.
        mount: u64,
    },
    /// The target cannot be opened.
    Unreached { errno: i32 },
}

/// Reads namespaces and mounts. Call this function after the last change of them, and before the filter, which notifies
/// each path lookup: the supervisor's answers would cost more than all other work of the self-check.
pub(super) fn surroundings(plan: &Plan, proc: &Proc) -> Result<Surroundings, SetupError> {
    Ok(Surroundings {
        namespaces: namespaces_by(proc)?,
        mounts: proc
            .read_bytes("self/mountinfo")
            .at_object(Step::Probe, "self/mountinfo")?,
        binds: binds(plan, proc)?,
        host_name: host_name()?,
        dump_filter: core_dumps::filter(proc),
    })
}

/// Reads the other layers back.
pub(super) fn read_back(
    proc_view: &ProcView,
    landlock: LandlockReport,
    surroundings: Surroundings,
) -> Result<SelfCheck, SetupError> {
    let read = |path: &str| proc_view.proc.read(path).at_object(Step::Probe, path);
    let status = read("self/status")?;
    let status = status
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.to_owned(), value.trim().to_owned()))
        .collect();
    Ok(SelfCheck {
        status,
        surroundings,
        shows_proc: proc_view.shows_proc,
        inherited: inherited(&proc_view.proc)?,
        limits: limits()?,
        landlock,
    })
}

/// Runs the canary.
pub(super) fn probe(plan: &Plan, proc_view: &ProcView, (port, init): (u16, Pid)) -> CanaryReport {
    let (stub_peer, reached) = reach_stub(port);
    let mut observations = vec![canary::observation(
        canary::STUB,
        CanaryMode::Continued,
        reached,
    )];
    let kind = Kind::of(plan.tier, proc_view.shows_proc);
    let env = ProbeEnv {
        plan: &plan.probe,
        init,
        stub_port: port,
    };
    observations.extend(canary::observe(kind, &env));
    CanaryReport {
        observations,
        stub_peer,
    }
}

/// Reads the namespace links of the calling process, the client or the runner.
///
/// # Errors
/// The errno of readlink(2) on /proc/self/ns.
pub fn namespaces() -> Result<BTreeMap<String, String>, SetupError> {
    namespaces_by(&Proc::open().at_object(Step::Probe, "/proc")?)
}

fn namespaces_by(proc: &Proc) -> Result<BTreeMap<String, String>, SetupError> {
    NAMESPACES
        .into_iter()
        .map(|name| {
            let path = format!("self/ns/{name}");
            let shown = format_args!("/proc/{path}");
            let link = proc.link(&path).at_object(Step::Probe, shown)?;
            Ok((name.to_owned(), link.to_string_lossy().into_owned()))
        })
        .collect()
}

fn binds(plan: &Plan, proc: &Proc) -> Result<Vec<SeenBind>, SetupError> {
    if plan.is_inherited() {
        return Ok(Vec::new());
    }
    let binds = plan.root.binds.iter();
    binds.map(|bind| inspect(&bind.target, proc)).collect()
}

/// Opens the target of a bind and reads its device, inode and mount.
fn inspect(target: &OsStr, proc: &Proc) -> Result<SeenBind, SetupError> {
    let opened = match open(
        target,
        OFlag::O_PATH | OFlag::O_CLOEXEC,
        stat::Mode::empty(),
    ) {
        Ok(opened) => opened,
        Err(errno) => {
            return Ok(SeenBind::Unreached {
                errno: errno as i32,
            });
        }
    };
    let status = fstat(&opened).at_object(Step::Probe, target.display())?;
    let path = format!("self/fdinfo/{}", opened.as_raw_fd());
    let info = proc.read(&path).at_object(Step::Probe, &path)?;
    let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    let mount = mount
        .and_then(|id| id.trim().parse().ok())
        .ok_or(Errno::ENODATA)
        .at_object(Step::Probe, &path)?;
    Ok(SeenBind::There {
        device: status.st_dev,
        inode: status.st_ino,
        mount,
    })
}

fn host_name() -> Result<String, SetupError> {
    let name = nix::sys::utsname::uname().at_object(Step::Probe, "uname")?;
    Ok(name.nodename().to_string_lossy().into_owned())
}

fn reach_stub(port: u16) -> (Option<SocketAddr>, Result<(), Errno>) {
    let reached =
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|stream| stream.local_addr());
    match reached {
        Ok(address) => (Some(address), Ok(())),
        Err(error) => (None, Err(errno_of(error))),
    }
}

fn inherited(proc: &Proc) -> Result<Vec<i32>, SetupError> {
    let listed = proc
        .numbers("self/fd")
        .at_object(Step::Probe, "/proc/self/fd")?;
    Ok(listed
        .into_iter()
        .filter(|number| *number > 2 && survives_exec(*number))
        .collect())
}

fn limits() -> Result<BTreeMap<String, (u64, u64)>, SetupError> {
    [
        Resource::RLIMIT_CORE,
        Resource::RLIMIT_CPU,
        Resource::RLIMIT_DATA,
        Resource::RLIMIT_FSIZE,
        Resource::RLIMIT_NPROC,
        Resource::RLIMIT_NOFILE,
        Resource::RLIMIT_MSGQUEUE,
    ]
    .into_iter()
    .map(|resource| {
        let values = getrlimit(resource).at_object(Step::Probe, format_args!("{resource:?}"))?;
        Ok((format!("{resource:?}"), values))
    })
    .collect()
}
