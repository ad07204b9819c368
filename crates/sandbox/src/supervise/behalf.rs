//! TCP sockets that the supervisor makes and connects for the client in a container's network.
//!
//! Another thread may change an address or replace a descriptor after the supervisor has read it. So neither socket(2)
//! nor connect(2) continues. The supervisor keeps a copy of each socket that it made and finds the copy by inode. It
//! connects the copy to the address that it decided on. Each socket is connected once.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use nix::sys::stat::fstat;
use sys::notify::{self, Answer, Notification};

use super::call::{Address, Call};
use super::connector::Connector;
use super::decide::Decision;
use super::ledger::Connect;
use super::socket_state::socket_inode;
use super::sockets::Socket;
use super::{Delivery, StubAddresses, Supervision};
use crate::filter::SystemCall::{self, SYS_connect};

/// Most copies of unconnected sockets. At the limit the oldest copy is closed, and its connect(2) is refused later.
const MAX_UNCONNECTED: usize = 128;
/// Most inodes of connected sockets. They only choose the errno of a second connect(2).
const MAX_CONNECTED: usize = 1024;

/// TCP sockets of the client.
#[derive(Debug)]
pub(super) struct Sockets {
    unconnected: VecDeque<(u64, OwnedFd)>,
    connected: VecDeque<u64>,
    connector: Connector,
}

/// Connection to make: the supervisor's copy of the socket, and the allowed address.
#[derive(Debug)]
pub(super) struct PlannedConnection {
    socket: OwnedFd,
    address: SocketAddr,
}

impl Sockets {
    /// Starts the connecting thread.
    ///
    /// # Errors
    /// The errno with which the thread could not be made or confined.
    pub(super) fn start(addresses: StubAddresses) -> Result<Self, Errno> {
        Ok(Self {
            unconnected: VecDeque::new(),
            connected: VecDeque::new(),
            connector: Connector::start(addresses)?,
        })
    }

    fn keep(&mut self, inode: u64, socket: OwnedFd) {
        if self.unconnected.len() >= MAX_UNCONNECTED {
            self.unconnected.pop_front();
        }
        // The kernel reuses inode numbers of closed sockets.
        self.connected.retain(|old| *old != inode);
        self.unconnected.push_back((inode, socket));
    }

    /// Removes and returns the copy of an unconnected socket.
    fn take(&mut self, inode: u64) -> Result<OwnedFd, Errno> {
        let index = self.unconnected.iter().position(|(one, _)| *one == inode);
        match index.and_then(|index| self.unconnected.remove(index)) {
            Some((_, socket)) => {
                if self.connected.len() >= MAX_CONNECTED {
                    self.connected.pop_front();
                }
                self.connected.push_back(inode);
                Ok(socket)
            }
            None if self.connected.contains(&inode) => Err(Errno::EISCONN),
            None => Err(Errno::EACCES),
        }
    }
}

impl Supervision {
    /// Replaces the decision to continue a connection by a connection to make, or by a refusal.
    pub(super) fn plan_connection(
        &mut self,
        notification: &Notification,
        system_call: Option<SystemCall>,
        call: &Call,
        decision: Decision,
    ) -> (Decision, Option<PlannedConnection>) {
        let Call::To(destinations) = call else {
            return (decision, None);
        };
        let connects = destinations.iter().any(|destination| destination.connects);
        if decision.answer != Answer::Continue || !connects {
            return (decision, None);
        }
        let planned = match &destinations[..] {
            [destination] if system_call == Some(SYS_connect) => self
                .take(notification, destination.descriptor)
                .and_then(|socket| {
                    let Address::Inet(address) = destination.address else {
                        return Err(Errno::EACCES);
                    };
                    Ok(PlannedConnection { socket, address })
                }),
            // A message with MSG_FASTOPEN.
            _ => Err(Errno::EOPNOTSUPP),
        };
        match planned {
            Ok(planned) => (decision, Some(planned)),
            Err(errno) => (decision.denied(errno), None),
        }
    }

    fn take(&mut self, notification: &Notification, descriptor: i32) -> Result<OwnedFd, Errno> {
        let inode = socket_inode(notification.thread, descriptor)?;
        if !notify::is_valid(&self.listener, notification.id) {
            // The caller was killed, and its thread id may belong to another thread by now.
            return Err(Errno::ESRCH);
        }
        let sockets = self.sockets.as_mut().ok_or(Errno::EACCES)?;
        sockets.take(inode)
    }

    /// Makes a planned connection and answers the call with its result.
    pub(super) fn connect(&mut self, notification: &Notification, planned: PlannedConnection) {
        let lines = self.lines.count();
        if !notify::is_valid(&self.listener, notification.id) {
            return;
        }
        let at_us = self.clock.elapsed_us();
        let PlannedConnection { socket, address } = planned;
        let made = match self.sockets.as_mut() {
            Some(sockets) => sockets.connector.connect(socket, address),
            None => Err(Errno::EACCES),
        };
        if made == Err(Errno::EIO) {
            self.ledger.fault(
                "cannot connect a socket for the client: the connecting thread is lost".to_owned(),
            );
        }
        if matches!(made, Ok(()) | Err(Errno::EINPROGRESS)) {
            self.ledger.connect(Connect { at_us, lines });
        }
        self.answer(
            notification,
            made.map_or_else(Answer::Refuse, |()| Answer::ReturnZero),
        );
    }

