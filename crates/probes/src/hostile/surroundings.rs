//! Surroundings in which the twin of an attempt succeeds and reaches nobody but this process.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::{Gid, Uid};
use sys::{net, test_network};
use thiserror::Error;

use super::class::Surroundings;
use super::reply::error_words;

/// Where daemons listen that look names up or work for whoever asks.
pub(super) const DAEMONS: [&str; 4] = [
    "/run/nscd/socket",
    "/run/systemd/resolve/io.systemd.Resolve",
    "/run/dbus/system_bus_socket",
    "/run/docker.sock",
];

/// Addresses for documentation (RFC 5737, RFC 3849): nobody has them.
pub(super) const NOWHERE_4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(super) const NOWHERE_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// How long an IPv6 address may be tentative, also on loopback.
const TENTATIVE: Duration = Duration::from_secs(5);

/// What a twin needs while it is made.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    _tcp: Vec<TcpListener>,
    _udp: Vec<UdpSocket>,
    _unix: Vec<UnixListener>,
}

/// Why surroundings could not be made.
#[derive(Debug, Error)]
pub(super) enum Missing {
    #[error("namespaces of its own: {}", error_words(_0))]
    Namespaces(#[source] io::Error),
    #[error("a loopback that stands for the world: {}", error_words(_0))]
    World(#[source] io::Error),
    #[error("a /run of its own: {}", error_words(_0))]
    Daemons(#[source] io::Error),
    #[error("cores of this machine go to a program or a directory, not to be troubled by a test")]
    Cores,
}

/// Makes them around this process, which has one thread.
pub(super) fn prepare(around: Surroundings) -> Result<Prepared, Missing> {
    match around {
        Surroundings::Host => Ok(Prepared::default()),
        Surroundings::CoreFiles if cores_are_files() => Ok(Prepared::default()),
        Surroundings::CoreFiles => Err(Missing::Cores),
        Surroundings::OwnNamespaces => own_namespaces()
            .map(|()| Prepared::default())
            .map_err(Missing::Namespaces),
        Surroundings::World => {
            own_namespaces().map_err(Missing::Namespaces)?;
            a_world().map_err(Missing::World)
        }
        Surroundings::Daemons => {
            own_namespaces().map_err(Missing::Namespaces)?;
            daemons().map_err(Missing::Daemons)
        }
    }
}

/// core(5): a pattern that names a program, a socket or another directory leads out of the current one.
fn cores_are_files() -> bool {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern");
    pattern.is_ok_and(|pattern| !pattern.contains(['|', '@', '/']))
}

/// A user namespace of its own makes every mount that is shared with the host a slave, so nothing that is mounted
/// here shows there (mount_namespaces(7)); they are shared among themselves, as they would be on many hosts.
fn own_namespaces() -> io::Result<()> {
    let (uid, gid) = (Uid::current(), Gid::current());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    let flags = MsFlags::MS_SHARED | MsFlags::MS_REC;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)?;
    let inet = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    net::set_loopback_up(inet)?;
    Ok(())
}

fn a_world() -> io::Result<Prepared> {
    let datagram = |family| socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None);
    let inet = datagram(AddressFamily::Inet)?;
    test_network::set_address(&inet, "lo:1", NOWHERE_4)?;
    test_network::route_everything_to_loopback(&inet)?;
    let inet6 = datagram(AddressFamily::Inet6)?;
    test_network::set_address_6(&inet6, NOWHERE_6)?;
    test_network::route_everything_to_loopback_6(&inet6)?;
    Ok(Prepared {
        _tcp: vec![
            TcpListener::bind((NOWHERE_4, 443))?,
            TcpListener::bind((NOWHERE_4, 53))?,
            when_it_is_there(|| TcpListener::bind((NOWHERE_6, 443)))?,
        ],
        _udp: vec![UdpSocket::bind((NOWHERE_4, 53))?],
        _unix: Vec::new(),
    })
}

fn when_it_is_there<T>(bind: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + TENTATIVE;
    loop {
        match bind() {
            Err(error)
                if error.kind() == ErrorKind::AddrNotAvailable && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            bound => return bound,
        }
    }
}

fn daemons() -> io::Result<Prepared> {
    let none = None::<&str>;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none)?;
    let mut listeners = Vec::new();
    for path in DAEMONS {
        if let Some(directory) = Path::new(path).parent() {
            fs::create_dir_all(directory)?;
        }
        listeners.push(UnixListener::bind(path)?);
    }
    Ok(Prepared {
        _unix: listeners,
        ..Prepared::default()
    })
}
