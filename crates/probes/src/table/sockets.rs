//! Probes by sockets: sockets of other programs, and families, types and protocols that bypass a network namespace or
//! a rule.

use std::ffi::OsString;
use std::io::IoSlice;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, sendmsg, sendto,
};
use sys::attempt::{
    Argument::{Buffer, Number, Target},
    RawCall, call,
};

use crate::probe::{
    ANY,
    Aim::{self, Word},
    Call, Class, Layer, LedgerEntry, Probe, Refusal, SHARED, TwinEnv, by, class,
};

const NO_FAMILY: &[Refusal] = &[by(Layer::Supervisor, Errno::EAFNOSUPPORT)];
const NO_PROTOCOL: &[Refusal] = &[by(Layer::Supervisor, Errno::EPROTONOSUPPORT)];
const NO_RIGHT: &[Refusal] = &[by(Layer::Supervisor, Errno::EPERM)];
const NO_CALL: &[Refusal] = &[by(Layer::Supervisor, Errno::ENOSYS)];
pub(super) const NO_UNIX: &[Refusal] = &[by(Layer::Supervisor, Errno::EACCES)];
const NOBODY: &[Refusal] = &[by(Layer::NetworkNamespace, Errno::ECONNREFUSED)];
pub(super) const NO_PATH: &[Refusal] = &[by(Layer::OwnRoot, Errno::ENOENT)];

/// Makes a socket by family, type and protocol, with a twin that has all capabilities.
const fn open(
    name: &'static str,
    aims: &'static [Aim],
    family: &'static str,
    kind: &'static str,
    refusals: &'static [Refusal],
) -> Probe {
    Probe::raw(name, RawCall::SOCKET, &[Target(0), Target(1), Target(2)])
        .at(aims)
        .twin_in(TwinEnv::OwnNamespaces)
        .blocked(refusals, LedgerEntry::Socket(family, kind))
}

const fn named(
    name: &'static str,
    make: fn(&[OsString]) -> Result<String, Errno>,
    aims: &'static [Aim],
    refusals: &'static [Refusal],
    call: &'static str,
    kind: &'static str,
) -> Probe {
    Probe::new(name, make)
        .at(aims)
        .blocked(refusals, LedgerEntry::To(call))
        .inherited(NO_UNIX, LedgerEntry::Socket("unix", kind))
}

/// Makes a unix socket, which is refused only in a container's network.
const fn unix_socket(name: &'static str, aims: &'static [Aim], kind: &'static str) -> Probe {
    open(name, aims, "unix", kind, &[]).inherited(NO_UNIX, LedgerEntry::Socket("unix", kind))
}

macro_rules! numbers {
    ($family:literal $kind:literal $protocol:literal) => {
        &[Word($family), Word($kind), Word($protocol)]
    };
}

/// Cheap call outside: family and protocol with an invalid type.
const ASK: Call = Call::Function(|aims| {
    // The kernel rejects the type with EINVAL before it looks up the family, and loads no module. A seccomp filter
    // would give another errno.
    let no_type = Number(0xF);
    match call(RawCall::SOCKET, &[Target(0), no_type, Target(2)], aims) {
        Ok(()) | Err(Errno::EINVAL) => Ok(String::new()),
        Err(errno) => Err(errno),
    }
});

