//! Probes whose targets only a run has: the canary alone makes them.

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, UnixAddr, connect, socket,
};

use super::files::{create_at, read};
use super::network::connect_to;
use super::processes::open_below;
use crate::probe::{ANY, Aim, Class, Kind, Layer, LedgerEntry, OWN_ROOT, Probe, SHARED, by, word};

/// Name of the probe that depends on Landlock's scopes, which ABI 6 added.
pub const ABSTRACT_INSIDE: &str = "abstract-socket-inside";

const fn probe(
    name: &'static str,
    make: fn(&[OsString]) -> Result<String, Errno>,
    aims: &'static [Aim],
    kinds: &'static [Kind],
) -> Probe {
    Probe::new(name, make).at(aims).canary(name, kinds)
}

#[rustfmt::skip]
pub(super) const CLASS: &Class = &Class {
    id: "run/canary",
    about: "targets of one run",
    probes: &[
        probe("abstract-socket-outside", connect_abstract, &[Aim::AbstractStream], ANY).same_outside()
            .blocked(&[by(Layer::NetworkNamespace, Errno::ECONNREFUSED)], LedgerEntry::None)
            .inherited(&[by(Layer::Landlock, Errno::EPERM)], LedgerEntry::None),
        probe("host-directory", open_below, &[Aim::ClosedDirectory], ANY).same_outside()
            .blocked(&[by(Layer::OwnRoot, Errno::ENOENT)], LedgerEntry::None)
            .inherited(&[by(Layer::Landlock, Errno::EACCES)], LedgerEntry::None),
        probe("write-outside", create_at, &[Aim::NewFile], SHARED)
            .blocked(&[by(Layer::Landlock, Errno::EACCES)], LedgerEntry::None),
        probe("pathname-socket", find_daemon, &[], OWN_ROOT).same_outside()
            .blocked(&[by(Layer::OwnRoot, Errno::ENOENT)], LedgerEntry::None),
        probe("landlock-read", read, &[Aim::UnruledFile], ANY)
            .blocked(&[by(Layer::Landlock, Errno::EACCES)], LedgerEntry::None),
        probe(ABSTRACT_INSIDE, connect_abstract, &[Aim::InsideSocket], ANY)
            .blocked(&[by(Layer::Landlock, Errno::EPERM)], LedgerEntry::None),
        // The supervisor lets the call of the canary through.
        probe("neighbour", connect_to, &[Aim::TcpListener], SHARED).same_outside()
            .blocked(&[by(Layer::Landlock, Errno::EACCES)], LedgerEntry::None),
    ],
};

/// PF_UNIX of linux/net.h, the only protocol of unix sockets, which has the number of ICMP. A socket that names its
/// protocol is continued.
const UNIX: SockProtocol = SockProtocol::Icmp;

fn connect_abstract(aims: &[OsString]) -> Result<String, Errno> {
    let name = word(aims, 0)?.trim_start_matches('@');
    let to = UnixAddr::new_abstract(name.as_bytes())?;
    let (family, kind) = (AddressFamily::Unix, SockType::Stream);
    let socket = socket(family, kind, SockFlag::SOCK_CLOEXEC, UNIX)?;
    connect(socket.as_raw_fd(), &to).map(|()| String::new())
}

/// Checks for the socket of a well-known daemon. A connection outside would reach the daemon.
fn find_daemon(_: &[OsString]) -> Result<String, Errno> {
    let candidates = [
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/dbus/system_bus_socket",
    ];
    let mut found = candidates
        .map(Path::new)
        .into_iter()
        .filter(|path| fs::symlink_metadata(path).is_ok());
    found
        .next()
        .map_or(Err(Errno::ENOENT), |path| Ok(path.display().to_string()))
}
