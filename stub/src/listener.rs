//! A listening socket: every connection that it gives is enrolled before anyone sees it.

use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::serve::Listener;
use model::journal::Host;
use nix::sys::socket::{setsockopt, sockopt};

use crate::connection::{Connection, ServerConnection};
use crate::shared::Shared;

/// One listening socket of the run, for the server.
#[derive(Debug)]
pub(crate) struct Door {
    socket: tokio::net::TcpListener,
    host: Host,
    shared: Arc<Shared>,
}

/// The same socket, for the end of the run: it asks the kernel, past the runtime's idea of what is ready.
#[derive(Debug)]
pub(crate) struct LastDoor {
    socket: TcpListener,
    host: Host,
    shared: Arc<Shared>,
}

/// Takes a bound, listening socket. Its connections inherit that urgent data stays in the stream.
pub(crate) fn open(
    listener: TcpListener,
    host: Host,
    shared: &Arc<Shared>,
) -> io::Result<(Door, LastDoor)> {
    listener.set_nonblocking(true)?;
    setsockopt(&listener, sockopt::OobInline, &true)?;
    let last = LastDoor {
        socket: listener.try_clone()?,
        host,
        shared: shared.clone(),
    };
    let socket = tokio::net::TcpListener::from_std(listener)?;
    Ok((
        Door {
            socket,
            host,
            shared: shared.clone(),
        },
        last,
    ))
}

impl LastDoor {
    /// The address of the server.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Which server it is.
    pub(crate) fn host(&self) -> Host {
        self.host
    }

    /// Takes the next connection that waits; `None` where none does.
    pub(crate) fn take(&self) -> io::Result<Option<Arc<Connection>>> {
        loop {
            match self.socket.accept() {
                Ok((stream, peer)) => {
                    stream.set_nonblocking(true)?;
                    let stream = tokio::net::TcpStream::from_std(stream)?;
                    if let Some(connection) = self.shared.enroll(stream, peer, self.host)? {
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

impl Door {
    async fn next(&self) -> io::Result<Arc<Connection>> {
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    if let Some(connection) = self.shared.enroll(stream, peer, self.host)? {
                        return Ok(connection);
                    }
                }
                Err(error) if is_transient(error.kind()) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Of one connection, which is gone, and not of the listening socket; accept(2).
fn is_transient(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Interrupted | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}

impl Listener for Door {
    type Io = ServerConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (ServerConnection, SocketAddr) {
        match self.next().await {
            Ok(connection) => {
                let peer = connection.peer();
                (ServerConnection(connection), peer)
            }
            Err(error) => {
                // Connections that cannot be accepted are evidence that is lost.
                self.shared.recorder.fail(error);
                pending().await
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}
