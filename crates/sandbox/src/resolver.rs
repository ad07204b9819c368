//! Resolver inside the network namespace: answers each question with "no such name" and reports it to the runner.
//!
//! The resolver runs in the stage, on the stub's thread. It reports over a socket of its own, since the control socket
//! is the stub's, and never waits for the runner. Questions that cannot be sent yet are counted per name and sent
//! later. At most [`MAX_QUESTIONS`] names wait. The last message has the number of lost questions: those beyond that
//! limit, and datagrams that the kernel dropped.
//!
//! Without an answer a client would wait for seconds. A refusal would make libc ask again.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use model::case::Tier;
use model::evidence::MAX_QUESTIONS;
use model::secret::SecretScanner;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use sys::fds::watched;
use sys::net::dropped_datagrams;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::message::{self, FromResolver};
use crate::dns::{self, Asked, NoQuery, Odd, Query, strict};

/// Port of DNS servers; /etc/resolv.conf cannot name another one (resolv.conf(5)).
const PORT: u16 = 53;
/// Size of the receive buffer: no UDP datagram is longer.
const MAX_DATAGRAM_BYTES: usize = 64 * 1024;
/// Time limit for the runner to receive the remaining messages at the end.
const REPORT_LIMIT: Duration = Duration::from_secs(1);

/// Type of a question that stands for a malformed datagram. Its name is empty. Real types are in capital letters.
const MALFORMED: &str = "malformed";

/// Binds the resolver's socket. Port 53 is below 1024, so this must precede the drop of the capabilities.
///
/// In a container's network the port may be in use, and the client has no datagram sockets. The socket there is
/// connected to itself, so that foreign datagrams are not taken for the client's.
pub fn bind(tier: Tier) -> io::Result<UdpSocket> {
    match tier {
        Tier::Namespace => UdpSocket::bind((Ipv4Addr::LOCALHOST, PORT)),
        Tier::Inherited => {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.connect(socket.local_addr()?)?;
            Ok(socket)
        }
    }
}

/// Resolver of one run.
pub(super) struct Resolver {
    /// Closed first, because the runner waits for its end.
    runner: AsyncFd<OwnedFd>,
    socket: tokio::net::UdpSocket,
    unreported: Unreported,
}

impl Resolver {
    /// Resolver that answers on `socket` and reports to `runner`. Odd datagrams are searched for the credential. Must
    /// be called in the context of the runtime.
    pub(super) fn new(
        socket: UdpSocket,
        runner: OwnedFd,
        credential: Option<SecretScanner>,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // The kernel counts the datagrams of one call with UDP_SEGMENT as one. UDP_GRO receives them as one too.
        setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
        fcntl(&runner, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self {
            socket: tokio::net::UdpSocket::from_std(socket)?,
            runner: watched(runner)?,
            unreported: Unreported {
                credential,
                ..Unreported::default()
            },
        })
    }

