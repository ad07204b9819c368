//! Unacknowledged bytes in send queues of the client's sockets, listed by sock_diag(7).
//!
//! The kernel keeps sending for the sockets of an ended process, as slowly as their options say. So the client's bytes
//! may arrive after its end, and each listed socket has more to deliver.
//!
//! A listing walks the hash table of all TCP sockets of the host, however few are in this namespace: 0.8 ms for the
//! 262,144 buckets of a host with 16 GiB. The number of this namespace's sockets is cheap, and usually answers the
//! question.

use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use nix::sys::socket::SockProtocol;

use super::netlink::{Socket, u32_at};

/// Request type of linux/sock_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Bits of the listed states of net/tcp_states.h: all but TCP_TIME_WAIT, TCP_CLOSE, TCP_LISTEN and TCP_NEW_SYN_RECV.
const STATES: u32 = 0xFFF & !(1 << 6 | 1 << 7 | 1 << 10 | 1 << 12);
/// Offsets in struct inet_diag_msg: source and destination port, both addresses, the length of the send queue.
const PORTS: [usize; 2] = [4, 6];
const ADDRESSES: [usize; 2] = [8, 24];
const SEND_QUEUE: usize = 60;
/// Offset of the cookie in struct inet_diag_req_v2, and INET_DIAG_NOCOOKIE: any socket with this address.
const COOKIE: usize = 48;
const NO_COOKIE: [u8; 8] = [0xFF; 8];
/// Numbers of TCP sockets of the reader's network namespace, for IPv4 and IPv6 (proc_net(5)).
const COUNTS: [&str; 2] = ["/proc/self/net/sockstat", "/proc/self/net/sockstat6"];
/// Size of the read part of each; the TCP line is the second of sockstat and the first of sockstat6.
const COUNT_BYTES: usize = 512;

/// A socket of the client with unacknowledged bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnackedSocket {
    /// Address of the client's end.
    pub peer: SocketAddr,
    /// Bytes in the send queue; a FIN counts as one byte.
    pub bytes: u64,
}

/// A sock_diag(7) socket of this network namespace, opened early because the stub's filter refuses new sockets.
#[derive(Debug)]
pub struct SocketDiag {
    socket: Socket,
    /// Files of [`COUNTS`]; `None` if one cannot be opened.
    counts: Option<[File; 2]>,
}

impl SocketDiag {
    /// Opens the socket and looks up the listening `server`, so that a kernel without sock_diag is found before the
    /// client runs.
    ///
    /// # Errors
    /// The errno of the netlink socket or of the lookup: `ENOENT` without the modules tcp_diag and inet_diag.
    pub(super) fn open(server: SocketAddr) -> Result<Self, Errno> {
        let socket = Socket::open(SockProtocol::NetlinkSockDiag)?;
        let mut request = request(libc::AF_INET, 8, server.port());
        if let IpAddr::V4(address) = server.ip() {
            request[12..16].copy_from_slice(&address.octets());
        }
        request[COOKIE..COOKIE + 8].copy_from_slice(&NO_COOKIE);
        socket.find(SOCK_DIAG_BY_FAMILY, &request)?;
        let counts = match COUNTS.map(File::open) {
            [Ok(v4), Ok(v6)] => Some([v4, v6]),
            [_, _] => None,
        };
        Ok(Self { socket, counts })
    }

    /// Counts the TCP sockets of this network namespace: listening, connected, and those that the kernel keeps for
    /// ended processes while they have bytes to send. `None` if the count cannot be read.
    pub fn tcp_sockets(&self) -> Option<u64> {
        let [v4, v6] = self.counts.as_ref()?;
        Some(count(v4, "TCP:")? + count(v6, "TCP6:")?)
    }

