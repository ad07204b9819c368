//! Signals that end a run: SIGINT, SIGTERM and SIGHUP.

use std::io;

use sys::process::{is_hangup_ignored, unblock_end_signals};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handlers of these signals.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` under nohup(1), which asks for a run that survives its terminal.
    hangup: Option<Signal>,
}

impl Signals {
    /// Installs the handlers, also for signals that were blocked until now.
    ///
    /// # Errors
    /// Returns the errno of sigaction(2) or of the runtime's own set-up.
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

    /// Waits for the next signal.
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
