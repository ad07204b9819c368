//! Bytes that the kernel still holds for sockets of clients that have ended.
//!
//! The stub opens nothing, so the caller brings the listing.

use std::net::SocketAddr;
use std::{fmt, io};

/// A client's socket with bytes that its server has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The client's end of the connection.
    pub peer: SocketAddr,
    /// How many; the end of the stream counts one.
    pub bytes: u64,
}

/// Listing of the sockets that hold bytes for one server address.
pub struct HeldBytes(Box<dyn Fn(SocketAddr) -> io::Result<Vec<Held>> + Send>);

impl HeldBytes {
    /// Wraps the listing; its argument is the address of the server.
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