    /// Lists the sockets with bytes that `server` has not acknowledged.
    ///
    /// # Errors
    /// The errno of the listing.
    pub fn list_unacknowledged(&self, server: SocketAddr) -> Result<Vec<UnackedSocket>, Errno> {
        let mut held = Vec::new();
        // An AF_INET6 socket reaches the same server by an IPv4-mapped address.
        for family in [libc::AF_INET, libc::AF_INET6] {
            let request = request(family, 10, server.port());
            self.socket.dump(SOCK_DIAG_BY_FAMILY, &request, |message| {
                let bytes = u64::from(u32_at(message, SEND_QUEUE)?);
                if bytes > 0 && endpoint(message, 1)? == server {
                    let peer = endpoint(message, 0)?;
                    held.push(UnackedSocket { peer, bytes });
                }
                Some(())
            })?;
        }
        Ok(held)
    }
}

/// Makes a struct inet_diag_req_v2: family, protocol, extensions, padding, states, then the socket's id. The id begins
/// with its own port at offset 8 and the peer's at 10; port 0 matches any port.
fn request(family: libc::c_int, port_at: usize, port: u16) -> [u8; 56] {
    let mut request = [0; 56];
    request[0] = family as u8;
    request[1] = libc::IPPROTO_TCP as u8;
    request[4..8].copy_from_slice(&STATES.to_ne_bytes());
    request[port_at..port_at + 2].copy_from_slice(&port.to_be_bytes());
    request
}

/// Reads a line such as `TCP: inuse 3 orphan 0 tw 0 alloc 4 mem 1`.
fn count(file: &File, protocol: &str) -> Option<u64> {
    let mut text = [0; COUNT_BYTES];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(protocol))?;
    let number = line.trim_start().strip_prefix("inuse ")?;
    number.split(' ').next()?.parse().ok()
}

/// Parses the source (0) or the destination (1) of a struct inet_diag_msg.
fn endpoint(message: &[u8], which: usize) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(*message.get(PORTS[which]..)?.first_chunk()?);
    let address = message.get(ADDRESSES[which]..)?;
    let ip = if i32::from(*message.first()?) == libc::AF_INET {
        IpAddr::from(*address.first_chunk::<4>()?)
    } else {
        IpAddr::from(*address.first_chunk::<16>()?).to_canonical()
    };
    Some((ip, port).into())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn unread_bytes_are_listed_until_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(server).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let diag = SocketDiag::open(server).unwrap();
        assert_eq!(diag.list_unacknowledged(server), Ok(Vec::new()));
        client.set_nonblocking(true).unwrap();
        while client.write(&[0; 65536]).is_ok() {}
        let peer = client.local_addr().unwrap();
        drop(client);
        let held = diag.list_unacknowledged(server).unwrap();
        assert!(
            matches!(held[..], [UnackedSocket { peer: held, bytes }] if held == peer && bytes > 1)
        );
        drop(accepted);
        assert_eq!(diag.list_unacknowledged(server), Ok(Vec::new()));
    }

    #[test]
    fn a_server_that_does_not_listen_is_not_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        drop(listener);
        assert_eq!(SocketDiag::open(server).unwrap_err(), Errno::ENOENT);
    }

    #[test]
    fn the_number_of_sockets_is_read_from_the_line_of_its_protocol() {
        let mut file = tempfile::tempfile().unwrap();
        let text =
            "sockets: used 9\nTCP: inuse 12 orphan 1 tw 5 alloc 14 mem 2\nUDP: inuse 3 mem 2\n";
        file.write_all(text.as_bytes()).unwrap();
        assert_eq!(count(&file, "TCP:"), Some(12));
        assert_eq!(count(&file, "TCP6:"), None);
    }

    /// Tests a lower bound only, because other tests use this network.
    #[test]
    fn the_sockets_of_a_connection_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let _client = TcpStream::connect(server).unwrap();
        let _accepted = listener.accept().unwrap();
        let diag = SocketDiag::open(server).unwrap();
        assert!(diag.tcp_sockets().unwrap() >= 3);
    }
}
