//! The provider stub inside the sandbox: the stage runs it after its own sandbox is complete.

use std::io;
use std::net::SocketAddr;

use model::secret::Belongs;
use sandbox::sock_diag::SocketDiag;
use sandbox::stage::Inside;
use scenario::Scenario;
use serde::{Deserialize, Serialize};

/// Settings of the stub, sent inside the sandbox's plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) scenario: Scenario,
    pub(crate) belongs: Belongs,
    pub(crate) body_bytes: u64,
    pub(crate) requests: u64,
    pub(crate) connections: u64,
    pub(crate) open_connections: u64,
}

/// Serves until the runner reports the end of the client.
///
/// # Errors
/// Returns the error of invalid settings, or the first failure of the stub.
pub(crate) async fn serve(inside: Inside) -> io::Result<()> {
    let settings: Settings = serde_json::from_str(&inside.settings)?;
    let setup = stub::Setup {
        listener: inside.listener,
        elsewhere: inside.elsewhere,
        scenario: settings.scenario,
        credential: inside.credential,
        belongs: settings.belongs,
        limits: stub::Limits {
            body_bytes: usize::try_from(settings.body_bytes).unwrap_or(usize::MAX),
            requests_per_connection: settings.requests,
            connections: settings.connections,
            open_connections: settings.open_connections,
            ..stub::Limits::default()
        },
        sockets: Some(Box::new(Namespace(inside.unacknowledged))),
    };
    let served = stub::serve(setup, inside.to_runner, inside.from_runner).await;
    served.map_err(io::Error::other)
}

/// Sockets of the network namespace in which the stub serves.
#[derive(Debug)]
struct Namespace(SocketDiag);

impl stub::Sockets for Namespace {
    fn list_held(&self, server: SocketAddr) -> io::Result<Vec<stub::Held>> {
        let held = self.0.list_unacknowledged(server)?.into_iter();
        let held = held.map(|held| stub::Held {
            peer: held.peer,
            bytes: held.bytes,
        });
        Ok(held.collect())
    }

    fn count(&self) -> Option<u64> {
        self.0.tcp_sockets()
    }
}
