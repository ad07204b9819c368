//! Signals that ask for the end of a run: Ctrl-C, a polite end, and a terminal that went away.

use std::io;

use sys::process::{is_hangup_ignored, unblock_end_signals};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// All of them, from here on.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` under nohup(1): whoever started the runner wants it to go on.
    hangup: Option<Signal>,
}

impl Signals {
    /// Listens, also to those that were held back so far.
    ///
    /// # Errors
    /// The errno of sigaction(2) or of the runtime's own set-up.
    pub(super) fn listen() -> io::Result<Self> {
        let signals = Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: match is_hangup_ignored() {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
        };
        unblock_end_signals();
        Ok(signals)
    }

    /// Returns at the next one.
    pub(super) async fn recv(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}
