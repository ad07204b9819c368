//! Landlock probes: request each right of each ABI as a hard requirement, and test its denial.
//!
//! Each denial must have the exact errno, and must work before the restriction. The restricted process is a child, so
//! that its parent can remove the test files.

use std::fs::{self, File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{getppid, isatty, mkfifo, truncate};
use sandbox::error::errno_of;
use sandbox::landlock::errno_within;
use sys::process::OWN_FILE;
use sys::random;

use super::directory::Directory;
use super::{must_refuse, must_work};
use crate::doctor::trial::{Doctor, Observation, Outcome, in_child};

/// Tests that the kernel supports Landlock.
pub(in crate::doctor) fn present(_: &Doctor) -> Outcome {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self)
        .map_err(|error| refused("make a ruleset", &error))?;
    let missing = |errno: Errno| Observation::Refused {
        doing: "make a ruleset".to_owned(),
        errno: errno as i32,
    };
    match status.landlock {
        LandlockStatus::NotEnabled => Err(missing(Errno::EOPNOTSUPP)),
        LandlockStatus::NotImplemented => Err(missing(Errno::ENOSYS)),
        LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        } => {
            let abi = kernel_abi.unwrap_or(effective_abi as i32);
            match status.ruleset {
                RulesetStatus::NotEnforced => Err(Observation::Wrong(format!(
                    "ABI {abi}, but it is not enforced"
                ))),
                RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {
                    Ok(format!("ABI {abi}"))
                }
            }
        }
    }
}

/// ABI 1: rights on files and directories.
pub(in crate::doctor) fn files(doctor: &Doctor) -> Outcome {
    let directory = Directory::make(doctor)?;
    let base = directory.path();
    prepare(base)?;
    in_process(|| {
        let before = DENIALS.map(|(_, attempt)| attempt(base, "before"));
        restrict(handle(AccessFs::from_all(ABI::V1))?)?;
        let mut twins = 0;
        for ((what, attempt), before) in DENIALS.into_iter().zip(before) {
            if before == Err(Errno::EACCES) {
                return Err(Observation::Untried(format!(
                    "{what} is refused without Landlock too"
                )));
            }
            must_refuse(what, Errno::EACCES, attempt(base, "after"))?;
            twins += usize::from(before.is_ok());
        }
        let all = DENIALS.len();
        Ok(format!(
            "{all} rights denied, of which {twins} worked before"
        ))
    })
}

/// ABI 2: links and renames across directories.
pub(in crate::doctor) fn refer(doctor: &Doctor) -> Outcome {
    let directory = Directory::make(doctor)?;
    let base = directory.path();
    prepare(base)?;
    in_process(|| {
        let across =
            |name: &str| renamed(&base.join("one").join(name), &base.join("two").join(name));
        must_work("renaming across directories", across("before"))?;
        let others = AccessFs::from_all(ABI::V2) & !AccessFs::Refer;
        restrict(allowing(
            handle(AccessFs::from_all(ABI::V2))?,
            base,
            others,
        )?)?;
        must_refuse("renaming across directories", Errno::EXDEV, across("after"))?;
        let within = renamed(&base.join("one/after"), &base.join("one/renamed"));
        must_work("renaming within a directory", within)?;
        Ok("renaming across directories denied, within one let through".to_owned())
    })
}

/// ABI 3: truncation.
pub(in crate::doctor) fn truncation(doctor: &Doctor) -> Outcome {
    let directory = Directory::make(doctor)?;
    let base = directory.path();
    prepare(base)?;
    in_process(|| {
        let file = base.join("one/after");
        must_work("truncating", truncate(&file, 1))?;
        let others = AccessFs::from_all(ABI::V3) & !AccessFs::Truncate;
        restrict(allowing(
            handle(AccessFs::from_all(ABI::V3))?,
            base,
            others,
        )?)?;
        must_refuse("truncating", Errno::EACCES, truncate(&file, 0))?;
        must_work("opening to write", open_to_write(&file))?;
        Ok("truncating denied, writing allowed".to_owned())
    })
}

