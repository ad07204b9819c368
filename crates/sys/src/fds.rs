//! File descriptors: received over sockets, adopted, and closed on exec.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};
use tokio::io::unix::AsyncFd;

/// Largest number of descriptors in one message; [`receive`] rejects a message with more.
const MAX_DESCRIPTORS: usize = 32;

/// recvmsg(2): receives one message with its descriptors. Zero bytes mean that the peer has closed the socket.
///
/// # Errors
/// The errno of recvmsg(2); `EMSGSIZE` if the message or its descriptors did not fit.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = cmsg_space!([i32; MAX_DESCRIPTORS]);
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
                // SAFETY: the kernel has just installed this descriptor in our table (SCM_RIGHTS, unix(7)); no other
                // code knows its number.
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

/// Receives one message of at most `limit` bytes from a seqpacket socket, with its descriptors. An empty message means
/// that the peer has closed the socket.
///
/// The size is asked first, since pages of a large buffer cost more than the call.
///
/// # Errors
/// Those of [`receive`]; `EMSGSIZE` also for a longer message.
pub fn receive_message(socket: impl AsFd, limit: usize) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
    let number = socket.as_fd().as_raw_fd();
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC;
    let length = nix::sys::socket::recv(number, &mut [], flags)?;
    if length > limit {
        return Err(Errno::EMSGSIZE);
    }
    let mut bytes = vec![0; length];
    let (length, descriptors) = receive(socket, &mut bytes)?;
    bytes.truncate(length);
    Ok((bytes, descriptors))
}

/// Leaves the last close of a file to the kernel, because closing inotify(7) and fanotify(7) descriptors takes
/// milliseconds.
///
/// The descriptor is queued in a socket that only its own queue refers to. The kernel collects such a socket itself
/// (SCM_RIGHTS, unix(7)). If any step fails, this function closes the file and waits.
pub fn close_later(descriptor: OwnedFd) {
    let pair = socketpair(
        AddressFamily::Unix,
        SockType::Datagram,
        None,
        SockFlag::SOCK_CLOEXEC,
    );
    let Ok((from, to)) = pair else { return };
    let both = [descriptor.as_raw_fd(), to.as_raw_fd()];
    let _ = sendmsg::<()>(
        from.as_raw_fd(),
        &[IoSlice::new(b".")],
        &[ControlMessage::ScmRights(&both)],
        MsgFlags::MSG_DONTWAIT,
        None,
    );
    // Closing the last socket starts the collection, so the file must already be closed here.
    drop((descriptor, to));
    drop(from);
}

/// close_range(2) with CLOSE_RANGE_CLOEXEC: the next exec closes every descriptor from `first` on.
///
/// # Errors
/// The errno of close_range(2); `ENOSYS` before Linux 5.9, `EINVAL` before 5.11.
pub fn close_on_exec_from(first: u32) -> Result<(), Errno> {
    close_range(first, libc::CLOSE_RANGE_CLOEXEC)
}

/// close_range(2) with CLOSE_RANGE_CLOEXEC and CLOSE_RANGE_UNSHARE: this process also gets its own descriptor table.
///
/// # Errors
/// As for [`close_on_exec_from`].
pub fn unshare_table_closing_from(first: u32) -> Result<(), Errno> {
    close_range(first, libc::CLOSE_RANGE_CLOEXEC | libc::CLOSE_RANGE_UNSHARE)
}

fn close_range(first: u32, flags: libc::c_uint) -> Result<(), Errno> {
    // SAFETY: no memory is passed; close-on-exec does not close a descriptor that is in use.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, flags) };
    Errno::result(result).map(drop)
}

/// Takes ownership of descriptor `number`, which another process created in the shared table and reported to us.
pub fn adopt(number: i32) -> OwnedFd {
    // SAFETY: the other process created the descriptor for us and does not use or close it. Its message with the number
    // says that the descriptor is open.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// fcntl(2) F_GETFD: returns true if descriptor `number` is open and stays open across an exec.
///
/// The number comes from /proc/self/fd, so the caller need not own the descriptor.
pub fn survives_exec(number: i32) -> bool {
    // SAFETY: F_GETFD reads flags and changes nothing, whatever the number refers to.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

/// Registers a non-blocking descriptor with tokio, which uses epoll_ctl(2).
///
/// # Errors
/// The error of epoll_ctl(2); `EPERM` for a regular file.
pub fn watched(descriptor: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd refers to the same open descriptor until it is dropped.
    unsafe { AsyncFd::register(descriptor) }.map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SockFlag::SOCK_CLOEXEC;
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap()
    }

    #[test]
    fn a_message_is_received_whole_with_its_descriptors() {
        let (from, to) = pair();
        let file = std::fs::File::open("/dev/null").unwrap();
        let sent = [b'x'; 5000];
        let rights = [file.as_raw_fd()];
        let parts = [IoSlice::new(&sent)];
        let control = [ControlMessage::ScmRights(&rights)];
        let flags = MsgFlags::empty();
        sendmsg::<()>(from.as_raw_fd(), &parts, &control, flags, None).unwrap();
        let (bytes, descriptors) = receive_message(&to, 5000).unwrap();
        assert_eq!((&bytes[..], descriptors.len()), (&sent[..], 1));
        drop(from);
        assert_eq!(receive_message(&to, 5000).unwrap().0, b"");
    }

    #[test]
    fn a_message_above_the_limit_is_refused() {
        let (from, to) = pair();
        nix::sys::socket::send(from.as_raw_fd(), b"12345", MsgFlags::empty()).unwrap();
        assert_eq!(receive_message(&to, 4).unwrap_err(), Errno::EMSGSIZE);
    }
}
