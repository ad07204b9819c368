//! Journal output: orders, numbers and timestamps the entries, and slows reading down while output is behind.
//!
//! Connections record entries; one pump writes them. The recorder knows no socket other than the journal's.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use model::journal::Entry;
use nix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// Journal bytes that may wait for output. Beyond the limit, reading from connections pauses.
const BACKLOG_BYTES: usize = 256 * 1024;

/// Queue of journal entries, in the order of the events.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    queue: Mutex<Queue>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    lines: Vec<u8>,
    /// Tasks that wait for the backlog to shrink.
    waiting: Vec<Waker>,
    requests: u64,
    fault: Option<io::Error>,
}

/// Microseconds of `CLOCK_MONOTONIC`.
pub(crate) fn now_us() -> u64 {
    // clock_gettime(2) fails only for unknown clocks, and CLOCK_MONOTONIC always exists.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map(std::time::Duration::from)
        .unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

impl Recorder {
    /// Returns the number of the next request; the first is 1.
    pub(crate) fn next_request(&self) -> u64 {
        let mut queue = self.lock();
        queue.requests += 1;
        queue.requests
    }

    /// Appends one entry.
    pub(crate) fn record(&self, entry: &Entry) {
        let mut queue = self.lock();
        if let Err(error) = serde_json::to_writer(&mut queue.lines, entry) {
            queue.fault = Some(error.into());
        }
        queue.lines.push(b'\n');
        drop(queue);
        self.filled.notify_one();
    }

    /// Records lost evidence: the pump then fails with `error`.
    pub(crate) fn fail(&self, error: io::Error) {
        self.lock().fault = Some(error);
        self.filled.notify_one();
    }

    /// Returns ready while the backlog is below its limit.
    pub(crate) fn poll_capacity(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.lock();
        if queue.lines.len() < BACKLOG_BYTES {
            return Poll::Ready(());
        }
        if !queue
            .waiting
            .iter()
            .any(|waker| waker.will_wake(cx.waker()))
        {
            queue.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Checks whether the backlog has reached its limit.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().lines.len() >= BACKLOG_BYTES
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writer of the recorded entries. Each future can be cancelled at any await and repeated without loss.
#[derive(Debug)]
pub(crate) struct Pump<W> {
    journal: W,
    lines: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> Pump<W> {
    pub(crate) fn new(journal: W) -> Self {
        Self {
            journal,
            lines: Vec::new(),
            written: 0,
        }
    }

    /// Writes entries as they arrive. Returns only on an error.
    pub(crate) async fn run(&mut self, recorder: &Recorder) -> io::Error {
        loop {
            let filled = recorder.filled.notified();
            if let Err(error) = self.drain(recorder).await {
                return error;
            }
            filled.await;
        }
    }

    /// Writes and flushes everything recorded so far.
    pub(crate) async fn drain(&mut self, recorder: &Recorder) -> io::Result<()> {
        loop {
            while self.written < self.lines.len() {
                // Cancel safe: a write that did not return has written no bytes.
                match self.journal.write(&self.lines[self.written..]).await? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    written => self.written += written,
                }
            }
            self.journal.flush().await?;
            if !self.refill(recorder)? {
                return Ok(());
            }
        }
    }

    /// Writes the backlog if it has reached its limit.
    pub(crate) async fn drain_if_full(&mut self, recorder: &Recorder) -> io::Result<()> {
        if recorder.is_full() {
            self.drain(recorder).await
        } else {
            Ok(())
        }
    }

    /// Takes the backlog, and leaves the emptied buffer in its place.
    fn refill(&mut self, recorder: &Recorder) -> io::Result<bool> {
        self.lines.clear();
        self.written = 0;
        let mut queue = recorder.lock();
        if let Some(fault) = queue.fault.take() {
            return Err(fault);
        }
        std::mem::swap(&mut self.lines, &mut queue.lines);
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        waiting.into_iter().for_each(Waker::wake);
        Ok(!self.lines.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn entries_are_written_one_a_line_in_order() {
        let recorder = Recorder::default();
        for at_us in 1..4 {
            recorder.record(&Entry::Done { at_us });
        }
        let mut pump = Pump::new(Vec::new());
        block_on(pump.drain(&recorder)).unwrap();
        let lines: Vec<Entry> = String::from_utf8(pump.journal)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines, [1, 2, 3].map(|at_us| Entry::Done { at_us }));
    }

    #[test]
    fn a_pump_that_is_stopped_in_the_middle_loses_nothing() {
        let recorder = Recorder::default();
        recorder.record(&Entry::Done { at_us: 7 });
        let (near, mut far) = tokio::io::duplex(5);
        let mut pump = Pump::new(near);
        let text = block_on(async {
            use tokio::io::AsyncReadExt;
            let mut text = Vec::new();
            while !text.ends_with(b"\n") {
                let mut piece = [0; 3];
                tokio::select! {
                    biased;
                    result = pump.drain(&recorder) => result.unwrap(),
                    count = far.read(&mut piece) => text.extend_from_slice(&piece[..count.unwrap()]),
                }
                if text.is_empty() && recorder.lock().lines.is_empty() {
                    continue;
                }
                if pump.lines.is_empty() {
                    let count = far.read(&mut piece).await.unwrap();
                    text.extend_from_slice(&piece[..count]);
                }
            }
            text
        });
        assert_eq!(
            serde_json::from_slice::<Entry>(&text).unwrap(),
            Entry::Done { at_us: 7 }
        );
    }

    #[test]
    fn a_journal_that_takes_nothing_is_an_error() {
        let recorder = Recorder::default();
        recorder.record(&Entry::Done { at_us: 1 });
        let (near, far) = tokio::io::duplex(5);
        drop(far);
        assert!(block_on(Pump::new(near).drain(&recorder)).is_err());
    }

    #[test]
    fn a_full_backlog_holds_readers_until_it_is_written() {
        let recorder = Recorder::default();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(recorder.poll_capacity(&mut cx).is_ready());
        while !recorder.is_full() {
            recorder.record(&Entry::Done { at_us: u64::MAX });
        }
        assert!(recorder.poll_capacity(&mut cx).is_pending());
        block_on(Pump::new(tokio::io::sink()).drain(&recorder)).unwrap();
        assert!(recorder.poll_capacity(&mut cx).is_ready());
    }
}
