//! The barrier: a request goes on when the other side has recorded the state of the client.
//!
//! Owns who waits and who may go. It knows neither sockets nor the journal.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// Longest time for which a request is held.
pub const MAX_HOLD: Duration = Duration::from_secs(1);

/// Whether requests wait, and which of them may go.
#[derive(Debug)]
pub(crate) enum Gate {
    /// No one is asked: every request goes at once.
    Open,
    /// Each request waits until it is let through.
    Ordered(Mutex<HashMap<u64, HoldState>>),
}

/// One request at the gate.
#[derive(Debug)]
pub(crate) enum HoldState {
    Waiting(Option<Waker>),
    Released,
}

/// One request that waits.
#[derive(Debug)]
pub(crate) struct Hold {
    request: u64,
    timer: Pin<Box<Sleep>>,
}

/// How a request left the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// It was let through.
    Ordered,
    /// It waited for as long as it may.
    Late(u64),
}

impl Gate {
    pub(crate) fn ordered() -> Self {
        Self::Ordered(Mutex::default())
    }

    /// Puts a request that has begun at the gate; `None` where it need not wait.
    pub(crate) fn hold(&self, request: u64) -> Option<Hold> {
        let Self::Ordered(places) = self else {
            return None;
        };
        lock(places).insert(request, HoldState::Waiting(None));
        Some(Hold {
            request,
            timer: Box::pin(sleep(MAX_HOLD)),
        })
    }

    /// Lets a request through. A request that is not held any more is left alone.
    pub(crate) fn release(&self, request: u64) {
        let Self::Ordered(places) = self else { return };
        if let Some(place) = lock(places).get_mut(&request)
            && let HoldState::Waiting(Some(waker)) = std::mem::replace(place, HoldState::Released)
        {
            waker.wake();
        }
    }

    /// Ready when the request may go on.
    pub(crate) fn poll(&self, hold: &mut Hold, cx: &mut Context<'_>) -> Poll<Passed> {
        let Self::Ordered(places) = self else {
            return Poll::Ready(Passed::Ordered);
        };
        let mut places = lock(places);
        if matches!(places.get(&hold.request), None | Some(HoldState::Released)) {
            places.remove(&hold.request);
            return Poll::Ready(Passed::Ordered);
        }
        if hold.timer.as_mut().poll(cx).is_ready() {
            places.remove(&hold.request);
            return Poll::Ready(Passed::Late(hold.request));
        }
        places.insert(hold.request, HoldState::Waiting(Some(cx.waker().clone())));
        Poll::Pending
    }

    /// Takes a request away from the gate unanswered.
    pub(crate) fn leave(&self, hold: &Hold) {
        if let Self::Ordered(places) = self {
            lock(places).remove(&hold.request);
        }
    }
}

fn lock(places: &Mutex<HashMap<u64, HoldState>>) -> MutexGuard<'_, HashMap<u64, HoldState>> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
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
            let gate = Gate::ordered();
            let mut hold = gate.hold(4).unwrap();
            let mut cx = Context::from_waker(Waker::noop());
            gate.release(3);
            assert!(gate.poll(&mut hold, &mut cx).is_pending());
            gate.release(4);
            assert_eq!(gate.poll(&mut hold, &mut cx), Poll::Ready(Passed::Ordered));
        });
    }

    #[test]
    fn a_word_that_comes_before_the_first_look_counts() {
        paused(async {
            let gate = Gate::ordered();
            let mut hold = gate.hold(1).unwrap();
            gate.release(1);
            assert_eq!(
                poll_fn(|cx| gate.poll(&mut hold, cx)).await,
                Passed::Ordered
            );
        });
    }

    #[test]
    fn a_request_that_no_one_lets_through_goes_late() {
        paused(async {
            let gate = Gate::ordered();
            let mut hold = gate.hold(9).unwrap();
            let start = tokio::time::Instant::now();
            assert_eq!(
                poll_fn(|cx| gate.poll(&mut hold, cx)).await,
                Passed::Late(9)
            );
            assert!(start.elapsed() >= MAX_HOLD);
            gate.release(9);
        });
    }

    #[test]
    fn an_open_gate_holds_nothing() {
        assert!(Gate::Open.hold(1).is_none());
    }
}
