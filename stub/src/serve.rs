//! One run of the stub, from a bound listener to the last line of the journal.
//!
//! Owns the order of the steps. Works on descriptors that the caller opened, on a runtime of one thread. Opens no
//! file, makes no connection, resolves no name and starts no thread.

use std::future::pending;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use model::journal::{Control, Entry, Host};
use model::secret::{Belongs, SecretScanner};
use scenario::Scenario;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::{Instant, sleep};

use crate::app::app;
use crate::barrier::Barrier;
use crate::connection::{Connection, ConnectionHandle, Progress, Shared};
use crate::held::{Held, Sockets};
use crate::limits::Limits;
use crate::listener::{self, FinalListener, HostListener};
use crate::recorder::{Pump, now_us};

/// Longest line of the control channel, in bytes.
const CONTROL_LINE_BYTES: usize = 1024;
/// Limit on the bytes that one connection may deliver after the end of the run. The kernel buffers less for a
/// client that has ended.
const FINISH_BYTES: u64 = 64 * 1024 * 1024;

/// Time for connections to end after their processes ended. On loopback the kernel needs microseconds; only a
/// socket option of the client holds bytes longer.
const END_WAIT: Duration = Duration::from_secs(1);
/// Interval between two polls of connections that have not ended.
const END_POLL: Duration = Duration::from_millis(2);

/// Inputs of one run.
#[derive(Debug)]
pub struct Setup {
    /// Bound, listening socket; the run makes it non-blocking.
    pub listener: TcpListener,
    /// Listening socket of the second host, the target of `{elsewhere}` in a redirect. The second host answers
    /// each message with the default scenario and is journaled like the first.
    pub elsewhere: Option<TcpListener>,
    /// Answers to messages.
    pub scenario: Scenario,
    /// Credential of the run; all received bytes are searched for it.
    pub credential: Option<SecretScanner>,
    /// Place in which the credential is allowed.
    pub belongs: Belongs,
    /// Limits of the run.
    pub limits: Limits,
    /// Sockets for which the kernel may hold bytes of clients that have ended. With them, the run ends when every
    /// connection has ended and no bytes are held. After one second the run ends anyway, and the journal records
    /// the held bytes. Without them, connections may outlive the run: the stub reads only what has arrived.
    pub sockets: Option<Box<dyn Sockets>>,
}

