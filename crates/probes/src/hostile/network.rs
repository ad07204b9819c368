//! Attempts by the network: packets to other hosts, other listeners on loopback, an address that changes after the
//! supervisor has read it, and changes of links.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, SockaddrStorage, connect, getpeername,
    sendto, setsockopt, socket, sockopt,
};
use sys::attempt::{SharedAddress, connect_shared};
use sys::test_network;

use super::class::{Aim, Attempt, Class, Layer, LedgerEntry, Refusal, TwinEnv, by};
use super::errno;
use super::twin_env::NOWHERE_4;

const NO_ROUTE: &[Refusal] = &[by(Layer::Supervisor, Errno::ENETUNREACH)];
const NO_SOCKET: &[Refusal] = &[by(Layer::Supervisor, Errno::EACCES)];

const fn tcp(name: &'static str, aims: &'static [Aim]) -> Attempt {
    Attempt::new(name, connect_to)
        .at(aims)
        .twin_in(TwinEnv::FakeInternet)
        .blocked(NO_ROUTE, LedgerEntry::To("connect"))
}

const fn udp(name: &'static str, aims: &'static [Aim], family: &'static str) -> Attempt {
    Attempt::new(name, send_to)
        .at(aims)
        .twin_in(TwinEnv::FakeInternet)
        .blocked(NO_ROUTE, LedgerEntry::To("sendto"))
        .inherited(NO_SOCKET, LedgerEntry::Socket(family, "dgram"))
}

pub(super) const CLASSES: &[Class] = &[
    Class {
        id: "network/tcp",
        about: "connecting to other machines",
        attempts: &[
            tcp("ipv4", &[Aim::Word("192.0.2.1:443")]),
            tcp("ipv6", &[Aim::Word("[2001:db8::1]:443")]),
            tcp("mapped", &[Aim::Word("[::ffff:192.0.2.1]:443")]),
        ],
    },
    Class {
        id: "network/udp",
        about: "datagrams to other machines",
        attempts: &[
            udp("ipv4", &[Aim::Word("192.0.2.1:443")], "inet"),
            udp("ipv6", &[Aim::Word("[2001:db8::1]:443")], "inet6"),
        ],
    },
    Class {
        id: "network/everybody",
        about: "broadcast and multicast",
        attempts: &[
            udp("broadcast", &[Aim::Word("255.255.255.255:443")], "inet"),
            udp("multicast", &[Aim::Word("224.0.0.251:5353")], "inet"),
            udp("multicast-ipv6", &[Aim::Word("[ff02::fb]:5353")], "inet6"),
        ],
    },
    Class {
        id: "network/neighbours",
        about: "other programs on this machine's loopback",
        attempts: &[
            Attempt::new("tcp", connect_to)
                .at(&[Aim::TcpListener])
                .blocked(
                    &[by(Layer::NetworkNamespace, Errno::ECONNREFUSED)],
                    LedgerEntry::To("connect"),
                )
                .inherited(NO_SOCKET, LedgerEntry::To("connect")),
            Attempt::new("udp", ask)
                .at(&[Aim::UdpListener])
                .blocked(
                    &[by(Layer::NetworkNamespace, Errno::ECONNREFUSED)],
                    LedgerEntry::To("connect"),
                )
                .inherited(NO_SOCKET, LedgerEntry::Socket("inet", "dgram")),
        ],
    },
    Class {
        id: "network/changing-address",
        about: "an address that another thread changes after the supervisor has read it",
        attempts: &[Attempt::new("tcp", race)
            .at(&[Aim::Word("192.0.2.1:443")])
            .twin_in(TwinEnv::FakeInternet)
            .blocked(
                &[by(Layer::NetworkNamespace, Errno::ENETUNREACH)],
                LedgerEntry::To("connect"),
            )
            .inherited(NO_ROUTE, LedgerEntry::To("connect"))],
    },
    Class {
        id: "network/links",
        about: "changing the addresses of a link",
        attempts: &[Attempt::new("address", change_link)
            .twin_in(TwinEnv::OwnNamespaces)
            .blocked(&[by(Layer::Capabilities, Errno::EPERM)], LedgerEntry::None)
            .inherited(NO_SOCKET, LedgerEntry::Socket("inet", "dgram"))],
    },
];

