//! State shared by all connections of one run: the journal, the barrier, the limits and the open connections.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::journal::{Entry, Host};
use model::secret::{Belongs, SecretScanner};
use tokio::net::TcpStream;

use super::Connection;
use crate::barrier::Barrier;
use crate::limits::{Budget, Limits};
use crate::recorder::{Recorder, now_us};

/// Shared state of one run.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) recorder: Recorder,
    pub(crate) barrier: Barrier,
    pub(crate) limits: Limits,
    pub(crate) budget: Budget,
    pub(crate) credential: Option<SecretScanner>,
    pub(crate) belongs: Belongs,
    open: Mutex<BTreeMap<u64, Arc<Connection>>>,
    accepted: AtomicU64,
    refused: AtomicU64,
    frozen: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        barrier: Barrier,
        limits: Limits,
        (credential, belongs): (Option<SecretScanner>, Belongs),
    ) -> Self {
        Self {
            recorder: Recorder::default(),
            barrier,
            limits,
            budget: Budget::new(&limits),
            credential,
            belongs,
            open: Mutex::default(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            frozen: AtomicBool::new(false),
        }
    }

    /// Registers and journals an accepted connection. Returns `None` beyond a limit of connections.
    pub(crate) fn register(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        host: Host,
    ) -> io::Result<Option<Arc<Connection>>> {
        let open = self.registry().len() as u64;
        let is_beyond = self.accepted.load(Ordering::Relaxed) == self.limits.connections
            || open >= self.limits.open_connections;
        if is_beyond {
            if self.refused.fetch_add(1, Ordering::Relaxed) == 0 {
                self.recorder.record(&Entry::Refused {
                    at_us: now_us(),
                    connections: 1,
                });
            }
            return Ok(None);
        }
        let id = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        self.recorder.record(&Entry::Accepted {
            connection: id,
            at_us: now_us(),
            peer,
            host,
        });
        let connection = Arc::new(Connection::new(id, stream, peer, host, self.clone())?);
        self.registry().insert(id, connection.clone());
        Ok(Some(connection))
    }

    /// Removes a connection that has ended.
    pub(crate) fn unregister(&self, id: u64) {
        self.registry().remove(&id);
    }

    /// Removes every connection. Connections and this registry refer to each other, and this breaks the cycle.
    pub(crate) fn unregister_all(&self) {
        self.registry().clear();
    }

    /// Returns the open connections, in order of arrival.
    pub(crate) fn open(&self) -> Vec<Arc<Connection>> {
        self.registry().values().cloned().collect()
    }

    /// Number of connections refused so far.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Stops all reading and writing by the server. Afterwards only the end of the run reads.
    pub(crate) fn freeze(&self) {
        self.frozen.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Relaxed)
    }

    fn registry(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
