//! Attempts by sockets: sockets of other programs, and families, types and protocols that bypass a network namespace or
//! a rule.

use std::io::IoSlice;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, sendmsg, sendto,
};
use sys::{attempt, probe_calls};

use super::class::{Aim, Attempt, Class, Layer, LedgerEntry, Refusal, TwinEnv, by};

#[cfg(target_arch = "x86_64")]
use super::class::KILLED;

const NO_FAMILY: &[Refusal] = &[by(Layer::Supervisor, Errno::EAFNOSUPPORT)];
const NO_PROTOCOL: &[Refusal] = &[by(Layer::Supervisor, Errno::EPROTONOSUPPORT)];
const NO_RIGHT: &[Refusal] = &[by(Layer::Supervisor, Errno::EPERM)];
pub(super) const NO_UNIX: &[Refusal] = &[by(Layer::Supervisor, Errno::EACCES)];
const NOBODY: &[Refusal] = &[by(Layer::NetworkNamespace, Errno::ECONNREFUSED)];
pub(super) const NO_PATH: &[Refusal] = &[by(Layer::OwnRoot, Errno::ENOENT)];

/// Attempt to make a socket by family, type and protocol, with a twin that has all capabilities.
const fn open(
    name: &'static str,
    aims: &'static [Aim],
    record: (&'static str, &'static str),
    refusals: &'static [Refusal],
) -> Attempt {
    Attempt::new(name, open_socket)
        .at(aims)
        .twin_in(TwinEnv::OwnNamespaces)
        .blocked(refusals, LedgerEntry::Socket(record.0, record.1))
}

const fn named(
    name: &'static str,
    make: super::class::Make,
    aims: &'static [Aim],
    refusals: &'static [Refusal],
    call: &'static str,
    kind: &'static str,
) -> Attempt {
    Attempt::new(name, make)
        .at(aims)
        .blocked(refusals, LedgerEntry::To(call))
        .inherited(NO_UNIX, LedgerEntry::Socket("unix", kind))
}

macro_rules! numbers {
    ($family:literal $kind:literal $protocol:literal) => {
        &[Aim::Word($family), Aim::Word($kind), Aim::Word($protocol)]
    };
}

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    Class {
        id: "sockets/abstract",
        about: "abstract unix sockets of other programs",
        attempts: &[
            named("stream", connect_unix, &[Aim::AbstractStream], NOBODY, "connect", "stream"),
            named("datagram", send_unix, &[Aim::AbstractDatagram], NOBODY, "sendto", "dgram"),
            named("message", send_message, &[Aim::AbstractDatagram], NOBODY, "sendmsg", "dgram"),
        ],
    },
    Class {
        id: "sockets/pathname",
        about: "unix sockets in a directory of this machine",
        attempts: &[
            named("stream", connect_unix, &[Aim::StreamSocket], NO_PATH, "connect", "stream"),
            named("datagram", send_unix, &[Aim::DatagramSocket], NO_PATH, "sendto", "dgram"),
            named("message", send_message, &[Aim::DatagramSocket], NO_PATH, "sendmsg", "dgram"),
        ],
    },
    Class {
        id: "sockets/raw",
        about: "raw IP packets",
        attempts: &[
            open("icmp", numbers!("2" "3" "1"), ("inet", "raw"), NO_RIGHT),
            open("any", numbers!("2" "3" "255"), ("inet", "raw"), NO_RIGHT),
            open("icmpv6", numbers!("10" "3" "58"), ("inet6", "raw"), NO_RIGHT),
        ],
    },
    Class {
        id: "sockets/packet",
        about: "frames on a link",
        attempts: &[
            open("raw", numbers!("17" "3" "0"), ("packet", "raw"), NO_FAMILY),
            open("datagram", numbers!("17" "2" "0"), ("packet", "dgram"), NO_FAMILY),
        ],
    },
    Class {
        id: "sockets/vsock",
        about: "the host of a virtual machine",
        attempts: &[open("stream", numbers!("40" "1" "0"), ("vsock", "stream"), NO_FAMILY)],
    },
    Class {
        id: "sockets/alg",
        about: "the kernel's ciphers",
        attempts: &[open("cipher", numbers!("38" "5" "0"), ("alg", "seqpacket"), NO_FAMILY)],
    },
    Class {
        id: "sockets/xdp",
        about: "a link's queues",
        attempts: &[open("raw", numbers!("44" "3" "0"), ("44", "raw"), NO_FAMILY)],
    },
    Class {
        id: "sockets/mptcp",
        about: "TCP by several paths, which bypasses rules for TCP",
        attempts: &[
            open("ipv4", numbers!("2" "1" "262"), ("inet", "stream"), NO_PROTOCOL),
            open("ipv6", numbers!("10" "1" "262"), ("inet6", "stream"), NO_PROTOCOL),
        ],
    },
    Class {
        id: "sockets/sctp",
        about: "SCTP, which bypasses rules for TCP",
        attempts: &[
            open("stream", numbers!("2" "1" "132"), ("inet", "stream"), NO_PROTOCOL),
            open("packets", numbers!("2" "5" "132"), ("inet", "seqpacket"), NO_PROTOCOL),
        ],
    },
    Class {
        id: "sockets/udp-lite",
        about: "UDP-Lite, which bypasses rules for UDP",
        attempts: &[open("datagram", numbers!("2" "2" "136"), ("inet", "dgram"), NO_PROTOCOL)],
    },
    Class {
        id: "sockets/netlink",
        about: "the kernel's other subsystems",
        attempts: &[
            open("diagnosis", numbers!("16" "3" "4"), ("netlink", "raw"), NO_PROTOCOL),
            open("audit", numbers!("16" "3" "9"), ("netlink", "raw"), NO_PROTOCOL),
            open("events", numbers!("16" "3" "15"), ("netlink", "raw"), NO_PROTOCOL),
            open("generic", numbers!("16" "3" "16"), ("netlink", "raw"), NO_PROTOCOL),
        ],
    },
    Class {
        id: "sockets/io-uring",
        about: "system calls by io_uring, which no filter sees",
        attempts: &[Attempt::new("ring", ring)
            .blocked(&[by(Layer::Supervisor, Errno::ENOSYS)], LedgerEntry::Call("io_uring_setup"))],
    },
    #[cfg(target_arch = "x86_64")]
    Class {
        id: "sockets/i386",
        about: "calls by the 32-bit interface",
        attempts: &[
            Attempt::new("socketcall", socket_i386)
                .blocked(&[by(Layer::Supervisor, Errno::ENOSYS)], LedgerEntry::Call("i386")),
            Attempt::new("getpid", getpid_i386).blocked(&[KILLED], LedgerEntry::None),
        ],
    },
    #[cfg(target_arch = "x86_64")]
    Class {
        id: "sockets/x32",
        about: "calls by x32 numbers",
        attempts: &[Attempt::new("packet", socket_x32)
            .twin_in(TwinEnv::OwnNamespaces)
            .blocked(&[by(Layer::Supervisor, Errno::ENOSYS)], LedgerEntry::Call("x32"))],
    },
];

