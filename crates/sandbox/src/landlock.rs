//! Landlock rules: the path rules of the mounts, enforced a second time on the process itself.
//!
//! In tier `namespace` all file system rights of ABI 3 (Linux 6.2) are required. Newer rights and the two scopes are
//! used if the kernel has them; the report lists them. TCP ports have no rules there: the network namespace refuses all
//! addresses beyond loopback. A second refusal would hide its errno, which the probes must show.
//!
//! In tier `inherited` Landlock is the only protection of the container's files, neighbours and processes. All of ABI 6
//! is required, with the TCP ports and both scopes, and no rule covers the root.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    NetPort, PathBeneath, PathFd, PathFdError, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use model::case::{Access, Device, Root, Tier};
use model::layout::{HOME, TMP, WORK};
use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use super::error::{AsErrno, At as _, SetupError, Step};
use super::plan::{Bind, BindKind, Plan, Ports, RootPlan};
use super::proc::ProcView;
use super::weaken::Protection;

mod shared;

/// Required ABI in tier `namespace`.
const REQUIRED: ABI = ABI::V3;
/// Required ABI in tier `inherited`, where only TCP port rules and scopes protect the container's other processes.
const REQUIRED_ALONE: ABI = ABI::V6;
/// Newest reviewed ABI; the crate uses the part of it that the kernel has.
const REVIEWED: ABI = ABI::V7;

/// Landlock rights that the kernel enforces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockReport {
    /// ABI of the kernel.
    pub abi: i32,
    /// All requested rights are enforced.
    pub(crate) full: bool,
    /// Scopes (abstract sockets, signals) are enforced: ABI 6.
    pub(crate) scopes: bool,
    /// TCP connect and bind have rules; never in tier `namespace`.
    pub(crate) ports: bool,
}

/// Failure to apply a ruleset.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LandlockError {
    #[error(transparent)]
    Ruleset(#[from] RulesetError),
    #[error(transparent)]
    Path(#[from] PathFdError),
    #[error("the kernel enforces none of the rules")]
    NotEnforced,
}

impl AsErrno for LandlockError {
    fn as_errno(&self) -> Errno {
        errno_within(self)
    }
}

/// Finds the errno among the causes of an error of the landlock crate; `EOPNOTSUPP` if no cause has one, because the
/// kernel lacks a right.
pub fn errno_within(error: &(dyn std::error::Error + 'static)) -> Errno {
    let mut error = Some(error);
    while let Some(one) = error {
        if let Some(errno) = one
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::raw_os_error)
        {
            return Errno::from_raw(errno);
        }
        error = one.source();
    }
    Errno::EOPNOTSUPP
}

/// Restricts the calling process to the client's paths.
///
/// These are the plan's paths and the writable trees. A new root adds its own files, and tier `inherited` adds a few
/// files of the container that most programs read.
pub(super) fn restrict_client(
    plan: &Plan,
    ports: Ports,
    proc_view: &ProcView,
) -> Result<LandlockReport, SetupError> {
    if !plan.keeps(Protection::Landlock) {
        return Ok(LandlockReport {
            abi: 0,
            full: false,
            scopes: true,
            ports: plan.is_inherited(),
        });
    }
    match plan.tier {
        Tier::Namespace => client_ruleset(&plan.root, proc_view.proc.directory())
            .and_then(restrict)
            .at(Step::Landlock),
        Tier::Inherited => {
            let ruleset = shared::client_ruleset(&plan.root, ports)?;
            let report = restrict(ruleset).at(Step::LandlockAlone)?;
            Ok(LandlockReport {
                ports: true,
                ..report
            })
        }
    }
}

/// Denies all files and all new TCP connections to the calling process.
///
/// Signals have no scope, because a scope would block the stub's parent-death signal.
pub(super) fn restrict_stub(tier: Tier) -> Result<(), SetupError> {
    let step = match tier {
        Tier::Namespace => Step::Landlock,
        Tier::Inherited => Step::LandlockAlone,
    };
    stub_ruleset().and_then(restrict).map(drop).at(step)
}

/// Restricts the calling thread to TCP connections to `ports`, and denies it all files.
pub(super) fn restrict_connector(
    ports: impl Iterator<Item = u16>,
) -> Result<LandlockReport, LandlockError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED_ALONE))?
        .handle_access(AccessNet::from_all(REQUIRED_ALONE))?
        .create()?;
    for port in ports {
        ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
    }
    restrict(ruleset)
}

