//! Probes by kernel interfaces that no client needs.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;

use nix::errno::Errno;
use sys::attempt::{
    Argument::{self, Buffer, Number, Text, Words},
    Input, RawCall, controlling_terminal, push_input,
};
use sys::errno_of;

use super::{FILTERED, HERE, NULL};
use crate::probe::{ANY, Aim::Word, Class, LedgerEntry, Probe, class, word};

/// KEY_SPEC_PROCESS_KEYRING of keyctl(2), which ends with the process.
const PROCESS_KEYRING: Argument = Number(-2);
/// KEY_SPEC_SESSION_KEYRING.
const SESSION_KEYRING: Argument = Number(-3);
/// `union bpf_attr` of an array: key and value of 4 bytes, one entry.
const BPF_ARRAY: Argument = Words(&[2 | 4 << 32, 4 | 1 << 32, 0, 0, 0, 0, 0, 0]);
/// `struct perf_event_attr` of 64 bytes: PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, exclude_kernel, exclude_hv.
const TASK_CLOCK: Argument = Words(&[1 | 64 << 32, 1, 0, 0, 0, 1 << 5 | 1 << 6, 0, 0]);
/// `struct file_handle` of 8 bytes, which names no file.
const NO_FILE: Argument = Words(&[8 | 1 << 32, 0]);

const fn call(name: &'static str, call: RawCall, arguments: &'static [Argument]) -> Probe {
    Probe::raw(name, call, arguments).blocked(FILTERED, LedgerEntry::None)
}

const fn terminal_input(
    name: &'static str,
    make: fn(&[OsString]) -> Result<String, Errno>,
    aims: &'static [crate::probe::Aim],
) -> Probe {
    Probe::new(name, make)
        .at(aims)
        .blocked(FILTERED, LedgerEntry::None)
}

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    class("kernel/terminal-input", "typing into a terminal (TIOCSTI)", &[
        terminal_input("plain", type_in, &[Word("0")]),
        terminal_input("high-bit", type_in, &[Word("1")]),
        terminal_input("high-half", type_in, &[Word("4294967295")]),
        // ENOTTY from a file that is no terminal proves that the request arrived.
        terminal_input("standard-input", type_into_input, &[]).twin_arrives(&[Errno::ENOTTY]).canary("terminal-input", ANY),
    ]),
    // ENOTTY from a terminal that is no console proves that the request arrived.
    class("kernel/terminal-paste", "pasting into a console (TIOCLINUX)", &[
        terminal_input("plain", paste_in, &[Word("0")]).twin_arrives(&[Errno::ENOTTY]),
        terminal_input("high-bit", paste_in, &[Word("1")]).twin_arrives(&[Errno::ENOTTY]),
    ]),
    class("kernel/keyrings", "keys, which belong to no namespace", &[
        call("add", RawCall::ADD_KEY, &[Text(c"user"), Text(c"runner-selftest"), Text(c"x"), Number(1), PROCESS_KEYRING]),
        // KEYCTL_GET_KEYRING_ID, which does not create the keyring.
        call("session", RawCall::KEYCTL, &[NULL, SESSION_KEYRING, NULL]).twin_arrives(&[Errno::ENOKEY]),
        // ENOKEY proves that all keyrings were searched.
        call("request", RawCall::REQUEST_KEY, &[Text(c"user"), Text(c"runner-selftest-that-nobody-has"), NULL, NULL]).twin_arrives(&[Errno::ENOKEY]),
    ]),
    class("kernel/bpf", "programs inside the kernel", &[call("map", RawCall::BPF, &[NULL, BPF_ARRAY, Number(64)])]),
    class("kernel/perf", "performance counters", &[call("counter", RawCall::PERF_EVENT_OPEN, &[TASK_CLOCK, NULL, Number(-1), Number(-1), NULL])]),
    // UFFD_USER_MODE_ONLY.
    class("kernel/userfaultfd", "page faults handled in user space", &[call("descriptor", RawCall::USERFAULTFD, &[Number(1)])]),
    // FAN_REPORT_FID, which every user may set.
    class("kernel/fanotify", "events of files", &[call("group", RawCall::FANOTIFY_INIT, &[Number(0x200), NULL])]),
    class("kernel/handles", "files by handle, which bypass paths and mounts", &[
        // The handle has no room, so EOVERFLOW proves that the file was found.
        call("name", RawCall::NAME_TO_HANDLE_AT, &[HERE, Text(c"."), Buffer, Buffer, NULL]).twin_arrives(&[Errno::EOVERFLOW]),
        // ESTALE proves that the file was searched.
        call("open", RawCall::OPEN_BY_HANDLE_AT, &[HERE, NO_FILE, NULL]).twin_arrives(&[Errno::ESTALE]),
    ]),
];

/// Types into standard input, which is no terminal.
fn type_into_input(_: &[OsString]) -> Result<String, Errno> {
    push_input(std::io::stdin(), Input::Typed, 0).map(|()| String::new())
}

fn high(aims: &[OsString]) -> Result<u32, Errno> {
    word(aims, 0)?.parse().map_err(|_| Errno::EDESTADDRREQ)
}

fn type_in(aims: &[OsString]) -> Result<String, Errno> {
    push_input(terminal()?, Input::Typed, high(aims)?).map(|()| String::new())
}

fn paste_in(aims: &[OsString]) -> Result<String, Errno> {
    push_input(terminal()?, Input::Pasted, high(aims)?).map(|()| String::new())
}

/// Slave of a new pseudo-terminal, the controlling terminal of a new session, where TIOCSTI needs no capability.
/// Without one, standard input: the filter refuses before the kernel checks the file.
fn terminal() -> Result<OwnedFd, Errno> {
    let own = own_terminal();
    own.or_else(|_| {
        let input = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned();
        input.map_err(errno_of)
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
        .map_err(errno_of)?;
    let slave = controlling_terminal(&master)?;
    // Closing the master would hang the slave up. The end of the process closes it.
    std::mem::forget(master);
    Ok(slave)
}
