//! Unacknowledged bytes in send queues of the client's sockets, listed by sock_diag(7).
//!
//! The kernel keeps sending for the sockets of an ended process, as slowly as their options say. So the client's bytes
//! may arrive after its end, and each listed socket has more to deliver.

use std::net::{IpAddr, SocketAddr};

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
pub struct SocketDiag(Socket);

impl SocketDiag {
    /// Opens the socket and lists once, so that a kernel without sock_diag is found before the client runs.
    ///
    /// # Errors
    /// The errno of the netlink socket or of the listing: `ENOENT` without the modules tcp_diag and inet_diag.
    pub(super) fn open() -> Result<Self, Errno> {
        let diag = Self(Socket::open(SockProtocol::NetlinkSockDiag)?);
        diag.list_unacknowledged(SocketAddr::from(([127, 0, 0, 1], 1)))?;
        Ok(diag)
    }

    /// Lists the sockets with bytes that `server` has not acknowledged.
    ///
    /// # Errors
    /// The errno of the listing.
    pub fn list_unacknowledged(&self, server: SocketAddr) -> Result<Vec<UnackedSocket>, Errno> {
        let mut held = Vec::new();
        // An AF_INET6 socket reaches the same server by an IPv4-mapped address.
        for family in [libc::AF_INET, libc::AF_INET6] {
            // struct inet_diag_req_v2: family, protocol, extensions, padding, states, then the socket's id, which
            // begins with its ports. Port 0 matches any port.
            let mut request = [0; 56];
            request[0] = family as u8;
            request[1] = libc::IPPROTO_TCP as u8;
            request[4..8].copy_from_slice(&STATES.to_ne_bytes());
            request[10..12].copy_from_slice(&server.port().to_be_bytes());
            self.0.dump(SOCK_DIAG_BY_FAMILY, &request, |message| {
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
        let diag = SocketDiag::open().unwrap();
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
}
