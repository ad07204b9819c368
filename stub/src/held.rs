//! Bytes that the kernel still holds for sockets of clients that have ended.
//!
//! The stub itself cannot list sockets, so the caller provides the listing.

use std::net::SocketAddr;
use std::{fmt, io};

/// A client's socket with bytes that the server has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Client's end of the connection.
    pub peer: SocketAddr,
    /// Number of bytes; the end of the stream counts as one.
    pub bytes: u64,
}

/// Function that lists the sockets with held bytes for one server address.
pub struct HeldBytes(Box<dyn Fn(SocketAddr) -> io::Result<Vec<Held>> + Send>);

impl HeldBytes {
    /// Wraps the function; its argument is the address of the server.
    pub fn new(list: impl Fn(SocketAddr) -> io::Result<Vec<Held>> + Send + 'static) -> Self {
        Self(Box::new(list))
    }

    /// Lists the sockets that hold bytes for `server`.
    pub(crate) fn list(&self, server: SocketAddr) -> io::Result<Vec<Held>> {
        (self.0)(server)
    }
}

impl fmt::Debug for HeldBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HeldBytes")
    }
}
