//! Probes by mounts and by the root directory.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::pivot_root;
use sys::attempt::{
    Argument::{self, Number, Target, Text, Words},
    RawCall,
};
use sys::errno_of;
use sys::mount::{attach, open_tree};

use super::{FILTERED, HERE, NULL};
use crate::probe::{
    ANY, Aim::Word, Class, Layer, LedgerEntry, NOTHING, Probe, TwinEnv, by, class, word,
};

const fn raw(name: &'static str, call: RawCall, arguments: &'static [Argument]) -> Probe {
    on_tmp(Probe::raw(name, call, arguments))
}

const fn on_tmp(probe: Probe) -> Probe {
    probe
        .at(&[Word("/tmp")])
        .twin_in(TwinEnv::OwnNamespaces)
        .blocked(FILTERED, LedgerEntry::None)
}

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    class("mounts/calls", "mounting, unmounting and changing the root", &[
        raw("mount", RawCall::MOUNT, &[Text(c"tmpfs"), Target(0), Text(c"tmpfs"), NULL, NULL]).canary("mount", ANY),
        raw("bind", RawCall::MOUNT, &[Text(c"/"), Target(0), NULL, Number((libc::MS_BIND | libc::MS_REC) as i64), NULL]),
        // OPEN_TREE_CLONE. Mounts below may not be uncovered, so the copy includes them.
        raw("open-tree", RawCall::OPEN_TREE, &[HERE, Text(c"/"), Number(1 | libc::AT_RECURSIVE as i64)]),
        on_tmp(Probe::new("move", move_tree)),
        raw("fsopen", RawCall::FSOPEN, &[Text(c"tmpfs"), NULL]),
        raw("fspick", RawCall::FSPICK, &[HERE, Text(c"/"), NULL]),
        // struct mount_attr with MOUNT_ATTR_NOSUID, which may be set on every mount.
        raw("attributes", RawCall::MOUNT_SETATTR, &[HERE, Text(c"/"), NULL, Words(&[0x2, 0, 0, 0]), Number(32)]),
        on_tmp(Probe::new("unmount", unmount)),
        raw("chroot", RawCall::CHROOT, &[Target(0)]),
        on_tmp(Probe::new("pivot-root", pivot)),
    ]),
    // The list of mounts is a file of /proc. Not made in the container's mounts: the sandbox has no mounts of its
    // own there.
    class("mounts/propagation", "mounts that propagate to the outside", &[Probe::new("shared", shared).twin_in(TwinEnv::OwnNamespaces)
        .blocked(&[by(Layer::PrivateMounts, NOTHING)], LedgerEntry::None)
        .inherited(&[], LedgerEntry::None)]),
];

/// Mounts a tmpfs on the first target.
fn cover(aims: &[OsString]) -> Result<&str, Errno> {
    let place = word(aims, 0)?;
    let none = None::<&str>;
    mount(Some("tmpfs"), place, Some("tmpfs"), MsFlags::empty(), none).map(|()| place)
}

/// Attaches a copy of the root. The call is made even if the copy was refused.
fn move_tree(aims: &[OsString]) -> Result<String, Errno> {
    // Landlock does not check O_PATH.
    let mut options = fs::File::options();
    let target = options
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(word(aims, 0)?);
    let target = target.map_err(errno_of)?;
    let moved = match open_tree(c"/") {
        Ok(tree) => attach(tree, target),
        Err(_) => attach(std::io::stdin(), target),
    };
    moved.map(|()| String::new())
}

/// Unmounts a new mount. The call is made even if the mount was refused.
fn unmount(aims: &[OsString]) -> Result<String, Errno> {
    let _ = cover(aims);
    umount2(word(aims, 0)?, MntFlags::MNT_DETACH).map(|()| String::new())
}

fn pivot(aims: &[OsString]) -> Result<String, Errno> {
    let none = None::<&str>;
    // pivot_root(2) rejects a new root on a shared mount.
    let _ = mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none);
    if let Ok(place) = cover(aims) {
        std::env::set_current_dir(place).map_err(errno_of)?;
    }
    pivot_root(".", ".").map(|()| String::new())
}

/// Searches for a shared mount (proc_pid_mountinfo(5)).
fn shared(_: &[OsString]) -> Result<String, Errno> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(errno_of)?;
    let shared = mounts.lines().find(|line| line.contains(" shared:"));
    shared.map(str::to_owned).ok_or(NOTHING)
}
