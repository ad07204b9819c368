//! What the canaries do: one function an attempt, each returning what the kernel said.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::ptrace;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6, UnixAddr,
    connect, sendto, setsockopt, socket, sockopt,
};
use nix::sys::stat::Mode;
use nix::unistd::Pid;

use super::super::plan::{HOME, ProbePlan, TMP};
use super::{INSIDE_SOCKET, UNRULED_FILE};
use crate::sys::probe::{io_uring_setup, push_input};

/// Addresses for documentation (RFC 5737, RFC 3849): nobody has them.
const NOWHERE_4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const NOWHERE_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const MULTICAST: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);

fn inet(kind: SockType) -> Result<OwnedFd, Errno> {
    socket(AddressFamily::Inet, kind, SockFlag::SOCK_CLOEXEC, None)
}

fn inet6(kind: SockType) -> Result<OwnedFd, Errno> {
    socket(AddressFamily::Inet6, kind, SockFlag::SOCK_CLOEXEC, None)
}

pub(super) fn tcp4(port: u16) -> Result<(), Errno> {
    connect(
        inet(SockType::Stream)?.as_raw_fd(),
        &SockaddrIn::from(SocketAddrV4::new(NOWHERE_4, port)),
    )
}

pub(super) fn tcp6(port: u16) -> Result<(), Errno> {
    let address = SockaddrIn6::from(SocketAddrV6::new(NOWHERE_6, port, 0, 0));
    connect(inet6(SockType::Stream)?.as_raw_fd(), &address)
}

fn send_datagram(address: Ipv4Addr, port: u16, socket: &OwnedFd) -> Result<(), Errno> {
    let address = SockaddrIn::from(SocketAddrV4::new(address, port));
    sendto(socket.as_raw_fd(), b"canary", &address, MsgFlags::empty()).map(drop)
}

pub(super) fn udp4(port: u16) -> Result<(), Errno> {
    send_datagram(NOWHERE_4, port, &inet(SockType::Datagram)?)
}

pub(super) fn udp6(port: u16) -> Result<(), Errno> {
    let address = SockaddrIn6::from(SocketAddrV6::new(NOWHERE_6, port, 0, 0));
    sendto(
        inet6(SockType::Datagram)?.as_raw_fd(),
        b"canary",
        &address,
        MsgFlags::empty(),
    )
    .map(drop)
}

pub(super) fn broadcast(port: u16) -> Result<(), Errno> {
    let socket = inet(SockType::Datagram)?;
    setsockopt(&socket, sockopt::Broadcast, &true)?;
    send_datagram(Ipv4Addr::BROADCAST, port, &socket)
}

pub(super) fn multicast(port: u16) -> Result<(), Errno> {
    send_datagram(MULTICAST, port, &inet(SockType::Datagram)?)
}

pub(super) fn any_ipv6(_: &ProbePlan) -> Result<(), Errno> {
    inet6(SockType::Datagram).map(drop)
}

fn connect_abstract(name: &str) -> Result<(), Errno> {
    let socket = socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    connect(
        socket.as_raw_fd(),
        &UnixAddr::new_abstract(name.as_bytes())?,
    )
}

pub(super) fn abstract_outside(plan: &ProbePlan) -> Result<(), Errno> {
    connect_abstract(&plan.outside_socket)
}

pub(super) fn abstract_inside(_: &ProbePlan) -> Result<(), Errno> {
    connect_abstract(INSIDE_SOCKET)
}

/// Whether the socket of a well-known daemon is there; connecting outside would talk to it.
pub(super) fn path_socket(_: &ProbePlan) -> Result<(), Errno> {
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

pub(super) fn raw(_: &ProbePlan) -> Result<(), Errno> {
    let protocol = SockProtocol::Icmp;
    socket(
        AddressFamily::Inet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        protocol,
    )
    .map(drop)
}

pub(super) fn packet(_: &ProbePlan) -> Result<(), Errno> {
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
pub(super) fn packet_is_possible(_: &ProbePlan) -> Result<(), Errno> {
    let capable = caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_NET_RAW);
    let known = Path::new("/proc/net/packet").exists();
    if capable.unwrap_or(false) && known {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}

pub(super) fn vsock(_: &ProbePlan) -> Result<(), Errno> {
    socket(
        AddressFamily::Vsock,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .map(drop)
}

pub(super) fn io_uring(_: &ProbePlan) -> Result<(), Errno> {
    io_uring_setup().map(drop)
}

/// PTRACE_SEIZE does not stop its target, and ends with this process.
pub(super) fn trace_init(_: &ProbePlan) -> Result<(), Errno> {
    ptrace::seize(Pid::from_raw(1), ptrace::Options::empty())
}

pub(super) fn new_namespace(_: &ProbePlan) -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWUSER)
}

pub(super) fn join_namespace(_: &ProbePlan) -> Result<(), Errno> {
    let namespace = open_for("/proc/self/ns/uts", OFlag::O_RDONLY)?;
    setns(namespace, CloneFlags::CLONE_NEWUTS)
}

pub(super) fn mount_something(_: &ProbePlan) -> Result<(), Errno> {
    mount(
        Some("tmpfs"),
        TMP,
        Some("tmpfs"),
        MsFlags::empty(),
        None::<&str>,
    )
}

/// Standard input is /dev/null: without the filter the kernel would say ENOTTY.
pub(super) fn terminal_input(_: &ProbePlan) -> Result<(), Errno> {
    push_input(std::io::stdin(), 0)
}

pub(super) fn outside_directory(plan: &ProbePlan) -> Result<(), Errno> {
    open_for(
        &plan.outside_directory,
        OFlag::O_DIRECTORY | OFlag::O_RDONLY,
    )
    .map(drop)
}

pub(super) fn write_root(_: &ProbePlan) -> Result<(), Errno> {
    open_for("/canary", OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY).map(drop)
}

/// Mode and mount allow it: only Landlock refuses.
pub(super) fn read_unruled(_: &ProbePlan) -> Result<(), Errno> {
    open_for(UNRULED_FILE, OFlag::O_RDONLY).map(drop)
}

pub(super) fn init_memory(_: &ProbePlan) -> Result<(), Errno> {
    open_for("/proc/1/mem", OFlag::O_RDONLY).map(drop)
}

pub(super) fn write_home(_: &ProbePlan) -> Result<(), Errno> {
    let path = Path::new(HOME).join(".canary");
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
