//! One connection: its socket, what it carried, and what of it the server may see.
//!
//! Every byte is read and understood here first. The server gets heads that follow the grammar, whole and
//! only after the gate let them through, and the bodies as they come; it never sees anything malformed, so
//! that it cannot understand something that the journal does not tell. The other way round, whatever it
//! writes passes through here and is journaled as it goes out.
//!
//! The server may let go of a connection at any time. It is then read on to its end, without the server.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use model::journal::{Entry, Host};
use nix::sys::socket::{MsgFlags, Shutdown, recv, setsockopt, shutdown, sockopt};
use scenario::Hangup;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use crate::barrier::Passed;
use crate::recorder::now_us;
use crate::refusal;
use crate::shared::Shared;

mod accounting;
mod handle;

use accounting::{Audience, Carried, Journal, Peer};

pub(crate) use handle::ConnectionHandle;

/// Bytes of one read.
const READ_BYTES: usize = 8 * 1024;
/// Reads that are made at once when the server lets go.
const LAST_READS: u32 = 8;
/// Reads that are made before the connection is reset: more than the kernel keeps for one, tcp(7).
const RESET_READS: u32 = 4096;

/// One connection of the run.
#[derive(Debug)]
pub(crate) struct Connection {
    id: u64,
    peer: SocketAddr,
    socket: TcpStream,
    carried: Mutex<Carried>,
    shared: Arc<Shared>,
}

/// What one read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Bytes; there may be more.
    Some,
    /// Nothing is there now.
    Nothing,
    /// Nothing more will come.
    End,
}

impl Connection {
    /// Sets up the socket. Urgent data stays in its place in the stream, where it is counted like any byte.
    pub(crate) fn new(
        id: u64,
        socket: TcpStream,
        peer: SocketAddr,
        host: Host,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        setsockopt(&socket, sockopt::OobInline, &true)?;
        let carried = Mutex::new(Carried::new(id, host, shared.clone()));
        Ok(Self {
            id,
            peer,
            socket,
            carried,
            shared,
        })
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.lock().tap.bytes()
    }

    /// Reads once, without the server, after the run was frozen.
    pub(crate) fn drain(&self) -> Progress {
        let mut carried = self.lock();
        if carried.journal == Journal::Closed {
            Progress::End
        } else {
            self.read_now(&mut carried)
        }
    }

    /// Ends the connection as it stands, in the journal and on the wire.
    pub(crate) fn finish(&self) {
        let mut carried = self.lock();
        if carried.journal == Journal::Open {
            self.close(&mut carried);
        }
    }

    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let carried = &mut *self.lock();
        loop {
            if self.shared.is_frozen() {
                return Poll::Ready(Ok(()));
            }
            if !carried.outbox.is_empty() {
                let bytes = carried.outbox.rest();
                let count = bytes.len().min(buffer.remaining());
                buffer.put_slice(&bytes[..count]);
                carried.outbox.take(count);
                return Poll::Ready(Ok(()));
            }
            if let Some(hold) = &mut carried.hold {
                if let Passed::Late(request) = ready!(self.shared.gate.poll(hold, cx)) {
                    let entry = Entry::Unordered {
                        connection: self.id,
                        request,
                        at_us: now_us(),
                    };
                    self.shared.recorder.record(&entry);
                }
                carried.hold = None;
            }
            if !carried.inbox.is_empty() {
                carried.understand(Audience::Server);
            } else if carried.tap.is_stopped() {
                return poll_end(carried, cx);
            } else {
                ready!(self.shared.recorder.poll_room(cx));
                ready!(self.poll_socket(carried, cx))?;
            }
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            if self.shared.is_frozen() || self.lock().hangup.is_some() {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            ready!(self.socket.poll_write_ready(cx))?;
            let result = self.socket.try_write(bytes);
            if !would_block(&result) {
                return Poll::Ready(result.inspect(|count| self.lock().wrote(&bytes[..*count])));
            }
        }
    }

