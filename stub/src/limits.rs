//! Limits on the memory and the work that one client can cause.
//!
//! Owns the numbers and the shared budget for bodies in memory. The journal records each overflow; the fields
//! name the entry.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Limits of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest head of a request, in bytes. A longer head is
    /// [`Head::Malformed`](model::journal::Head::Malformed).
    pub head_bytes: usize,
    /// Bytes of all well-formed heads of a run together, which the journal keeps. A head beyond the limit is
    /// [`Head::Malformed`](model::journal::Head::Malformed).
    pub run_head_bytes: usize,
    /// Longest body that is parsed and answered, in bytes. A longer body gets status 413. It is still counted and
    /// hashed to its end, with [`Content::Other`](model::journal::Content::Other).
    pub body_bytes: usize,
    /// Bytes of all bodies in memory at one time, over all connections. A body beyond the limit is treated as
    /// too long.
    pub buffered_bytes: usize,
    /// Requests on one connection. The next request is [`Head::Malformed`](model::journal::Head::Malformed).
    pub requests_per_connection: u64,
    /// Connections over the whole run. Further connections are closed unread and counted in
    /// [`Entry::Refused`](model::journal::Entry::Refused).
    pub connections: u64,
    /// Connections open at one time, each of which needs a descriptor. Further ones are refused in the same way.
    pub open_connections: u64,
    /// Deepest nesting of a JSON body. A deeper body is [`Content::Other`](model::journal::Content::Other).
    pub json_depth: usize,
    /// Largest number of values in a JSON body. A body with more is
    /// [`Content::Other`](model::journal::Content::Other).
    pub json_values: usize,
    /// Largest weight of all JSON shapes of a run together ([`weight`](model::shape::weight)); a string counts as an
    /// object with two values. The journal keeps every shape, so a body beyond the limit is
    /// [`Content::Other`](model::journal::Content::Other).
    pub run_json_values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 * 1024,
            run_head_bytes: 16 * 1024 * 1024,
            body_bytes: 8 * 1024 * 1024,
            buffered_bytes: 32 * 1024 * 1024,
            requests_per_connection: 256,
            connections: 1024,
            open_connections: 1024,
            json_depth: 64,
            json_values: 20_000,
            run_json_values: 400_000,
        }
    }
}

/// Remaining budget of all requests, shared by all connections: bytes of bodies at one time, JSON values and bytes
/// of heads over the whole run.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    bytes: Arc<AtomicUsize>,
    values: Arc<AtomicUsize>,
    heads: Arc<AtomicUsize>,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            bytes: Arc::new(AtomicUsize::new(limits.buffered_bytes)),
            values: Arc::new(AtomicUsize::new(limits.run_json_values)),
            heads: Arc::new(AtomicUsize::new(limits.run_head_bytes)),
        }
    }

    /// Takes the bytes of a head, for good. Returns `false` and takes no bytes if fewer are left.
    pub(crate) fn take_head(&self, bytes: usize) -> bool {
        take(&self.heads, bytes)
    }

    /// Returns an empty share. A dropped share gives its bytes back.
    pub(crate) fn share(&self) -> Share {
        Share {
            budget: self.clone(),
            taken: 0,
        }
    }
}

/// Takes a part of a budget. Returns `false` and takes nothing if less is left.
fn take(budget: &AtomicUsize, part: usize) -> bool {
    let less = |remaining: usize| remaining.checked_sub(part);
    budget
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
        .is_ok()
}

/// Part of a [`Budget`] that one body has taken.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    taken: usize,
}

impl Share {
    /// Takes `bytes` more. Returns `false` and takes no bytes if fewer are left.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let taken = take(&self.budget.bytes, bytes);
        self.taken += if taken { bytes } else { 0 };
        taken
    }
}

impl Share {
    /// Number of values that the shape of this body may have.
    pub(crate) fn values_left(&self) -> usize {
        self.budget.values.load(Ordering::Relaxed)
    }

    /// Takes `values` from the budget of the run, for good.
    pub(crate) fn spend_values(&self, values: usize) {
        let less = |remaining: usize| Some(remaining.saturating_sub(values));
        // fetch_update fails only if the closure returns None, and this closure never does.
        let _ = self
            .budget
            .values
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.bytes.fetch_add(self.taken, Ordering::Relaxed);
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
