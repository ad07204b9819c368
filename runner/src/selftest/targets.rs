//! Live targets on this machine, for the attempts inside and for their twins: made by the runner, of no value to
//! anybody, gone with it.

use std::fs::{self, File, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{self, UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::{io, thread};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use probes::hostile::class::{Aim, Attempt};
use probes::hostile::reply::Said;
use probes::hostile::{self, HOSTILE_ARGUMENT, WAIT_APART};
use sandbox::guard::Guarded;
use sys::process::OWN_FILE;
use sys::random;

const STREAM: &str = "stream";
const DATAGRAM: &str = "datagram";
const READABLE: &str = "readable";
const WRITABLE: &str = "writable";
const PROGRAM: &str = "program";
/// The home of the twins, and the directory that everybody may write: no twin follows a name in it.
const HOME: &str = "home";
const OPEN: &str = "open";

/// They live as long as this is held.
#[derive(Debug)]
pub(super) struct Targets {
    directory: Guarded,
    abstract_stream: String,
    abstract_datagram: String,
    tcp: SocketAddr,
    udp: SocketAddr,
    victim: i32,
    /// The victim ends when this is closed.
    _victim: ChildStdin,
    _streams: [UnixListener; 2],
    _datagrams: [UnixDatagram; 2],
    _tcp: TcpListener,
    /// What no child of the runner must have: it stays open across an exec, until the sandbox is started.
    _inherited: File,
}

impl Targets {
    /// Makes them in a directory that nobody else has anything in.
    ///
    /// # Errors
    /// The first that could not be made.
    pub(super) fn make_in(directory: Guarded) -> io::Result<Self> {
        let at = |name: &str| directory.path().join(name);
        let everybody =
            |path: PathBuf, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        for (name, mode) in [(READABLE, 0o644), (WRITABLE, 0o666), (PROGRAM, 0o777)] {
            fs::write(at(name), "of no value\n")?;
            everybody(at(name), mode)?;
        }
        fs::create_dir(at(HOME))?;
        fs::create_dir(at(OPEN))?;
        everybody(at(OPEN), 0o777)?;
        let abstract_name = |kind: &str| format!("runner-selftest-{kind}-{}", random::token());
        let (abstract_stream, abstract_datagram) = (abstract_name(STREAM), abstract_name(DATAGRAM));
        let address = |name: &str| net::SocketAddr::from_abstract_name(name.as_bytes());
        let streams = [
            UnixListener::bind_addr(&address(&abstract_stream)?)?,
            UnixListener::bind(at(STREAM))?,
        ];
        let datagrams = [
            UnixDatagram::bind_addr(&address(&abstract_datagram)?)?,
            UnixDatagram::bind(at(DATAGRAM))?,
        ];
        everybody(at(STREAM), 0o777)?;
        everybody(at(DATAGRAM), 0o777)?;
        let tcp = at_no_given_port(TcpListener::bind)?;
        let (victim_line, victim) = victim()?;
        let inherited = File::open(at(READABLE))?;
        fcntl(&inherited, FcntlArg::F_SETFD(FdFlag::empty()))?;
        everybody(directory.path().to_owned(), 0o755)?;
        Ok(Self {
            abstract_stream,
            abstract_datagram,
            tcp: tcp.local_addr()?,
            udp: answered()?,
            victim,
            _victim: victim_line,
            _streams: streams,
            _datagrams: datagrams,
            _tcp: tcp,
            _inherited: inherited,
            directory,
        })
    }

    /// The word that an aim stands for.
    pub(super) fn word(&self, aim: Aim) -> String {
        let at = |name: &str| {
            self.directory
                .path()
                .join(name)
                .to_string_lossy()
                .into_owned()
        };
        match aim {
            Aim::Word(word) => word.to_owned(),
            Aim::AbstractStream => format!("@{}", self.abstract_stream),
            Aim::AbstractDatagram => format!("@{}", self.abstract_datagram),
            Aim::StreamSocket => at(STREAM),
            Aim::DatagramSocket => at(DATAGRAM),
            Aim::TcpListener => self.tcp.to_string(),
            Aim::UdpListener => self.udp.to_string(),
            Aim::Victim => self.victim.to_string(),
            Aim::VictimDirectory => format!("/proc/{}/", self.victim),
            Aim::Supervisor => std::process::id().to_string(),
            Aim::Directory => at(OPEN),
            Aim::ReadableFile => at(READABLE),
            Aim::WritableFile => at(WRITABLE),
            Aim::ProgramFile => at(PROGRAM),
        }
    }

    pub(super) fn words(&self, aims: &[Aim]) -> Vec<String> {
        aims.iter().map(|aim| self.word(*aim)).collect()
    }

    /// Makes the twin of an attempt: the same code, outside.
    pub(super) fn twin(&self, name: &str, attempt: &Attempt) -> Said {
        let words = self.words(attempt.outside);
        hostile::in_own_process(attempt.twin_env, name, &words, |command| {
            command.env("HOME", self.directory.path().join(HOME));
            command.stdin(Stdio::null()).stderr(Stdio::null());
        })
    }
}

/// A process that waits, and is not our child: the runner waits for every child of its own.
fn victim() -> io::Result<(ChildStdin, i32)> {
    let mut starting = Command::new(OWN_FILE)
        .args([HOSTILE_ARGUMENT, WAIT_APART])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let line = starting.stdin.take();
    let (_, number) = hostile::ended_within(&mut starting, hostile::LIMIT)?;
    match (line, number.parse()) {
        (Some(line), Ok(number)) => Ok((line, number)),
        _ => Err(io::Error::other("no process could be started as a victim")),
    }
}

/// Below the ports that the kernel gives to whoever asks for any (32768 to 60999 in a new network namespace, ip(7)).
/// The stub inside has one of those, and so has the socket of an attempt: with the same number as a target outside,
/// each would be taken for it.
const NEVER_GIVEN: Range<u16> = 20_000..32_768;

/// Binds at the first of those ports that is free.
fn at_no_given_port<S>(bind: impl Fn((Ipv4Addr, u16)) -> io::Result<S>) -> io::Result<S> {
    NEVER_GIVEN
        .map(|port| bind((Ipv4Addr::LOCALHOST, port)))
        .find(|bound| !matches!(bound, Err(error) if error.kind() == io::ErrorKind::AddrInUse))
        .unwrap_or_else(|| Err(io::ErrorKind::AddrInUse.into()))
}

/// A port at which each datagram is sent back. The thread ends with the process.
fn answered() -> io::Result<SocketAddr> {
    let socket = at_no_given_port(UdpSocket::bind)?;
    let address = socket.local_addr()?;
    let answering = move || {
        let mut buffer = [0; 64];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            // Whoever asked may be gone.
            let _ = socket.send_to(buffer.get(..length).unwrap_or_default(), from);
        }
    };
    let thread = thread::Builder::new().name("answering".to_owned());
    thread.spawn(answering)?;
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_port_that_nothing_inside_is_given() {
        let taken = at_no_given_port(TcpListener::bind).unwrap();
        let next = at_no_given_port(TcpListener::bind).unwrap();
        let ports = [taken, next].map(|listener| listener.local_addr().unwrap().port());
        assert_ne!(ports[0], ports[1]);
        for port in ports.into_iter().chain([answered().unwrap().port()]) {
            assert!(NEVER_GIVEN.contains(&port), "{port}");
        }
    }

    #[test]
    fn what_else_than_a_taken_port_stands_in_the_way_is_said() {
        let refused = at_no_given_port(|_| Err::<(), _>(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let full = at_no_given_port(|_| Err::<(), _>(io::ErrorKind::AddrInUse.into()));
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
