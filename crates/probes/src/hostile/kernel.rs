//! Attempts by kernel interfaces that no client needs.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;

use nix::errno::Errno;
use sys::{attempt, probe_calls};

use super::class::{Aim, Attempt, Class, Layer, LedgerEntry, Refusal, by};
use super::errno;

const REFUSED: &[Refusal] = &[by(Layer::Filter, Errno::EPERM)];

const fn call(name: &'static str, make: super::class::Make) -> Attempt {
    Attempt::new(name, make).blocked(REFUSED, LedgerEntry::None)
}

pub(super) const CLASSES: &[Class] = &[
    Class {
        id: "kernel/terminal-input",
        about: "typing into a terminal (TIOCSTI)",
        attempts: &[
            call("plain", type_in).at(&[Aim::Word("0")]),
            call("high-bit", type_in).at(&[Aim::Word("1")]),
            call("high-half", type_in).at(&[Aim::Word("4294967295")]),
        ],
    },
    Class {
        id: "kernel/terminal-paste",
        about: "pasting into a console (TIOCLINUX)",
        // ENOTTY from a terminal that is no console proves that the request arrived.
        attempts: &[
            call("plain", paste_in)
                .at(&[Aim::Word("0")])
                .twin_arrives(&[Errno::ENOTTY]),
            call("high-bit", paste_in)
                .at(&[Aim::Word("1")])
                .twin_arrives(&[Errno::ENOTTY]),
        ],
    },
    Class {
        id: "kernel/keyrings",
        about: "keys, which belong to no namespace",
        attempts: &[
            call("add", |_| attempt::add_key().map(|()| String::new())),
            call("session", |_| {
                attempt::find_session_keyring().map(|()| String::new())
            })
            .twin_arrives(&[Errno::ENOKEY]),
            // ENOKEY proves that all keyrings were searched.
            call("request", |_| {
                attempt::request_key().map(|()| String::new())
            })
            .twin_arrives(&[Errno::ENOKEY]),
        ],
    },
    Class {
        id: "kernel/bpf",
        about: "programs inside the kernel",
        attempts: &[call("map", |_| {
            attempt::create_bpf_map().map(|_| String::new())
        })],
    },
    Class {
        id: "kernel/perf",
        about: "performance counters",
        attempts: &[call("counter", |_| {
            attempt::open_perf_event().map(|_| String::new())
        })],
    },
    Class {
        id: "kernel/userfaultfd",
        about: "page faults handled in user space",
        attempts: &[call("descriptor", |_| {
            attempt::userfaultfd().map(|_| String::new())
        })],
    },
    Class {
        id: "kernel/handles",
        about: "files by handle, which bypass paths and mounts",
        attempts: &[
            call("name", |_| {
                attempt::name_to_handle(c".").map(|_| String::new())
            }),
            call("open", open_by_handle),
        ],
    },
];

/// Opens a file by handle. If name_to_handle_at(2) is refused, the handle is empty.
fn open_by_handle(_: &[String]) -> Result<String, Errno> {
    let handle = attempt::name_to_handle(c".").unwrap_or(attempt::Handle::empty());
    attempt::open_by_handle(&handle).map(|_| String::new())
}

fn high(aims: &[String]) -> Result<u32, Errno> {
    let word = aims.first().ok_or(Errno::EDESTADDRREQ)?;
    word.parse().map_err(|_| Errno::EDESTADDRREQ)
}

fn type_in(aims: &[String]) -> Result<String, Errno> {
    probe_calls::push_input(terminal()?, high(aims)?).map(|()| String::new())
}

fn paste_in(aims: &[String]) -> Result<String, Errno> {
    attempt::paste_selection(terminal()?, high(aims)?).map(|()| String::new())
}

/// Slave of a new pseudo-terminal, the controlling terminal of a new session, where TIOCSTI needs no capability.
/// Without one, standard input: the filter refuses before the kernel checks the file.
fn terminal() -> Result<OwnedFd, Errno> {
    let own = own_terminal();
    own.or_else(|_| {
        let input = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned();
        input.map_err(errno)
    })
}

fn own_terminal() -> Result<OwnedFd, Errno> {
    // setsid(2) fails for the leader of a process group, which has a session already.
    let _ = nix::unistd::setsid();
    let master = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY)
        .open("/dev/ptmx")
        .map_err(errno)?;
    let slave = attempt::controlling_terminal(&master)?;
    // Closing the master would hang the slave up. The end of the process closes it.
    std::mem::forget(master);
    Ok(slave)
}
