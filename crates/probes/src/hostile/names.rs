//! Ways out by names: daemons that look names up for others, and servers that are asked past the resolver.

use nix::errno::Errno;

use super::class::{Aim, Attempt, Class, Layer, LedgerEntry, Surroundings, by};
use super::network::{connect_to, send};
use super::sockets::{NO_PATH, NO_UNIX, connect_unix};
use super::surroundings::DAEMONS;

/// A query for one name, type A: header with one question, `runner-selftest.invalid`.
const QUERY: &[u8] = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0frunner-selftest\x07invalid\x00\x00\x01\x00\x01";

const fn daemon(name: &'static str, aims: &'static [Aim]) -> Attempt {
    Attempt::new(name, connect_unix)
        .at(aims)
        .twin_in(Surroundings::Daemons)
        .blocked(NO_PATH, LedgerEntry::To("connect"))
        .inherited(NO_UNIX, LedgerEntry::Socket("unix", "stream"))
}

pub(super) const CLASSES: &[Class] = &[
    Class {
        id: "names/daemons",
        about: "daemons that look names up, or work for whoever asks",
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
                .twin_in(Surroundings::World)
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
                .twin_in(Surroundings::World)
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
