//! Handle by which an answer waits on its connection and ends it.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use scenario::Hangup;

use super::{Connection, ServerConnection};

/// Weak reference to a connection for its answers. The handle does not keep the connection open.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionHandle(Weak<Connection>);

impl ConnectionHandle {
    /// Handle for the answers on `connection`.
    pub(crate) fn of(connection: &ServerConnection) -> Self {
        Self(Arc::downgrade(&connection.0))
    }

    /// Returns ready when the head of the answer with request id `answer` and `bytes` bytes of its body were
    /// written.
    pub(crate) fn poll_written(&self, answer: &str, bytes: u64, cx: &Context<'_>) -> Poll<()> {
        let connection = self.0.upgrade();
        connection.map_or(Poll::Ready(()), |connection| {
            connection.lock().poll_written(answer, bytes, cx)
        })
    }

    /// Returns ready when the client has closed its sending side.
    pub(crate) fn poll_closed(&self, cx: &Context<'_>) -> Poll<()> {
        let connection = self.0.upgrade();
        connection.map_or(Poll::Ready(()), |connection| {
            connection.lock().poll_closed(cx)
        })
    }

    /// Waits until the client has closed its sending side.
    pub(crate) async fn closed(&self) {
        poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// Stops writing: the next write fails, the server drops the connection, and the connection ends.
    pub(crate) fn close_by(&self, by: Hangup) {
        if let Some(connection) = self.0.upgrade() {
            connection.lock().hangup = Some(by);
        }
    }
}
