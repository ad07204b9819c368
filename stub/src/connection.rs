//! One connection: its socket, the accounting of its bytes, and the part of them that the server reads.
//!
//! The tap parses every byte before the server. The server reads only well-formed heads, each whole and after
//! the barrier released its request, and the bodies as they arrive. So the server cannot act on bytes that the
//! journal does not report. Bytes that the server writes also pass through here and are journaled as they go
//! out.
//!
//! The server may drop a connection at any time. The stub then reads that connection to its end by itself.

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

use crate::barrier::Proceed;
use crate::recorder::now_us;
use crate::refusal;

mod accounting;
mod handle;
mod shared;

use accounting::{Accounting, Audience, Journal, Peer};

pub(crate) use handle::ConnectionHandle;
pub(crate) use shared::Shared;

/// Buffer size of one read.
const READ_BYTES: usize = 8 * 1024;
/// Number of immediate reads after the server dropped the connection.
const LAST_READS: u32 = 8;
/// Number of reads before a reset: together more than the kernel's receive buffer of one socket (tcp(7)).
const RESET_READS: u32 = 4096;

/// One connection of the run.
#[derive(Debug)]
pub(crate) struct Connection {
    id: u64,
    peer: SocketAddr,
    socket: TcpStream,
    accounting: Mutex<Accounting>,
    shared: Arc<Shared>,
}

/// Result of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Bytes were read; more may follow.
    Some,
    /// No bytes are available now.
    Nothing,
    /// The stream has ended.
    End,
}

impl Connection {
    /// Prepares the socket. Urgent data stays in the stream and is counted like other bytes (`SO_OOBINLINE`).
    pub(crate) fn new(
        id: u64,
        socket: TcpStream,
        peer: SocketAddr,
        host: Host,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        setsockopt(&socket, sockopt::OobInline, &true)?;
        let accounting = Mutex::new(Accounting::new(id, host, shared.clone()));
        Ok(Self {
            id,
            peer,
            socket,
            accounting,
            shared,
        })
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Checks whether the kernel still has the connection: getpeername(2) fails for a closed or reset one.
    pub(crate) fn is_connected(&self) -> bool {
        self.socket.peer_addr().is_ok()
    }

    /// Bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.lock().tap.bytes()
    }

    /// Reads once, bypassing the server, after the run was frozen.
    pub(crate) fn drain(&self) -> Progress {
        let mut accounting = self.lock();
        if accounting.journal == Journal::Closed {
            Progress::End
        } else {
            self.read_now(&mut accounting)
        }
    }