    /// The server lets go. What is left is read here: now, and as it comes.
    fn let_go(self: &Arc<Self>) {
        if self.shared.is_frozen() {
            return;
        }
        let mut carried = self.lock();
        let is_reset = carried.hangup == Some(Hangup::Reset);
        let reads = if is_reset { RESET_READS } else { LAST_READS };
        let ended = (0..reads)
            .map(|_| self.read_now(&mut carried))
            .find(|progress| *progress != Progress::Some);
        if is_reset {
            return self.reset(&mut carried);
        }
        if ended == Some(Progress::End) && !carried.tap.is_refused() {
            return self.close(&mut carried);
        }
        drop(carried);
        // Without a runtime the run is over, and its end was not asked for.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(self.clone().linger());
        }
    }

    /// Answers what the server was not shown, closes this side, and reads the other to its end: a socket
    /// that is closed with unread bytes would reset the connection and destroy the answer.
    async fn linger(self: Arc<Self>) {
        let refused = self.lock().begin_refusal();
        if let Some(error) = refused {
            self.write_all(&refusal::answer(error)).await;
        }
        if self.shared.is_frozen() {
            return;
        }
        self.lock().end_sending();
        // It fails where the peer has reset the connection, which the next read tells.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
        while poll_fn(|cx| self.poll_linger(cx)).await == Progress::Some {}
    }

    /// Writes as much as the peer takes.
    async fn write_all(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match poll_fn(|cx| self.poll_write(cx, bytes)).await {
                Ok(count) if count > 0 => bytes = &bytes[count..],
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn poll_linger(&self, cx: &mut Context<'_>) -> Poll<Progress> {
        let carried = &mut *self.lock();
        if self.shared.is_frozen() {
            return Poll::Ready(Progress::End);
        }
        ready!(self.shared.recorder.poll_room(cx));
        if carried.peer == Peer::Open && ready!(self.poll_socket(carried, cx)).is_ok() {
            carried.understand(Audience::NoOne);
            return Poll::Ready(Progress::Some);
        }
        self.close(carried);
        Poll::Ready(Progress::End)
    }

    /// Reads once, past the runtime's idea of what is ready, and understands it for no one.
    fn read_now(&self, carried: &mut Carried) -> Progress {
        carried.understand(Audience::NoOne);
        if carried.peer != Peer::Open {
            return Progress::End;
        }
        let mut buffer = [0; READ_BYTES];
        let result = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT)
            .map_err(io::Error::from);
        if would_block(&result) {
            return Progress::Nothing;
        }
        carried.took(result, &buffer);
        carried.understand(Audience::NoOne);
        if carried.peer == Peer::Open {
            Progress::Some
        } else {
            Progress::End
        }
    }

    fn poll_socket(&self, carried: &mut Carried, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut buffer = [0; READ_BYTES];
        loop {
            ready!(self.socket.poll_read_ready(cx))?;
            let result = self.socket.try_read(&mut buffer);
            if !would_block(&result) {
                carried.took(result, &buffer);
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn close(&self, carried: &mut Carried) {
        carried.close();
        self.shared.forget(self.id);
        // It fails where the connection is gone already.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }

    /// Ends the connection by a reset, which is sent when the socket is closed: nothing else holds it.
    fn reset(&self, carried: &mut Carried) {
        carried.end_sending();
        carried.close();
        self.shared.forget(self.id);
        // It fails where the connection is gone already.
        let _ = self.socket.set_zero_linger();
    }

    fn lock(&self) -> MutexGuard<'_, Carried> {
        self.carried.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn would_block(result: &io::Result<usize>) -> bool {
    result
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// The end of the stream for the server: at once where it waits for the rest of a body, else when it has
/// answered everything. A client that closed only its sending side gets its answers.
fn poll_end(carried: &mut Carried, cx: &Context<'_>) -> Poll<io::Result<()>> {
    if carried.is_answered() || carried.tap.is_stopped_in_body() || carried.peer == Peer::Reset {
        return Poll::Ready(Ok(()));
    }
    carried.await_end(cx);
    Poll::Pending
}

/// A connection as the server holds it.
#[derive(Debug)]
pub(crate) struct ServerConnection(pub(crate) Arc<Connection>);

impl AsyncRead for ServerConnection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read(cx, buffer)
    }
}

impl AsyncWrite for ServerConnection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Nothing yet: the server lets go right after it, and the connection may still have to answer.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.0.let_go();
    }
}
