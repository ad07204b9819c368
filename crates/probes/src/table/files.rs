//! Probes by files that no rule allows to read, write or execute.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, mknod};
use sys::attempt::{
    Argument::{Number, Target, Text, Words},
    RawCall, call, map_program,
};
use sys::errno_of;

use super::processes::{ABSENT, HIDDEN, init_file, open_below};
use crate::own_program::{HOSTILE_ARGUMENT, NOTHING_TO_DO, own_file};
use crate::probe::{
    Aim::{self, Word},
    Class, Layer, LedgerEntry, OWN_ROOT, Probe, Refusal, by, class,
};

const READ_ONLY: &[Refusal] = &[by(Layer::OwnRoot, Errno::EROFS)];
const NOT_EXECUTABLE: &[Refusal] = &[by(Layer::Supervisor, Errno::EACCES)];
const UNRULED: &[Refusal] = &[by(Layer::Landlock, Errno::EACCES)];

/// Probe at a file of this machine that all users may read or write.
const fn outside(
    name: &'static str,
    make: fn(&[OsString]) -> Result<String, Errno>,
    aims: &'static [Aim],
) -> Probe {
    Probe::new(name, make)
        .at(aims)
        .blocked(ABSENT, LedgerEntry::None)
        .inherited(UNRULED, LedgerEntry::None)
}

/// Probe that makes a file in a directory of the new root.
const fn new_file(name: &'static str, aims: &'static [Aim]) -> Probe {
    Probe::new(name, create)
        .at(aims)
        .twin_at(&[Aim::Directory])
        .blocked(READ_ONLY, LedgerEntry::None)
}

const fn own_proc(name: &'static str, aims: &'static [Aim]) -> Probe {
    Probe::new(name, open_to_write)
        .at(aims)
        .blocked(HIDDEN, LedgerEntry::None)
        .without_proc(ABSENT)
}

/// Copy in a writable directory of the new root.
const fn copy_in(name: &'static str, aims: &'static [Aim]) -> Probe {
    Probe::new(name, execute_copy)
        .at(aims)
        .twin_at(&[Aim::Directory])
        .blocked(NOT_EXECUTABLE, LedgerEntry::None)
        .inherited(&[], LedgerEntry::None)
}

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    class("files/read", "files that no rule allows to read", &[
        outside("file", read, &[Aim::ReadableFile]),
        outside("by-link", read_by_link, &[Aim::ReadableFile]),
        outside("directory", open_below, &[Aim::Directory]),
        // A file of the new root, with a mode that allows all users to read.
        Probe::new("unruled", read).at(&[Word("/.canary")]).twin_at(&[Aim::ReadableFile])
            .blocked(UNRULED, LedgerEntry::None)
            .inherited(&[], LedgerEntry::None),
    ]),
    class("files/write", "files outside the home, such as reports and policies", &[
        outside("file", write, &[Aim::WritableFile]),
        outside("new", create, &[Aim::Directory]),
        new_file("root", &[Word("/")]).inherited(UNRULED, LedgerEntry::None).canary("write-root", OWN_ROOT),
        new_file("etc", &[Word("/etc")]).inherited(UNRULED, LedgerEntry::None),
        new_file("homes", &[Word("/home")]).inherited(UNRULED, LedgerEntry::None),
        new_file("devices", &[Word("/dev")]).inherited(UNRULED, LedgerEntry::None),
        new_file("program", &[Word("/client")]).inherited(&[], LedgerEntry::None),
    ]),
    class("files/own-program", "overwriting the running program", &[
        Probe::new("write", open_to_write).at(&[Word(OWN_PROGRAM)]).twin_at(&[Aim::ProgramFile])
            .blocked(&[by(Layer::Running, Errno::ETXTBSY), by(Layer::OwnRoot, Errno::EROFS), by(Layer::FileMode, Errno::EACCES)], LedgerEntry::None)
            .inherited(&[by(Layer::Running, Errno::ETXTBSY), by(Layer::FileMode, Errno::EACCES)], LedgerEntry::None),
        Probe::new("mode", change_mode).at(&[Word(OWN_PROGRAM)]).twin_at(&[Aim::ProgramFile])
            .blocked(READ_ONLY, LedgerEntry::None)
            .inherited(&[by(Layer::Supervisor, Errno::EPERM)], LedgerEntry::None),
    ]),
    class("files/own-proc", "the client's own files in /proc, which change its process", &[
        own_proc("name", &[Word("/proc/self/comm")]),
        own_proc("memory", &[Word("/proc/self/mem")]),
        own_proc("score", &[Word("/proc/self/oom_score_adj")]),
        own_proc("dump-filter", &[Word("/proc/self/coredump_filter")]),
        own_proc("timers", &[Word("/proc/self/timerslack_ns")]),
    ]),
    class("files/magic-links", "another process's root, directory and files by /proc", &[
        init_file!("root" open_below "root/"),
        init_file!("cwd" open_below "cwd/"),
        init_file!("program" open_below "exe"),
        // The mode allows the owner to open these directories, and inherited init has the client's user.
        init_file!("descriptors" open_below "fd/").inherited(&[], LedgerEntry::None),
        init_file!("mapped" open_below "map_files/").inherited(&[], LedgerEntry::None),
        init_file!("network" open_below "ns/net"),
        init_file!("mounts" open_below "ns/mnt"),
        init_file!("user" open_below "ns/user"),
    ]),
    class("files/execute", "programs that the client has written", &[
        Probe::new("copy", execute_copy)
            .blocked(NOT_EXECUTABLE, LedgerEntry::None),
        copy_in("tmp", &[Word("/tmp")]),
        copy_in("shared-memory", &[Word("/dev/shm")]),
        // No call to the supervisor: the mount alone refuses.
        Probe::new("map", map_copy)
            .blocked(&[by(Layer::NoExec, Errno::EPERM)], LedgerEntry::None)
            .inherited(&[], LedgerEntry::None),
    ]),
    class("files/devices", "devices and whiteouts made by the client", &[Probe::new("whiteout", make_whiteout).blocked(UNRULED, LedgerEntry::None)]),
    class("files/attributes", "attributes, which a search of the files does not read", &[Probe::new("user", set_attribute).blocked(&[by(Layer::Filter, Errno::EOPNOTSUPP)], LedgerEntry::None)]),
];

