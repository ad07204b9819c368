//! Ways out by the network: packets to anywhere, neighbours on loopback, an address that changes under the
//! supervisor's eyes, and the links themselves.

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

use super::class::{Aim, Attempt, Class, Layer, LedgerEntry, Refusal, Surroundings, by};
use super::errno;
use super::surroundings::NOWHERE_4;

const NO_ROUTE: &[Refusal] = &[by(Layer::Supervisor, Errno::ENETUNREACH)];
const NO_SOCKET: &[Refusal] = &[by(Layer::Supervisor, Errno::EACCES)];

const fn tcp(name: &'static str, aims: &'static [Aim]) -> Attempt {
    Attempt::new(name, connect_to)
        .at(aims)
        .twin_in(Surroundings::World)
        .blocked(NO_ROUTE, LedgerEntry::To("connect"))
}

const fn udp(name: &'static str, aims: &'static [Aim], family: &'static str) -> Attempt {
    Attempt::new(name, send_to)
        .at(aims)
        .twin_in(Surroundings::World)
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
        about: "an address that another thread changes after the supervisor's look",
        attempts: &[Attempt::new("tcp", race)
            .at(&[Aim::Word("192.0.2.1:443")])
            .twin_in(Surroundings::World)
            .blocked(
                &[by(Layer::NetworkNamespace, Errno::ENETUNREACH)],
                LedgerEntry::To("connect"),
            )
            .inherited(NO_ROUTE, LedgerEntry::To("connect"))],
    },
    Class {
        id: "network/links",
        about: "addresses of a link changed",
        attempts: &[Attempt::new("address", change_link)
            .twin_in(Surroundings::OwnNamespaces)
            .blocked(&[by(Layer::Capabilities, Errno::EPERM)], LedgerEntry::None)
            .inherited(NO_SOCKET, LedgerEntry::Socket("inet", "dgram"))],
    },
];

/// The first word as an address.
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

/// A datagram, and its answer: where nobody has the port the kernel says so on the next call.
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

/// Connections tried while the address changes: at least so many, and at most so many until both addresses were met.
const ROUNDS: usize = 400;
const MOST_ROUNDS: usize = 20_000;

/// Reads and writes of the racing thread.
static ADDRESS: SharedAddress = SharedAddress::new();
static OVER: AtomicBool = AtomicBool::new(false);

/// Connects over and over to an address that is now an unused port of loopback and now the target. What is refused at
/// the look is refused with one errno, what is let through by a lie with another; only an arrival is a way out.
fn race(aims: &[String]) -> Result<String, Errno> {
    let SocketAddr::V4(target) = target(aims)? else {
        return Err(Errno::EDESTADDRREQ);
    };
    // Nobody listens at port 1 of an address of loopback that nobody uses.
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
    for round in 0..MOST_ROUNDS {
        if round >= ROUNDS && refused.is_some() && decoyed {
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
            // The decoy: nobody is there, or it is none of the client's business.
            Err(Errno::ECONNREFUSED | Errno::EACCES) => decoyed = true,
            Err(errno) if refused.is_none_or(|known| known == errno) => refused = Some(errno),
            Err(_) => return Err(Errno::EPROTO),
        }
    }
    // Without both there was no race.
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
