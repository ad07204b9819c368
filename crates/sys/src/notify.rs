//! seccomp_unotify(2): the supervisor's side of filter notifications, and access to the memory of a target.

use std::cell::OnceCell;
use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::process::{PIDFD_THREAD, get_descriptor, open_pidfd};

/// ioctl numbers of linux/seccomp.h for the structures below.
const RECV: libc::c_ulong = 0xC050_2100;
const SEND: libc::c_ulong = 0xC018_2101;
const ID_VALID: libc::c_ulong = 0x4008_2102;
const ADD_DESCRIPTOR: libc::c_ulong = 0x4018_2103;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
/// Wakes the target on the supervisor's processor, which halves the round trip (Linux 6.6).
const SYNC_WAKE_UP: libc::c_ulong = 1;

/// One system call that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Cookie of the notification.
    pub id: u64,
    /// Thread id of the caller, in the pid namespace of this process.
    pub thread: i32,
    /// System call number.
    pub call: libc::c_long,
    /// AUDIT_ARCH_* value of linux/audit.h.
    pub architecture: u32,
    /// The six argument registers.
    pub arguments: [u64; 6],
}

/// An answer to a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Let the kernel make the call, with the memory contents of that moment.
    Continue,
    /// Fail the call with this errno, without making it.
    Refuse(Errno),
    /// Return 0 from the call, without making it.
    ReturnZero,
}

/// SECCOMP_GET_NOTIF_SIZES: returns true if the structures of the kernel have the sizes of ours.
///
/// # Errors
/// The errno of seccomp(2).
pub fn sizes_match() -> Result<bool, Errno> {
    let mut sizes = libc::seccomp_notif_sizes {
        seccomp_notif: 0,
        seccomp_notif_resp: 0,
        seccomp_data: 0,
    };
    // SAFETY: the kernel writes the one seccomp_notif_sizes that the pointer addresses.
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

/// SECCOMP_IOCTL_NOTIF_SET_FLAGS: makes answers faster if the kernel supports that; an older kernel ignores the
/// request.
pub fn wake_on_this_processor(listener: impl AsFd) {
    // SAFETY: the flags are passed by value; no memory is read or written.
    unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
}

/// SECCOMP_IOCTL_NOTIF_RECV: receives the next notification. Blocks despite O_NONBLOCK if no call waits, so poll(2)
/// first.
///
/// # Errors
/// `ENOENT` if the caller was killed in the meantime.
pub fn receive(listener: impl AsFd) -> Result<Notification, Errno> {
    // SAFETY: seccomp_notif is plain data, and the kernel requires it to be zeroed.
    let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one seccomp_notif; `sizes_match` was checked before the listener was created.
    Errno::result(unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), RECV, &raw mut raw) })?;
    Ok(Notification {
        id: raw.id,
        thread: raw.pid as i32,
        call: libc::c_long::from(raw.data.nr),
        architecture: raw.data.arch,
        arguments: raw.data.args,
    })
}

/// SECCOMP_IOCTL_NOTIF_ID_VALID: returns true if the caller still waits, so that memory read from its thread is its
/// own.
pub fn is_valid(listener: impl AsFd, id: u64) -> bool {
    check_valid(listener, id).is_ok()
}

fn check_valid(listener: impl AsFd, id: u64) -> Result<(), Errno> {
    // SAFETY: the kernel reads the one u64 that the pointer addresses.
    let result = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), ID_VALID, &raw const id) };
    Errno::result(result).map(drop)
}

/// An id that no notification has: the kernel draws the first one at random, and counts up.
const NO_ID: u64 = 0;

/// Checks that this process may make the requests of a supervisor, with an id that the kernel refuses with `ENOENT`.
///
/// # Errors
/// The first request that fails in another way, as in a seccomp filter around this process, and its errno.
pub fn try_requests(listener: impl AsFd) -> Result<(), (&'static str, Errno)> {
    let listener = listener.as_fd();
    must_know("SECCOMP_IOCTL_NOTIF_ID_VALID", check_valid(listener, NO_ID))?;
    let answered = answer(listener, NO_ID, Answer::Continue);
    must_know("SECCOMP_IOCTL_NOTIF_SEND", answered)
}

/// Checks the same for [`answer_with_descriptor`].
///
/// # Errors
/// The name of the request, and its errno.
pub fn try_descriptors(listener: impl AsFd) -> Result<(), (&'static str, Errno)> {
    let listener = listener.as_fd();
    let answered = answer_with_descriptor(listener, NO_ID, listener, true);
    must_know("SECCOMP_IOCTL_NOTIF_ADDFD", answered)
}

fn must_know(
    request: &'static str,
    result: Result<(), Errno>,
) -> Result<(), (&'static str, Errno)> {
    match result {
        Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err((request, errno)),
        Ok(()) => Err((request, Errno::EEXIST)),
    }
}