    /// Answers and reports questions, until the future is dropped.
    pub(super) async fn run(&mut self) -> Infallible {
        let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
        loop {
            let receive = || receive(&self.socket, &mut buffer).map_err(io::Error::from);
            match self.socket.async_io(Interest::READABLE, receive).await {
                Ok(sent) => {
                    self.unreported.datagrams += 1;
                    for datagram in sent.datagrams(&buffer) {
                        if let Some((answer, from)) =
                            self.unreported.record(datagram).zip(sent.from)
                        {
                            // The question counts even if its answer cannot be sent.
                            let sent = self.socket.try_send_to(&answer, from);
                            self.unreported.datagrams += u64::from(sent.is_ok());
                        }
                    }
                    self.report();
                }
                Err(_) => {
                    self.unreported.lost += 1;
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Reads the datagrams that have arrived, reports all remaining questions, and sends the last message. No answers
    /// are sent, since the client has ended.
    pub(super) async fn finish(mut self) {
        self.drain();
        // If the last message is missing, the runner reports a gap.
        let _ = tokio::time::timeout(REPORT_LIMIT, self.report_rest()).await;
    }

    /// Reads all datagrams that have arrived, by the descriptor: tokio's try_recv sees only what tokio has polled.
    fn drain(&mut self) {
        let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
        loop {
            match receive(&self.socket, &mut buffer) {
                Ok(sent) => {
                    self.unreported.datagrams += 1;
                    for datagram in sent.datagrams(&buffer) {
                        self.unreported.record(datagram);
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                Err(_) => {
                    self.unreported.lost += 1;
                    break;
                }
            }
        }
        match dropped_datagrams(&self.socket) {
            Ok(dropped) => {
                self.unreported.lost += dropped;
                self.unreported.datagrams += dropped;
            }
            Err(_) => self.unreported.lost += 1,
        }
    }

    fn report(&mut self) {
        while let Some(message) = self.unreported.next() {
            if message::send(self.runner.get_ref(), &message, &[]).is_err() {
                return;
            }
            self.unreported.remove(&message);
        }
    }

    async fn report_rest(&mut self) {
        let mut rest = std::mem::take(&mut self.unreported);
        let ended = FromResolver::Ended {
            unheard: rest.lost,
            datagrams: rest.datagrams,
        };
        while let Some(message) = rest.next() {
            if self.send(&message).await.is_err() {
                return;
            }
            rest.remove(&message);
        }
        // A failure means that the runner has ended.
        let _ = self.send(&ended).await;
    }

    async fn send(&self, message: &FromResolver) -> Result<(), Errno> {
        loop {
            match message::send(self.runner.get_ref(), message, &[]) {
                Err(Errno::EAGAIN) => {
                    let ready = self.runner.writable().await;
                    ready.map_err(|_| Errno::EIO)?.clear_ready();
                }
                Err(Errno::EINTR) => {}
                sent => return sent,
            }
        }
    }
}

/// Datagrams of one call, one after another in the buffer.
struct Sent {
    length: usize,
    /// Length of each datagram but the last; `None` for a single datagram.
    each: Option<NonZeroUsize>,
    from: Option<SocketAddr>,
}

impl Sent {
    fn datagrams<'b>(&self, buffer: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let all = buffer.get(..self.length).unwrap_or_default();
        let each = self.each.map_or(usize::MAX, NonZeroUsize::get);
        let (first, rest) = all.split_at_checked(each).unwrap_or((all, &[]));
        // An empty datagram counts too.
        std::iter::once(first).chain(rest.chunks(each))
    }
}

/// Receives the datagrams of one call, without waiting.
fn receive(socket: &tokio::net::UdpSocket, buffer: &mut [u8]) -> Result<Sent, Errno> {
    let mut control = nix::cmsg_space!(i32);
    let mut parts = [io::IoSliceMut::new(buffer)];
    let received = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut control),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let from = received.address.as_ref().and_then(|from| {
        let from = from.as_sockaddr_in()?;
        Some(SocketAddr::from((from.ip(), from.port())))
    });
    let each = received.cmsgs()?.find_map(|message| {
        if let ControlMessageOwned::UdpGroSegments(each) = message {
            usize::try_from(each).ok()
        } else {
            None
        }
    });
    Ok(Sent {
        length: received.bytes,
        each: each.and_then(NonZeroUsize::new),
        from,
    })
}

/// Questions that were not sent to the runner yet.
#[derive(Debug, Default)]
struct Unreported {
    counts: BTreeMap<Asked, u64>,
    /// Lost questions.
    lost: u64,
    /// Number of calls that sent datagrams to the resolver, and of its answers.
    datagrams: u64,
    credential: Option<SecretScanner>,
}

impl Unreported {
    /// Records the questions of a datagram and returns its answer.
    fn record(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let parsed = dns::parse(datagram);
        let odd = self.odd(datagram, &parsed);
        if let (Ok(query), None) = (&parsed, &odd)
            && let Some(answer) = dns::of_localhost(datagram, query)
        {
            return Some(answer);
        }
        let answer = dns::answer(datagram, &parsed);
        let questions = parsed.map_or_else(|_| vec![malformed()], |query| query.questions);
        for asked in questions {
            let asked = Asked {
                odd: odd.clone(),
                ..asked
            };
            if let Some(count) = self.counts.get_mut(&asked) {
                *count += 1;
            } else if self.counts.len() < MAX_QUESTIONS {
                self.counts.insert(asked, 1);
            } else {
                self.lost += 1;
            }
        }
        answer
    }

    /// Deviations of a datagram, searched for the credential. In an ordinary query the client chooses only the name,
    /// and the runner searches all names.
    fn odd(&self, datagram: &[u8], parsed: &Result<Query, NoQuery>) -> Option<Odd> {
        let what = strict::odd(datagram, parsed)?;
        let secrets = self.credential.as_ref();
        let form = secrets.and_then(|secrets| secrets.find(datagram));
        let credential = form.map(|form| form.to_string());
        Some(Odd { what, credential })
    }

    fn next(&self) -> Option<FromResolver> {
        let (asked, count) = self.counts.first_key_value()?;
        Some(FromResolver::Asked {
            asked: asked.clone(),
            count: *count,
        })
    }

    fn remove(&mut self, message: &FromResolver) {
        if let FromResolver::Asked { asked, .. } = message {
            self.counts.remove(asked);
        }
    }
}

fn malformed() -> Asked {
    Asked {
        name: String::new(),
        kind: MALFORMED.to_owned(),
        odd: None,
    }
}

#[cfg(test)]
mod tests;