/// First target as an address.
pub(super) fn target(aims: &[String]) -> Result<SocketAddr, Errno> {
    let word = aims.first().ok_or(Errno::EDESTADDRREQ)?;
    word.parse().map_err(|_| Errno::EDESTADDRREQ)
}

pub(super) fn fresh(kind: SockType, to: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    socket(family, kind, SockFlag::SOCK_CLOEXEC, None)
}

pub(super) fn connect_to(aims: &[String]) -> Result<String, Errno> {
    let to = target(aims)?;
    let socket = fresh(SockType::Stream, to)?;
    connect(socket.as_raw_fd(), &SockaddrStorage::from(to)).map(|()| to.to_string())
}

fn send_to(aims: &[String]) -> Result<String, Errno> {
    send(aims, b"selftest")
}

pub(super) fn send(aims: &[String], payload: &[u8]) -> Result<String, Errno> {
    let to = target(aims)?;
    let socket = fresh(SockType::Datagram, to)?;
    setsockopt(&socket, sockopt::Broadcast, &true)?;
    let to_kernel = SockaddrStorage::from(to);
    sendto(socket.as_raw_fd(), payload, &to_kernel, MsgFlags::empty()).map(|_| to.to_string())
}

/// Sends a datagram and waits for its answer. A closed port fails the next call.
fn ask(aims: &[String]) -> Result<String, Errno> {
    let to = target(aims)?;
    let ask = || {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        socket.connect(to)?;
        socket.send(b"selftest")?;
        socket.recv(&mut [0; 16])
    };
    ask().map(|_| to.to_string()).map_err(errno)
}

/// Connections while the address changes: at least the first number, and at most the second until both addresses were
/// seen.
const MIN_ROUNDS: usize = 400;
const MAX_ROUNDS: usize = 20_000;

/// Address that the racing thread changes.
static ADDRESS: SharedAddress = SharedAddress::any();
/// End of the race.
static OVER: AtomicBool = AtomicBool::new(false);

/// Connects repeatedly to an address that alternates between an unused port of loopback and the target. The supervisor
/// refuses the target with one errno. A call that it misread gets another errno from the kernel. Only a connection to
/// the target is an escape.
fn race(aims: &[String]) -> Result<String, Errno> {
    let SocketAddr::V4(target) = target(aims)? else {
        return Err(Errno::EDESTADDRREQ);
    };
    // Unused loopback address without a listener.
    let decoy = SocketAddrV4::new([127, 0, 0, 66].into(), 1);
    ADDRESS.set(decoy);
    let flipping = thread::spawn(move || {
        while !OVER.load(Ordering::Relaxed) {
            ADDRESS.set(target);
            ADDRESS.set(decoy);
        }
    });
    let raced = connect_many(target);
    OVER.store(true, Ordering::Relaxed);
    let _ = flipping.join();
    raced
}

fn connect_many(target: SocketAddrV4) -> Result<String, Errno> {
    let (mut refused, mut decoyed) = (None, false);
    for round in 0..MAX_ROUNDS {
        if round >= MIN_ROUNDS && refused.is_some() && decoyed {
            break;
        }
        let socket = fresh(SockType::Stream, target.into())?;
        match connect_shared(&socket, &ADDRESS) {
            Ok(()) => {
                let peer: SockaddrIn = getpeername(socket.as_raw_fd())?;
                if peer.ip() == NOWHERE_4 {
                    return Ok(target.to_string());
                }
            }
            // The decoy: refused by the kernel, or by the supervisor in a container's network.
            Err(Errno::ECONNREFUSED | Errno::EACCES) => decoyed = true,
            Err(errno) if refused.is_none_or(|known| known == errno) => refused = Some(errno),
            Err(_) => return Err(Errno::EPROTO),
        }
    }
    // The race needs both results.
    refused.filter(|_| decoyed).map_or(Err(Errno::EAGAIN), Err)
}

fn change_link(_: &[String]) -> Result<String, Errno> {
    let socket = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    test_network::set_address(socket, "lo:2", [192, 0, 2, 2].into()).map(|()| String::new())
}
