//! State of the client's descriptors: TCP sockets that are not connected yet.
//!
//! A copy of the descriptor shows its state. If a container's filter refuses the copy (pidfd_getfd(2)), /proc shows
//! the state.

use std::ffi::CString;
use std::fs;

use nix::errno::Errno;
use sys::net::socket_protocol;
use sys::notify::{copy_descriptor, is_unconnected};

use super::caller::Caller;
use crate::error::AsErrno as _;

/// `TCP_CLOSE` of linux/tcp_states.h, as in /proc/net/tcp.
const CLOSED: &str = "07";

/// Checks for an unconnected TCP socket at descriptor `number` of `thread`.
///
/// # Errors
/// `EOPNOTSUPP`, `ENOPROTOOPT`, `ENOTSOCK` or `EBADF` if the descriptor is no TCP socket, else the errno of the failed
/// call.
pub(super) fn is_unconnected_tcp(thread: i32, caller: &Caller, number: i32) -> Result<bool, Errno> {
    match copy_descriptor(thread, caller.process, number) {
        Ok(copy) => is_unconnected(copy),
        Err(Errno::EPERM | Errno::ENOSYS) => is_unconnected_by_proc(thread, number),
        Err(errno) => Err(errno),
    }
}

/// Checks by /proc of `thread`. /proc/net/tcp lists only sockets that are bound, connected or connecting.
fn is_unconnected_by_proc(thread: i32, number: i32) -> Result<bool, Errno> {
    let path = format!("/proc/{thread}/fd/{number}");
    let name = CString::new(path).map_err(|_| Errno::EINVAL)?;
    let list = match socket_protocol(&name).map_err(no_descriptor)?.as_slice() {
        b"TCP" => "tcp",
        b"TCPv6" => "tcp6",
        _ => return Err(Errno::EOPNOTSUPP),
    };
    let inode = socket_inode(thread, number)?.to_string();
    let listed = fs::read_to_string(format!("/proc/{thread}/net/{list}"));
    let listed = listed.map_err(|error| error.as_errno())?;
    Ok(state(&listed, &inode).is_none_or(|state| state == CLOSED))
}

/// Inode of the socket that is descriptor `number` of `thread`.
///
/// # Errors
/// `EBADF` for a number without a descriptor, `ENOTSOCK` for another file, else the errno of readlink(2).
pub(super) fn socket_inode(thread: i32, number: i32) -> Result<u64, Errno> {
    let link = fs::read_link(format!("/proc/{thread}/fd/{number}"));
    let link = link.map_err(|error| no_descriptor(error.as_errno()))?;
    let link = link.to_string_lossy();
    let inode = link.strip_prefix("socket:[");
    let inode = inode.and_then(|rest| rest.strip_suffix(']')?.parse().ok());
    inode.ok_or(Errno::ENOTSOCK)
}

/// State of the socket with this inode: the fourth word of its line is the state, the tenth the inode (proc_net(5)).
fn state<'a>(listed: &'a str, inode: &str) -> Option<&'a str> {
    listed.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let state = words.nth(3)?;
        (words.nth(5)? == inode).then_some(state)
    })
}

fn no_descriptor(errno: Errno) -> Errno {
    if errno == Errno::ENOENT {
        Errno::EBADF
    } else if errno == Errno::ENODATA {
        Errno::ENOTSOCK
    } else {
        errno
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

    use super::super::caller::Callers;
    use super::*;

    fn both(descriptor: &impl AsRawFd) -> [Result<bool, Errno>; 2] {
        let own = std::process::id() as i32;
        let number = descriptor.as_raw_fd();
        let copied = is_unconnected_tcp(own, &Callers::default().read(own), number);
        [copied, is_unconnected_by_proc(own, number)]
    }

    fn tcp(family: AddressFamily) -> OwnedFd {
        socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap()
    }

    #[test]
    fn copy_and_list_say_the_same_of_tcp_sockets() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            assert_eq!(both(&tcp(family)), [Ok(true), Ok(true)]);
        }
        assert_eq!(both(&connected), [Ok(false), Ok(false)]);
        assert_eq!(both(&listener), [Ok(false), Ok(false)]);
    }

    #[test]
    fn what_is_no_tcp_socket_is_an_error_of_the_expected_ones() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (unix, _other) = UnixStream::pair().unwrap();
        let file = fs::File::open("/proc/self/status").unwrap();
        let expected = [
            Errno::EOPNOTSUPP,
            Errno::ENOPROTOOPT,
            Errno::ENOTSOCK,
            Errno::EBADF,
        ];
        let all = [both(&udp), both(&unix), both(&file)].concat();
        for result in all {
            assert!(expected.map(Err).contains(&result), "{result:?}");
        }
        let own = std::process::id() as i32;
        assert_eq!(is_unconnected_by_proc(own, 100_000), Err(Errno::EBADF));
    }

    #[test]
    fn a_line_is_found_by_its_inode() {
        let listed = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:8BF5 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0\n";
        assert_eq!(state(listed, "4711"), Some("01"));
        assert_eq!(state(listed, "471"), None);
    }
}