/// Target that stands for the file of this program.
const OWN_PROGRAM: &str = "own-program";

fn path(aims: &[OsString]) -> Result<&OsStr, Errno> {
    let first = aims.first().map(OsString::as_os_str);
    first.ok_or(Errno::EDESTADDRREQ)
}

/// Path in the home that no other process uses.
fn in_home(name: &str) -> Result<PathBuf, Errno> {
    let home = std::env::var_os("HOME").ok_or(Errno::EDESTADDRREQ)?;
    Ok(PathBuf::from(home).join(format!("{name}-{}", std::process::id())))
}

pub(super) fn read(aims: &[OsString]) -> Result<String, Errno> {
    let mut bytes = [0; 64];
    let read = File::open(path(aims)?).and_then(|mut file| file.read(&mut bytes));
    read.map(|length| format!("{length} bytes"))
        .map_err(errno_of)
}

fn read_by_link(aims: &[OsString]) -> Result<String, Errno> {
    let link = in_home("link")?;
    symlink(path(aims)?, &link).map_err(errno_of)?;
    let read = read(&[link.clone().into()]);
    fs::remove_file(link).map_err(errno_of)?;
    read
}

fn program(aims: &[OsString]) -> Result<PathBuf, Errno> {
    let path = path(aims)?;
    Ok(if path == OWN_PROGRAM {
        own_file()
    } else {
        path.into()
    })
}

fn open_to_write(aims: &[OsString]) -> Result<String, Errno> {
    let file = OpenOptions::new().write(true).open(program(aims)?);
    file.map(|_| String::new()).map_err(errno_of)
}

/// Sets the current mode again, so that a call that gets through changes nothing.
fn change_mode(aims: &[OsString]) -> Result<String, Errno> {
    let path = fs::canonicalize(program(aims)?).map_err(errno_of)?;
    let mode = fs::metadata(&path).map_err(errno_of)?.permissions();
    fs::set_permissions(&path, mode)
        .map(|()| String::new())
        .map_err(errno_of)
}

fn write(aims: &[OsString]) -> Result<String, Errno> {
    let file = OpenOptions::new().write(true).open(path(aims)?);
    let written = file.and_then(|mut file| file.write_all(b"selftest"));
    written.map(|()| String::new()).map_err(errno_of)
}

fn create(aims: &[OsString]) -> Result<String, Errno> {
    let path = PathBuf::from(path(aims)?).join(format!("selftest-{}", std::process::id()));
    create_at(&[path.into()])
}

/// Creates a file, and removes it again.
pub(super) fn create_at(aims: &[OsString]) -> Result<String, Errno> {
    let path = PathBuf::from(path(aims)?);
    File::create_new(&path).map_err(errno_of)?;
    fs::remove_file(&path).map_err(errno_of)?;
    Ok(path.to_string_lossy().into_owned())
}

/// Makes a character device 0:0, which needs no capability.
fn make_whiteout(_: &[OsString]) -> Result<String, Errno> {
    let path = in_home("whiteout")?;
    mknod(&path, SFlag::S_IFCHR, Mode::S_IRUSR, 0)?;
    fs::remove_file(&path).map_err(errno_of)?;
    Ok(String::new())
}

fn set_attribute(_: &[OsString]) -> Result<String, Errno> {
    let path = in_home("attribute")?;
    File::create_new(&path).map_err(errno_of)?;
    let name = Text(c"user.selftest");
    let arguments = [Target(0), name, Words(&[0]), Number(1), Number(0)];
    let set = call(RawCall::SETXATTR, &arguments, &[path.clone().into()]);
    fs::remove_file(&path).map_err(errno_of)?;
    set.map(|()| String::new())
}

/// Maps a file of the home as a program, as the loader does with a shared library.
fn map_copy(_: &[OsString]) -> Result<String, Errno> {
    let copy = in_home("map")?;
    fs::write(&copy, [0; 64]).map_err(|_| Errno::EDESTADDRREQ)?;
    let file = File::open(&copy).map_err(|_| Errno::EDESTADDRREQ)?;
    fs::remove_file(&copy).map_err(errno_of)?;
    map_program(&file).map(|()| String::new())
}

/// Copies this program to the home or the first target, and executes the copy.
fn execute_copy(aims: &[OsString]) -> Result<String, Errno> {
    let copy = match aims.first() {
        Some(directory) => PathBuf::from(directory).join(format!("copy-{}", std::process::id())),
        None => in_home("copy")?,
    };
    // A failed copy says nothing about execution, so its errno must not count as a refusal.
    let copied = fs::copy(own_file(), &copy);
    let made = copied.and_then(|_| fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)));
    made.map_err(|_| Errno::EDESTADDRREQ)?;
    let run = Command::new(&copy)
        .args([HOSTILE_ARGUMENT, NOTHING_TO_DO])
        .status();
    fs::remove_file(&copy).map_err(errno_of)?;
    run.map(|status| status.to_string()).map_err(errno_of)
}