/// Denies the calling process all TCP connections in tier `inherited`, where the supervisor makes them. Called after
/// the self-check, which connects to the stub itself.
pub(super) fn forbid_connections(plan: &Plan) -> Result<(), SetupError> {
    let kept = plan.keeps(Protection::Landlock) && plan.keeps(Protection::Refusals);
    if !plan.is_inherited() || !kept {
        return Ok(());
    }
    let ruleset = || {
        // A domain without a rule for Refer forbids links and renames between directories (landlock(7)).
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessNet::from_all(REQUIRED_ALONE))?
            .handle_access(AccessFs::Refer)?
            .create()?
            .add_rule(beneath("/", AccessFs::Refer)?)?;
        restrict(ruleset)
    };
    ruleset().map(drop).at(Step::LandlockAlone)
}

/// Builds the client's rules for a new root. The self-check reads /proc by the descriptor `proc`, which may be the
/// container's /proc, to which no path leads.
fn client_ruleset(root: &RootPlan, proc: &OwnedFd) -> Result<RulesetCreated, LandlockError> {
    let data = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut ruleset = files_handled()?
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::from_all(REVIEWED))?
        .create()?
        .add_rule(beneath("/", AccessFs::ReadDir)?)?
        .add_rule(beneath("/etc", data)?)?
        .add_rule(beneath("/proc", data)?)?
        .add_rule(PathBeneath::new(proc, data))?
        .add_rule(beneath("/dev", AccessFs::ReadFile | AccessFs::WriteFile)?)?
        .add_rule(beneath(HOME, own_rights(root, Root::Home))?)?
        .add_rule(beneath(TMP, own_rights(root, Root::Tmp))?)?
        .add_rule(beneath(WORK, own_rights(root, Root::Work))?)?;
    if root.devices.contains(&Device::Ptmx) {
        let terminal = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        ruleset = ruleset.add_rule(beneath("/dev/pts", terminal)?)?;
    }
    for bind in &root.binds {
        ruleset = ruleset.add_rule(beneath(&bind.target, rights(bind))?)?;
    }
    Ok(ruleset)
}

/// Returns the rights in the home, the temporary or the working directory.
fn own_rights(root: &RootPlan, tree: Root) -> BitFlags<AccessFs> {
    let rights = AccessFs::from_all(REVIEWED)
        & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    if root.exec.contains(&tree) {
        rights
    } else {
        rights & !AccessFs::Execute
    }
}

/// Returns the rights at or below a path of the host. A file gets no rights of directories.
fn rights(bind: &Bind) -> BitFlags<AccessFs> {
    let rights = match bind.access {
        Access::Read => AccessFs::ReadFile | AccessFs::ReadDir,
        Access::ReadExecute => AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute,
        // Sockets, FIFOs and devices could reach a process outside.
        Access::Write => {
            AccessFs::from_write(REVIEWED)
                & !(AccessFs::MakeChar
                    | AccessFs::MakeBlock
                    | AccessFs::MakeSock
                    | AccessFs::MakeFifo
                    | AccessFs::IoctlDev)
                | AccessFs::ReadFile
                | AccessFs::ReadDir
        }
    };
    match bind.kind {
        BindKind::Directory => rights,
        BindKind::File => rights & AccessFs::from_file(REVIEWED),
    }
}

fn stub_ruleset() -> Result<RulesetCreated, LandlockError> {
    Ok(files_handled()?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessNet::from_all(REVIEWED))?
        .scope(Scope::AbstractUnixSocket)?
        .create()?)
}

fn files_handled() -> Result<Ruleset, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(REVIEWED))
}

fn beneath(
    path: impl AsRef<OsStr>,
    access: impl Into<BitFlags<AccessFs>>,
) -> Result<PathBeneath<PathFd>, PathFdError> {
    Ok(PathBeneath::new(PathFd::new(path.as_ref())?, access))
}

fn restrict(ruleset: RulesetCreated) -> Result<LandlockReport, LandlockError> {
    let status = ruleset.restrict_self()?;
    let LandlockStatus::Available {
        effective_abi,
        kernel_abi,
    } = status.landlock
    else {
        return Err(LandlockError::NotEnforced);
    };
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(LandlockError::NotEnforced);
    }
    Ok(LandlockReport {
        abi: kernel_abi.unwrap_or(effective_abi as i32),
        full: status.ruleset == RulesetStatus::FullyEnforced,
        scopes: effective_abi >= ABI::V6,
        ports: false,
    })
}
