//! One run of the stub, from a bound listener to the last line of the journal.

use std::net::TcpListener;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::limits::Limits;
use crate::scenario::Scenario;
use crate::secret::Needle;

/// What one run needs.
#[derive(Debug)]
pub struct Setup {
    /// The bound, listening socket; it is made non-blocking here.
    pub listener: TcpListener,
    /// How messages are answered.
    pub scenario: Scenario,
    /// The credential of the run, to be searched for.
    pub credential: Option<Needle>,
    /// What the run may take.
    pub limits: Limits,
}

/// Why a run ended without its evidence being whole.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The journal could not be written.
    #[error("cannot write the journal")]
    Journal(#[source] std::io::Error),
}

/// Signatures only so far. Serves with a barrier until `control` says finish.
pub async fn serve<W, C>(setup: Setup, journal: W, control: C) -> Result<(), ServeError>
where
    W: AsyncWrite + Unpin,
    C: AsyncRead + Unpin,
{
    let _ = (setup, journal, control);
    Ok(())
}

/// Serves without a barrier until `finish` resolves.
pub async fn serve_until<W, F>(setup: Setup, journal: W, finish: F) -> Result<(), ServeError>
where
    W: AsyncWrite + Unpin,
    F: Future<Output = ()>,
{
    let _ = (setup, journal);
    finish.await;
    Ok(())
}
