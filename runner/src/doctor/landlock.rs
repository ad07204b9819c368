//! One denial for each ABI of Landlock: a right that the ABI brought is used, then refused with the exact errno, next to
//! a twin that still works. Each test restricts its own process.

use std::fs::{self, File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus,
    Scope,
};
use nix::errno::Errno;
use nix::mount::MsFlags;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::kill;
use nix::unistd::{getegid, geteuid, getpid, getppid, isatty, truncate};
use sandbox::error::{SetupError, Step};
use sandbox::guard::Guarded;
use sandbox::landlock::errno_within;
use sandbox::{identity, privilege, root};
use sys::errno_of;
use sys::process::OWN_FILE;
use sys::random;

use super::audited::{LOOK, TRIAL_ARGUMENT};
use super::probe::{Outcome, Refusal};
use crate::advice::Evidence;

const NULL: &str = "/dev/null";

/// An operation that Landlock denies without a rule.
type Denial = (&'static str, fn() -> Result<(), Errno>);

/// ABI 1: rights on files and directories.
pub(super) fn files() -> Outcome {
    let attempts: [Denial; 4] = [
        ("executing", execute),
        ("reading a file", || io(File::open(OWN_FILE))),
        ("writing a file", || open_to_write(NULL).map(drop)),
        ("listing a directory", || io(fs::read_dir("/"))),
    ];
    for (what, attempt) in attempts {
        must_work(what, attempt())?;
    }
    restrict(handle(1, AccessFs::from_all(ABI::V1))?)?;
    for (what, attempt) in attempts {
        must_refuse(what, Errno::EACCES, attempt())?;
    }
    must_work(
        "reading a status, which needs no right",
        io(fs::metadata("/")),
    )?;
    Ok("executing, reading, writing and listing denied".to_owned())
}

/// ABI 2: links and renames across directories.
pub(super) fn refer() -> Outcome {
    let directory = Directory::make()?;
    let base = directory.path();
    let renamed = |from: &str, to: &str| io(fs::rename(base.join(from), base.join(to)));
    must_work("renaming across directories", renamed("one/a", "two/a"))?;
    let others = AccessFs::from_all(ABI::V2) & !AccessFs::Refer;
    restrict(allowing(2, AccessFs::from_all(ABI::V2), base, others)?)?;
    let across = renamed("one/b", "two/b");
    must_refuse("renaming across directories", Errno::EXDEV, across)?;
    must_work("renaming within one", renamed("one/b", "one/c"))?;
    Ok("renaming across directories denied, within one let through".to_owned())
}

/// ABI 3: truncation.
pub(super) fn truncation() -> Outcome {
    let directory = Directory::make()?;
    let file = directory.path().join("one/a");
    must_work("truncating", truncate(&file, 1))?;
    let others = AccessFs::from_all(ABI::V3) & !AccessFs::Truncate;
    let all = AccessFs::from_all(ABI::V3);
    restrict(allowing(3, all, directory.path(), others)?)?;
    must_refuse("truncating", Errno::EACCES, truncate(&file, 0))?;
    must_work("opening to write", open_to_write(&file))?;
    Ok("truncating denied, writing allowed".to_owned())
}

/// ABI 4: TCP ports.
pub(super) fn tcp() -> Outcome {
    let [known, other] = [listen()?, listen()?];
    let connect = |to: SocketAddr| io(TcpStream::connect(to));
    let bind = || io(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    must_work("connecting", connect(other.1))?;
    must_work("binding", bind())?;
    let rule = NetPort::new(known.1.port(), AccessNet::ConnectTcp);
    let ruleset = required(4, |ruleset| {
        ruleset.handle_access(AccessNet::from_all(ABI::V4))
    })?;
    restrict(ruleset.add_rule(rule).map_err(|error| refused(4, &error))?)?;
    must_refuse("connecting", Errno::EACCES, connect(other.1))?;
    must_refuse("binding", Errno::EACCES, bind())?;
    must_work("connecting to the named port", connect(known.1))?;
    Ok("bind and connect denied, one port allowed".to_owned())
}

/// ABI 5: ioctl on devices.
pub(super) fn device_ioctl() -> Outcome {
    let ask = || open_to_write(NULL).and_then(|device| isatty(&device).map(drop));
    must_work("an ioctl on /dev/null", ask())?;
    let status = fs::metadata(NULL).map_err(|error| Refusal::Untried(error.to_string()))?;
    if !status.file_type().is_char_device() {
        return Err(Refusal::Untried("/dev/null is not a device".to_owned()));
    }
    let others = AccessFs::ReadFile | AccessFs::WriteFile;
    restrict(allowing(
        5,
        AccessFs::from_all(ABI::V5),
        Path::new("/dev"),
        others,
    )?)?;
    must_refuse("an ioctl on /dev/null", Errno::EACCES, ask())?;
    must_work("opening /dev/null", open_to_write(NULL))?;
    Ok("ioctl denied, opening allowed".to_owned())
}

/// ABI 6: abstract sockets and signals.
pub(super) fn scopes() -> Outcome {
    let name = format!("runner-doctor-{}", random::token());
    let address = UnixAddress::from_abstract_name(name.as_bytes());
    let listener =
        address.and_then(|address| UnixListener::bind_addr(&address).map(|one| (one, address)));
    let listener = listener.map_err(errno_of);
    let (_listener, address) = must_work("listening on an abstract socket", listener)?;
    let connect = || io(UnixStream::connect_addr(&address));
    // Signal 0 tests the permission and sends no signal (kill(2)).
    let signal = || kill(getppid(), None);
    must_work("connecting to an abstract socket", connect())?;
    must_work("signalling", signal())?;
    restrict(required(6, |ruleset| {
        ruleset.scope(Scope::from_all(ABI::V6))
    })?)?;
    must_refuse("signalling", Errno::EPERM, signal())?;
    must_work("signalling itself", kill(getpid(), None))?;
    // The scope covers sockets that were made outside of the domain.
    must_refuse("connecting to an abstract socket", Errno::EPERM, connect())?;
    Ok("abstract sockets and signals to the outside denied".to_owned())
}

/// ABI 7: a flag that keeps denials out of the audit log. The ABI has no right of its own.
pub(super) fn log() -> Outcome {
    let ruleset = handle(7, AccessFs::from_all(ABI::V1))?
        .set_compatibility(CompatLevel::HardRequirement)
        .log_same_exec(false)
        .map_err(|error| refused(7, &error))?;
    restrict(ruleset)?;
    must_refuse("listing a directory", Errno::EACCES, io(fs::read_dir("/")))?;
    Ok("its flags are accepted, and the rules enforced".to_owned())
}

/// A directory with two directories and two files, removed with this value or with its process.
enum Directory {
    OnDisk(Guarded),
    /// In a mount namespace of this process.
    OnTmpfs(PathBuf),
}

impl Directory {
    fn make() -> Result<Self, Refusal> {
        let made = Guarded::empty("runner-doctor").map(Self::OnDisk);
        let made = made.or_else(|_| on_tmpfs().map(Self::OnTmpfs));
        let untried = "there is no writable directory for the test";
        let directory = made.map_err(|_| Refusal::Untried(untried.to_owned()))?;
        let fill = || -> std::io::Result<()> {
            for name in ["one", "two"] {
                fs::create_dir(directory.path().join(name))?;
            }
            fs::write(directory.path().join("one/a"), "trial")?;
            fs::write(directory.path().join("one/b"), "trial")
        };
        must_work("making files to try it on", io(fill()))?;
        Ok(directory)
    }

    fn path(&self) -> &Path {
        match self {
            Self::OnDisk(guarded) => guarded.path(),
            Self::OnTmpfs(path) => path,
        }
    }
}

/// Mounts a tmpfs in new namespaces, as isolation `namespace` does.
fn on_tmpfs() -> Result<PathBuf, SetupError> {
    use sandbox::error::At as _;
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
        .at(Step::UserAndNetworkNamespace)?;
    identity::map_own(uid, gid)?;
    root::make_private()?;
    let base = root::staging()?;
    root::tmpfs(base, "mode=0755,size=1m,nr_inodes=64", MsFlags::empty())?;
    Ok(base.to_owned())
}

fn execute() -> Result<(), Errno> {
    let mut program = Command::new(OWN_FILE);
    // Inherited streams need no open(2) before execve(2).
    program.args([TRIAL_ARGUMENT, LOOK]).stdin(Stdio::inherit());
    io(program.status())
}

fn io<T>(done: std::io::Result<T>) -> Result<(), Errno> {
    done.map(drop).map_err(errno_of)
}

/// Opens a file for writing without writing to it.
fn open_to_write(path: impl AsRef<Path>) -> Result<File, Errno> {
    let opened = OpenOptions::new().write(true).open(path);
    opened.map_err(errno_of)
}

fn listen() -> Result<(TcpListener, SocketAddr), Refusal> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    must_work("listening", listener.map_err(errno_of))
}

fn handle(abi: u8, rights: BitFlags<AccessFs>) -> Result<RulesetCreated, Refusal> {
    required(abi, |ruleset| ruleset.handle_access(rights))
}

/// Makes a ruleset with hard requirements: it fails if the kernel lacks a right.
fn required(
    abi: u8,
    ask: impl FnOnce(Ruleset) -> Result<Ruleset, RulesetError>,
) -> Result<RulesetCreated, Refusal> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let made = ask(ruleset).and_then(Ruleset::create);
    made.map_err(|error| refused(abi, &error))
}

