//! seccomp_unotify(2): the supervisor's side of a filter's notifications, and a target's memory.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// ioctl numbers of linux/seccomp.h for the structures below.
const RECV: libc::c_ulong = 0xC050_2100;
const SEND: libc::c_ulong = 0xC018_2101;
const ID_VALID: libc::c_ulong = 0x4008_2102;
const ADD_DESCRIPTOR: libc::c_ulong = 0x4018_2103;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
/// The answer wakes the target on the processor of the supervisor: half the round trip (Linux 6.6).
const SYNC_WAKE_UP: libc::c_ulong = 1;

/// One call that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    pub id: u64,
    /// Thread id of the caller, in the pid namespace of this process.
    pub thread: i32,
    pub call: libc::c_long,
    /// AUDIT_ARCH_* of linux/audit.h.
    pub architecture: u32,
    /// The six argument registers.
    pub arguments: [u64; 6],
}

/// An answer to a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call is made, with whatever its memory holds by then.
    Continue,
    /// The call is not made and fails.
    Refuse(Errno),
    /// The call is not made and returns 0.
    Pretend,
}

/// SECCOMP_GET_NOTIF_SIZES: whether the kernel's structures have the size that ours have.
pub fn sizes_match() -> Result<bool, Errno> {
    let mut sizes = libc::seccomp_notif_sizes {
        seccomp_notif: 0,
        seccomp_notif_resp: 0,
        seccomp_data: 0,
    };
    // SAFETY: the kernel writes one seccomp_notif_sizes, to which the pointer points.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_NOTIF_SIZES,
            0,
            &raw mut sizes,
        )
    };
    Errno::result(result)?;
    Ok(
        usize::from(sizes.seccomp_notif) == size_of::<libc::seccomp_notif>()
            && usize::from(sizes.seccomp_notif_resp) == size_of::<libc::seccomp_notif_resp>(),
    )
}

/// SECCOMP_IOCTL_NOTIF_SET_FLAGS: faster answers where the kernel has them. Its absence changes no answer.
pub fn wake_on_this_processor(listener: impl AsFd) {
    // SAFETY: the flags are passed by value; nothing is read or written in memory.
    unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
}

/// SECCOMP_IOCTL_NOTIF_RECV. It waits where no call does, whatever O_NONBLOCK says: poll(2) first.
///
/// # Errors
/// `ENOENT` where the caller went away in between.
pub fn receive(listener: impl AsFd) -> Result<Notification, Errno> {
    // SAFETY: seccomp_notif is plain data, and the kernel wants it zeroed.
    let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one seccomp_notif; sizes_match was asked before the listener was made.
    Errno::result(unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), RECV, &raw mut raw) })?;
    Ok(Notification {
        id: raw.id,
        thread: raw.pid as i32,
        call: libc::c_long::from(raw.data.nr),
        architecture: raw.data.arch,
        arguments: raw.data.args,
    })
}

/// SECCOMP_IOCTL_NOTIF_ID_VALID: whether the caller still waits, so that what was read belongs to it.
pub fn is_valid(listener: impl AsFd, id: u64) -> bool {
    // SAFETY: the kernel reads one u64, to which the pointer points.
    unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), ID_VALID, &raw const id) == 0 }
}

/// SECCOMP_IOCTL_NOTIF_SEND.
///
/// # Errors
/// `ENOENT` where the caller has gone away, which is no fault.
pub fn answer(listener: impl AsFd, id: u64, answer: Answer) -> Result<(), Errno> {
    let (error, flags) = match answer {
        Answer::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Answer::Refuse(errno) => (-(errno as i32), 0),
        Answer::Pretend => (0, 0),
    };
    let raw = libc::seccomp_notif_resp {
        id,
        val: 0,
        error,
        flags,
    };
    // SAFETY: the kernel reads one seccomp_notif_resp, to which the pointer points.
    let result = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), SEND, &raw const raw) };
    Errno::result(result).map(drop)
}

/// /proc/TID/mem, opened anew: a descriptor that was kept over an exec reads nothing.
///
/// # Errors
/// `EACCES` where the target may not be read.
pub fn open_memory(thread: i32) -> Result<File, Errno> {
    File::open(format!("/proc/{thread}/mem"))
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
}

