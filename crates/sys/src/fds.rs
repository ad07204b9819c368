//! Descriptors: passed over sockets, and closed on exec.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};
use tokio::io::unix::AsyncFd;

/// Most descriptors in one message that [`receive`] takes; a message with more is refused.
const MOST_DESCRIPTORS: usize = 6;

/// recvmsg(2): one message and the descriptors that came along. Zero bytes mean that the peer has closed.
///
/// # Errors
/// The errno of recvmsg(2); `EMSGSIZE` where the message or its descriptors did not fit.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = cmsg_space!([i32; MOST_DESCRIPTORS]);
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(
        socket.as_fd().as_raw_fd(),
        &mut slices,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let mut received = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            for number in numbers {
                // SAFETY: the kernel has just installed this descriptor in our table for us (SCM_RIGHTS,
                // unix(7)) and nobody else knows its number.
                received.push(unsafe { OwnedFd::from_raw_fd(number) });
            }
        }
    }
    if message
        .flags
        .intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC)
    {
        return Err(Errno::EMSGSIZE);
    }
    Ok((message.bytes, received))
}

/// Leaves the last close of a file to the kernel, where that is a wait of milliseconds, as it is for inotify(7) and
/// fanotify(7). The descriptor is put into a socket that only that socket's own queue refers to, which the kernel
/// collects by itself (unix(7), SCM_RIGHTS). Whatever fails, the caller's own close is the last, and waits.
pub fn close_later(descriptor: impl AsFd) {
    let pair = socketpair(
        AddressFamily::Unix,
        SockType::Datagram,
        None,
        SockFlag::SOCK_CLOEXEC,
    );
    let Ok((from, to)) = pair else { return };
    let both = [descriptor.as_fd().as_raw_fd(), to.as_raw_fd()];
    let _ = sendmsg::<()>(
        from.as_raw_fd(),
        &[IoSlice::new(b".")],
        &[ControlMessage::ScmRights(&both)],
        MsgFlags::MSG_DONTWAIT,
        None,
    );
    drop(to);
}

/// close_range(2) with CLOSE_RANGE_CLOEXEC: every descriptor from `first` on is closed by the next exec.
///
/// # Errors
/// The errno of close_range(2); `ENOSYS` before Linux 5.9, `EINVAL` before 5.11.
pub fn close_on_exec_from(first: u32) -> Result<(), Errno> {
    close_range(first, libc::CLOSE_RANGE_CLOEXEC)
}

/// The same with CLOSE_RANGE_UNSHARE: this process has a table of its own from here on.
///
/// # Errors
/// As for [`close_on_exec_from`].
pub fn own_table_closing_from(first: u32) -> Result<(), Errno> {
    close_range(first, libc::CLOSE_RANGE_CLOEXEC | libc::CLOSE_RANGE_UNSHARE)
}

fn close_range(first: u32, flags: libc::c_uint) -> Result<(), Errno> {
    // SAFETY: no memory is passed; setting close-on-exec ends no descriptor that somebody owns.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) };
    Errno::result(result).map(drop)
}

/// Takes over descriptor `number` of a table that is shared with the process that made it and told us.
pub fn adopt(number: i32) -> OwnedFd {
    // SAFETY: the other process made the descriptor for us and does not use or close the number itself; that
    // it is open was told by it in the message that named it.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// F_GETFD: whether descriptor `number` is open and stays open across an exec. The number comes from a list
/// (/proc/self/fd), so nobody need own the descriptor.
pub fn survives_exec(number: i32) -> bool {
    // SAFETY: F_GETFD reads a flag word and changes nothing, whatever the number stands for.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

/// epoll_ctl(2) by tokio: readiness of a descriptor that is non-blocking already.
///
/// # Errors
/// The error of epoll_ctl(2); `EPERM` for a regular file.
pub fn watched(descriptor: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd names one open descriptor from its making to its drop, and never another.
    unsafe { AsyncFd::register(descriptor) }.map_err(Into::into)
}