/// ABI 4: TCP ports.
pub(in crate::doctor) fn tcp(_: &Doctor) -> Outcome {
    let [known, other] = [listen()?, listen()?];
    in_process(|| {
        let connect = |to: SocketAddr| TcpStream::connect(to).map_err(|error| errno_of(&error));
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| errno_of(&error));
        must_work("connecting", connect(other.1))?;
        must_work("binding", bind())?;
        let ruleset = required(|ruleset| ruleset.handle_access(AccessNet::from_all(ABI::V4)))?;
        let rule = NetPort::new(known.1.port(), AccessNet::ConnectTcp);
        let ruleset = ruleset
            .add_rule(rule)
            .map_err(|error| refused("name a port", &error))?;
        restrict(ruleset)?;
        must_refuse("connecting", Errno::EACCES, connect(other.1))?;
        must_refuse("binding", Errno::EACCES, bind())?;
        must_work("connecting to the named port", connect(known.1))?;
        Ok("bind and connect denied, one port allowed".to_owned())
    })
}

/// ABI 5: ioctl on devices.
pub(in crate::doctor) fn device_ioctl(_: &Doctor) -> Outcome {
    in_process(|| {
        let ask = || {
            let device = open_to_write(Path::new("/dev/null"))?;
            isatty(&device).map(drop)
        };
        must_work("an ioctl on /dev/null", ask())?;
        let others = AccessFs::ReadFile | AccessFs::WriteFile;
        let ruleset = handle(AccessFs::from_all(ABI::V5))?;
        restrict(allowing(ruleset, Path::new("/dev"), others)?)?;
        must_refuse("an ioctl on /dev/null", Errno::EACCES, ask())?;
        must_work("opening /dev/null", open_to_write(Path::new("/dev/null")))?;
        Ok("ioctl denied, opening allowed".to_owned())
    })
}

/// ABI 6: abstract sockets and signals.
pub(in crate::doctor) fn scopes(_: &Doctor) -> Outcome {
    let name = format!("runner-doctor-{}", random::token());
    let address = UnixAddress::from_abstract_name(name.as_bytes());
    let listener =
        address.and_then(|address| UnixListener::bind_addr(&address).map(|one| (one, address)));
    let (_listener, address) = must_work(
        "listening on an abstract socket",
        listener.map_err(|error| errno_of(&error)),
    )?;
    in_process(|| {
        let connect = || UnixStream::connect_addr(&address).map_err(|error| errno_of(&error));
        // Signal 0 tests the permission and sends no signal (kill(2)).
        let signal = || kill(getppid(), None);
        must_work("connecting to an abstract socket", connect())?;
        must_work("signalling", signal())?;
        restrict(required(|ruleset| ruleset.scope(Scope::from_all(ABI::V6)))?)?;
        must_refuse("connecting to an abstract socket", Errno::EPERM, connect())?;
        must_refuse("signalling", Errno::EPERM, signal())?;
        must_work("signalling itself", kill(nix::unistd::getpid(), None))?;
        Ok("abstract sockets and signals to the outside denied".to_owned())
    })
}

/// ABI 7: a flag that keeps denials out of the audit log. It has no rights.
pub(in crate::doctor) fn log(_: &Doctor) -> Outcome {
    let ruleset = handle(AccessFs::from_all(ABI::V1))?;
    let ruleset = ruleset
        .set_compatibility(CompatLevel::HardRequirement)
        .log_same_exec(false)
        .map_err(|error| refused("ask for the flags of the audit log", &error))?;
    restrict(ruleset)?;
    Ok("its flags are accepted".to_owned())
}