/// Reads exactly `buffer.len()` bytes at `address`.
///
/// # Errors
/// `EFAULT` where less is there.
pub fn read_memory(memory: &File, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
    memory
        .read_exact_at(buffer, address)
        .map_err(|_| Errno::EFAULT)
}

/// The same by process_vm_readv(2), which opens nothing: one call, and the permission is the same.
///
/// # Errors
/// `EFAULT` where less is there; `EPERM` or `ENOSYS` also where a container's own filter has no such call.
pub fn read_directly(thread: i32, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
    let remote = RemoteIoVec {
        base: usize::try_from(address).map_err(|_| Errno::EFAULT)?,
        len: buffer.len(),
    };
    let wanted = buffer.len();
    let local = &mut [IoSliceMut::new(buffer)];
    match process_vm_readv(Pid::from_raw(thread), local, &[remote])? {
        read if read == wanted => Ok(()),
        _ => Err(Errno::EFAULT),
    }
}

/// pidfd_open(2) and pidfd_getfd(2): a copy of descriptor `number` of `thread`, which may have a table of its
/// own (CLOSE_RANGE_UNSHARE of close_range(2)). Before Linux 6.9 only the table of its `process` can be reached.
///
/// # Errors
/// The errno of either; `EPERM` where the process may not be traced.
pub fn copy_descriptor(thread: i32, process: Pid, number: i32) -> Result<OwnedFd, Errno> {
    /// `PIDFD_THREAD` of linux/pidfd.h.
    const THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;
    let pidfd = match open_pidfd(thread, THREAD) {
        Err(Errno::EINVAL) => open_pidfd(process.as_raw(), 0),
        opened => opened,
    }?;
    // SAFETY: no memory is passed.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), number, 0) };
    let copy = Errno::result(copy)?;
    // SAFETY: pidfd_getfd has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(copy as i32) })
}

/// pidfd_open(2) of a process, or with `PIDFD_THREAD` of a thread.
///
/// # Errors
/// The errno of the call: `ESRCH` where there is none; `ENOSYS` before Linux 5.3.
pub fn open_pidfd(task: i32, flags: libc::c_uint) -> Result<OwnedFd, Errno> {
    // SAFETY: no memory is passed.
    let pidfd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, task, flags) })?;
    // SAFETY: pidfd_open has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(pidfd as i32) })
}

/// tcp(7) TCP_INFO: whether a stream socket is neither connected nor connecting.
///
/// # Errors
/// The errno of getsockopt(2): `EOPNOTSUPP`, `ENOPROTOOPT` for what is no TCP socket.
pub fn is_unconnected(socket: impl AsFd) -> Result<bool, Errno> {
    /// `TCP_CLOSE` of linux/tcp_states.h.
    const CLOSED: u8 = 7;
    // The state is the first byte of struct tcp_info; the kernel writes no more than it is asked for.
    let mut state = 0_u8;
    let mut length: libc::socklen_t = 1;
    // SAFETY: the kernel writes at most `length` bytes to `state`, and the length back.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut state).cast(),
            &raw mut length,
        )
    };
    Errno::result(result).map(|_| state == CLOSED)
}

/// SECCOMP_IOCTL_NOTIF_ADDFD with SECCOMP_ADDFD_FLAG_SEND (Linux 5.14): installs `source` in the caller's table, and
/// answers the call with its number there.
///
/// # Errors
/// `ENOENT` or `ESRCH` if the caller was killed; `EMFILE` if its table is full. The call then still waits for an
/// answer.
pub fn answer_with_descriptor(
    listener: impl AsFd,
    id: u64,
    source: impl AsFd,
    close_on_exec: bool,
) -> Result<(), Errno> {
    let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 };
    let raw = libc::seccomp_notif_addfd {
        id,
        flags: libc::SECCOMP_ADDFD_FLAG_SEND as u32,
        srcfd: source.as_fd().as_raw_fd() as u32,
        newfd: 0,
        newfd_flags: flags as u32,
    };
    // SAFETY: the kernel reads one seccomp_notif_addfd, to which the pointer points.
    let result =
        unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), ADD_DESCRIPTOR, &raw const raw) };
    Errno::result(result).map(drop)
}
