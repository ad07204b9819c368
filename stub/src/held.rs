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

/// Looks at the sockets of the server's network namespace.
pub trait Sockets: fmt::Debug + Send {
    /// Lists the sockets that hold bytes for `server`.
    ///
    /// # Errors
    /// The error of the listing.
    fn list_held(&self, server: SocketAddr) -> io::Result<Vec<Held>>;

    /// Counts the TCP sockets of the namespace, or returns `None` if they cannot be counted or are not only the
    /// server's and its clients'. A count is cheaper than a listing.
    fn count(&self) -> Option<u64> {
        None
    }
}
