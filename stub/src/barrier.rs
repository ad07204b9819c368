//! The barrier: holds each request until the control side has recorded the state of the client.
//!
//! Owns the list of held requests. Knows neither sockets nor the journal.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// Longest time that a request is held.
pub const MAX_HOLD: Duration = Duration::from_secs(1);

/// Policy for requests that have begun.
#[derive(Debug)]
pub(crate) enum Barrier {
    /// Every request proceeds at once.
    Open,
    /// Each request waits for its release, keyed by its number.
    Holding(Mutex<HashMap<u64, HoldState>>),
}

/// State of one held request.
#[derive(Debug)]
pub(crate) enum HoldState {
    Waiting(Option<Waker>),
    Released,
}

/// One held request and its time limit.
#[derive(Debug)]
pub(crate) struct Hold {
    request: u64,
    timer: Pin<Box<Sleep>>,
}

/// Reason why a request may proceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proceed {
    /// The request was released.
    Released,
    /// The request with this number waited for [`MAX_HOLD`].
    Late(u64),
}

impl Barrier {
    pub(crate) fn holding() -> Self {
        Self::Holding(Mutex::default())
    }

    /// Holds a request that has begun. Returns `None` if the barrier is open.
    pub(crate) fn hold(&self, request: u64) -> Option<Hold> {
        let Self::Holding(holds) = self else {
            return None;
        };
        lock(holds).insert(request, HoldState::Waiting(None));
        Some(Hold {
            request,
            timer: Box::pin(sleep(MAX_HOLD)),
        })
    }

    /// Releases a request. A request that is no longer held is ignored.
    pub(crate) fn release(&self, request: u64) {
        let Self::Holding(holds) = self else { return };
        if let Some(state) = lock(holds).get_mut(&request)
            && let HoldState::Waiting(Some(waker)) = std::mem::replace(state, HoldState::Released)
        {
            waker.wake();
        }
    }

    /// Returns ready when the request may proceed.
    pub(crate) fn poll(&self, hold: &mut Hold, cx: &mut Context<'_>) -> Poll<Proceed> {
        let Self::Holding(holds) = self else {
            return Poll::Ready(Proceed::Released);
        };
        let mut holds = lock(holds);
        if matches!(holds.get(&hold.request), None | Some(HoldState::Released)) {
            holds.remove(&hold.request);
            return Poll::Ready(Proceed::Released);
        }
        if hold.timer.as_mut().poll(cx).is_ready() {
            holds.remove(&hold.request);
            return Poll::Ready(Proceed::Late(hold.request));
        }
        holds.insert(hold.request, HoldState::Waiting(Some(cx.waker().clone())));
        Poll::Pending
    }

    /// Removes a request from the barrier without an answer.
    pub(crate) fn remove(&self, hold: &Hold) {
        if let Self::Holding(holds) = self {
            lock(holds).remove(&hold.request);
        }
    }
}

fn lock(holds: &Mutex<HashMap<u64, HoldState>>) -> MutexGuard<'_, HashMap<u64, HoldState>> {
    holds.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn paused<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn a_request_goes_on_when_it_is_let_through_and_not_before() {
        paused(async {
            let barrier = Barrier::holding();
            let mut hold = barrier.hold(4).unwrap();
            let mut cx = Context::from_waker(Waker::noop());
            barrier.release(3);
            assert!(barrier.poll(&mut hold, &mut cx).is_pending());
            barrier.release(4);
            assert_eq!(
                barrier.poll(&mut hold, &mut cx),
                Poll::Ready(Proceed::Released)
            );
        });
    }

    #[test]
    fn a_word_that_comes_before_the_first_look_counts() {
        paused(async {
            let barrier = Barrier::holding();
            let mut hold = barrier.hold(1).unwrap();
            barrier.release(1);
            assert_eq!(
                poll_fn(|cx| barrier.poll(&mut hold, cx)).await,
                Proceed::Released
            );
        });
    }

    #[test]
    fn a_request_that_no_one_lets_through_goes_late() {
        paused(async {
            let barrier = Barrier::holding();
            let mut hold = barrier.hold(9).unwrap();
            let start = tokio::time::Instant::now();
            assert_eq!(
                poll_fn(|cx| barrier.poll(&mut hold, cx)).await,
                Proceed::Late(9)
            );
            assert!(start.elapsed() >= MAX_HOLD);
            barrier.release(9);
        });
    }

    #[test]
    fn an_open_gate_holds_nothing() {
        assert!(Barrier::Open.hold(1).is_none());
    }
}
