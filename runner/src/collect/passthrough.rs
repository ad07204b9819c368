//! Passes the output of an audited program to the runner's own streams: a thread for each stream, behind a
//! bounded queue.
//!
//! A slow reader slows the program down, as with any pipe, but not the loop, which only waits for space in the
//! queue. A terminal gets the program's text escaped; a file or a pipe gets the bytes unchanged.

use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::thread;
use std::time::Duration;

use model::escape::for_terminal;
use model::evidence::GapKind;
use sys::streams;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::Session;
use super::terminal_state::{self, TerminalState};

/// Limit on the wait for the second stream after a signal has ended the wait for output.
const AFTER_SIGNAL: Duration = Duration::from_millis(100);
/// Number of queued pieces; each is at most [`super::PIECE`] bytes.
const QUEUED: usize = 16;

/// One stream of the runner that receives the program's output.
#[derive(Debug)]
pub(super) struct Passthrough {
    /// `None` after the program's output has ended, or after the stream's reader has left.
    pieces: Option<Sender<Vec<u8>>>,
    written: oneshot::Receiver<(io::Result<()>, TerminalState)>,
}

impl Passthrough {
    /// Starts the thread for standard output.
    ///
    /// # Errors
    /// Returns the errno of starting the thread.
    pub(super) fn to_stdout() -> io::Result<Self> {
        let is_terminal = io::stdout().is_terminal();
        Self::to(is_terminal, io::stdout(), streams::stdout_is_open)
    }

    /// Starts the thread for standard error.
    ///
    /// # Errors
    /// Returns the errno of starting the thread.
    pub(super) fn to_stderr() -> io::Result<Self> {
        let is_terminal = io::stderr().is_terminal();
        Self::to(is_terminal, io::stderr(), || Ok(()))
    }

    fn to(
        is_terminal: bool,
        stream: impl Write + Send + 'static,
        check: fn() -> io::Result<()>,
    ) -> io::Result<Self> {
        let (pieces, queue) = channel(QUEUED);
        let (done, written) = oneshot::channel();
        let work = move || {
            let mut state = TerminalState::default();
            let written = write_all(queue, is_terminal, (stream, check), &mut state);
            // The receiver is gone only if the run is over.
            let _ = done.send((written, state));
        };
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(work)?;
        Ok(Self {
            pieces: Some(pieces),
            written,
        })
    }

    /// Waits until the queue has space for a piece. Returns false if the stream can no longer be written.
    pub(super) async fn has_space(&self) -> bool {
        match &self.pieces {
            Some(pieces) => pieces.reserve().await.is_ok(),
            None => false,
        }
    }

    /// Queues a piece; [`Passthrough::has_space`] must have returned before.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let lost = self
            .pieces
            .as_ref()
            .is_none_or(|pieces| pieces.try_send(piece.to_vec()).is_err());
        if lost {
            self.pieces = None;
        }
    }

    /// Ends the stream: no more pieces follow.
    pub(super) fn close(&mut self) {
        self.pieces = None;
    }

    /// Waits until everything is written, or can no longer be written. Returns the error, and the state in which
    /// the stream is left. A reader that has left (EPIPE) is not an error, as for any program in a pipe.
    pub(super) async fn finish(mut self) -> (io::Result<()>, TerminalState) {
        self.pieces = None;
        match self.written.await {
            Ok((Err(error), state)) if error.kind() == io::ErrorKind::BrokenPipe => (Ok(()), state),
            Ok(finished) => finished,
            Err(_) => (
                Err(io::Error::other("the thread that writes it has ended")),
                TerminalState::UNKNOWN,
            ),
        }
    }
}

/// Writes the queue to the stream, if the check passes. Returns at the first error; the queue then closes, which the
/// loop notices.
fn write_all(
    mut queue: Receiver<Vec<u8>>,
    is_terminal: bool,
    (mut stream, check): (impl Write, fn() -> io::Result<()>),
    state: &mut TerminalState,
) -> io::Result<()> {
    let mut unfinished = Vec::new();
    while let Some(piece) = queue.blocking_recv() {
        check()?;
        let shown = if is_terminal {
            unfinished.extend_from_slice(&piece);
            let whole = whole_characters(&unfinished);
            let text: Vec<u8> = unfinished.drain(..whole).collect();
            let shown = for_terminal(&String::from_utf8_lossy(&text)).into_bytes();
            state.follow_text(&shown);
            shown
        } else {
            state.follow(&piece);
            piece
        };
        stream.write_all(&shown)?;
        stream.flush()?;
    }
    // The rest is the beginning of a character whose end never came.
    if !unfinished.is_empty() {
        state.follow_text("\u{fffd}".as_bytes());
        stream.write_all("\u{fffd}".as_bytes())?;
    }
    stream.flush()
}

