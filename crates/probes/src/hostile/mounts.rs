//! Attempts by mounts and by the root directory.

use std::fs;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chroot, pivot_root};
use sys;

use super::class::{Aim, Attempt, Class, Layer, LedgerEntry, NOTHING, Refusal, TwinEnv, by};
use super::errno;

const REFUSED: &[Refusal] = &[by(Layer::Filter, Errno::EPERM)];

const fn call(name: &'static str, make: super::class::Make) -> Attempt {
    Attempt::new(name, make)
        .at(&[Aim::Word("/tmp")])
        .twin_in(TwinEnv::OwnNamespaces)
        .blocked(REFUSED, LedgerEntry::None)
}

pub(super) const CLASSES: &[Class] = &[
    Class {
        id: "mounts/calls",
        about: "mounting, unmounting and changing the root",
        attempts: &[
            call("mount", |aims| cover(aims).map(|_| String::new())),
            call("open-tree", |_| {
                sys::mount::open_tree(c"/").map(|_| String::new())
            }),
            call("fsopen", |_| {
                sys::attempt::open_tmpfs().map(|_| String::new())
            }),
            call("unmount", unmount),
            call("chroot", |aims| {
                chroot(place(aims)?).map(|()| String::new())
            }),
            call("pivot-root", pivot),
        ],
    },
    Class {
        id: "mounts/propagation",
        about: "mounts that propagate to the outside",
        // Not made in the container's mounts: the sandbox has no mounts of its own there.
        attempts: &[Attempt::new("shared", shared)
            .twin_in(TwinEnv::OwnNamespaces)
            .blocked(&[by(Layer::PrivateMounts, NOTHING)], LedgerEntry::None)
            .inherited(&[], LedgerEntry::None)],
    },
];

fn place(aims: &[String]) -> Result<&str, Errno> {
    aims.first().map(String::as_str).ok_or(Errno::EDESTADDRREQ)
}

/// Mounts a tmpfs on the first target.
fn cover(aims: &[String]) -> Result<&str, Errno> {
    let place = place(aims)?;
    let none = None::<&str>;
    mount(Some("tmpfs"), place, Some("tmpfs"), MsFlags::empty(), none).map(|()| place)
}

/// Unmounts a new mount. The call is made even if the mount was refused.
fn unmount(aims: &[String]) -> Result<String, Errno> {
    let _ = cover(aims);
    umount2(place(aims)?, MntFlags::MNT_DETACH).map(|()| String::new())
}

fn pivot(aims: &[String]) -> Result<String, Errno> {
    let none = None::<&str>;
    // pivot_root(2) rejects a new root on a shared mount.
    let _ = mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none);
    if let Ok(place) = cover(aims) {
        std::env::set_current_dir(place).map_err(errno)?;
    }
    pivot_root(".", ".").map(|()| String::new())
}

/// Searches for a shared mount (proc_pid_mountinfo(5)).
fn shared(_: &[String]) -> Result<String, Errno> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(errno)?;
    let shared = mounts.lines().find(|line| line.contains(" shared:"));
    shared.map(str::to_owned).ok_or(NOTHING)
}