/// Requirements of packet(7). A packet socket is not made outside, since its close(2) waits for the network stack,
/// about 15 ms.
const PACKET_IS_POSSIBLE: Call = Call::Function(|_| {
    let capable = caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_NET_RAW);
    if capable.unwrap_or(false) && Path::new("/proc/net/packet").exists() {
        Ok(String::new())
    } else {
        Err(Errno::EPERM)
    }
});

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    class("sockets/abstract", "abstract unix sockets of other programs", &[
        named("stream", connect_unix, &[Aim::AbstractStream], NOBODY, "connect", "stream"),
        named("datagram", send_unix, &[Aim::AbstractDatagram], NOBODY, "sendto", "dgram"),
        named("message", send_message, &[Aim::AbstractDatagram], NOBODY, "sendmsg", "dgram"),
    ]),
    class("sockets/pathname", "unix sockets in a directory of this machine", &[
        named("stream", connect_unix, &[Aim::StreamSocket], NO_PATH, "connect", "stream"),
        named("datagram", send_unix, &[Aim::DatagramSocket], NO_PATH, "sendto", "dgram"),
        named("message", send_message, &[Aim::DatagramSocket], NO_PATH, "sendmsg", "dgram"),
    ]),
    class("sockets/unix", "unix sockets beside those of this machine", &[
        unix_socket("stream", numbers!("1" "1" "0"), "stream").canary("unix-socket", SHARED).same_outside(),
        unix_socket("datagram", numbers!("1" "2" "0"), "dgram"),
        unix_socket("named-protocol", numbers!("1" "1" "1"), "stream"),
    ]),
    class("sockets/raw", "raw IP packets", &[
        open("icmp", numbers!("2" "3" "1"), "inet", "raw", NO_RIGHT).canary("raw-socket", ANY).same_outside(),
        open("any", numbers!("2" "3" "255"), "inet", "raw", NO_RIGHT),
        open("icmpv6", numbers!("10" "3" "58"), "inet6", "raw", NO_RIGHT),
    ]),
    class("sockets/packet", "frames on a link", &[
        open("raw", numbers!("17" "3" "0"), "packet", "raw", NO_FAMILY).canary("packet-socket", ANY).outside_by(PACKET_IS_POSSIBLE),
        open("datagram", numbers!("17" "2" "0"), "packet", "dgram", NO_FAMILY),
    ]),
    class("sockets/vsock", "the host of a virtual machine", &[open("stream", numbers!("40" "1" "0"), "vsock", "stream", NO_FAMILY).canary("vsock", ANY).same_outside()]),
    class("sockets/alg", "the kernel's ciphers", &[open("cipher", numbers!("38" "5" "0"), "alg", "seqpacket", NO_FAMILY).canary("alg-socket", ANY).outside_by(ASK)]),
    class("sockets/bluetooth", "devices near this machine", &[open("raw", numbers!("31" "3" "1"), "31", "raw", NO_FAMILY).canary("bluetooth-socket", ANY).outside_by(ASK)]),
    class("sockets/xdp", "a link's queues", &[open("raw", numbers!("44" "3" "0"), "44", "raw", NO_FAMILY).canary("xdp-socket", ANY).outside_by(ASK)]),
    class("sockets/mptcp", "TCP by several paths, which bypasses rules for TCP", &[
        open("ipv4", numbers!("2" "1" "262"), "inet", "stream", NO_PROTOCOL).canary("mptcp-socket", ANY).outside_by(ASK),
        open("ipv6", numbers!("10" "1" "262"), "inet6", "stream", NO_PROTOCOL),
    ]),
    class("sockets/sctp", "SCTP, which bypasses rules for TCP", &[
        open("stream", numbers!("2" "1" "132"), "inet", "stream", NO_PROTOCOL),
        open("packets", numbers!("2" "5" "132"), "inet", "seqpacket", NO_PROTOCOL),
    ]),
    class("sockets/udp-lite", "UDP-Lite, which bypasses rules for UDP", &[
        open("datagram", numbers!("2" "2" "136"), "inet", "dgram", NO_PROTOCOL),
        open("ipv6", numbers!("10" "2" "136"), "inet6", "dgram", NO_PROTOCOL),
    ]),
    class("sockets/netlink", "the kernel's other subsystems", &[
        open("user", numbers!("16" "3" "2"), "netlink", "raw", NO_PROTOCOL).canary("netlink-socket", ANY).outside_by(ASK),
        open("diagnosis", numbers!("16" "3" "4"), "netlink", "raw", NO_PROTOCOL),
        open("audit", numbers!("16" "3" "9"), "netlink", "raw", NO_PROTOCOL),
        open("netfilter", numbers!("16" "3" "12"), "netlink", "raw", NO_PROTOCOL),
        open("events", numbers!("16" "3" "15"), "netlink", "raw", NO_PROTOCOL),
        open("generic", numbers!("16" "3" "16"), "netlink", "raw", NO_PROTOCOL),
    ]),
    class("sockets/io-uring", "system calls by io_uring, which no filter sees", &[
        Probe::raw("ring", RawCall::IO_URING_SETUP, &[Number(1), Buffer])
            .blocked(NO_CALL, LedgerEntry::Call("io_uring_setup"))
            .canary("io-uring", ANY).same_outside(),
    ]),
    #[cfg(target_arch = "x86_64")]
    class("sockets/i386", "calls by the 32-bit interface", &[
        Probe::new("socketcall", foreign::socket_i386).at(&[Word("socketcall")])
            .blocked(NO_CALL, LedgerEntry::To("i386"))
            .canary("i386", ANY).same_outside(),
        Probe::new("getpid", foreign::getpid_i386).blocked(&[crate::probe::KILLED], LedgerEntry::None),
    ]),
    #[cfg(target_arch = "x86_64")]
    class("sockets/x32", "calls by x32 numbers", &[
        Probe::new("datagram", foreign::socket_x32).at(&[Word("socket")])
            .blocked(NO_CALL, LedgerEntry::To("x32"))
            .canary("x32", ANY).same_outside(),
    ]),
];

