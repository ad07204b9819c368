//! Harmless targets on this machine for the attempts and their twins. They are removed with the runner.

use std::ffi::OsString;
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
use probes::hostile::{self, HOSTILE_ARGUMENT, WAIT_APART};
use probes::probe::{Aim, Probe};
use probes::reply::Said;
use sandbox::guard::Guarded;
use sys::process::OWN_FILE;
use sys::random;

const STREAM: &str = "stream";
const DATAGRAM: &str = "datagram";
const READABLE: &str = "readable";
const WRITABLE: &str = "writable";
const PROGRAM: &str = "program";
/// Home of the twins, and a directory that all users may write. No twin follows a name in the latter.
const HOME: &str = "home";
const OPEN: &str = "open";

/// The targets, which exist until this value is dropped.
#[derive(Debug)]
pub(super) struct Targets {
    directory: Guarded,
    abstract_stream: String,
    abstract_datagram: String,
    tcp: SocketAddr,
    udp: SocketAddr,
    victim: i32,
    /// Standard input of the victim, which ends when it is closed.
    _victim: ChildStdin,
    _streams: [UnixListener; 2],
    _datagrams: [UnixDatagram; 2],
    _tcp: TcpListener,
    /// A descriptor without close-on-exec. Twins inherit it; the run must keep it from the client.
    _inherited: File,
}

impl Targets {
    /// Makes the targets in a directory that has no other files.
    ///
    /// # Errors
    /// The first target that could not be made.
    pub(super) fn make_in(directory: Guarded) -> io::Result<Self> {
        let at = |name: &str| directory.path().join(name);
        let set_mode =
            |path: PathBuf, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        for (name, mode) in [(READABLE, 0o644), (WRITABLE, 0o666), (PROGRAM, 0o777)] {
            fs::write(at(name), "of no value\n")?;
            set_mode(at(name), mode)?;
        }
        fs::create_dir(at(HOME))?;
        fs::create_dir(at(OPEN))?;
        set_mode(at(OPEN), 0o777)?;
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
        set_mode(at(STREAM), 0o777)?;
        set_mode(at(DATAGRAM), 0o777)?;
        let tcp = bind_unassigned(TcpListener::bind)?;
        let (victim_stdin, victim) = victim()?;
        let inherited = File::open(at(READABLE))?;
        fcntl(&inherited, FcntlArg::F_SETFD(FdFlag::empty()))?;
        set_mode(directory.path().to_owned(), 0o755)?;
        Ok(Self {
            abstract_stream,
            abstract_datagram,
            tcp: tcp.local_addr()?,
            udp: start_echo()?,
            victim,
            _victim: victim_stdin,
            _streams: streams,
            _datagrams: datagrams,
            _tcp: tcp,
            _inherited: inherited,
            directory,
        })
    }

    /// Texts of targets, as arguments of the hostile client.
    pub(super) fn texts(&self, aims: &[Aim]) -> Vec<OsString> {
        aims.iter().map(|aim| self.text(*aim)).collect()
    }

    /// Text of a target; empty for a target that only the canary has.
    fn text(&self, aim: Aim) -> OsString {
        let at = |name: &str| self.directory.path().join(name).into_os_string();
        match aim {
            Aim::Word(word) => word.into(),
            Aim::AbstractStream => format!("@{}", self.abstract_stream).into(),
            Aim::AbstractDatagram => format!("@{}", self.abstract_datagram).into(),
            Aim::StreamSocket => at(STREAM),
            Aim::DatagramSocket => at(DATAGRAM),
            Aim::TcpListener => self.tcp.to_string().into(),
            Aim::UdpListener => self.udp.to_string().into(),
            Aim::Victim => self.victim.to_string().into(),
            Aim::VictimDirectory => format!("/proc/{}/", self.victim).into(),
            Aim::Init => "1".into(),
            Aim::InitDirectory => "/proc/1/".into(),
            Aim::Supervisor => std::process::id().to_string().into(),
            Aim::Directory => at(OPEN),
            Aim::ReadableFile => at(READABLE),
            Aim::WritableFile => at(WRITABLE),
            Aim::ProgramFile => at(PROGRAM),
            Aim::InsideSocket | Aim::ClosedDirectory | Aim::UnruledFile | Aim::NewFile => {
                OsString::new()
            }
        }
    }

    /// Makes the twin of an attempt outside the sandbox.
    pub(super) fn twin(&self, name: &str, probe: &Probe) -> Said {
        hostile::twin(name, &self.texts(probe.outside), |command| {
            command.env("HOME", self.directory.path().join(HOME));
            command.stdin(Stdio::null()).stderr(Stdio::null());
        })
    }
}

/// Starts a waiting process that is not our child, because the runner waits for all of its children.
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

/// Ports below the range from which Linux assigns ports (32768 to 60999, ip(7)). The stub inside and sockets of
/// attempts have assigned ports, so a target never has the same port as one of them.
const UNASSIGNED_PORTS: Range<u16> = 20_000..32_768;

/// Binds at the first free port of the range.
fn bind_unassigned<S>(bind: impl Fn((Ipv4Addr, u16)) -> io::Result<S>) -> io::Result<S> {
    UNASSIGNED_PORTS
        .map(|port| bind((Ipv4Addr::LOCALHOST, port)))
        .find(|bound| !matches!(bound, Err(error) if error.kind() == io::ErrorKind::AddrInUse))
        .unwrap_or_else(|| Err(io::ErrorKind::AddrInUse.into()))
}

/// Starts a thread that sends each datagram back. The thread ends with the process.
fn start_echo() -> io::Result<SocketAddr> {
    let socket = bind_unassigned(UdpSocket::bind)?;
    let address = socket.local_addr()?;
    let echo = move || {
        let mut buffer = [0; 64];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            // The sender may have closed its socket.
            let _ = socket.send_to(buffer.get(..length).unwrap_or_default(), from);
        }
    };
    let thread = thread::Builder::new().name("echo".to_owned());
    thread.spawn(echo)?;
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_port_that_nothing_inside_is_given() {
        let taken = bind_unassigned(TcpListener::bind).unwrap();
        let next = bind_unassigned(TcpListener::bind).unwrap();
        let ports = [taken, next].map(|listener| listener.local_addr().unwrap().port());
        assert_ne!(ports[0], ports[1]);
        for port in ports.into_iter().chain([start_echo().unwrap().port()]) {
            assert!(UNASSIGNED_PORTS.contains(&port), "{port}");
        }
    }

    #[test]
    fn what_else_than_a_taken_port_stands_in_the_way_is_said() {
        let refused = bind_unassigned(|_| Err::<(), _>(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let full = bind_unassigned(|_| Err::<(), _>(io::ErrorKind::AddrInUse.into()));
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