/// An operation that Landlock denies without the right. The text distinguishes the rounds before and after.
type Denial = (&'static str, fn(&Path, &str) -> Result<(), Errno>);

#[rustfmt::skip]
const DENIALS: [Denial; 13] = [
    ("executing", |_, _| execute()),
    ("reading a file", |_, _| io(File::open(OWN_FILE))),
    ("writing a file", |_, _| open_to_write(Path::new("/dev/null")).map(drop)),
    ("listing a directory", |_, _| io(fs::read_dir("/"))),
    ("removing a file", |base, round| io(fs::remove_file(base.join("two").join(round)))),
    ("removing a directory", |base, round| io(fs::remove_dir(base.join("empty").join(round)))),
    ("making a file", |base, round| io(File::create_new(base.join(format!("file-{round}"))))),
    ("making a directory", |base, round| io(fs::create_dir(base.join(format!("directory-{round}"))))),
    ("making a link", |base, round| io(std::os::unix::fs::symlink("x", base.join(format!("link-{round}"))))),
    ("making a FIFO", |base, round| mkfifo(&base.join(format!("fifo-{round}")), Mode::S_IRUSR)),
    ("making a socket", |base, round| io(UnixListener::bind(base.join(format!("socket-{round}"))))),
    // Without CAP_MKNOD this is EPERM, and with Landlock's denial EACCES.
    ("making a character device", |base, round| device(SFlag::S_IFCHR, &base.join(format!("char-{round}")))),
    ("making a block device", |base, round| device(SFlag::S_IFBLK, &base.join(format!("block-{round}")))),
];

fn execute() -> Result<(), Errno> {
    let mut program = Command::new(OWN_FILE);
    // Inherited streams need no open(2) before execve(2).
    program.arg("--version").stdin(Stdio::inherit());
    io(program.status())
}

fn device(kind: SFlag, path: &Path) -> Result<(), Errno> {
    mknod(path, kind, Mode::S_IRUSR, makedev(1, 3))
}

fn io<T>(done: std::io::Result<T>) -> Result<(), Errno> {
    done.map(drop).map_err(|error| errno_of(&error))
}

fn renamed(from: &Path, to: &Path) -> Result<(), Errno> {
    io(fs::rename(from, to))
}

fn listen() -> Result<(TcpListener, SocketAddr), Observation> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    must_work("listening", listener.map_err(|error| errno_of(&error)))
}

/// Makes an attempt in a child process with our namespaces.
fn in_process(attempt: impl FnOnce() -> Outcome) -> Outcome {
    in_child(0, "start a process", attempt)
}

/// Opens a file for writing without writing to it.
fn open_to_write(path: &Path) -> Result<File, Errno> {
    let opened = OpenOptions::new().write(true).open(path);
    opened.map_err(|error| errno_of(&error))
}

/// Makes files and empty directories for both rounds.
fn prepare(base: &Path) -> Result<(), Observation> {
    let made = || -> std::io::Result<()> {
        for name in ["one", "two", "empty", "empty/before", "empty/after"] {
            fs::create_dir(base.join(name))?;
        }
        for name in ["one/before", "one/after", "two/before", "two/after"] {
            fs::write(base.join(name), "trial")?;
        }
        Ok(())
    };
    must_work(
        "making files to try it on",
        made().map_err(|error| errno_of(&error)),
    )
}

fn handle(rights: BitFlags<AccessFs>) -> Result<RulesetCreated, Observation> {
    required(|ruleset| ruleset.handle_access(rights))
}

/// Makes a ruleset with hard requirements: it fails if the kernel lacks a right.
fn required(
    ask: impl FnOnce(Ruleset) -> Result<Ruleset, RulesetError>,
) -> Result<RulesetCreated, Observation> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ask(ruleset)
        .and_then(Ruleset::create)
        .map_err(|error| refused("ask for the rights", &error))
}

fn allowing(
    ruleset: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Observation> {
    let opened = PathFd::new(path).map_err(|error| {
        Observation::Untried(format!("{} cannot be named: {error}", path.display()))
    })?;
    ruleset
        .add_rule(PathBeneath::new(opened, rights))
        .map_err(|error| refused("name a path", &error))
}

fn restrict(ruleset: RulesetCreated) -> Result<(), Observation> {
    let status = ruleset
        .restrict_self()
        .map_err(|error| refused("restrict a process", &error))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => Err(Observation::Wrong(
            "the kernel accepted the ruleset and does not enforce all of it".to_owned(),
        )),
    }
}

/// The errno in the error, or the errno of a kernel without the requested right.
fn refused(doing: &str, error: &RulesetError) -> Observation {
    Observation::Refused {
        doing: doing.to_owned(),
        errno: errno_within(error) as i32,
    }
}
