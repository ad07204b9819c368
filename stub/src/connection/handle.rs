//! What an answer may ask of its connection, and say to it.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use scenario::Hangup;

use super::Connection;
use crate::listener::Door;

/// A connection as its answers see it. It does not keep the connection open.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionHandle(Weak<Connection>);

impl ConnectionHandle {
    /// Ready when the head of `answer`, which its request's identifier names, and that many bytes of its
    /// body were written.
    pub(crate) fn poll_taken(&self, answer: &str, bytes: u64, cx: &Context<'_>) -> Poll<()> {
        let connection = self.0.upgrade();
        connection.map_or(Poll::Ready(()), |connection| {
            connection.lock().poll_taken(answer, bytes, cx)
        })
    }

    /// Ready when the client sends nothing more.
    pub(crate) fn poll_gone(&self, cx: &Context<'_>) -> Poll<()> {
        let connection = self.0.upgrade();
        connection.map_or(Poll::Ready(()), |connection| {
            connection.lock().poll_gone(cx)
        })
    }

    /// Waits until the client sends nothing more.
    pub(crate) async fn gone(&self) {
        poll_fn(|cx| self.poll_gone(cx)).await;
    }

    /// Writes nothing more: the next write fails, the server lets go, and the connection ends.
    pub(crate) fn hang_up(&self, by: Hangup) {
        if let Some(connection) = self.0.upgrade() {
            connection.lock().hangup = Some(by);
        }
    }
}

impl Connected<IncomingStream<'_, Door>> for ConnectionHandle {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        Self(Arc::downgrade(&stream.io().0))
    }
}
