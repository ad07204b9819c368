//! How much one run may take, whatever a client sends.
//!
//! Owns the numbers and the shared budget for bodies in memory. Each overflow shows in the journal; the
//! fields say how.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest head of a request, in bytes. A longer one is [`Head::Malformed`](model::journal::Head::Malformed).
    pub head_bytes: usize,
    /// Longest body that is looked into, in bytes, and longest that is served (413 beyond). A longer one is
    /// counted and hashed to its end, with [`Content::Other`](model::journal::Content::Other).
    pub body_bytes: usize,
    /// Bodies in memory at one time, over all connections, in bytes. Beyond it a body is treated as one
    /// that is too long.
    pub buffered_bytes: usize,
    /// Requests on one connection. The next one is [`Head::Malformed`](model::journal::Head::Malformed).
    pub requests_per_connection: u64,
    /// Connections over the whole run. Further ones are closed unread and counted in
    /// [`Entry::Refused`](model::journal::Entry::Refused).
    pub connections: u64,
    /// Deepest nesting of a JSON body. A deeper one is [`Content::Other`](model::journal::Content::Other).
    pub json_depth: usize,
    /// Most values in a JSON body. A longer one is [`Content::Other`](model::journal::Content::Other).
    pub json_values: usize,
    /// Most values in all shapes of a run together, the two of each string counted as well. The journal keeps
    /// them all, so a body beyond is [`Content::Other`](model::journal::Content::Other).
    pub run_json_values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 * 1024,
            body_bytes: 8 * 1024 * 1024,
            buffered_bytes: 32 * 1024 * 1024,
            requests_per_connection: 256,
            connections: 1024,
            json_depth: 64,
            json_values: 20_000,
            run_json_values: 200_000,
        }
    }
}

/// What all bodies together may still take, shared by all connections: bytes at one time, and values of JSON
/// over the whole run.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    left: Arc<AtomicUsize>,
    values: Arc<AtomicUsize>,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            left: Arc::new(AtomicUsize::new(limits.buffered_bytes)),
            values: Arc::new(AtomicUsize::new(limits.run_json_values)),
        }
    }

    /// An empty share; it gives back what it took when it is dropped.
    pub(crate) fn share(&self) -> Share {
        Share {
            budget: self.clone(),
            taken: 0,
        }
    }
}

/// What one body has taken of a [`Budget`].
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    taken: usize,
}

impl Share {
    /// Takes `bytes` more; `false`, and nothing taken, where they are not there.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        let taken = self
            .budget
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok();
        self.taken += if taken { bytes } else { 0 };
        taken
    }
}

impl Share {
    /// Values that the shape of this body may have.
    pub(crate) fn values_left(&self) -> usize {
        self.budget.values.load(Ordering::Relaxed)
    }

    /// Takes that many for good.
    pub(crate) fn spend_values(&self, values: usize) {
        let less = |left: usize| Some(left.saturating_sub(values));
        // It always gives a number.
        let _ = self
            .budget
            .values
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_share_gives_back_what_it_took() {
        let budget = Budget::new(&Limits {
            buffered_bytes: 10,
            ..Limits::default()
        });
        let mut share = budget.share();
        assert!(share.take(7));
        assert!(!budget.share().take(4));
        drop(share);
        assert!(budget.share().take(10));
    }
}
