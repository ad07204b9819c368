//! Thread that makes connections for the client, in a Landlock domain that allows only the stub's ports.
//!
//! The supervisor stays outside that domain: Landlock forbids a confined thread to read the client's memory.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::SigSet;
use nix::sys::socket::{Shutdown, SockaddrStorage, connect, shutdown};

use super::StubAddresses;
use crate::error::AsErrno as _;
use crate::landlock::restrict_connector;

/// Time limit of one connect(2). The stub accepts at once, so only a full backlog takes so long.
const CONNECT: Duration = Duration::from_secs(3);
/// Time limit for the end of a connect(2) whose socket was shut down.
const ABORT: Duration = Duration::from_secs(1);

/// Handle of the thread.
#[derive(Debug)]
pub(super) struct Connector {
    jobs: SyncSender<Job>,
    results: Receiver<Result<(), Errno>>,
    /// A connect(2) did not end, so results can no longer be matched to jobs.
    is_lost: bool,
}

#[derive(Debug)]
struct Job {
    socket: Arc<OwnedFd>,
    address: SocketAddr,
}

impl Connector {
    /// Starts the thread and waits until it is confined.
    ///
    /// # Errors
    /// The errno of the failed thread creation or of the refused domain.
    pub(super) fn start(addresses: StubAddresses) -> Result<Self, Errno> {
        let (jobs, wanted) = sync_channel::<Job>(1);
        let (made, results) = sync_channel(1);
        let body = move || {
            let _ = SigSet::all().thread_block();
            let ports = [Some(addresses.stub), addresses.elsewhere];
            let ports = ports.iter().flatten().map(SocketAddr::port);
            let confined = match restrict_connector(ports) {
                Ok(report) if report.full => Ok(()),
                Ok(_) => Err(Errno::EOPNOTSUPP),
                Err(error) => Err(error.as_errno()),
            };
            if made.send(confined).is_err() || confined.is_err() {
                return;
            }
            for Job { socket, address } in wanted {
                let result = connect_once(&socket, address);
                // Closed before the answer: with an open copy, the client's close(2) would not end the connection.
                drop(socket);
                if made.send(result).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("connector".to_owned())
            .spawn(body)
            .map_err(|error| error.as_errno())?;
        results.recv().map_err(|_| Errno::ECHILD)??;
        Ok(Self {
            jobs,
            results,
            is_lost: false,
        })
    }

    /// Connects `socket` and closes this copy.
    ///
    /// # Errors
    /// The errno of connect(2); `ETIMEDOUT` beyond the time limit; `EIO` if the thread is lost.
    pub(super) fn connect(&mut self, socket: OwnedFd, address: SocketAddr) -> Result<(), Errno> {
        let socket = Arc::new(socket);
        let job = Job {
            socket: Arc::clone(&socket),
            address,
        };
        if self.is_lost || self.jobs.send(job).is_err() {
            return Err(Errno::EIO);
        }
        match self.results.recv_timeout(CONNECT) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => {
                self.is_lost = true;
                return Err(Errno::EIO);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        // shutdown(2) ends the waiting connect(2). A connection made at this moment is reported as made.
        let _ = shutdown(socket.as_raw_fd(), Shutdown::Both);
        match self.results.recv_timeout(ABORT) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Errno::ETIMEDOUT),
            Err(_) => {
                self.is_lost = true;
                Err(Errno::EIO)
            }
        }
    }
}

fn connect_once(socket: &OwnedFd, address: SocketAddr) -> Result<(), Errno> {
    loop {
        let result = connect(socket.as_raw_fd(), &SockaddrStorage::from(address));
        if result != Err(Errno::EINTR) {
            return result;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

    use super::*;

    fn tcp(flags: SockFlag) -> OwnedFd {
        socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap()
    }

    fn addresses(listener: &TcpListener) -> StubAddresses {
        StubAddresses {
            stub: listener.local_addr().unwrap(),
            elsewhere: None,
        }
    }

    #[test]
    fn only_the_stubs_port_is_reached() {
        let stub = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connector = Connector::start(addresses(&stub)).unwrap();
        let mut to = |flags, address| connector.connect(tcp(flags), address);
        let flags = SockFlag::SOCK_CLOEXEC;
        assert_eq!(to(flags, stub.local_addr().unwrap()), Ok(()));
        let forbidden = to(flags, other.local_addr().unwrap());
        assert_eq!(forbidden, Err(Errno::EACCES));
        let nonblocking = to(flags | SockFlag::SOCK_NONBLOCK, stub.local_addr().unwrap());
        assert_eq!(nonblocking, Err(Errno::EINPROGRESS));
        // The test's own thread is not confined.
        std::net::TcpStream::connect(other.local_addr().unwrap()).unwrap();
    }

    #[test]
    fn a_connection_that_is_not_made_ends_at_the_limit() {
        // Linux queues one connection more than the backlog and drops further handshakes.
        let stub = tcp(SockFlag::SOCK_CLOEXEC);
        let any =
            nix::sys::socket::SockaddrIn::from(std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
        nix::sys::socket::bind(stub.as_raw_fd(), &any).unwrap();
        nix::sys::socket::listen(&stub, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
        let stub = TcpListener::from(stub);
        let address = stub.local_addr().unwrap();
        let mut connector = Connector::start(addresses(&stub)).unwrap();
        let mut to = || connector.connect(tcp(SockFlag::SOCK_CLOEXEC), address);
        assert_eq!(to(), Ok(()));
        assert_eq!(to(), Err(Errno::ETIMEDOUT));
        stub.accept().unwrap();
        assert_eq!(to(), Ok(()));
    }
}