/// SECCOMP_IOCTL_NOTIF_SEND: answers a notification.
///
/// # Errors
/// `ENOENT` if the caller was killed, which is not a fault.
pub fn answer(listener: impl AsFd, id: u64, answer: Answer) -> Result<(), Errno> {
    let (error, flags) = match answer {
        Answer::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Answer::Refuse(errno) => (-(errno as i32), 0),
        Answer::ReturnZero => (0, 0),
    };
    let raw = libc::seccomp_notif_resp {
        id,
        val: 0,
        error,
        flags,
    };
    // SAFETY: the kernel reads the one seccomp_notif_resp that the pointer addresses.
    let result = unsafe { libc::ioctl(listener.as_fd().as_raw_fd(), SEND, &raw const raw) };
    Errno::result(result).map(drop)
}

/// Memory of a thread that waits for the answer to its notification.
///
/// Do not keep it for the next notification: a file /proc/TID/mem from before an exec reads no bytes.
#[derive(Debug)]
pub struct Memory {
    thread: i32,
    /// /proc/TID/mem, once process_vm_readv(2) was refused.
    file: OnceCell<File>,
}

impl Memory {
    /// Memory of the thread with this id.
    pub fn of(thread: i32) -> Self {
        let file = OnceCell::new();
        Self { thread, file }
    }

    /// Reads exactly `buffer.len()` bytes at `address`: by process_vm_readv(2), or by /proc/TID/mem if the filter of a
    /// container refuses that call. Both check the same permission; the call needs no file.
    ///
    /// # Errors
    /// `EFAULT` if fewer bytes are readable; `EACCES` or `EPERM` if the process may not be traced.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        if self.file.get().is_none() {
            match read_directly(self.thread, address, buffer) {
                Err(Errno::EPERM | Errno::ENOSYS) => {}
                read => return read,
            }
            let _ = self.file.set(open_memory(self.thread)?);
        }
        let file = self.file.get().ok_or(Errno::EBADF)?;
        file.read_exact_at(buffer, address)
            .map_err(|_| Errno::EFAULT)
    }
}

/// Opens /proc/TID/mem.
///
/// # Errors
/// `EACCES` if the target may not be read.
pub fn open_memory(thread: i32) -> Result<File, Errno> {
    File::open(format!("/proc/{thread}/mem"))
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
}

/// Reads exactly `buffer.len()` bytes at `address` by process_vm_readv(2).
///
/// # Errors
/// `EFAULT` if fewer bytes are readable; `EPERM` or `ENOSYS` also if the filter of a container refuses the call.
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

/// pidfd_open(2) and pidfd_getfd(2): copies descriptor `number` of `thread`, which may have its own table
/// (CLOSE_RANGE_UNSHARE of close_range(2)).
///
/// Before Linux 6.9, the copy comes from the table of `process`.
///
/// # Errors
/// The errno of either call; `EPERM` if the process may not be traced.
pub fn copy_descriptor(thread: i32, process: Pid, number: i32) -> Result<OwnedFd, Errno> {
    let pidfd = match open_pidfd(thread, PIDFD_THREAD) {
        Err(Errno::EINVAL) => open_pidfd(process.as_raw(), 0),
        opened => opened,
    }?;
    get_descriptor(pidfd, number)
}

/// tcp(7) TCP_INFO: returns true if a stream socket is neither connected nor connecting.
///
/// # Errors
/// The errno of getsockopt(2): `EOPNOTSUPP` or `ENOPROTOOPT` for a socket that is not TCP.
pub fn is_unconnected(socket: impl AsFd) -> Result<bool, Errno> {
    /// `TCP_CLOSE` of linux/tcp_states.h.
    const CLOSED: u8 = 7;
    // The state is the first byte of struct tcp_info; the kernel writes at most the requested length.
    let mut state = 0_u8;
    let mut length: libc::socklen_t = 1;
    // SAFETY: the kernel writes at most `length` bytes to `state`, and the length.
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

/// SECCOMP_IOCTL_NOTIF_ADDFD with SECCOMP_ADDFD_FLAG_SEND (Linux 5.14): installs `source` in the caller's table. The
/// call returns the new number.
///
/// # Errors
/// `ENOENT` or `ESRCH` if the caller was killed; `EMFILE` if its table is full. On an error, the call still waits for
/// an answer.
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
    let listener = listener.as_fd().as_raw_fd();
    // SAFETY: the kernel reads the one seccomp_notif_addfd that the pointer addresses.
    let result = unsafe { libc::ioctl(listener, ADD_DESCRIPTOR, &raw const raw) };
    Errno::result(result).map(drop)
}
