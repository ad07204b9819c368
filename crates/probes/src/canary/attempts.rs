//! What the canaries do: one function an attempt, each returning what the kernel said.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::ptrace;
use nix::sys::signal::kill;
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6,
    UnixAddr, connect, listen, sendto, setsockopt, socket, sockopt,
};
use nix::sys::stat::Mode;
use sys::attempt;
use sys::probe_calls::{io_uring_setup, push_input};

use super::ProbeEnv;

#[cfg(target_arch = "x86_64")]
use nix::sys::wait::{WaitStatus, waitpid};
#[cfg(target_arch = "x86_64")]
use sys::process::{Side, clone_process};

/// Addresses for documentation (RFC 5737, RFC 3849): nobody has them.
const NOWHERE_4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const NOWHERE_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const MULTICAST: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);

/// A unix socket's one protocol, PF_UNIX of linux/net.h, has the number of ICMP. Naming it marks the socket.
const UNIX: SockProtocol = SockProtocol::Icmp;

fn stream(family: AddressFamily) -> Result<OwnedFd, Errno> {
    socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
}

fn datagram(family: AddressFamily, protocol: Option<SockProtocol>) -> Result<OwnedFd, Errno> {
    socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, protocol)
}

pub(super) fn tcp4(port: u16, _: Option<SockProtocol>) -> Result<(), Errno> {
    connect(
        stream(AddressFamily::Inet)?.as_raw_fd(),
        &SockaddrIn::from(SocketAddrV4::new(NOWHERE_4, port)),
    )
}

pub(super) fn tcp6(port: u16, _: Option<SockProtocol>) -> Result<(), Errno> {
    let address = SockaddrIn6::from(SocketAddrV6::new(NOWHERE_6, port, 0, 0));
    connect(stream(AddressFamily::Inet6)?.as_raw_fd(), &address)
}

fn send_datagram(address: Ipv4Addr, port: u16, socket: &OwnedFd) -> Result<(), Errno> {
    let address = SockaddrIn::from(SocketAddrV4::new(address, port));
    sendto(socket.as_raw_fd(), b"canary", &address, MsgFlags::empty()).map(drop)
}

pub(super) fn udp4(port: u16, protocol: Option<SockProtocol>) -> Result<(), Errno> {
    send_datagram(NOWHERE_4, port, &datagram(AddressFamily::Inet, protocol)?)
}

pub(super) fn udp6(port: u16, protocol: Option<SockProtocol>) -> Result<(), Errno> {
    let address = SockaddrIn6::from(SocketAddrV6::new(NOWHERE_6, port, 0, 0));
    let socket = datagram(AddressFamily::Inet6, protocol)?;
    sendto(socket.as_raw_fd(), b"canary", &address, MsgFlags::empty()).map(drop)
}

pub(super) fn broadcast(port: u16, protocol: Option<SockProtocol>) -> Result<(), Errno> {
    let socket = datagram(AddressFamily::Inet, protocol)?;
    setsockopt(&socket, sockopt::Broadcast, &true)?;
    send_datagram(Ipv4Addr::BROADCAST, port, &socket)
}

pub(super) fn multicast(port: u16, protocol: Option<SockProtocol>) -> Result<(), Errno> {
    send_datagram(MULTICAST, port, &datagram(AddressFamily::Inet, protocol)?)
}

pub(super) fn any_ipv6(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    datagram(AddressFamily::Inet6, None).map(drop)
}

fn connect_abstract(name: &str) -> Result<(), Errno> {
    let socket = socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        UNIX,
    )?;
    connect(
        socket.as_raw_fd(),
        &UnixAddr::new_abstract(name.as_bytes())?,
    )
}

pub(super) fn abstract_outside(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    connect_abstract(&env.plan.outside_socket)
}

pub(super) fn abstract_inside(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    connect_abstract(&env.plan.inside_socket)
}

pub(super) fn unix(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    stream(AddressFamily::Unix).map(drop)
}

/// A socket that was never bound gets a port of its own by listen(2).
pub(super) fn listener(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    listen(&stream(AddressFamily::Inet)?, Backlog::new(1)?)
}

/// A listener on loopback that is not the stub; nobody is served there.
pub(super) fn neighbour(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    let Some(SocketAddr::V4(address)) = env.plan.neighbour else {
        return Err(Errno::EDESTADDRREQ);
    };
    let socket = stream(AddressFamily::Inet)?;
    connect(socket.as_raw_fd(), &SockaddrIn::from(address))
}

/// Signal 0 is only checked, and nobody gets it.
pub(super) fn signal_init(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    kill(env.init, None)
}

/// Whether the socket of a well-known daemon is there; connecting outside would talk to it.
pub(super) fn path_socket(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    let candidates = [
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/dbus/system_bus_socket",
    ];
    let found = candidates
        .iter()
        .any(|path| fs::symlink_metadata(path).is_ok());
    if found { Ok(()) } else { Err(Errno::ENOENT) }
}

pub(super) fn raw(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    let protocol = SockProtocol::Icmp;
    socket(
        AddressFamily::Inet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        protocol,
    )
    .map(drop)
}

pub(super) fn packet(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map(drop)
}

/// What packet(7) asks for. The socket itself is not made outside: closing it waits for the whole network
/// stack, some 15 ms.
pub(super) fn packet_is_possible(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    let capable = caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_NET_RAW);
    let known = Path::new("/proc/net/packet").exists();
    if capable.unwrap_or(false) && known {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}

