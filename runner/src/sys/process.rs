//! Processes: a clone that returns twice, and the signal to all of a namespace.

use nix::errno::Errno;
use nix::unistd::Pid;

/// Which side of a clone this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Parent(Pid),
    Child,
}

/// clone(2) without CLONE_VM, like fork(2), with the given CLONE_* flags besides SIGCHLD.
///
/// Call it from single-threaded processes only: the child is a copy of the calling thread, and a lock that
/// another thread held would stay locked in it. The stage and init never start a thread before their clone.
///
/// # Errors
/// The errno of clone(2): `EPERM`, `ENOSPC`, `EAGAIN`.
pub(crate) fn clone_process(flags: libc::c_int) -> Result<Side, Errno> {
    debug_assert_eq!(flags & libc::CLONE_VM, 0);
    // SAFETY: without CLONE_VM the child has its own copy of memory and a null stack means "go on with the
    // same one"; no pointer is passed that the kernel writes to.
    let result = unsafe {
        libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0_usize, 0_usize, 0_usize, 0_usize)
    };
    match Errno::result(result)? {
        0 => Ok(Side::Child),
        pid => Ok(Side::Parent(Pid::from_raw(pid as i32))),
    }
}