    /// Checks for an allowed socket(2) of an internet family. Only stream sockets are allowed there.
    pub(super) fn makes_socket(&self, call: &Call, answer: Answer) -> bool {
        let is_inet = |socket: &Socket| matches!(socket.family, libc::AF_INET | libc::AF_INET6);
        self.sockets.is_some()
            && answer == Answer::Continue
            && matches!(call, Call::Socket(socket) if is_inet(socket))
    }

    /// Makes the TCP socket of an allowed socket(2) and gives the client its descriptor.
    pub(super) fn make_socket(&mut self, notification: &Notification) {
        let [family, kind, ..] = notification.arguments;
        let kind = kind as i32;
        let Some(sockets) = self.sockets.as_mut() else {
            self.answer(notification, Answer::Refuse(Errno::EACCES));
            return;
        };
        let made = create(family as i32, kind);
        if let Err(errno @ (Errno::EMFILE | Errno::ENFILE)) = made {
            self.ledger
                .fault(format!("cannot make a socket for the client: {errno}"));
        }
        let given = made.and_then(|(inode, socket)| {
            let close_on_exec = kind & libc::SOCK_CLOEXEC != 0;
            let (listener, id) = (&self.listener, notification.id);
            notify::answer_with_descriptor(listener, id, &socket, close_on_exec)?;
            sockets.keep(inode, socket);
            Ok(())
        });
        match given {
            // ENOENT and ESRCH: the caller was killed.
            Ok(()) | Err(Errno::ENOENT | Errno::ESRCH) => {}
            Err(errno) => {
                let _: Delivery = self.answer(notification, Answer::Refuse(errno));
            }
        }
    }
}

/// Makes a socket and returns it with its inode. Unknown flags fail with EINVAL, as in socket(2).
fn create(family: i32, kind: i32) -> Result<(u64, OwnedFd), Errno> {
    const FLAGS: i32 = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    if kind & !(libc::SOCK_STREAM | FLAGS) != 0 {
        return Err(Errno::EINVAL);
    }
    let domain = match family {
        libc::AF_INET => AddressFamily::Inet,
        libc::AF_INET6 => AddressFamily::Inet6,
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    let mut flags = SockFlag::SOCK_CLOEXEC;
    if kind & libc::SOCK_NONBLOCK != 0 {
        flags |= SockFlag::SOCK_NONBLOCK;
    }
    let made = socket(domain, SockType::Stream, flags, SockProtocol::Tcp)?;
    let inode = fstat(&made)?.st_ino;
    Ok((inode, made))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn made() -> (u64, OwnedFd) {
        create(libc::AF_INET, libc::SOCK_STREAM).unwrap()
    }

    fn sockets() -> Sockets {
        let stub = TcpListener::bind("127.0.0.1:0").unwrap();
        Sockets::start(StubAddresses {
            stub: stub.local_addr().unwrap(),
            elsewhere: None,
        })
        .unwrap()
    }

    #[test]
    fn a_socket_is_taken_once_and_only_if_it_was_kept() {
        let mut sockets = sockets();
        let (inode, socket) = made();
        assert_eq!(sockets.take(inode).unwrap_err(), Errno::EACCES);
        sockets.keep(inode, socket);
        sockets.take(inode).unwrap();
        assert_eq!(sockets.take(inode).unwrap_err(), Errno::EISCONN);
    }

    #[test]
    fn the_oldest_socket_beyond_the_limit_is_dropped() {
        let mut sockets = sockets();
        let mut inodes = Vec::new();
        for _ in 0..=MAX_UNCONNECTED {
            let (inode, socket) = made();
            sockets.keep(inode, socket);
            inodes.push(inode);
        }
        assert_eq!(sockets.take(inodes[0]).unwrap_err(), Errno::EACCES);
        assert!(inodes[1..].iter().all(|inode| sockets.take(*inode).is_ok()));
    }

    #[test]
    fn sockets_are_made_as_socket_makes_them() {
        let refused = |family, kind| create(family, kind).unwrap_err();
        assert_eq!(refused(libc::AF_INET, libc::SOCK_DGRAM), Errno::EINVAL);
        assert_eq!(
            refused(libc::AF_INET, libc::SOCK_STREAM | 1 << 20),
            Errno::EINVAL
        );
        assert_eq!(
            refused(libc::AF_UNIX, libc::SOCK_STREAM),
            Errno::EAFNOSUPPORT
        );
        let (inode, socket) =
            create(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&socket);
        assert_eq!(socket_inode(std::process::id() as i32, number), Ok(inode));
    }
}
