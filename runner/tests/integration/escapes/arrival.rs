//! Attempts by code of its own, judged outside: by bytes that arrive, files that change, and processes that end. A fault
//! of the table of probes cannot hide here.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::attempt::{EVERY_DEVICE, outside, said, with_attempts};
use crate::inherited::CONTAINER;
use crate::kit::{Run, fixture};
use crate::needs_sandbox;

/// Objects outside, all open to every user.
struct World {
    directory: TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
    named: UnixListener,
    name: String,
    process: Child,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |name: &str| directory.path().join(name);
        let name = format!("runner-test-{}", at("").display());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        // Below the ephemeral ports: the stub inside could have the same number.
        let mut ports = 20_000..32_768;
        let tcp = ports.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
        let mut waiting = Command::new(fixture("hostile-client"));
        waiting.args(["--attempt", "sleep"]).stderr(Stdio::null());
        let world = Self {
            tcp: tcp.unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            stream: UnixListener::bind(at("stream")).unwrap(),
            datagram: UnixDatagram::bind(at("datagram")).unwrap(),
            named: UnixListener::bind_addr(&address).unwrap(),
            name,
            process: waiting.spawn().unwrap(),
            directory,
        };
        world.tcp.set_nonblocking(true).unwrap();
        world.udp.set_nonblocking(true).unwrap();
        world.stream.set_nonblocking(true).unwrap();
        world.datagram.set_nonblocking(true).unwrap();
        world.named.set_nonblocking(true).unwrap();
        fs::write(world.file(), "x").unwrap();
        let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777));
        for name in ["", "file", "stream", "datagram"] {
            open(&world.directory.path().join(name)).unwrap();
        }
        world
    }

    fn file(&self) -> std::path::PathBuf {
        self.directory.path().join("file")
    }

    /// Each attempt, with its arrivals.
    fn attempts(&self) -> Vec<(String, &'static str)> {
        let [tcp, udp] = [self.tcp.local_addr(), self.udp.local_addr()];
        let (tcp, udp) = (tcp.unwrap().port(), udp.unwrap().port());
        let path = self.directory.path().display();
        let pid = self.process.id();
        vec![
            (format!("tcp 127.0.0.1:{tcp}"), "tcp"),
            (format!("tcp 0.0.0.0:{tcp}"), "tcp"),
            (format!("tcp [::ffff:127.0.0.1]:{tcp}"), "tcp"),
            (format!("udp 127.0.0.1:{udp}"), "udp"),
            (format!("unix-connect {path}/stream"), "stream"),
            (format!("unix-sendto {path}/datagram"), "datagram"),
            (format!("unix-sendmsg {path}/datagram"), "datagram"),
            (format!("abstract-connect {}", self.name), "abstract"),
            (format!("write {path}/file y"), "file"),
            (format!("create {path}/new"), "new"),
            (format!("signal-by-descriptor {pid} 0"), ""),
            (format!("signal {pid} 9"), "killed"),
        ]
    }

    /// Names of the arrivals since the last call.
    fn arrived(&mut self) -> Vec<&'static str> {
        fn count<T>(take: impl Fn() -> std::io::Result<T>) -> usize {
            let taken = std::iter::repeat_with(take).map_while(|taken| match taken {
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                taken => Some(taken.unwrap()),
            });
            taken.count()
        }
        let buffer = || [0; 16];
        let mut arrived = Vec::new();
        let mut add = |name, number| arrived.extend(std::iter::repeat_n(name, number));
        add("tcp", count(|| self.tcp.accept()));
        add("udp", count(|| self.udp.recv(&mut buffer())));
        add("stream", count(|| self.stream.accept()));
        add("datagram", count(|| self.datagram.recv(&mut buffer())));
        add("abstract", count(|| self.named.accept()));
        let changed = fs::read_to_string(self.file()).unwrap() != "x";
        add("file", usize::from(changed));
        add(
            "new",
            usize::from(self.directory.path().join("new").exists()),
        );
        let ended = self.process.try_wait().unwrap().is_some();
        add("killed", usize::from(ended));
        arrived
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn nothing_arrives_outside() {
    needs_sandbox!();
    let mut world = World::new();
    let attempts = world.attempts();
    let words: Vec<&str> = attempts.iter().map(|(words, _)| words.as_str()).collect();
    for run in [
        Run::case_b(),
        Run::case_b().as_ordinary_user(),
        Run::case_b().on_a_host_without(CONTAINER),
    ] {
        let run = with_attempts(run.with_devices(EVERY_DEVICE), &words);
        // A datagram has no answer.
        let made = said(&run.json(), &words);
        let through = made
            .iter()
            .zip(&words)
            .filter(|(made, _)| made.outcome == "ok");
        assert!(
            through
                .into_iter()
                .all(|(_, words)| words.starts_with("udp "))
        );
        assert_eq!(world.arrived(), [""; 0]);
    }
    for words in &words {
        assert_eq!(outside(words).outcome, "ok", "{words}");
    }
    let expected = attempts.iter().map(|(_, arrival)| *arrival);
    let expected = Vec::from_iter(expected.filter(|arrival| !arrival.is_empty()));
    crate::teardown::watch::until("the end of the process", || {
        let ended = world.process.try_wait().unwrap();
        ended.map(drop)
    });
    assert_eq!(world.arrived(), expected);
}
