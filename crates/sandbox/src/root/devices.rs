//! /dev of the new root: links, pseudo-terminals, and the device for an empty standard input.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use model::case::Device;
use model::layout::TMP;
use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::Mode;

use super::make_directory;
use crate::error::{At as _, SetupError, Step};

/// Symbolic links in /dev, with their targets.
pub const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("shm", TMP),
];

/// Name in /dev of the directory of pseudo-terminals (devpts(5)).
const TERMINALS: &str = "pts";
/// Maximum number of pseudo-terminals: each takes kernel memory that no other limit counts.
const MAX_TERMINALS: u32 = 64;

/// Makes /dev with its links.
pub(super) fn make_devices(dev: &Path) -> Result<(), SetupError> {
    make_directory(dev)?;
    for (name, target) in DEVICE_LINKS {
        std::os::unix::fs::symlink(target, dev.join(name)).at_object(Step::MakeTarget, name)?;
    }
    Ok(())
}

/// Mounts pseudo-terminals of the run's own. A kernel or container may refuse, and then there are none.
pub(super) fn mount_terminals(dev: &Path) -> Result<(), SetupError> {
    let target = dev.join(TERMINALS);
    make_directory(&target)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = format!("newinstance,ptmxmode=0666,mode=0600,max={MAX_TERMINALS}");
    let mounted = mount(
        Some("devpts"),
        &target,
        Some("devpts"),
        flags,
        Some(options.as_str()),
    );
    if mounted.is_err() {
        return Ok(());
    }
    let link = dev.join(Device::Ptmx.word());
    std::os::unix::fs::symlink("pts/ptmx", &link).at_object(Step::MakeTarget, link.display())
}

/// Path of a device inside.
pub(super) fn device_path(device: Device) -> String {
    format!("/dev/{}", device.word())
}

/// Opens /dev/null inside, for a standard input without content.
pub(super) fn standard_input() -> Result<OwnedFd, SetupError> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let path = device_path(Device::Null);
    open(path.as_str(), flags, Mode::empty()).at(Step::StandardInput)
}

/// Removes a device from /dev; open descriptors of the device stay open.
pub(super) fn remove_device(device: Device) -> Result<(), SetupError> {
    let path = device_path(device);
    umount2(path.as_str(), MntFlags::MNT_DETACH).at_object(Step::RemoveDevice, &path)?;
    fs::remove_file(&path).at_object(Step::RemoveDevice, &path)
}
