//! One run of the stub, from a bound listener to the last line of the journal.
//!
//! Owns the order of things. Opens no file, connects nowhere, looks up no name, starts no thread: it works
//! on descriptors that others opened, on a runtime of one thread.

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
use crate::barrier::Gate;
use crate::connection::{Connection, ConnectionHandle, Progress};
use crate::held::{Held, HeldBytes};
use crate::limits::Limits;
use crate::listener::{self, Door, LastDoor};
use crate::recorder::{Pump, now_us};
use crate::shared::Shared;

/// Longest line of the control side, in bytes.
const CONTROL_LINE_BYTES: usize = 1024;
/// Most that one connection may still deliver after the end, in bytes; the kernel keeps less for a client
/// that has ended.
const FINISH_BYTES: u64 = 64 * 1024 * 1024;

/// Time for connections to end once their processes have. On loopback the kernel needs microseconds; what is held
/// longer is held by an option of the client's.
const END_WAIT: Duration = Duration::from_secs(1);
/// Between two looks at connections that have not ended.
const END_POLL: Duration = Duration::from_millis(2);

/// What one run needs.
#[derive(Debug)]
pub struct Setup {
    /// The bound, listening socket; it is made non-blocking here.
    pub listener: TcpListener,
    /// The second host, to which `{elsewhere}` in a redirect leads: the same kind of socket at another
    /// address. It answers each message with the default scenario, and is journaled like the first.
    pub elsewhere: Option<TcpListener>,
    /// How messages are answered.
    pub scenario: Scenario,
    /// The credential of the run, to be searched for in all that arrives.
    pub credential: Option<SecretScanner>,
    /// Where the credential may stand.
    pub belongs: Belongs,
    /// What the run may take.
    pub limits: Limits,
    /// Lists what the kernel holds for clients that have ended. Where it is given, the run ends when every
    /// connection has ended and nothing is held, or after one second with what is still held in the journal.
    /// Without it connections may outlive the run: they are read as far as they have arrived.
    pub held: Option<HeldBytes>,
}