fn number(aims: &[String], index: usize) -> Result<i32, Errno> {
    let word = aims.get(index).ok_or(Errno::EDESTADDRREQ)?;
    word.parse().map_err(|_| Errno::EDESTADDRREQ)
}

fn open_socket(aims: &[String]) -> Result<String, Errno> {
    attempt::socket(number(aims, 0)?, number(aims, 1)?, number(aims, 2)?).map(|_| String::new())
}

fn ring(_: &[String]) -> Result<String, Errno> {
    probe_calls::io_uring_setup().map(|_| String::new())
}

#[cfg(target_arch = "x86_64")]
fn socket_i386(_: &[String]) -> Result<String, Errno> {
    attempt::socket_i386(libc::AF_INET as u32, libc::SOCK_DGRAM as u32).map(|_| String::new())
}

#[cfg(target_arch = "x86_64")]
fn getpid_i386(_: &[String]) -> Result<String, Errno> {
    attempt::getpid_i386().map(|_| String::new())
}

#[cfg(target_arch = "x86_64")]
fn socket_x32(_: &[String]) -> Result<String, Errno> {
    attempt::socket_x32(libc::AF_PACKET, libc::SOCK_RAW).map(|_| String::new())
}

/// Address of a unix socket: a path, or an abstract name after `@`.
fn unix_address(aims: &[String]) -> Result<UnixAddr, Errno> {
    let word = aims.first().ok_or(Errno::EDESTADDRREQ)?;
    match word.strip_prefix('@') {
        Some(name) => UnixAddr::new_abstract(name.as_bytes()),
        None => UnixAddr::new(word.as_str()),
    }
}

fn unix(kind: SockType) -> Result<OwnedFd, Errno> {
    nix::sys::socket::socket(AddressFamily::Unix, kind, SockFlag::SOCK_CLOEXEC, None)
}

pub(super) fn connect_unix(aims: &[String]) -> Result<String, Errno> {
    let to = unix_address(aims)?;
    connect(unix(SockType::Stream)?.as_raw_fd(), &to).map(|()| String::new())
}

fn send_unix(aims: &[String]) -> Result<String, Errno> {
    let to = unix_address(aims)?;
    let socket = unix(SockType::Datagram)?;
    sendto(socket.as_raw_fd(), b"selftest", &to, MsgFlags::MSG_DONTWAIT).map(|_| String::new())
}

fn send_message(aims: &[String]) -> Result<String, Errno> {
    let to = unix_address(aims)?;
    let socket = unix(SockType::Datagram)?;
    let slices = [IoSlice::new(b"selftest")];
    let flags = MsgFlags::MSG_DONTWAIT;
    sendmsg(socket.as_raw_fd(), &slices, &[], flags, Some(&to)).map(|_| String::new())
}
