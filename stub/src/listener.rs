//! Listening sockets: every accepted connection is registered and journaled before the server reads it.

use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use model::journal::Host;
use nix::sys::socket::{setsockopt, sockopt};

use crate::connection::{Connection, ConnectionHandle, ServerConnection, Shared};

/// Listening socket of one host, for the server.
#[derive(Debug)]
pub(crate) struct HostListener {
    socket: tokio::net::TcpListener,
    host: Host,
    shared: Arc<Shared>,
}

/// A duplicate of the same socket, for the end of the run: it asks the kernel directly, not the runtime's
/// readiness.
#[derive(Debug)]
pub(crate) struct FinalListener {
    socket: TcpListener,
    host: Host,
    shared: Arc<Shared>,
}

/// Prepares a bound, listening socket. Its connections inherit `SO_OOBINLINE`: urgent data stays in the stream.
pub(crate) fn open(
    listener: TcpListener,
    host: Host,
    shared: &Arc<Shared>,
) -> io::Result<(HostListener, FinalListener)> {
    listener.set_nonblocking(true)?;
    setsockopt(&listener, sockopt::OobInline, &true)?;
    let last = FinalListener {
        socket: listener.try_clone()?,
        host,
        shared: shared.clone(),
    };
    let socket = tokio::net::TcpListener::from_std(listener)?;
    Ok((
        HostListener {
            socket,
            host,
            shared: shared.clone(),
        },
        last,
    ))
}

impl FinalListener {
    /// Address of the server.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Host that the socket belongs to.
    pub(crate) fn host(&self) -> Host {
        self.host
    }

    /// Accepts the next waiting connection. Returns `None` if no connection waits.
    pub(crate) fn take(&self) -> io::Result<Option<Arc<Connection>>> {
        loop {
            match self.socket.accept() {
                Ok((stream, peer)) => {
                    stream.set_nonblocking(true)?;
                    let stream = tokio::net::TcpStream::from_std(stream)?;
                    if let Some(connection) = self.shared.register(stream, peer, self.host)? {
                        return Ok(Some(connection));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if is_transient(error.kind()) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl HostListener {
    async fn next(&self) -> io::Result<Arc<Connection>> {
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    if let Some(connection) = self.shared.register(stream, peer, self.host)? {
                        return Ok(connection);
                    }
                }
                Err(error) if is_transient(error.kind()) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Checks for an error of one connection, not of the listening socket (accept(2)).
fn is_transient(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Interrupted | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

impl Listener for HostListener {
    type Io = ServerConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (ServerConnection, SocketAddr) {
        match self.next().await {
            Ok(connection) => {
                let peer = connection.peer();
                (ServerConnection(connection), peer)
            }
            Err(error) => {
                // A connection that cannot be accepted is lost evidence.
                self.shared.recorder.fail(error);
                pending().await
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

impl Connected<IncomingStream<'_, HostListener>> for ConnectionHandle {
    fn connect_info(stream: IncomingStream<'_, HostListener>) -> Self {
        Self::of(stream.io())
    }
}
