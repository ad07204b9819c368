//! Probes by the network: packets to other hosts, other listeners on loopback, an address that changes after the
//! supervisor has read it, and changes of links.

use std::ffi::OsString;
use std::io::IoSlice;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn,
    SockaddrStorage, connect, getpeername, listen, send as send_connected, sendmsg, sendto,
    setsockopt, socket, socketpair, sockopt,
};
use sys::attempt::{SharedAddress, connect_shared};
use sys::errno_of;
use sys::test_network;

use crate::probe::{
    Aim::{self, Word},
    Call, Class, Layer, LedgerEntry, Probe, Refusal, SHARED, TwinEnv, by, class, word,
};
use crate::twin_env::NOWHERE_4;

const NO_ROUTE: &[Refusal] = &[by(Layer::Supervisor, Errno::ENETUNREACH)];
const NO_SOCKET: &[Refusal] = &[by(Layer::Supervisor, Errno::EACCES)];
const NO_FLAG: &[Refusal] = &[by(Layer::Supervisor, Errno::EOPNOTSUPP)];
const NOBODY: &[Refusal] = &[by(Layer::NetworkNamespace, Errno::ECONNREFUSED)];

const fn tcp(name: &'static str, aims: &'static [Aim]) -> Probe {
    Probe::new(name, connect_to)
        .at(aims)
        .twin_in(TwinEnv::FakeInternet)
        .blocked(NO_ROUTE, LedgerEntry::To("connect"))
}

const fn udp(name: &'static str, aims: &'static [Aim], family: &'static str) -> Probe {
    Probe::new(name, send_to)
        .at(aims)
        .twin_in(TwinEnv::FakeInternet)
        .blocked(NO_ROUTE, LedgerEntry::To("sendto"))
        .inherited(NO_SOCKET, LedgerEntry::Socket(family, "dgram"))
}

const ANY_IPV6: Call = Call::Function(|_| datagram(AddressFamily::Inet6).map(|_| String::new()));

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    class("network/tcp", "connecting to other machines", &[
        tcp("ipv4", &[Word("192.0.2.1:443")]).canary_in_both_modes("tcp4"),
        tcp("ipv6", &[Word("[2001:db8::1]:443")]).canary_in_both_modes("tcp6").outside_by(ANY_IPV6),
        tcp("mapped", &[Word("[::ffff:192.0.2.1]:443")]),
        // MSG_FASTOPEN opens a connection that Landlock does not check.
        Probe::new("fast-open", open_fast).at(&[Word("192.0.2.1:443")]).twin_in(TwinEnv::FakeInternet)
            .blocked(NO_ROUTE, LedgerEntry::To("sendto"))
            .inherited(NO_FLAG, LedgerEntry::To("sendto"))
            .canary("fast-open", SHARED),
    ]),
    class("network/udp", "datagrams to other machines", &[
        udp("ipv4", &[Word("192.0.2.1:443")], "inet").canary_in_both_modes("udp4"),
        udp("ipv6", &[Word("[2001:db8::1]:443")], "inet6").canary_in_both_modes("udp6").outside_by(ANY_IPV6),
        udp("mapped", &[Word("[::ffff:192.0.2.1]:443")], "inet6"),
        udp("metadata", &[Word("169.254.169.254:80")], "inet"),
    ]),
    class("network/everybody", "broadcast and multicast", &[
        udp("broadcast", &[Word("255.255.255.255:443")], "inet").canary_in_both_modes("broadcast"),
        udp("multicast", &[Word("224.0.0.251:5353")], "inet").canary_in_both_modes("multicast"),
        udp("multicast-ipv6", &[Word("[ff02::fb]:5353")], "inet6"),
    ]),
    class("network/neighbours", "other programs on this machine's loopback", &[
        Probe::new("tcp", connect_to).at(&[Aim::TcpListener])
            .blocked(NOBODY, LedgerEntry::To("connect"))
            .inherited(NO_SOCKET, LedgerEntry::To("connect")),
        Probe::new("udp", ask).at(&[Aim::UdpListener])
            .blocked(NOBODY, LedgerEntry::To("connect"))
            .inherited(NO_SOCKET, LedgerEntry::Socket("inet", "dgram")),
    ]),
    class("network/changing-address", "an address that another thread changes after the supervisor has read it", &[
        Probe::new("tcp", race).at(&[Word("192.0.2.1:443")]).twin_in(TwinEnv::FakeInternet)
            .blocked(&[by(Layer::NetworkNamespace, Errno::ENETUNREACH)], LedgerEntry::To("connect"))
            .inherited(NO_ROUTE, LedgerEntry::To("connect")),
    ]),
    class("network/links", "changing the addresses of a link", &[
        Probe::new("address", change_link).twin_in(TwinEnv::OwnNamespaces)
            .blocked(&[by(Layer::Capabilities, Errno::EPERM)], LedgerEntry::None)
            .inherited(NO_SOCKET, LedgerEntry::Socket("inet", "dgram")),
    ]),
    class("network/listeners", "serving other programs of this machine", &[
        Probe::new("tcp", listen_anywhere)
            .inherited(NO_SOCKET, LedgerEntry::Call("listen"))
            .canary("listener", SHARED).same_outside(),
    ]),
];

