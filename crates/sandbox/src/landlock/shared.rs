//! Landlock rules of tier `inherited`, which has no new root.
//!
//! Each object is opened and compared with the checked one. The rule applies to the opened object.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use landlock::{
    Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use model::case::Device;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

use super::super::error::{At as _, SetupError, Step};
use super::super::plan::{Bind, BindKind, Ports, RootPlan};
use super::{LandlockError, REQUIRED_ALONE, REVIEWED, own_rights, rights};

/// Files of the container that name services read. They reveal its users and host names.
const NAME_SERVICE: [&str; 6] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/hosts",
    "/etc/hostname",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
];

/// Builds the client's rules for tier `inherited`.
///
/// # Errors
/// The path that was replaced, or the error of the ruleset.
pub(super) fn client_ruleset(root: &RootPlan, ports: Ports) -> Result<RulesetCreated, SetupError> {
    let mut rules = Vec::new();
    for (tree, path) in root.trees() {
        rules.push((open(Path::new(path))?, own_rights(root, tree)));
    }
    let data = AccessFs::ReadFile | AccessFs::ReadDir;
    rules.push((open(Path::new("/proc"))?, data));
    for path in NAME_SERVICE {
        // Links are followed: the target is the container's own file of that name.
        if let Some(file) = if_present(path)? {
            rules.push((file, AccessFs::ReadFile.into()));
        }
    }
    // Pseudo-terminals of the container would be shared with its other processes.
    let devices = root.devices.iter().filter(|one| **one != Device::Ptmx);
    for device in devices {
        let device = open(Path::new(&format!("/dev/{}", device.word())))?;
        rules.push((device, AccessFs::ReadFile | AccessFs::WriteFile));
    }
    for bind in &root.binds {
        rules.push((checked(bind)?, rights(bind)));
    }
    ruleset(rules, ports)
        .map_err(LandlockError::from)
        .at(Step::LandlockAlone)
}

fn ruleset(
    rules: Vec<(OwnedFd, BitFlags<AccessFs>)>,
    ports: Ports,
) -> Result<RulesetCreated, RulesetError> {
    let required = REQUIRED_ALONE;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(required))?
        .handle_access(AccessNet::from_all(required))?
        .scope(Scope::from_all(required))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(REVIEWED))?
        .create()?;
    for port in [Some(ports.stub), ports.elsewhere].into_iter().flatten() {
        ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
    }
    for (object, access) in rules {
        ruleset = ruleset.add_rule(PathBeneath::new(object, access))?;
    }
    Ok(ruleset)
}

/// Opens a resolved path and refuses links, which another process must have made since.
fn open(path: &Path) -> Result<OwnedFd, SetupError> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(AT_FDCWD, path, how).at_object(Step::TakeSource, path.display())
}

/// Opens a file if it exists and the runner may read it. Podman's /etc/passwd is readable by root only, and the client
/// has no more rights than the runner.
fn if_present(path: &str) -> Result<Option<OwnedFd>, SetupError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file.into())),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::PermissionDenied
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error).at_object(Step::TakeSource, path),
    }
}

/// Opens the object of a rule and compares it with the checked one.
fn checked(bind: &Bind) -> Result<OwnedFd, SetupError> {
    let source = Path::new(&bind.source);
    let file = File::from(open(source)?);
    let status = file
        .metadata()
        .at_object(Step::Describe, source.display())?;
    let is_same = (status.dev(), status.ino()) == (bind.device, bind.inode)
        && status.is_dir() == (bind.kind == BindKind::Directory);
    if is_same {
        Ok(file.into())
    } else {
        Err(Errno::ESTALE).at_object(Step::SourceChanged, source.display())
    }
}