/// Returns the length of `bytes` without an incomplete character at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let longest = bytes.len().saturating_sub(3);
    let last_start = (longest..bytes.len()).find(|start| {
        let rest = bytes.get(*start..).unwrap_or_default();
        matches!(std::str::from_utf8(rest), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none())
    });
    last_start.unwrap_or(bytes.len())
}

impl Session<'_> {
    /// Waits until the program's output is written. A signal ends the wait. Output that was not written by then is
    /// lost, and the report says so, lest a part is taken for the whole.
    pub(super) async fn finish_passing(&mut self) {
        let Some((mut out, mut err)) = self.passthrough.take() else {
            return;
        };
        // Both queues are closed first, so that neither stream waits for the other's reader.
        out.close();
        err.close();
        let mut patience = self.impatient.then(|| Instant::now() + AFTER_SIGNAL);
        let mut states = Vec::new();
        for (stream, what, passthrough) in [
            ("standard output", GapKind::Records, out),
            ("standard error", GapKind::Stderr, err),
        ] {
            let interrupted = async {
                match patience {
                    None => self.signals.recv().await,
                    Some(until) => sleep_until(until).await,
                }
            };
            let (written, state) = tokio::select! {
                biased;
                finished = passthrough.finish() => finished,
                () = interrupted => (Err(ErrorKind::Interrupted.into()), TerminalState::UNKNOWN),
            };
            states.push(state);
            let Err(error) = written else { continue };
            if error.kind() == ErrorKind::Interrupted {
                self.gap(
                    what,
                    format!("interrupted before all of {stream} had been passed on"),
                );
                // The other stream may already be written.
                patience.get_or_insert_with(|| Instant::now() + AFTER_SIGNAL);
            }
            self.capture.unwritten.push((stream, error));
        }
        if let [out, err] = states[..] {
            self.capture.before_report = terminal_state::before_report(out, err);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn passed(is_terminal: bool, pieces: &[&[u8]]) -> Vec<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let shared = Shared::default();
        let mut passthrough = Passthrough::to(is_terminal, shared.clone(), || Ok(())).unwrap();
        runtime.block_on(async {
            for piece in pieces {
                assert!(passthrough.has_space().await);
                passthrough.push(piece);
            }
            passthrough.finish().await.0.unwrap();
        });
        shared.0.lock().unwrap().clone()
    }

    #[test]
    fn a_pipe_gets_the_bytes_as_they_are() {
        let bytes = b"\x1b[31m\xff\0\n".as_slice();
        assert_eq!(passed(false, &[bytes, b"more"]), [bytes, b"more"].concat());
    }

    #[test]
    fn a_terminal_gets_whole_characters_and_no_command() {
        let shown = passed(
            true,
            &[
                b"gr\xc3",
                b"\xbcn\t\x1b]0;x\x07\n",
                b"\xe6\x97",
                b"\xa5\xf0\x9f",
            ],
        );
        assert_eq!(
            String::from_utf8(shown).unwrap(),
            "grün\t\\u{1b}]0;x\\u{7}\n日\u{fffd}"
        );
    }

    #[test]
    fn a_character_is_whole_when_its_last_byte_is_there() {
        assert_eq!(whole_characters("é".as_bytes()), 2);
        assert_eq!(whole_characters(b"a\xc3"), 1);
        assert_eq!(whole_characters(b"a\xf0\x9f\x98"), 1);
        assert_eq!(whole_characters(b"a\xff\xfe"), 3);
        assert_eq!(whole_characters(b""), 0);
    }

    /// Returns the result of a stream whose writes fail with this error.
    fn broken(kind: io::ErrorKind) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut passthrough = Passthrough::to(false, Broken(kind), || Ok(())).unwrap();
        runtime.block_on(async {
            while passthrough.has_space().await {
                passthrough.push(b"x");
            }
            passthrough.finish().await.0
        })
    }

    #[test]
    fn where_nobody_reads_there_is_room_no_more_and_that_is_no_error() {
        broken(io::ErrorKind::BrokenPipe).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_told() {
        let error = broken(io::ErrorKind::StorageFull).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