/// Classes of the group `sockets`.
#[rustfmt::skip]
pub(super) const SOCKETS: &[Class] = &[
    class("sockets/forced-link", "datagrams to other machines, forced onto loopback", &[
        // IP_PKTINFO makes the kernel treat every address as local to that link.
        Probe::new("through-lo", send_through_lo).at(&[Word("192.0.2.1:443")]).twin_in(TwinEnv::OwnNamespaces)
            .blocked(NO_ROUTE, LedgerEntry::To("sendmsg"))
            .inherited(NO_SOCKET, LedgerEntry::Socket("inet", "dgram")),
        Probe::new("bound-to-lo", send_bound_to_lo).at(&[Word("192.0.2.1:443")]).twin_in(TwinEnv::OwnNamespaces)
            .blocked(&[by(Layer::Supervisor, Errno::ENOPROTOOPT)], LedgerEntry::Call("setsockopt"))
            .inherited(NO_SOCKET, LedgerEntry::Socket("inet", "dgram")),
    ]),
    class("sockets/urgent-bytes", "bytes whose position carries information (MSG_OOB)", &[
        Probe::new("unix", send_urgent).at(&[Word("MSG_OOB")]).blocked(NO_FLAG, LedgerEntry::To("sendto")),
    ]),
];

/// First target as an address.
fn target(aims: &[OsString]) -> Result<SocketAddr, Errno> {
    word(aims, 0)?.parse().map_err(|_| Errno::EDESTADDRREQ)
}

fn fresh(kind: SockType, to: SocketAddr, protocol: Option<SockProtocol>) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    socket(family, kind, SockFlag::SOCK_CLOEXEC, protocol)
}

fn datagram(family: AddressFamily) -> Result<OwnedFd, Errno> {
    socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
}

pub(super) fn connect_to(aims: &[OsString]) -> Result<String, Errno> {
    let to = target(aims)?;
    let socket = fresh(SockType::Stream, to, None)?;
    connect(socket.as_raw_fd(), &SockaddrStorage::from(to)).map(|()| to.to_string())
}

fn send_to(aims: &[OsString]) -> Result<String, Errno> {
    send(aims, b"selftest")
}

/// Second target of a datagram probe: the socket names its protocol.
pub(crate) const MARK: &str = "named-protocol";

pub(super) fn send(aims: &[OsString], payload: &[u8]) -> Result<String, Errno> {
    let to = target(aims)?;
    let is_marked = word(aims, 1) == Ok(MARK);
    let protocol = is_marked.then_some(SockProtocol::Udp);
    let socket = fresh(SockType::Datagram, to, protocol)?;
    setsockopt(&socket, sockopt::Broadcast, &true)?;
    let to_kernel = SockaddrStorage::from(to);
    sendto(socket.as_raw_fd(), payload, &to_kernel, MsgFlags::empty()).map(|_| to.to_string())
}

fn open_fast(aims: &[OsString]) -> Result<String, Errno> {
    let to = target(aims)?;
    let socket = fresh(SockType::Stream, to, None)?;
    let flags = MsgFlags::from_bits_retain(libc::MSG_FASTOPEN);
    let address = SockaddrStorage::from(to);
    sendto(socket.as_raw_fd(), b"probe", &address, flags).map(|_| to.to_string())
}

fn send_through_lo(aims: &[OsString]) -> Result<String, Errno> {
    let to = target(aims)?;
    let source = libc::in_pktinfo {
        // `lo` is the first device of every network namespace.
        ipi_ifindex: 1,
        ipi_spec_dst: libc::in_addr { s_addr: 0 },
        ipi_addr: libc::in_addr { s_addr: 0 },
    };
    let socket = datagram(AddressFamily::Inet)?;
    let (slices, address) = ([IoSlice::new(b"probe")], SockaddrStorage::from(to));
    let control = [ControlMessage::Ipv4PacketInfo(&source)];
    let flags = MsgFlags::empty();
    sendmsg(socket.as_raw_fd(), &slices, &control, flags, Some(&address)).map(|_| to.to_string())
}

fn send_bound_to_lo(aims: &[OsString]) -> Result<String, Errno> {
    let to = target(aims)?;
    let socket = datagram(AddressFamily::Inet)?;
    setsockopt(&socket, sockopt::BindToDevice, &OsString::from("lo"))?;
    let address = SockaddrStorage::from(to);
    sendto(socket.as_raw_fd(), b"probe", &address, MsgFlags::empty()).map(|_| to.to_string())
}

/// Listens on an unbound socket, to which listen(2) gives a free port.
fn listen_anywhere(_: &[OsString]) -> Result<String, Errno> {
    let (family, kind) = (AddressFamily::Inet, SockType::Stream);
    let socket = socket(family, kind, SockFlag::SOCK_CLOEXEC, None)?;
    listen(&socket, Backlog::new(1)?).map(|()| String::new())
}

fn send_urgent(_: &[OsString]) -> Result<String, Errno> {
    let (kind, flags) = (SockType::Stream, SockFlag::SOCK_CLOEXEC);
    let (one, _other) = socketpair(AddressFamily::Unix, kind, None, flags)?;
    send_connected(one.as_raw_fd(), b"!", MsgFlags::MSG_OOB).map(|_| String::new())
}

/// Sends a datagram and waits for its answer. A closed port fails the next call.
fn ask(aims: &[OsString]) -> Result<String, Errno> {
    let to = target(aims)?;
    let ask = || {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        socket.connect(to)?;
        socket.send(b"selftest")?;
        socket.recv(&mut [0; 16])
    };
    ask().map(|_| to.to_string()).map_err(errno_of)
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
fn race(aims: &[OsString]) -> Result<String, Errno> {
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
        let socket = fresh(SockType::Stream, target.into(), None)?;
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

fn change_link(_: &[OsString]) -> Result<String, Errno> {
    let socket = datagram(AddressFamily::Inet)?;
    test_network::set_address(socket, "lo:2", [192, 0, 2, 2].into()).map(|()| String::new())
}
