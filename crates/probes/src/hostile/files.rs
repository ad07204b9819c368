//! Attempts by files that no rule allows to read, write or execute.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use nix::errno::Errno;

use super::class::{Aim, Attempt, Class, Layer, LedgerEntry, Refusal, by};
use super::processes::{HIDDEN, open_below};
use super::{HOSTILE_ARGUMENT, NOTHING_TO_DO, errno, own_file};

const ABSENT: &[Refusal] = &[by(Layer::OwnRoot, Errno::ENOENT)];
const READ_ONLY: &[Refusal] = &[by(Layer::OwnRoot, Errno::EROFS)];
const UNRULED: &[Refusal] = &[by(Layer::Landlock, Errno::EACCES)];

/// Attempt at a file of this machine that all users may read or write.
const fn outside(name: &'static str, make: super::class::Make, aims: &'static [Aim]) -> Attempt {
    Attempt::new(name, make)
        .at(aims)
        .blocked(ABSENT, LedgerEntry::None)
        .inherited(UNRULED, LedgerEntry::None)
}

pub(super) const CLASSES: &[Class] = &[
    Class {
        id: "files/read",
        about: "files that no rule allows to read",
        attempts: &[
            outside("file", read, &[Aim::ReadableFile]),
            outside("by-link", read_by_link, &[Aim::ReadableFile]),
            // A file of the new root, with a mode that allows all users to read.
            Attempt::new("unruled", read)
                .at(&[Aim::Word("/.canary")])
                .twin_at(&[Aim::ReadableFile])
                .blocked(UNRULED, LedgerEntry::None)
                .inherited(&[], LedgerEntry::None),
        ],
    },
    Class {
        id: "files/write",
        about: "files outside the home, such as reports and policies",
        attempts: &[
            outside("file", write, &[Aim::WritableFile]),
            outside("new", create, &[Aim::Directory]),
            Attempt::new("root", create)
                .at(&[Aim::Word("/")])
                .twin_at(&[Aim::Directory])
                .blocked(READ_ONLY, LedgerEntry::None)
                .inherited(UNRULED, LedgerEntry::None),
            Attempt::new("etc", create)
                .at(&[Aim::Word("/etc")])
                .twin_at(&[Aim::Directory])
                .blocked(READ_ONLY, LedgerEntry::None)
                .inherited(UNRULED, LedgerEntry::None),
        ],
    },
    Class {
        id: "files/own-program",
        about: "overwriting the running program",
        attempts: &[
            Attempt::new("write", open_to_write)
                .at(&[Aim::Word(OWN_PROGRAM)])
                .twin_at(&[Aim::ProgramFile])
                .blocked(
                    &[
                        by(Layer::Running, Errno::ETXTBSY),
                        by(Layer::OwnRoot, Errno::EROFS),
                        by(Layer::FileMode, Errno::EACCES),
                    ],
                    LedgerEntry::None,
                )
                .inherited(
                    &[
                        by(Layer::Running, Errno::ETXTBSY),
                        by(Layer::FileMode, Errno::EACCES),
                    ],
                    LedgerEntry::None,
                ),
            Attempt::new("mode", change_mode)
                .at(&[Aim::Word(OWN_PROGRAM)])
                .twin_at(&[Aim::ProgramFile])
                .blocked(READ_ONLY, LedgerEntry::None)
                .inherited(&[by(Layer::Supervisor, Errno::EPERM)], LedgerEntry::None),
        ],
    },
    Class {
        id: "files/magic-links",
        about: "another process's root, directory and files by /proc",
        attempts: &[
            link("root", &[Aim::Word("/proc/1/"), Aim::Word("root/")], ROOT),
            link("cwd", &[Aim::Word("/proc/1/"), Aim::Word("cwd/")], CWD),
            link("program", &[Aim::Word("/proc/1/"), Aim::Word("exe")], EXE),
        ],
    },
    Class {
        id: "files/execute",
        about: "programs that the client has written",
        attempts: &[Attempt::new("copy", execute_copy)
            .blocked(&[by(Layer::NoExec, Errno::EACCES)], LedgerEntry::None)
            .inherited(UNRULED, LedgerEntry::None)],
    },
];