/// Error after which the journal is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listening socket cannot be used.
    #[error("cannot listen")]
    Listen(#[source] io::Error),
    /// The scenario redirects to a second host, but the caller gave no socket for it.
    #[error("cannot redirect to the second host: no socket was given for it")]
    NoElsewhere,
    /// The journal could not be written, or a connection could not be accepted.
    #[error("cannot write the journal or accept a connection: evidence was lost")]
    Journal(#[source] io::Error),
    /// The control channel could not be read.
    #[error("cannot read the control channel")]
    Control(#[source] io::Error),
    /// The control channel closed before [`Control::Finish`].
    #[error("the control channel closed before `finish`")]
    ControlEnded,
    /// A line of the control channel is not a [`Control`].
    #[error("cannot parse a line of the control channel")]
    ControlLine(#[source] serde_json::Error),
    /// A line of the control channel is too long.
    #[error("a line of the control channel is longer than {CONTROL_LINE_BYTES} bytes")]
    LongControlLine,
    /// A connection delivered too many bytes after the end of the run.
    #[error(
        "connection {connection} delivered more than {FINISH_BYTES} bytes after the end of the run"
    )]
    Flooded {
        /// Number of the connection, from 1.
        connection: u64,
    },
    /// The HTTP server stopped.
    #[error("the HTTP server stopped")]
    Server(#[source] io::Error),
}

/// Serves until `control` sends [`Control::Finish`], then reads every connection to its end and returns.
///
/// Each request is held at its first byte until [`Control::Go`] names it, for one second at most. `journal` gets
/// one entry a line, flushed. The future needs a current-thread runtime with I/O and time.
///
/// # Errors
/// Every error means that the journal is incomplete. The caller then ends the process.
pub async fn serve<W, C>(setup: Setup, journal: W, control: C) -> Result<(), ServeError>
where
    W: AsyncWrite + Unpin,
    C: AsyncRead + Unpin,
{
    let credential = (setup.credential, setup.belongs);
    let shared = Arc::new(Shared::new(Barrier::holding(), setup.limits, credential));
    let end = follow(control, &shared.barrier);
    let hosts = Hosts::open(
        (setup.listener, setup.elsewhere),
        setup.scenario,
        setup.sockets,
        &shared,
    )?;
    run(hosts, &shared, journal, end).await
}

/// Serves until `finish` resolves, then reads every connection to its end and returns. Requests are not held.
///
/// # Errors
/// Every error means that the journal is incomplete.
pub async fn serve_until<W, F>(setup: Setup, journal: W, finish: F) -> Result<(), ServeError>
where
    W: AsyncWrite + Unpin,
    F: Future<Output = ()>,
{
    let credential = (setup.credential, setup.belongs);
    let shared = Arc::new(Shared::new(Barrier::Open, setup.limits, credential));
    let end = async {
        finish.await;
        Ok(())
    };
    let hosts = Hosts::open(
        (setup.listener, setup.elsewhere),
        setup.scenario,
        setup.sockets,
        &shared,
    )?;
    run(hosts, &shared, journal, end).await
}

/// Hosts of the run.
struct Hosts {
    stub: HostServer,
    elsewhere: Option<HostServer>,
    sockets: Option<Box<dyn Sockets>>,
}

/// One host: its listening socket, a duplicate for the end of the run, and its routes.
struct HostServer {
    listener: HostListener,
    final_listener: FinalListener,
    router: Router,
}

impl Hosts {
    fn open(
        (listener, elsewhere): (TcpListener, Option<TcpListener>),
        scenario: Scenario,
        sockets: Option<Box<dyn Sockets>>,
        shared: &Arc<Shared>,
    ) -> Result<Self, ServeError> {
        let origin = match &elsewhere {
            Some(elsewhere) => {
                let address = elsewhere.local_addr().map_err(ServeError::Listen)?;
                format!("http://{address}")
            }
            None if scenario.needs_elsewhere() => return Err(ServeError::NoElsewhere),
            None => String::new(),
        };
        let served = |listener, host, scenario, origin| {
            let (listener, final_listener) =
                listener::open(listener, host, shared).map_err(ServeError::Listen)?;
            let router = app(scenario, shared.limits, origin, shared.belongs.clone());
            Ok(HostServer {
                listener,
                final_listener,
                router,
            })
        };
        let plain = |listener| {
            served(
                listener,
                Host::Elsewhere,
                Scenario::default(),
                String::new(),
            )
        };
        Ok(Self {
            stub: served(listener, Host::Stub, scenario, origin)?,
            elsewhere: elsewhere.map(plain).transpose()?,
            sockets,
        })
    }
}

/// Serves one socket. Returns only on an error.
async fn serve_at(listener: HostListener, router: Router) -> io::Result<()> {
    axum::serve(
        listener,
        router.into_make_service_with_connect_info::<ConnectionHandle>(),
    )
    .await
}

async fn run<W: AsyncWrite + Unpin>(
    hosts: Hosts,
    shared: &Arc<Shared>,
    journal: W,
    end: impl Future<Output = Result<(), ServeError>>,
) -> Result<(), ServeError> {
    let mut pump = Pump::new(journal);
    let mut ending = Ending {
        listeners: vec![hosts.stub.final_listener],
        sockets: hosts.sockets,
    };
    let stub = serve_at(hosts.stub.listener, hosts.stub.router);
    let elsewhere = hosts.elsewhere.map(|served| {
        ending.listeners.push(served.final_listener);
        serve_at(served.listener, served.router)
    });
    let elsewhere = async {
        match elsewhere {
            Some(served) => served.await,
            None => pending().await,
        }
    };
    let outcome = tokio::select! {
        biased;
        error = pump.run(&shared.recorder) => Err(ServeError::Journal(error)),
        outcome = end => outcome,
        outcome = stub => outcome.map_err(ServeError::Server),
        outcome = elsewhere => outcome.map_err(ServeError::Server),
    };
    shared.freeze();
    let outcome = match outcome {
        Ok(()) => ending.finish(shared, &mut pump).await,
        Err(error) => Err(error),
    };
    shared.unregister_all();
    outcome
}

/// Resources that the end of a run needs.
struct Ending {
    listeners: Vec<FinalListener>,
    sockets: Option<Box<dyn Sockets>>,
}

impl Ending {
    /// Journals all bytes that have arrived, then the final entries.
    async fn finish<W: AsyncWrite + Unpin>(
        &self,
        shared: &Shared,
        pump: &mut Pump<W>,
    ) -> Result<(), ServeError> {
        let deadline = Instant::now() + END_WAIT;
        let held = loop {
            // Held bytes are listed before accepting and reading: bytes that are not listed have arrived.
            let held = self.list_held(shared).map_err(ServeError::Journal)?;
            self.accept(shared, pump).await?;
            let mut ended = true;
            for connection in shared.open() {
                ended &= read_to_end(&connection, shared, pump).await? == Progress::End;
            }
            let is_whole = ended && held.is_empty();
            if is_whole || self.sockets.is_none() || Instant::now() >= deadline {
                break held;
            }
            sleep(END_POLL).await;
        };
        for (host, held) in held {
            shared.recorder.record(&Entry::Held {
                at_us: now_us(),
                peer: held.peer,
                host,
                bytes: held.bytes,
            });
        }
        for connection in shared.open() {
            connection.finish();
        }
        if shared.refused() > 1 {
            shared.recorder.record(&Entry::Refused {
                at_us: now_us(),
                connections: shared.refused(),
            });
        }
        shared.recorder.record(&Entry::Done { at_us: now_us() });
        pump.drain(&shared.recorder)
            .await
            .map_err(ServeError::Journal)
    }

    async fn accept<W: AsyncWrite + Unpin>(
        &self,
        shared: &Shared,
        pump: &mut Pump<W>,
    ) -> Result<(), ServeError> {
        for listener in &self.listeners {
            while listener.take().map_err(ServeError::Journal)?.is_some() {
                pump.drain_if_full(&shared.recorder)
                    .await
                    .map_err(ServeError::Journal)?;
            }
        }
        Ok(())
    }

    fn list_held(&self, shared: &Shared) -> io::Result<Vec<(Host, Held)>> {
        let mut all = Vec::new();
        let Some(sockets) = &self.sockets else {
            return Ok(all);
        };
        // The count comes first: a socket of ours that is connected afterwards was counted.
        let counted = sockets.count();
        let connected = shared
            .open()
            .iter()
            .filter(|one| one.is_connected())
            .count();
        if counted.is_some_and(|all| all <= (self.listeners.len() + connected) as u64) {
            return Ok(all);
        }
        for listener in &self.listeners {
            let held = sockets.list_held(listener.address()?)?;
            all.extend(held.into_iter().map(|held| (listener.host(), held)));
        }
        Ok(all)
    }
}

/// Reads the bytes that have arrived. Returns [`Progress::Nothing`] or [`Progress::End`].
async fn read_to_end<W: AsyncWrite + Unpin>(
    connection: &Connection,
    shared: &Shared,
    pump: &mut Pump<W>,
) -> Result<Progress, ServeError> {
    let before = connection.bytes();
    loop {
        let progress = connection.drain();
        if progress != Progress::Some {
            return Ok(progress);
        }
        if connection.bytes() - before > FINISH_BYTES {
            return Err(ServeError::Flooded {
                connection: connection.id(),
            });
        }
        pump.drain_if_full(&shared.recorder)
            .await
            .map_err(ServeError::Journal)?;
    }
}

/// Releases requests as the control channel orders, until [`Control::Finish`].
async fn follow(mut control: impl AsyncRead + Unpin, barrier: &Barrier) -> Result<(), ServeError> {
    let mut line = Vec::new();
    let mut buffer = [0; 512];
    loop {
        let count = control
            .read(&mut buffer)
            .await
            .map_err(ServeError::Control)?;
        if count == 0 {
            return Err(ServeError::ControlEnded);
        }
        for byte in &buffer[..count] {
            if *byte != b'\n' {
                if line.len() == CONTROL_LINE_BYTES {
                    return Err(ServeError::LongControlLine);
                }
                line.push(*byte);
                continue;
            }
            match serde_json::from_slice(&line).map_err(ServeError::ControlLine)? {
                Control::Go { request } => barrier.release(request),
                Control::Finish => return Ok(()),
            }
            line.clear();
        }
    }
}
