//! Bytes that the kernel still holds for sockets of the client, listed by sock_diag(7).
//!
//! A process that ends leaves its sockets to the kernel, which goes on sending for them as slowly as their options
//! say. So the end of the client is not the end of what it sends: a socket in the list has more to deliver.

use std::net::{IpAddr, SocketAddr};

use nix::errno::Errno;
use nix::sys::socket::SockProtocol;

use super::netlink::{Socket, number};

/// linux/sock_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// linux/tcp_states.h: all but TCP_TIME_WAIT, TCP_CLOSE, TCP_LISTEN and TCP_NEW_SYN_RECV.
const STATES: u32 = 0xFFF & !(1 << 6 | 1 << 7 | 1 << 10 | 1 << 12);
/// Offsets in struct inet_diag_msg: source and destination port, both addresses, the length of the send queue.
const PORTS: [usize; 2] = [4, 6];
const ADDRESSES: [usize; 2] = [8, 24];
const SEND_QUEUE: usize = 60;

/// A socket of the client that has bytes which the server has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The client's end.
    pub peer: SocketAddr,
    /// Bytes in the send queue; the end of the stream counts one.
    pub bytes: u64,
}

/// Lists sockets of this network namespace; kept open, since the stub's filter opens nothing.
#[derive(Debug)]
pub struct SocketDiag(Socket);

impl SocketDiag {
    /// Opens the socket and tries one listing, so that a kernel without it is found before the client runs.
    ///
    /// # Errors
    /// The errno of the netlink socket or of the listing: `ENOENT` without the modules tcp_diag and inet_diag.
    pub(super) fn open() -> Result<Self, Errno> {
        let diag = Self(Socket::open(SockProtocol::NetlinkSockDiag)?);
        diag.held_for(SocketAddr::from(([127, 0, 0, 1], 1)))?;
        Ok(diag)
    }

    /// Sockets with bytes that `server` has not acknowledged; the end of a stream counts one byte.
    ///
    /// # Errors
    /// The errno of the listing.
    pub fn held_for(&self, server: SocketAddr) -> Result<Vec<Held>, Errno> {
        let mut held = Vec::new();
        // A socket of the other family reaches the same server by a v4-mapped address.
        for family in [libc::AF_INET, libc::AF_INET6] {
            // struct inet_diag_req_v2: family, protocol, extensions, padding, states, then the socket's id, which
            // begins with its ports. A port of 0 is any.
            let mut request = [0; 56];
            request[0] = family as u8;
            request[1] = libc::IPPROTO_TCP as u8;
            request[4..8].copy_from_slice(&STATES.to_ne_bytes());
            request[10..12].copy_from_slice(&server.port().to_be_bytes());
            self.0.dump(SOCK_DIAG_BY_FAMILY, &request, |message| {
                let bytes = u64::from(number(message, SEND_QUEUE)?);
                if bytes > 0 && end(message, 1)? == server {
                    let peer = end(message, 0)?;
                    held.push(Held { peer, bytes });
                }
                Some(())
            })?;
        }
        Ok(held)
    }
}

/// The source (0) or the destination (1) of a struct inet_diag_msg.
fn end(message: &[u8], which: usize) -> Option<SocketAddr> {
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
    fn unread_bytes_are_held_until_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(server).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let diag = SocketDiag::open().unwrap();
        assert_eq!(diag.held_for(server), Ok(Vec::new()));
        client.set_nonblocking(true).unwrap();
        while client.write(&[0; 65536]).is_ok() {}
        let peer = client.local_addr().unwrap();
        drop(client);
        let held = diag.held_for(server).unwrap();
        assert!(matches!(held[..], [Held { peer: held, bytes }] if held == peer && bytes > 1));
        drop(accepted);
        assert_eq!(diag.held_for(server), Ok(Vec::new()));
    }
}
