//! Probes by name resolution: daemons that resolve names, and name servers other than the resolver.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, socket};

use super::network::{connect_to, send};
use super::sockets::{NO_PATH, NO_UNIX, connect_unix};
use crate::probe::{
    Aim::{self, Word},
    Class, Layer, LedgerEntry, Probe, TwinEnv, by, class,
};
use crate::twin_env::DAEMONS;

/// DNS query of type A for `runner-selftest.invalid`.
const QUERY: &[u8] = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0frunner-selftest\x07invalid\x00\x00\x01\x00\x01";

const fn daemon(name: &'static str, aims: &'static [Aim]) -> Probe {
    Probe::new(name, connect_unix)
        .at(aims)
        .twin_in(TwinEnv::Daemons)
        .blocked(NO_PATH, LedgerEntry::To("connect"))
        .inherited(NO_UNIX, LedgerEntry::Socket("unix", "stream"))
}

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    class("names/daemons", "daemons that resolve names or take requests of all users", &[
        daemon("nscd", &[Word(DAEMONS[0])]),
        daemon("resolved", &[Word(DAEMONS[1])]),
        daemon("userdb", &[Word(DAEMONS[2])]),
        daemon("dbus", &[Word(DAEMONS[3])]),
        daemon("docker", &[Word(DAEMONS[4])]),
        daemon("session", &[Word(DAEMONS[5])]),
    ]),
    class("names/servers", "name servers of other machines", &[
        Probe::new("udp", query).at(&[Word("192.0.2.1:53")]).twin_in(TwinEnv::FakeInternet)
            .blocked(&[by(Layer::Supervisor, Errno::ENETUNREACH)], LedgerEntry::To("sendto"))
            .inherited(&[by(Layer::Supervisor, Errno::EACCES)], LedgerEntry::Socket("inet", "dgram")),
        Probe::new("tcp", connect_to).at(&[Word("192.0.2.1:53")]).twin_in(TwinEnv::FakeInternet)
            .blocked(&[by(Layer::Supervisor, Errno::ENETUNREACH)], LedgerEntry::To("connect")),
    ]),
    class("names/resolver", "the port of the resolver, which answers other programs", &[
        Probe::new("tcp", serve).twin_in(TwinEnv::OwnNamespaces)
            .blocked(&[by(Layer::Capabilities, Errno::EACCES)], LedgerEntry::None),
    ]),
];

fn query(aims: &[OsString]) -> Result<String, Errno> {
    send(aims, QUERY)
}

/// Binds the port of name servers on loopback.
fn serve(_: &[OsString]) -> Result<String, Errno> {
    let (family, kind) = (AddressFamily::Inet, SockType::Stream);
    let socket = socket(family, kind, SockFlag::SOCK_CLOEXEC, None)?;
    let address = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 53));
    bind(socket.as_raw_fd(), &address).map(|()| String::new())
}