/// Target that stands for the file of this program.
const OWN_PROGRAM: &str = "own-program";

const ROOT: &[Aim] = &[Aim::VictimDirectory, Aim::Word("root/")];
const CWD: &[Aim] = &[Aim::VictimDirectory, Aim::Word("cwd/")];
const EXE: &[Aim] = &[Aim::VictimDirectory, Aim::Word("exe")];

const fn link(name: &'static str, aims: &'static [Aim], twin: &'static [Aim]) -> Attempt {
    Attempt::new(name, open_below)
        .at(aims)
        .twin_at(twin)
        .blocked(HIDDEN, LedgerEntry::None)
        .inherited(UNRULED, LedgerEntry::None)
}

fn path(aims: &[String]) -> Result<&str, Errno> {
    aims.first().map(String::as_str).ok_or(Errno::EDESTADDRREQ)
}

/// Path in the home that no other process uses.
fn in_home(name: &str) -> Result<PathBuf, Errno> {
    let home = std::env::var_os("HOME").ok_or(Errno::EDESTADDRREQ)?;
    Ok(PathBuf::from(home).join(format!("{name}-{}", std::process::id())))
}

fn read(aims: &[String]) -> Result<String, Errno> {
    let mut bytes = [0; 64];
    let read = File::open(path(aims)?).and_then(|mut file| file.read(&mut bytes));
    read.map(|length| format!("{length} bytes")).map_err(errno)
}

fn read_by_link(aims: &[String]) -> Result<String, Errno> {
    let link = in_home("link")?;
    symlink(path(aims)?, &link).map_err(errno)?;
    let read = read(&[link.to_string_lossy().into_owned()]);
    fs::remove_file(link).map_err(errno)?;
    read
}

fn program(aims: &[String]) -> Result<PathBuf, Errno> {
    match path(aims)? {
        OWN_PROGRAM => Ok(own_file()),
        path => Ok(path.into()),
    }
}

fn open_to_write(aims: &[String]) -> Result<String, Errno> {
    let file = OpenOptions::new().write(true).open(program(aims)?);
    file.map(|_| String::new()).map_err(errno)
}

/// Sets the current mode again, so that a call that gets through changes nothing.
fn change_mode(aims: &[String]) -> Result<String, Errno> {
    let path = fs::canonicalize(program(aims)?).map_err(errno)?;
    let mode = fs::metadata(&path).map_err(errno)?.permissions();
    fs::set_permissions(&path, mode)
        .map(|()| String::new())
        .map_err(errno)
}

fn write(aims: &[String]) -> Result<String, Errno> {
    let file = OpenOptions::new().write(true).open(path(aims)?);
    let written = file.and_then(|mut file| file.write_all(b"selftest"));
    written.map(|()| String::new()).map_err(errno)
}

fn create(aims: &[String]) -> Result<String, Errno> {
    let path = PathBuf::from(path(aims)?).join(format!("selftest-{}", std::process::id()));
    File::create_new(&path).map_err(errno)?;
    fs::remove_file(&path).map_err(errno)?;
    Ok(path.to_string_lossy().into_owned())
}

fn execute_copy(_: &[String]) -> Result<String, Errno> {
    let copy = in_home("copy")?;
    // A failed copy says nothing about execution, so its errno must not count as a refusal.
    let copied = fs::copy(own_file(), &copy);
    let made = copied.and_then(|_| fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)));
    made.map_err(|_| Errno::EDESTADDRREQ)?;
    let run = Command::new(&copy)
        .args([HOSTILE_ARGUMENT, NOTHING_TO_DO])
        .status();
    fs::remove_file(&copy).map_err(errno)?;
    run.map(|status| status.to_string()).map_err(errno)
}
