//! System calls of the canary: one function for each probe, which returns the kernel's result.

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

/// Addresses reserved for documentation (RFC 5737, RFC 3849): no host has them.
const NOWHERE_4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const NOWHERE_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const MULTICAST: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);

/// PF_UNIX of linux/net.h, the only protocol of unix sockets, which has the number of ICMP. A socket that names its
/// protocol is continued.
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

/// Listens on an unbound socket, to which listen(2) gives a free port.
pub(super) fn listener(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    listen(&stream(AddressFamily::Inet)?, Backlog::new(1)?)
}

/// Connects to the runner's listener on loopback.
pub(super) fn neighbour(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    let Some(SocketAddr::V4(address)) = env.plan.neighbour else {
        return Err(Errno::EDESTADDRREQ);
    };
    let socket = stream(AddressFamily::Inet)?;
    connect(socket.as_raw_fd(), &SockaddrIn::from(address))
}

/// Sends signal 0 to init: kill(2) checks the permission only.
pub(super) fn signal_init(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    kill(env.init, None)
}

/// Checks for the socket of a well-known daemon. A connection outside would reach the daemon.
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

/// Checks the requirements of packet(7). Outside, no packet socket is made, since its close(2) waits for the network
/// stack, about 15 ms.
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

/// Invalid socket type. The kernel rejects it with EINVAL before it looks up the family, and loads no module.
const NO_TYPE: i32 = 0xF;

/// Succeeds if the call reaches the kernel: a seccomp filter would give another errno.
fn is_asked(family: i32, protocol: i32) -> Result<(), Errno> {
    match attempt::socket(family, NO_TYPE, protocol) {
        Ok(_) | Err(Errno::EINVAL) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Defines probes of other families and protocols. Outside, each is called with [`NO_TYPE`].
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

/// Sends data with MSG_FASTOPEN, which opens a connection that Landlock does not check.
pub(super) fn fast_open(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    let socket = stream(AddressFamily::Inet)?;
    let address = SockaddrIn::from(SocketAddrV4::new(NOWHERE_4, super::ANSWERED_PORT));
    let flags = MsgFlags::from_bits_retain(libc::MSG_FASTOPEN);
    sendto(socket.as_raw_fd(), b"canary", &address, flags).map(drop)
}

pub(super) fn io_uring(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    io_uring_setup().map(drop)
}

/// Makes a socket by the 32-bit system call interface.
#[cfg(target_arch = "x86_64")]
pub(super) fn i386(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    in_child(|| attempt::socket_i386(libc::AF_INET as u32, libc::SOCK_DGRAM as u32).map(drop))
}

/// Makes a socket by a system call number of x32.
#[cfg(target_arch = "x86_64")]
pub(super) fn x32(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    in_child(|| attempt::socket_x32(libc::AF_INET, libc::SOCK_DGRAM).map(drop))
}

/// Makes a probe in a child process and returns EPERM if a signal ended the child. Filters kill callers of foreign
/// interfaces, and kernels without these interfaces send SIGSEGV.
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

/// Traces init. PTRACE_SEIZE does not stop its target, and ends with the tracer.
pub(super) fn trace_init(env: &ProbeEnv<'_>) -> Result<(), Errno> {
    ptrace::seize(env.init, ptrace::Options::empty())
}

pub(super) fn new_namespace(_: &ProbeEnv<'_>) -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWUSER)
}

/// Joins standard input, which is no namespace: without the filter, setns(2) fails with EINVAL.
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

/// Types into standard input, which is /dev/null: without the filter, ioctl(2) fails with ENOTTY.
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

/// Reads a file that mode and mount allow to read, so that only Landlock can refuse.
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