/// Why a run ended without its evidence being whole.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listening socket cannot be used.
    #[error("cannot listen")]
    Listen(#[source] io::Error),
    /// The scenario leads to a second host, and there is none.
    #[error("the scenario redirects to the second host, and no socket was given for it")]
    NoElsewhere,
    /// The journal could not be written, or a connection not be accepted.
    #[error("evidence was lost: the journal could not be written or a connection not be accepted")]
    Journal(#[source] io::Error),
    /// The control side could not be read.
    #[error("cannot read the control side")]
    Control(#[source] io::Error),
    /// The control side closed before it said finish.
    #[error("the control side closed before it said `finish`")]
    ControlEnded,
    /// A line of the control side is no [`Control`].
    #[error("a line of the control side is not understood")]
    ControlLine(#[source] serde_json::Error),
    /// A line of the control side is too long.
    #[error("a line of the control side is longer than {CONTROL_LINE_BYTES} bytes")]
    LongControlLine,
    /// A connection delivers without end after the end of the run.
    #[error(
        "connection {connection} still delivered after {FINISH_BYTES} bytes past the end of the run"
    )]
    Flooded {
        /// The connection.
        connection: u64,
    },
    /// The HTTP server stopped.
    #[error("the HTTP server stopped")]
    Server(#[source] io::Error),
}

/// Serves until `control` says [`Control::Finish`], then reads every connection to its end and returns.
///
/// Each request is held at its first byte until [`Control::Go`] names it, for one second at most. One
/// entry a line goes to `journal`, flushed. Runs on a current-thread runtime with I/O and time.
///
/// # Errors
/// Every error means that the journal is not whole; the caller ends the process.
pub async fn serve<W, C>(setup: Setup, journal: W, control: C) -> Result<(), ServeError>
where
    W: AsyncWrite + Unpin,
    C: AsyncRead + Unpin,
{
    let credential = (setup.credential, setup.belongs);
    let shared = Arc::new(Shared::new(Gate::ordered(), setup.limits, credential));
    let end = follow(control, &shared.gate);
    let hosts = Hosts::open(
        (setup.listener, setup.elsewhere),
        setup.scenario,
        setup.held,
        &shared,
    )?;
    run(hosts, &shared, journal, end).await
}

/// Serves until `finish` resolves, then reads every connection to its end and returns. No request waits.
///
/// # Errors
/// Every error means that the journal is not whole.
pub async fn serve_until<W, F>(setup: Setup, journal: W, finish: F) -> Result<(), ServeError>
where
    W: AsyncWrite + Unpin,
    F: Future<Output = ()>,
{
    let credential = (setup.credential, setup.belongs);
    let shared = Arc::new(Shared::new(Gate::Open, setup.limits, credential));
    let end = async {
        finish.await;
        Ok(())
    };
    let hosts = Hosts::open(
        (setup.listener, setup.elsewhere),
        setup.scenario,
        setup.held,
        &shared,
    )?;
    run(hosts, &shared, journal, end).await
}

/// The hosts of the run.
struct Hosts {
    stub: HostServer,
    elsewhere: Option<HostServer>,
    held: Option<HeldBytes>,
}

/// One host: its socket twice, and what is answered there.
struct HostServer {
    door: Door,
    last_door: LastDoor,
    router: Router,
}

impl Hosts {
    fn open(
        (listener, elsewhere): (TcpListener, Option<TcpListener>),
        scenario: Scenario,
        held: Option<HeldBytes>,
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
            let (door, last_door) =
                listener::open(listener, host, shared).map_err(ServeError::Listen)?;
            let router = app(scenario, shared.limits, origin, shared.belongs.clone());
            Ok(HostServer {
                door,
                last_door,
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
            held,
        })
    }
}

/// Serves at one socket, for ever; returns only what went wrong.
async fn serve_at(door: Door, router: Router) -> io::Result<()> {
    axum::serve(
        door,
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
        doors: vec![hosts.stub.last_door],
        held: hosts.held,
    };
    let stub = serve_at(hosts.stub.door, hosts.stub.router);
    let elsewhere = hosts.elsewhere.map(|served| {
        ending.doors.push(served.last_door);
        serve_at(served.door, served.router)
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
    shared.forget_all();
    outcome
}

/// What the end of a run looks at.
struct Ending {
    doors: Vec<LastDoor>,
    held: Option<HeldBytes>,
}

impl Ending {
    /// Journals everything that has arrived, and nothing after it.
    async fn finish<W: AsyncWrite + Unpin>(
        &self,
        shared: &Shared,
        pump: &mut Pump<W>,
    ) -> Result<(), ServeError> {
        let deadline = Instant::now() + END_WAIT;
        let held = loop {
            // Listed before connections are accepted and read: what is not held then has arrived.
            let held = self.list_held().map_err(ServeError::Journal)?;
            self.accept(shared, pump).await?;
            let mut ended = true;
            for connection in shared.open() {
                ended &= read_to_end(&connection, shared, pump).await? == Progress::End;
            }
            let is_whole = ended && held.is_empty();
            if is_whole || self.held.is_none() || Instant::now() >= deadline {
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
        for door in &self.doors {
            while door.take().map_err(ServeError::Journal)?.is_some() {
                pump.relieve(&shared.recorder)
                    .await
                    .map_err(ServeError::Journal)?;
            }
        }
        Ok(())
    }

    fn list_held(&self) -> io::Result<Vec<(Host, Held)>> {
        let mut all = Vec::new();
        for (door, list) in self.doors.iter().zip(self.held.iter().cycle()) {
            let held = list.list(door.address()?)?;
            all.extend(held.into_iter().map(|held| (door.host(), held)));
        }
        Ok(all)
    }
}

/// Reads what has arrived; the last progress is [`Progress::Nothing`] or [`Progress::End`].
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
        pump.relieve(&shared.recorder)
            .await
            .map_err(ServeError::Journal)?;
    }
}

/// Lets requests through as the control side says, until it says finish.
async fn follow(mut control: impl AsyncRead + Unpin, gate: &Gate) -> Result<(), ServeError> {
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
                Control::Go { request } => gate.release(request),
                Control::Finish => return Ok(()),
            }
            line.clear();
        }
    }
}