/// Makes a ruleset for `handled` rights, and allows `rights` below a path.
fn allowing(
    abi: u8,
    handled: BitFlags<AccessFs>,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Refusal> {
    let opened = PathFd::new(path).map_err(|error| Refusal::Untried(error.to_string()))?;
    let rule = PathBeneath::new(opened, rights);
    let ruleset = handle(abi, handled)?.add_rule(rule);
    ruleset.map_err(|error| refused(abi, &error))
}

fn restrict(ruleset: RulesetCreated) -> Result<(), Refusal> {
    privilege::set_no_new_privileges()?;
    let status = ruleset
        .restrict_self()
        .map_err(|error| refused(1, &error))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => Err(Refusal::Wrong(
            "the kernel accepted the ruleset and does not enforce all of it".to_owned(),
        )),
    }
}

/// Landlock itself is judged as in a run; a newer ABI needs a newer kernel.
fn refused(abi: u8, error: &RulesetError) -> Refusal {
    let errno = errno_within(error);
    let filtered = Evidence::read().is_landlock_filtered();
    let release = match abi {
        _ if filtered == Some(true) => return of_landlock(errno),
        0..=3 => return of_landlock(errno),
        4 => "6.7",
        5 => "6.10",
        6 => "6.12",
        _ => "6.15",
    };
    let lacks = format!("Landlock is missing or older than ABI {abi}");
    let cause = match filtered {
        Some(_) => lacks,
        None => format!("{lacks}, or a filter around the runner refuses its calls"),
    };
    let fix = format!("use Linux {release} or later");
    Refusal::operation("ask for the rights", errno, &cause, &fix)
}

fn of_landlock(errno: Errno) -> Refusal {
    Refusal::Step(SetupError {
        step: Step::Landlock,
        object: String::new(),
        errno: errno as i32,
    })
}

/// Succeeds if the kernel refused with exactly the expected errno.
fn must_refuse<T>(
    operation: &str,
    expected: Errno,
    found: Result<T, Errno>,
) -> Result<(), Refusal> {
    match found {
        Err(errno) if errno == expected => Ok(()),
        Err(errno) => Err(Refusal::Wrong(format!(
            "{operation} failed with {errno:?} and not with {expected:?}"
        ))),
        Ok(_) => Err(Refusal::Wrong(format!("{operation} was not refused"))),
    }
}

/// Positive twin of a denial: the same attempt before the restriction must work.
fn must_work<T>(operation: &str, found: Result<T, Errno>) -> Result<T, Refusal> {
    found.map_err(|errno| {
        Refusal::Untried(format!(
            "{operation} fails with {errno:?} without a restriction too"
        ))
    })
}