/// Calls by the other system call interfaces of x86-64.
#[cfg(target_arch = "x86_64")]
mod foreign {
    use std::ffi::OsString;

    use nix::errno::Errno;
    use nix::sys::wait::{WaitStatus, waitpid};
    use sys::attempt;
    use sys::process::run_in_shared_memory;

    pub(super) fn socket_i386(_: &[OsString]) -> Result<String, Errno> {
        in_child(|| attempt::socket_i386(libc::AF_INET as u32, libc::SOCK_DGRAM as u32).map(drop))
    }

    pub(super) fn socket_x32(_: &[OsString]) -> Result<String, Errno> {
        in_child(|| attempt::socket_x32(libc::AF_INET, libc::SOCK_DGRAM).map(drop))
    }

    pub(super) fn getpid_i386(_: &[OsString]) -> Result<String, Errno> {
        attempt::getpid_i386().map(|_| String::new())
    }

    /// Makes a call in a child process and returns EPERM if a signal ended the child. Filters kill callers of foreign
    /// interfaces, and kernels without these interfaces send SIGSEGV.
    fn in_child(call: fn() -> Result<(), Errno>) -> Result<String, Errno> {
        let child = run_in_shared_memory(|| call().map_or_else(|errno| errno as i32, |()| 0))?;
        let WaitStatus::Exited(_, errno) = waitpid(child, None)? else {
            return Err(Errno::EPERM);
        };
        if errno == 0 {
            Ok(String::new())
        } else {
            Err(Errno::from_raw(errno))
        }
    }
}

/// Address of a unix socket: a path, or an abstract name after `@`.
fn unix_address(aims: &[OsString]) -> Result<UnixAddr, Errno> {
    let word = aims.first().ok_or(Errno::EDESTADDRREQ)?.as_bytes();
    match word.strip_prefix(b"@") {
        Some(name) => UnixAddr::new_abstract(name),
        None => UnixAddr::new(word),
    }
}

fn unix(kind: SockType) -> Result<OwnedFd, Errno> {
    nix::sys::socket::socket(AddressFamily::Unix, kind, SockFlag::SOCK_CLOEXEC, None)
}

pub(super) fn connect_unix(aims: &[OsString]) -> Result<String, Errno> {
    let to = unix_address(aims)?;
    connect(unix(SockType::Stream)?.as_raw_fd(), &to).map(|()| String::new())
}

fn send_unix(aims: &[OsString]) -> Result<String, Errno> {
    let to = unix_address(aims)?;
    let socket = unix(SockType::Datagram)?;
    sendto(socket.as_raw_fd(), b"selftest", &to, MsgFlags::MSG_DONTWAIT).map(|_| String::new())
}

fn send_message(aims: &[OsString]) -> Result<String, Errno> {
    let to = unix_address(aims)?;
    let socket = unix(SockType::Datagram)?;
    let slices = [IoSlice::new(b"selftest")];
    let flags = MsgFlags::MSG_DONTWAIT;
    sendmsg(socket.as_raw_fd(), &slices, &[], flags, Some(&to)).map(|_| String::new())
}
