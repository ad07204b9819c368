//! Attempts by name resolution: daemons that resolve names, and name servers other than the resolver.

use nix::errno::Errno;

use super::class::{Aim, Attempt, Class, Layer, LedgerEntry, TwinEnv, by};
use super::network::{connect_to, send};
use super::sockets::{NO_PATH, NO_UNIX, connect_unix};
use super::twin_env::DAEMONS;

/// DNS query of type A for `runner-selftest.invalid`.
const QUERY: &[u8] = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0frunner-selftest\x07invalid\x00\x00\x01\x00\x01";

const fn daemon(name: &'static str, aims: &'static [Aim]) -> Attempt {
    Attempt::new(name, connect_unix)
        .at(aims)
        .twin_in(TwinEnv::Daemons)
        .blocked(NO_PATH, LedgerEntry::To("connect"))
        .inherited(NO_UNIX, LedgerEntry::Socket("unix", "stream"))
}

pub(super) const CLASSES: &[Class] = &[
    Class {
        id: "names/daemons",
        about: "daemons that resolve names or take requests of all users",
        attempts: &[
            daemon("nscd", &[Aim::Word(DAEMONS[0])]),
            daemon("resolved", &[Aim::Word(DAEMONS[1])]),
            daemon("dbus", &[Aim::Word(DAEMONS[2])]),
            daemon("docker", &[Aim::Word(DAEMONS[3])]),
        ],
    },
    Class {
        id: "names/servers",
        about: "name servers of other machines",
        attempts: &[
            Attempt::new("udp", query)
                .at(&[Aim::Word("192.0.2.1:53")])
                .twin_in(TwinEnv::FakeInternet)
                .blocked(
                    &[by(Layer::Supervisor, Errno::ENETUNREACH)],
                    LedgerEntry::To("sendto"),
                )
                .inherited(
                    &[by(Layer::Supervisor, Errno::EACCES)],
                    LedgerEntry::Socket("inet", "dgram"),
                ),
            Attempt::new("tcp", connect_to)
                .at(&[Aim::Word("192.0.2.1:53")])
                .twin_in(TwinEnv::FakeInternet)
                .blocked(
                    &[by(Layer::Supervisor, Errno::ENETUNREACH)],
                    LedgerEntry::To("connect"),
                ),
        ],
    },
];

fn query(aims: &[String]) -> Result<String, Errno> {
    send(aims, QUERY)
}
