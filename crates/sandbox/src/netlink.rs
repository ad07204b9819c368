//! Requests by netlink(7): dumps, whose answer has several messages, and questions about one object.

use std::cell::RefCell;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// Size of struct nlmsghdr.
const HEADER_BYTES: usize = 16;
/// Size of the receive buffer: the kernel's maximum for a dump (netlink_dump in net/netlink/af_netlink.c).
const BUFFER_BYTES: usize = 32 * 1024;

/// A netlink socket of one protocol.
#[derive(Debug)]
pub(super) struct Socket {
    socket: OwnedFd,
    /// Received bytes of a dump; empty before the first one.
    buffer: RefCell<Vec<u8>>,
}

impl Socket {
    /// Opens a socket in the network namespace of this process.
    ///
    /// # Errors
    /// The errno of socket(2).
    pub(super) fn open(protocol: SockProtocol) -> Result<Self, Errno> {
        socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            protocol,
        )
        .map(|socket| Self {
            socket,
            buffer: RefCell::default(),
        })
    }

    /// Sends a dump request with `body` and calls `take` with the body of each message of the answer.
    ///
    /// # Errors
    /// The errno of the socket or of the answer; `EBADMSG` for a truncated answer.
    pub(super) fn dump(
        &self,
        kind: u16,
        body: &[u8],
        mut take: impl FnMut(&[u8]) -> Option<()>,
    ) -> Result<(), Errno> {
        self.send(kind, libc::NLM_F_REQUEST | libc::NLM_F_DUMP, body)?;
        let mut buffer = self.buffer.borrow_mut();
        buffer.resize(BUFFER_BYTES, 0);
        loop {
            let length = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_TRUNC)?;
            let mut rest = buffer.get(..length).ok_or(Errno::EMSGSIZE)?;
            while !rest.is_empty() {
                let length = u32_at(rest, 0).ok_or(Errno::EBADMSG)? as usize;
                let message = rest
                    .get(..length)
                    .filter(|message| message.len() >= HEADER_BYTES)
                    .ok_or(Errno::EBADMSG)?;
                match i32::from(u16_at(message, 4).ok_or(Errno::EBADMSG)?) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => return Err(refusal(message)),
                    _ => take(message.get(HEADER_BYTES..).unwrap_or_default())
                        .ok_or(Errno::EBADMSG)?,
                }
                rest = rest.get(aligned(length)..).unwrap_or_default();
            }
        }
    }

    /// Asks about one object.
    ///
    /// # Errors
    /// The errno of the socket or of the answer: `ENOENT` for a missing object or protocol.
    pub(super) fn find(&self, kind: u16, body: &[u8]) -> Result<(), Errno> {
        self.send(kind, libc::NLM_F_REQUEST, body)?;
        let mut answer = [0; 1024];
        let length = recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        let answer = answer.get(..length).unwrap_or_default();
        match i32::from(u16_at(answer, 4).ok_or(Errno::EBADMSG)?) {
            libc::NLMSG_ERROR => Err(refusal(answer)),
            _ => Ok(()),
        }
    }

    fn send(&self, kind: u16, flags: libc::c_int, body: &[u8]) -> Result<(), Errno> {
        let mut request = vec![0_u8; HEADER_BYTES];
        request[0..4].copy_from_slice(&((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&kind.to_ne_bytes());
        request[6..8].copy_from_slice(&(flags as u16).to_ne_bytes());
        request.extend_from_slice(body);
        send(self.socket.as_raw_fd(), &request, MsgFlags::empty()).map(drop)
    }
}

/// Errno of an error message (struct nlmsgerr); `EBADMSG` for a message without one.
fn refusal(message: &[u8]) -> Errno {
    let code = u32_at(message, HEADER_BYTES).filter(|code| *code != 0);
    code.map_or(Errno::EBADMSG, |code| Errno::from_raw(-(code as i32)))
}

/// Reads a native-endian u32 at an offset.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Reads a native-endian u16 at an offset.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Rounds `length` up to NLMSG_ALIGNTO.
pub(super) fn aligned(length: usize) -> usize {
    (length + 3) & !3
}
