//! The resolver inside the network namespace: there is no such name, at once, and the runner hears who was asked for.
//!
//! Runs in the stage, beside the stub and on the same thread. It tells the runner over a socket of its own (the
//! control socket is the stub's) and never waits for it: what cannot be told now is added up per name and told
//! with the next question, or at the end. At most [`MAX_QUESTIONS`] names wait; beyond them, and where the
//! kernel had to drop datagrams, the last message says how many questions were not told.
//!
//! An answer, not a silence, since a client waits for seconds; and not a refusal, which to libc means "ask
//! again".

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

/// The port of every resolver; /etc/resolv.conf can name no other.
const PORT: u16 = 53;
/// Read of one datagram: as long as UDP can carry, so that none is cut.
const PIECE: usize = 64 * 1024;
/// How long the runner may take to hear what is left at the end.
const TELLING: Duration = Duration::from_secs(1);

/// Stands for a datagram that is no query; no name is empty, and no type is written in small letters.
const MALFORMED: &str = "malformed";

/// Takes the resolver's address. Below 1024, so it has to be done before the capabilities are dropped. In a network
/// that is not ours the port may be another's, and the client has no datagram sockets to ask with: the socket there is
/// connected to itself, so that nobody else's datagrams are taken for the client's.
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

/// The resolver of one run.
pub(super) struct Resolver {
    socket: tokio::net::UdpSocket,
    runner: AsyncFd<OwnedFd>,
    untold: Untold,
}

impl Resolver {
    /// The resolver on this socket, telling this one. Searches odd datagrams for the credential. Needs the runtime's
    /// context.
    pub(super) fn new(
        socket: UdpSocket,
        runner: OwnedFd,
        credential: Option<SecretScanner>,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // The kernel counts several datagrams of one call (UDP_SEGMENT) as one, and they come as one so.
        setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
        fcntl(&runner, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self {
            socket: tokio::net::UdpSocket::from_std(socket)?,
            runner: watched(runner)?,
            untold: Untold {
                credential,
                ..Untold::default()
            },
        })
    }

    /// Answers and tells, until it is dropped or [`finish`](Self::finish)ed.
    pub(super) async fn run(&mut self) -> Infallible {
        let mut buffer = vec![0; PIECE];
        loop {
            let receive = || receive(&self.socket, &mut buffer).map_err(io::Error::from);
            match self.socket.async_io(Interest::READABLE, receive).await {
                Ok(sent) => {
                    self.untold.datagrams += 1;
                    for datagram in sent.datagrams(&buffer) {
                        if let Some((answer, from)) = self.untold.hear(datagram).zip(sent.from) {
                            // Whoever does not take it has asked all the same.
                            let sent = self.socket.try_send_to(&answer, from);
                            self.untold.datagrams += u64::from(sent.is_ok());
                        }
                    }
                    self.tell();
                }
                Err(_) => {
                    self.untold.unheard += 1;
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Reads what has arrived, tells everything that is left, and says that this was all. Nobody is there
    /// any more to whom an answer would matter.
    pub(super) async fn finish(mut self) {
        self.drain();
        // Without the last message the runner knows that something is missing.
        let _ = tokio::time::timeout(TELLING, self.tell_rest()).await;
    }

    /// By the descriptor itself: the runtime's own try_recv knows only of what it has already polled for.
    fn drain(&mut self) {
        let mut buffer = vec![0; PIECE];
        loop {
            match receive(&self.socket, &mut buffer) {
                Ok(sent) => {
                    self.untold.datagrams += 1;
                    for datagram in sent.datagrams(&buffer) {
                        self.untold.hear(datagram);
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break,
                Err(_) => {
                    self.untold.unheard += 1;
                    break;
                }
            }
        }
        match dropped_datagrams(&self.socket) {
            Ok(dropped) => {
                self.untold.unheard += dropped;
                self.untold.datagrams += dropped;
            }
            Err(_) => self.untold.unheard += 1,
        }
    }

    fn tell(&mut self) {
        while let Some(told) = self.untold.next() {
            if message::send(self.runner.get_ref(), &told, &[]).is_err() {
                return;
            }
            self.untold.told(&told);
        }
    }

    async fn tell_rest(&mut self) {
        let mut rest = std::mem::take(&mut self.untold);
        let ended = FromResolver::Ended {
            unheard: rest.unheard,
            datagrams: rest.datagrams,
        };
        while let Some(told) = rest.next() {
            if self.tell_one(&told).await.is_err() {
                return;
            }
            rest.told(&told);
        }
        // Where this fails the runner is gone, and there is nobody to tell.
        let _ = self.tell_one(&ended).await;
    }

    async fn tell_one(&self, told: &FromResolver) -> Result<(), Errno> {
        loop {
            match message::send(self.runner.get_ref(), told, &[]) {
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

/// One call's datagrams as they lie in the buffer.
struct Sent {
    length: usize,
    /// Length of each but the last; `None` where there is one.
    each: Option<NonZeroUsize>,
    from: Option<SocketAddr>,
}

impl Sent {
    fn datagrams<'b>(&self, buffer: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let all = buffer.get(..self.length).unwrap_or_default();
        let each = self.each.map_or(usize::MAX, NonZeroUsize::get);
        let (first, rest) = all.split_at_checked(each).unwrap_or((all, &[]));
        // An empty datagram is one as well.
        std::iter::once(first).chain(rest.chunks(each))
    }
}

/// Receives what has arrived by one call, without waiting.
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

/// Questions that the runner has not heard of yet.
#[derive(Debug, Default)]
struct Untold {
    counts: BTreeMap<Asked, u64>,
    /// Questions that it will not hear of.
    unheard: u64,
    /// Calls that sent datagrams here, and answers.
    datagrams: u64,
    credential: Option<SecretScanner>,
}

impl Untold {
    /// Takes a datagram; gives the answer to it.
    fn hear(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let parsed = dns::parse(datagram);
        let answer = dns::answer(datagram, &parsed);
        let odd = self.odd(datagram, &parsed);
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
                self.unheard += 1;
            }
        }
        answer
    }

    /// An ordinary query holds nothing of the client's choice but the name, which the runner searches.
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

    fn told(&mut self, told: &FromResolver) {
        if let FromResolver::Asked { asked, .. } = told {
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
