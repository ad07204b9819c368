//! The output of an audited program on its way to our own: a thread for each stream, behind a bounded queue.
//!
//! Whoever reads slowly slows the program down, as with any pipe, and nothing else: the loop waits for room, never
//! for the reader. A terminal gets the program's text made harmless; a file or a pipe gets its bytes as they are.

use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::thread;
use std::time::Duration;

use model::escape::for_terminal;
use model::evidence::GapKind;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::Session;
use super::terminal_state::{self, TerminalState};

/// From a signal while output waits for its reader to the end of that wait, for the stream that nobody waited for yet.
const AFTER_SIGNAL: Duration = Duration::from_millis(100);
/// Pieces that wait for the reader; one is at most [`super::PIECE`] bytes.
const QUEUED: usize = 16;

/// One stream of ours that the program's output goes to.
#[derive(Debug)]
pub(super) struct Passthrough {
    /// `None` once the program's output has ended, or nobody reads ours any more.
    pieces: Option<Sender<Vec<u8>>>,
    written: oneshot::Receiver<(io::Result<()>, TerminalState)>,
}

impl Passthrough {
    /// To our standard output.
    ///
    /// # Errors
    /// The errno with which no thread could be started.
    pub(super) fn to_stdout() -> io::Result<Self> {
        Self::to(io::stdout().is_terminal(), io::stdout())
    }

    /// To our standard error.
    ///
    /// # Errors
    /// The same.
    pub(super) fn to_stderr() -> io::Result<Self> {
        Self::to(io::stderr().is_terminal(), io::stderr())
    }

    fn to(is_terminal: bool, stream: impl Write + Send + 'static) -> io::Result<Self> {
        let (pieces, queue) = channel(QUEUED);
        let (done, written) = oneshot::channel();
        let work = move || {
            let mut trail = TerminalState::default();
            let written = write_all(queue, is_terminal, stream, &mut trail);
            // Where nobody waits for it, the run is over.
            let _ = done.send((written, trail));
        };
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(work)?;
        Ok(Self {
            pieces: Some(pieces),
            written,
        })
    }

    /// Returns once there is room for a piece; whether anybody still reads.
    pub(super) async fn room(&self) -> bool {
        match &self.pieces {
            Some(pieces) => pieces.reserve().await.is_ok(),
            None => false,
        }
    }

    /// Hands a piece over, for which there is room.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let lost = self
            .pieces
            .as_ref()
            .is_none_or(|pieces| pieces.try_send(piece.to_vec()).is_err());
        if lost {
            self.pieces = None;
        }
    }

    /// Nothing more will be handed over.
    pub(super) fn close(&mut self) {
        self.pieces = None;
    }

    /// Returns once everything is written, or can be written no more: why not all of it was written, and in what state
    /// the stream is left. That nobody reads any more is no error, as for any program in a pipe.
    pub(super) async fn finish(mut self) -> (io::Result<()>, TerminalState) {
        self.pieces = None;
        match self.written.await {
            Ok((Err(error), trail)) if error.kind() == io::ErrorKind::BrokenPipe => (Ok(()), trail),
            Ok(finished) => finished,
            Err(_) => (
                Err(io::Error::other("its thread was lost")),
                TerminalState::UNKNOWN,
            ),
        }
    }
}

/// Ends where nothing can be written: the queue closes with it, and that is what the loop sees.
fn write_all(
    mut queue: Receiver<Vec<u8>>,
    is_terminal: bool,
    mut stream: impl Write,
    trail: &mut TerminalState,
) -> io::Result<()> {
    let mut unfinished = Vec::new();
    while let Some(piece) = queue.blocking_recv() {
        let shown = if is_terminal {
            unfinished.extend_from_slice(&piece);
            let whole = whole_characters(&unfinished);
            let text: Vec<u8> = unfinished.drain(..whole).collect();
            let shown = for_terminal(&String::from_utf8_lossy(&text)).into_bytes();
            trail.follow_text(&shown);
            shown
        } else {
            trail.follow(&piece);
            piece
        };
        stream.write_all(&shown)?;
        stream.flush()?;
    }
    // What is left is the beginning of a character, and no character.
    if !unfinished.is_empty() {
        trail.follow_text("\u{fffd}".as_bytes());
        stream.write_all("\u{fffd}".as_bytes())?;
    }
    stream.flush()
}

/// The length of `bytes` without a character at its end whose rest is still to come.
fn whole_characters(bytes: &[u8]) -> usize {
    let longest = bytes.len().saturating_sub(3);
    let last_start = (longest..bytes.len()).find(|start| {
        let rest = bytes.get(*start..).unwrap_or_default();
        matches!(std::str::from_utf8(rest), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none())
    });
    last_start.unwrap_or(bytes.len())
}

impl Session<'_> {
    /// Waits until the program's output has gone where it goes. A signal ends the wait, and what had not gone by then
    /// is lost: nobody may take the rest for the whole.
    pub(super) async fn finish_passing(&mut self) {
        let Some((mut out, mut err)) = self.pass.take() else {
            return;
        };
        // Both at once: neither waits for the other's reader.
        out.close();
        err.close();
        let mut patience = self.impatient.then(|| Instant::now() + AFTER_SIGNAL);
        let mut trails = Vec::new();
        for (stream, what, pass) in [
            ("standard output", GapKind::Records, out),
            ("standard error", GapKind::Stderr, err),
        ] {
            let enough = async {
                match patience {
                    None => self.signals.recv().await,
                    Some(until) => sleep_until(until).await,
                }
            };
            let (written, trail) = tokio::select! {
                biased;
                finished = pass.finish() => finished,
                () = enough => (Err(ErrorKind::Interrupted.into()), TerminalState::UNKNOWN),
            };
            trails.push(trail);
            let Err(error) = written else { continue };
            if error.kind() == ErrorKind::Interrupted {
                self.gap(
                    what,
                    format!("interrupted before all of {stream} had been passed on"),
                );
                // The other stream may be through already.
                patience.get_or_insert_with(|| Instant::now() + AFTER_SIGNAL);
            }
            self.capture.unwritten.push((stream, error));
        }
        if let [out, err] = trails[..] {
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
        let mut pass = Passthrough::to(is_terminal, shared.clone()).unwrap();
        runtime.block_on(async {
            for piece in pieces {
                assert!(pass.room().await);
                pass.push(piece);
            }
            pass.finish().await.0.unwrap();
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

    /// What is said at the end of a stream that fails like this.
    fn broken(kind: io::ErrorKind) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut pass = Passthrough::to(false, Broken(kind)).unwrap();
        runtime.block_on(async {
            while pass.room().await {
                pass.push(b"x");
            }
            pass.finish().await.0
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
