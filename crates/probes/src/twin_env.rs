//! Environments in which the twin of an attempt succeeds and reaches only this process.

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

use crate::probe::TwinEnv;
use crate::reply::error_words;

/// Sockets of daemons that resolve names or take requests of all users.
pub(super) const DAEMONS: [&str; 6] = [
    "/run/nscd/socket",
    "/run/systemd/resolve/io.systemd.Resolve",
    "/run/systemd/userdb/io.systemd.DynamicUser",
    "/run/dbus/system_bus_socket",
    "/run/docker.sock",
    "/run/user/1000/bus",
];

/// Addresses reserved for documentation (RFC 5737, RFC 3849): no host has them.
pub(super) const NOWHERE_4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(super) const NOWHERE_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// Time limit for a tentative IPv6 address. Addresses on loopback are tentative too.
const TENTATIVE: Duration = Duration::from_secs(5);

/// Sockets that must stay open while a twin is made.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    _tcp: Vec<TcpListener>,
    _udp: Vec<UdpSocket>,
    _unix: Vec<UnixListener>,
}

/// Reason why an environment cannot be set up.
#[derive(Debug, Error)]
pub(super) enum EnvError {
    #[error("namespaces of its own: {}", error_words(_0))]
    Namespaces(#[source] io::Error),
    #[error("documentation addresses on loopback: {}", error_words(_0))]
    FakeInternet(#[source] io::Error),
    #[error("a /run of its own: {}", error_words(_0))]
    Daemons(#[source] io::Error),
    #[error(
        "core dumps of this machine go to a program or a directory, which a test must not fill"
    )]
    Cores,
}

/// Sets up an environment for this process, which must have one thread (unshare(2)).
pub(super) fn prepare(around: TwinEnv) -> Result<Prepared, EnvError> {
    match around {
        TwinEnv::Host => Ok(Prepared::default()),
        TwinEnv::CoreFiles if cores_are_files() => Ok(Prepared::default()),
        TwinEnv::CoreFiles => Err(EnvError::Cores),
        TwinEnv::OwnNamespaces => own_namespaces()
            .map(|()| Prepared::default())
            .map_err(EnvError::Namespaces),
        TwinEnv::FakeInternet => {
            own_namespaces().map_err(EnvError::Namespaces)?;
            fake_internet().map_err(EnvError::FakeInternet)
        }
        TwinEnv::Daemons => {
            own_namespaces().map_err(EnvError::Namespaces)?;
            daemons().map_err(EnvError::Daemons)
        }
    }
}

/// Checks that cores are files in the current directory. A core pattern may name a program, a socket or another
/// directory (core(5)).
fn cores_are_files() -> bool {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern");
    pattern.is_ok_and(|pattern| !pattern.contains(['|', '@', '/']))
}

/// Enters new user, network and mount namespaces. In a new user namespace, mounts shared with the host become slaves,
/// so new mounts do not propagate to the host (mount_namespaces(7)). They are shared with each other, as on many hosts.
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

fn fake_internet() -> io::Result<Prepared> {
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
            bind_tentative(|| TcpListener::bind((NOWHERE_6, 443)))?,
        ],
        _udp: vec![UdpSocket::bind((NOWHERE_4, 53))?],
        _unix: Vec::new(),
    })
}

/// Retries a bind to a tentative address.
fn bind_tentative<T>(bind: impl Fn() -> io::Result<T>) -> io::Result<T> {
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