    /// Ends the connection in its present state, in the journal and on the wire.
    pub(crate) fn finish(&self) {
        let mut accounting = self.lock();
        if accounting.journal == Journal::Open {
            self.close(&mut accounting);
        }
    }

    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let accounting = &mut *self.lock();
        loop {
            if self.shared.is_frozen() {
                return Poll::Ready(Ok(()));
            }
            if !accounting.outbox.is_empty() {
                let bytes = accounting.outbox.rest();
                let count = bytes.len().min(buffer.remaining());
                buffer.put_slice(&bytes[..count]);
                accounting.outbox.take(count);
                return Poll::Ready(Ok(()));
            }
            if let Some(hold) = &mut accounting.hold {
                if let Proceed::Late(request) = ready!(self.shared.barrier.poll(hold, cx)) {
                    let entry = Entry::Unordered {
                        connection: self.id,
                        request,
                        at_us: now_us(),
                    };
                    self.shared.recorder.record(&entry);
                }
                accounting.hold = None;
            }
            if !accounting.inbox.is_empty() {
                accounting.parse(Audience::Server);
            } else if accounting.tap.is_stopped() {
                return poll_end(accounting, cx);
            } else {
                ready!(self.shared.recorder.poll_capacity(cx));
                ready!(self.poll_socket(accounting, cx))?;
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
                return Poll::Ready(
                    result.inspect(|count| self.lock().handle_written(&bytes[..*count])),
                );
            }
        }
    }

    /// Handles that the server dropped the connection: reads what is left, now and as it arrives.
    fn detach(self: &Arc<Self>) {
        if self.shared.is_frozen() {
            return;
        }
        let mut accounting = self.lock();
        let is_reset = accounting.hangup == Some(Hangup::Reset);
        let reads = if is_reset { RESET_READS } else { LAST_READS };
        let ended = (0..reads)
            .map(|_| self.read_now(&mut accounting))
            .find(|progress| *progress != Progress::Some);
        if is_reset {
            return self.reset(&mut accounting);
        }
        if ended == Some(Progress::End) && !accounting.tap.is_refused() {
            return self.close(&mut accounting);
        }
        drop(accounting);
        // Without a runtime the run is already over, so there is no task to spawn on.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(self.clone().linger());
        }
    }

    /// Answers a refused head, closes the sending side and reads the peer's side to its end. Closing a socket with
    /// unread bytes would reset the connection and destroy the answer.
    async fn linger(self: Arc<Self>) {
        let refused = self.lock().begin_refusal();
        if let Some(error) = refused {
            self.write_all(&refusal::answer(error)).await;
        }
        if self.shared.is_frozen() {
            return;
        }
        self.lock().end_sending();
        // shutdown(2) fails if the peer has reset the connection; the next read reports the reset.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
        while poll_fn(|cx| self.poll_linger(cx)).await == Progress::Some {}
    }

    /// Writes until the peer accepts no more bytes.
    async fn write_all(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match poll_fn(|cx| self.poll_write(cx, bytes)).await {
                Ok(count) if count > 0 => bytes = &bytes[count..],
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn poll_linger(&self, cx: &mut Context<'_>) -> Poll<Progress> {
        let accounting = &mut *self.lock();
        if self.shared.is_frozen() {
            return Poll::Ready(Progress::End);
        }
        ready!(self.shared.recorder.poll_capacity(cx));
        if accounting.peer == Peer::Open && ready!(self.poll_socket(accounting, cx)).is_ok() {
            accounting.parse(Audience::Journal);
            return Poll::Ready(Progress::Some);
        }
        self.close(accounting);
        Poll::Ready(Progress::End)
    }

    /// Reads once, directly from the kernel instead of the runtime's readiness, and parses for the journal
    /// only.
    fn read_now(&self, accounting: &mut Accounting) -> Progress {
        accounting.parse(Audience::Journal);
        if accounting.peer != Peer::Open {
            return Progress::End;
        }
        let mut buffer = [0; READ_BYTES];
        let result = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT)
            .map_err(io::Error::from);
        if would_block(&result) {
            return Progress::Nothing;
        }
        accounting.handle_read(result, &buffer);
        accounting.parse(Audience::Journal);
        if accounting.peer == Peer::Open {
            Progress::Some
        } else {
            Progress::End
        }
    }

    fn poll_socket(
        &self,
        accounting: &mut Accounting,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut buffer = [0; READ_BYTES];
        loop {
            ready!(self.socket.poll_read_ready(cx))?;
            let result = self.socket.try_read(&mut buffer);
            if !would_block(&result) {
                accounting.handle_read(result, &buffer);
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn close(&self, accounting: &mut Accounting) {
        accounting.close();
        self.shared.unregister(self.id);
        // shutdown(2) fails if the connection has already ended.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }

    /// Ends the connection by a reset, which the kernel sends when the last descriptor of the socket is closed.
    fn reset(&self, accounting: &mut Accounting) {
        accounting.end_sending();
        accounting.close();
        self.shared.unregister(self.id);
        // setsockopt(2) fails if the connection has already ended.
        let _ = self.socket.set_zero_linger();
    }

    fn lock(&self) -> MutexGuard<'_, Accounting> {
        self.accounting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn would_block(result: &io::Result<usize>) -> bool {
    result
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Reports the end of the stream to the server. A server that waits for the rest of a body gets the end at once.
/// Otherwise the end follows the last answer, so that a client that closed only its sending side is answered.
fn poll_end(accounting: &mut Accounting, cx: &Context<'_>) -> Poll<io::Result<()>> {
    if accounting.is_answered()
        || accounting.tap.is_stopped_in_body()
        || accounting.peer == Peer::Reset
    {
        return Poll::Ready(Ok(()));
    }
    accounting.await_end(cx);
    Poll::Pending
}

/// Connection as the server owns it.
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

    /// Does nothing: the server drops the connection right after, and the stub may still have to answer.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.0.detach();
    }
}