pub(super) fn vsock(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    socket(
        AddressFamily::Vsock,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map(drop)
}

/// A type that no socket has. The kernel rejects it with EINVAL before it looks for the family, and loads no module.
const NO_TYPE: i32 = 0xF;

/// Succeeds where the kernel itself is asked for such a socket: a filter in front has another errno.
fn is_asked(family: i32, protocol: i32) -> Result<(), Errno> {
    match attempt::socket(family, NO_TYPE, protocol) {
        Ok(_) | Err(Errno::EINVAL) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Sockets of other families and protocols: each is tried inside, and outside asked for with [`NO_TYPE`].
macro_rules! other_sockets {
    ($($inside:ident $outside:ident: $family:path, $kind:path, $protocol:expr;)*) => {
        $(
            pub(super) fn $inside(_: &ProbeEnv<'_>) -> Result<(), Errno> {
                attempt::socket($family, $kind | libc::SOCK_CLOEXEC, $protocol).map(drop)
            }

            pub(super) fn $outside(_: &ProbeEnv<'_>) -> Result<(), Errno> {
                is_asked($family, $protocol)
            }
        )*
    };
}

other_sockets! {
    alg alg_is_asked: libc::AF_ALG, libc::SOCK_SEQPACKET, 0;
    bluetooth bluetooth_is_asked: libc::AF_BLUETOOTH, libc::SOCK_RAW, 0;
    xdp xdp_is_asked: libc::AF_XDP, libc::SOCK_RAW, 0;
    netlink netlink_is_asked: libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_USERSOCK;
    mptcp mptcp_is_asked: libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP;
}

/// Data that opens its own connection, which Landlock does not see.
pub(super) fn fast_open(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    let socket = stream(AddressFamily::Inet)?;
    let address = SockaddrIn::from(SocketAddrV4::new(NOWHERE_4, super::ANSWERED_PORT));
    let flags = MsgFlags::from_bits_retain(libc::MSG_FASTOPEN);
    sendto(socket.as_raw_fd(), b"canary", &address, flags).map(drop)
}

pub(super) fn io_uring(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    io_uring_setup().map(drop)
}

/// A socket by a call of a 32-bit machine.
#[cfg(target_arch = "x86_64")]
pub(super) fn i386(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    in_child(|| attempt::socket_i386(libc::AF_INET as u32, libc::SOCK_DGRAM as u32).map(drop))
}

/// A socket by a number of x32.
#[cfg(target_arch = "x86_64")]
pub(super) fn x32(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    in_child(|| attempt::socket_x32(libc::AF_INET, libc::SOCK_DGRAM).map(drop))
}

/// Tries in a process of its own: filters end callers by other interfaces, and a kernel without them sends SIGSEGV. Such
/// an end is EPERM.
#[cfg(target_arch = "x86_64")]
fn in_child(attempt: fn() -> Result<(), Errno>) -> Result<(), Errno> {
    match clone_process(0)? {
        Side::Child => {
            let errno = attempt().map_or_else(|errno| errno as i32, |()| 0);
            std::process::exit(errno)
        }
        Side::Parent(child) => {
            let WaitStatus::Exited(_, errno) = waitpid(child, None)? else {
                return Err(Errno::EPERM);
            };
            if errno == 0 {
                Ok(())
            } else {
                Err(Errno::from_raw(errno))
            }
        }
    }
}

/// PTRACE_SEIZE does not stop its target, and ends with this process.
pub(super) fn trace_init(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    ptrace::seize(env.init, ptrace::Options::empty())
}

pub(super) fn new_namespace(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWUSER)
}

/// Standard input is no namespace: without the filter the kernel would say EINVAL.
pub(super) fn join_namespace(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    setns(std::io::stdin(), CloneFlags::CLONE_NEWUTS)
}

pub(super) fn mount_something(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    mount(
        Some("tmpfs"),
        "/",
        Some("tmpfs"),
        MsFlags::empty(),
        None::<&str>,
    )
}

/// Standard input is /dev/null: without the filter the kernel would say ENOTTY.
pub(super) fn terminal_input(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    push_input(std::io::stdin(), 0)
}

pub(super) fn outside_directory(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    open_for(
        &env.plan.outside_directory,
        OFlag::O_DIRECTORY | OFlag::O_RDONLY,
    )
    .map(drop)
}

pub(super) fn outside_file(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    let new = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY;
    open_for(&env.plan.outside_file, new).map(drop)
}

/// Mode and mount allow it: only Landlock refuses.
pub(super) fn read_unruled(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    open_for(&env.plan.unruled_file, OFlag::O_RDONLY).map(drop)
}

pub(super) fn init_memory(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    open_for(format!("/proc/{}/mem", env.init), OFlag::O_RDONLY).map(drop)
}

pub(super) fn write_home(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    let path = Path::new(&env.plan.home).join(".canary");
    let written = open_for(&path, OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY)
        .and_then(|file| nix::unistd::write(file, b"canary"));
    nix::unistd::unlink(&path)?;
    written.map(drop)
}

fn open_for(path: impl AsRef<OsStr>, flags: OFlag) -> Result<OwnedFd, Errno> {
    open(
        path.as_ref(),
        flags | OFlag::O_CLOEXEC,
        Mode::S_IRUSR | Mode::S_IWUSR,
    )
}
