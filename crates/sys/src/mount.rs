//! Mount calls by descriptor: open_tree(2), move_mount(2), mount_setattr(2).

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;

/// Constants of linux/mount.h, which are part of its stable interface.
const OPEN_TREE_CLONE: libc::c_uint = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;
const MOVE_MOUNT_T_EMPTY_PATH: libc::c_uint = 0x40;
const MOUNT_ATTR_RDONLY: u64 = 0x1;
const MOUNT_ATTR_NOSUID: u64 = 0x2;
const MOUNT_ATTR_NODEV: u64 = 0x4;
const MOUNT_ATTR_NOEXEC: u64 = 0x8;

/// `struct mount_attr` of linux/mount.h, first published size.
#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Restrictions of a mount, as attributes of mount_setattr(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// Read-only, no set-user-ID, no device nodes.
    Tree,
    /// [`Seal::Tree`] and no execution of programs.
    Data,
    /// No set-user-ID, no device nodes, no execution of programs. The file system decides who may write.
    Writable,
    /// A device node: read-only, no set-user-ID, no execution. Writing to a device does not write to its file system.
    Device,
}

impl Seal {
    fn attributes(self) -> u64 {
        match self {
            Self::Tree => MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
            Self::Data => {
                MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC
            }
            Self::Writable => MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
            Self::Device => MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
        }
    }
}

/// open_tree(2): returns a detached copy of the mounts at and below `path`.
///
/// # Errors
/// The errno of open_tree(2): `ENOENT`, `EACCES`, `EPERM`; `ENOSYS` before Linux 5.2.
pub fn open_tree(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC as u32 | libc::AT_RECURSIVE as u32;
    // SAFETY: `path` is a NUL-terminated string that outlives the call.
    let number = Errno::result(unsafe {
        libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags)
    })?;
    // SAFETY: open_tree returned a new descriptor, which only this function knows.
    Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
}

/// mount_setattr(2): seals the mount `tree` and all mounts below it.
///
/// # Errors
/// The errno of mount_setattr(2); `ENOSYS` before Linux 5.12.
pub fn seal(tree: impl AsFd, seal: Seal) -> Result<(), Errno> {
    set(tree, seal.attributes(), 0)
}

/// mount_setattr(2): makes the mount `tree` and all mounts below it private (mount_namespaces(7)).
///
/// # Errors
/// As [`seal`].
pub fn make_private(tree: impl AsFd) -> Result<(), Errno> {
    set(tree, 0, libc::MS_PRIVATE)
}

fn set(tree: impl AsFd, attr_set: u64, propagation: u64) -> Result<(), Errno> {
    let attributes = MountAttr {
        attr_set,
        attr_clr: 0,
        propagation,
        userns_fd: 0,
    };
    // SAFETY: the path is an empty C string; `attributes` has the layout and the size that are passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    };
    Errno::result(result).map(drop)
}

/// move_mount(2): attaches the detached `tree` at the file or directory `target`, without resolving a path.
///
/// # Errors
/// The errno of move_mount(2).
pub fn attach(tree: impl AsFd, target: impl AsFd) -> Result<(), Errno> {
    // SAFETY: both paths are empty C strings.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_fd().as_raw_fd(),
            c"".as_ptr(),
            target.as_fd().as_raw_fd(),
            c"".as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH,
        )
    };
    Errno::result(result).map(drop)
}
