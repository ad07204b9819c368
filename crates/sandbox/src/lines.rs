//! Number of complete lines on the client's standard output, known to the supervisor at each connection.
//!
//! The owner's event loop reads the pipe and counts. The supervisor takes the count itself if the pipe is empty and no
//! read is in progress; else it asks the event loop, which reads first. A wait for the event loop would be a third of
//! a connection's cost.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use sys::net::readable_bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Time limit for the event loop to read the client's output before a connection.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Count, and a version that is odd while bytes may be neither in the pipe nor counted.
#[derive(Debug, Default)]
struct Shared {
    version: AtomicUsize,
    lines: AtomicUsize,
}

/// The event loop's side: marks its reads.
#[derive(Debug)]
pub struct LineReader {
    shared: Arc<Shared>,
}

/// Questions of the supervisor. The answer is the number of lines, after a read of the pipe.
pub type LinesWanted = Receiver<SyncSender<usize>>;

/// The supervisor's side.
#[derive(Debug)]
pub struct LineCount {
    shared: Arc<Shared>,
    /// The pipe, and the way to the event loop; `None` if lines are not counted.
    source: Option<(OwnedFd, Sender<SyncSender<usize>>)>,
}

/// Makes both sides for the reading end of a pipe.
pub fn line_counter(pipe: OwnedFd) -> (LineReader, LinesWanted, LineCount) {
    let shared = Arc::new(Shared::default());
    let (ask, asked) = channel(1);
    let count = LineCount {
        shared: Arc::clone(&shared),
        source: Some((pipe, ask)),
    };
    (LineReader { shared }, asked, count)
}

impl LineReader {
    /// Marks the begin of a read. Call [`end_read`](Self::end_read) or [`end_empty_read`](Self::end_empty_read) after it.
    pub fn begin_read(&self) {
        self.shared.version.fetch_or(1, Ordering::SeqCst);
    }

    /// Marks the end of a read, with the number of lines so far.
    pub fn end_read(&self, lines: usize) {
        self.shared.lines.store(lines, Ordering::SeqCst);
        let version = self.shared.version.load(Ordering::SeqCst);
        // This thread alone writes the version.
        self.shared
            .version
            .store((version | 1) + 1, Ordering::SeqCst);
    }

    /// Marks the end of a read that gave no bytes.
    pub fn end_empty_read(&self) {
        self.end_read(self.shared.lines.load(Ordering::SeqCst));
    }
}

impl LineCount {
    /// The count for an output that is not read as lines: always 0.
    pub fn none() -> Self {
        Self {
            shared: Arc::default(),
            source: None,
        }
    }

    /// Number of lines that are written by now. `None` if the event loop has not answered within a second.
    pub(super) fn count(&self) -> Option<usize> {
        let Some((pipe, ask)) = &self.source else {
            return Some(0);
        };
        self.count_without_event_loop(pipe).or_else(|| {
            let (reply, lines) = sync_channel(1);
            // A full queue holds a question that has had no answer for a second.
            ask.try_send(reply).ok()?;
            lines.recv_timeout(MAX_WAIT).ok()
        })
    }

    fn count_without_event_loop(&self, pipe: &OwnedFd) -> Option<usize> {
        let version = self.shared.version.load(Ordering::SeqCst);
        let is_empty = readable_bytes(pipe) == Ok(0);
        let lines = self.shared.lines.load(Ordering::SeqCst);
        let is_still = version == self.shared.version.load(Ordering::SeqCst);
        (version.is_multiple_of(2) && is_empty && is_still).then_some(lines)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn empty_pipe_gives_count_without_event_loop() {
        let (reading, _writing) = std::io::pipe().unwrap();
        let (reader, _asked, count) = line_counter(reading.into());
        reader.begin_read();
        reader.end_read(3);
        // The reader does not answer here.
        assert_eq!(count.count(), Some(3));
        assert_eq!(LineCount::none().count(), Some(0));
    }

    #[test]
    fn unread_bytes_or_open_read_ask_the_event_loop() {
        let (reading, mut writing) = std::io::pipe().unwrap();
        let (reader, mut asked, count) = line_counter(reading.try_clone().unwrap().into());
        let (_reading, pipe) = (
            reading,
            count.source.as_ref().map(|(pipe, _)| pipe).unwrap(),
        );
        reader.end_read(1);
        assert_eq!(count.count_without_event_loop(pipe), Some(1));
        reader.begin_read();
        assert_eq!(
            count.count_without_event_loop(pipe),
            None,
            "a read is in progress"
        );
        reader.end_read(2);
        assert_eq!(count.count_without_event_loop(pipe), Some(2));
        writing.write_all(b"line\n").unwrap();
        assert_eq!(
            count.count_without_event_loop(pipe),
            None,
            "bytes are unread"
        );
        std::thread::scope(|scope| {
            scope.spawn(|| asked.blocking_recv().unwrap().send(3).unwrap());
            assert_eq!(count.count(), Some(3));
        });
        drop(asked);
        assert_eq!(count.count(), None, "the event loop has ended");
    }
}
