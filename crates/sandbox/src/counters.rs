//! Kernel counters of the traffic in the client's network namespace.
//!
//! The supervisor can miss traffic in two ways. A connected datagram socket sends without an address, and a client may
//! change an address in memory after the supervisor has read it. These counters include both cases (net/ipv4/proc.c,
//! net/ipv6/proc.c), and the client cannot reset them.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use super::proc::Proc;

/// Maximum size of a read file, in bytes; both files have about 3 KiB.
const MAX_TEXT: usize = 16 * 1024;

/// Values of the counters, or their growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets and connections without a route: one for each connect(2) or send beyond loopback.
    pub unrouted: u64,
    /// TCP connections opened, refused ones included.
    pub connections: u64,
    /// UDP datagrams sent.
    pub datagrams: u64,
}

/// Open files of the counters, which stay readable after the end of every process of the namespace.
#[derive(Debug)]
pub struct Counters {
    /// File /proc/net/snmp: IPv4, and TCP over both families.
    snmp: File,
    /// File /proc/net/snmp6; `None` for a kernel without IPv6.
    snmp6: Option<File>,
    start: Counts,
}

/// Opens the files of the caller's network namespace, for [`Counters::new`]; an empty list if one cannot be opened.
///
/// The runner outside may not be able to open them (hidepid in proc(5)).
pub(super) fn open(proc: &Proc) -> Vec<OwnedFd> {
    let open = |name| {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        openat(proc.directory(), name, flags, Mode::empty())
    };
    match (open("self/net/snmp"), open("self/net/snmp6")) {
        (Ok(snmp), Ok(snmp6)) => vec![snmp, snmp6],
        (Ok(snmp), Err(Errno::ENOENT)) => vec![snmp],
        (Ok(_), Err(_)) | (Err(_), _) => Vec::new(),
    }
}

impl Counters {
    /// Takes the files of both families; `None` without the first one.
    pub fn new(mut files: impl Iterator<Item = OwnedFd>) -> Option<Self> {
        Some(Self {
            snmp: files.next()?.into(),
            snmp6: files.next().map(File::from),
            start: Counts::default(),
        })
    }

    /// Reads the counters as the base of [`growth`](Self::growth).
    ///
    /// # Errors
    /// The error of read(2); `InvalidData` for a missing counter.
    pub fn start(&mut self) -> io::Result<()> {
        self.start = self.now()?;
        Ok(())
    }

    /// Computes the growth since the start.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn growth(&self) -> io::Result<Counts> {
        let now = self.now()?;
        Ok(Counts {
            unrouted: now.unrouted.saturating_sub(self.start.unrouted),
            connections: now.connections.saturating_sub(self.start.connections),
            datagrams: now.datagrams.saturating_sub(self.start.datagrams),
        })
    }

    fn now(&self) -> io::Result<Counts> {
        let snmp = text(&self.snmp)?;
        let snmp6 = self.snmp6.as_ref().map(text).transpose()?;
        counts(&snmp, snmp6.as_deref()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn text(file: &File) -> io::Result<String> {
    let mut bytes = vec![0; MAX_TEXT];
    let mut length = 0;
    loop {
        let rest = bytes.get_mut(length..).unwrap_or_default();
        match file.read_at(rest, length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Adds the counters of both families. A missing UDP-Lite counter is 0, because the kernel lacks the protocol.
fn counts(snmp: &str, snmp6: Option<&str>) -> Option<Counts> {
    let v4 = |protocol, counter| in_snmp(snmp, protocol, counter);
    let mut counts = Counts {
        unrouted: v4("Ip:", "OutNoRoutes")?,
        connections: v4("Tcp:", "ActiveOpens")?,
        datagrams: v4("Udp:", "OutDatagrams")? + v4("UdpLite:", "OutDatagrams").unwrap_or(0),
    };
    if let Some(snmp6) = snmp6 {
        let v6 = |counter| in_snmp6(snmp6, counter);
        counts.unrouted += v6("Ip6OutNoRoutes")?;
        counts.datagrams += v6("Udp6OutDatagrams")? + v6("UdpLite6OutDatagrams").unwrap_or(0);
    }
    Some(counts)
}

/// Finds a counter in snmp, which has two lines for each protocol: names, then values.
fn in_snmp(snmp: &str, protocol: &str, counter: &str) -> Option<u64> {
    let mut lines = snmp
        .lines()
        .filter(|line| line.split(' ').next() == Some(protocol))
        .map(|line| line.split(' '));
    let (mut names, values) = (lines.next()?, lines.next()?);
    let at = names.position(|name| name == counter)?;
    values.into_iter().nth(at)?.parse().ok()
}

fn in_snmp6(snmp6: &str, counter: &str) -> Option<u64> {
    let mut lines = snmp6.lines().map(str::split_whitespace);
    let mut line = lines.find(|line| line.clone().next() == Some(counter))?;
    line.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    const SNMP: &str = "Ip: Forwarding OutNoRoutes\nIp: 1 2\nTcp: MaxConn ActiveOpens\nTcp: -1 30\n\
        Udp: InDatagrams OutDatagrams\nUdp: 9 400\n";
    const SNMP6: &str = "Ip6OutNoRoutes                  \t5000\nUdp6OutDatagrams   \t60000\n";

    #[test]
    fn counters_of_both_families_are_added() {
        let both = Counts {
            unrouted: 5_002,
            connections: 30,
            datagrams: 60_400,
        };
        assert_eq!(counts(SNMP, Some(SNMP6)), Some(both));
        let v4 = Counts {
            unrouted: 2,
            connections: 30,
            datagrams: 400,
        };
        assert_eq!(counts(SNMP, None), Some(v4));
        let lite = format!("{SNMP}UdpLite: OutDatagrams\nUdpLite: 1\n");
        assert_eq!(counts(&lite, None).unwrap().datagrams, 401);
    }

    #[test]
    fn missing_counter_is_an_error() {
        for missing in ["OutNoRoutes", "ActiveOpens", "OutDatagrams", "Udp: 9 400\n"] {
            assert_eq!(counts(&SNMP.replace(missing, ""), None), None, "{missing}");
        }
        assert_eq!(counts(SNMP, Some("Ip6OutNoRoutes 1\n")), None);
    }

    /// Tests only a lower bound of the growth, because other processes may use this network.
    #[test]
    fn connections_and_datagrams_are_counted() {
        let files = open(&Proc::open().unwrap());
        let mut counters = Counters::new(files.into_iter()).unwrap();
        counters.start().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        drop(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        socket.send(b"x").unwrap();
        let growth = counters.growth().unwrap();
        assert!(
            growth.connections >= 1 && growth.datagrams >= 1,
            "{growth:?}"
        );
    }
}
