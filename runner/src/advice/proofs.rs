//! Proofs by attempts: calls that an earlier filter refuses, a Landlock domain around this process, and a chroot.
//!
//! A filter may kill the caller of a call, or never answer. So the attempts run in a process of their own, whose output
//! has one line for each proof.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::Mode;
use nix::unistd::pivot_root;
use sys::attempt::{Argument, RawCall, call};
use sys::mount::open_tree;
use sys::net::set_loopback_up;
use sys::process::{OWN_FILE, Side, clone_process, read_to_end_within};

use super::mounts::Mounts;

/// Hidden first argument that starts this executable as the process of the proofs.
pub(crate) const PROOFS_ARGUMENT: &str = "__proofs";

/// Lines that prove that an earlier filter refuses a call.
pub(super) const CALLS: [&str; 7] = [
    LANDLOCK_CALL,
    "unshare",
    "clone",
    "ioctl",
    "mount",
    "open_tree",
    "pivot_root",
];

/// Line that proves that an earlier filter refuses rulesets of Landlock, which this kernel has.
pub(super) const LANDLOCK_CALL: &str = "landlock_create_ruleset";

/// Line that proves that no filter refuses rulesets of Landlock.
pub(super) const LANDLOCK_ANSWERS: &str = "landlock-answers";

/// Line that proves a Landlock domain which forbids mounts.
pub(super) const LANDLOCK_DOMAIN: &str = "landlock-domain";

/// Line that proves that the root directory is not the root of the mount namespace.
pub(super) const CHROOT: &str = "chroot";

/// Path at which no object exists.
const NOWHERE: &str = "/no such directory";

/// Time limit of the process, which takes some milliseconds.
const LIMIT: Duration = Duration::from_secs(2);

/// Makes the attempts and returns the lines; an empty list if the process cannot be started or does not end.
pub(super) fn find() -> Vec<String> {
    let mut proofs = Command::new(OWN_FILE);
    proofs.arg(PROOFS_ARGUMENT).env_clear();
    // No stream is /dev/null, which may be missing.
    proofs.stdin(Stdio::piped()).stdout(Stdio::piped());
    let started = proofs.stderr(Stdio::piped()).spawn();
    let Ok(mut process) = started else {
        return Vec::new();
    };
    let output = process.stdout.take().map(OwnedFd::from);
    let read = read_to_end_within([output], LIMIT);
    // Fails for a process that has ended.
    let _ = process.kill();
    let _ = process.wait();
    let [lines] = read.unwrap_or_default();
    let lines = String::from_utf8_lossy(&lines).into_owned();
    lines.lines().map(str::to_owned).collect()
}

/// Makes the attempts. Most have invalid arguments: a call that reaches the kernel has no effect, and fails with an errno
/// that filters do not use.
pub(crate) fn main() -> ExitCode {
    // CLONE_PTRACE is no flag of unshare(2), which checks the flags first.
    let spaces = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET;
    let unshared = unshare(spaces | CloneFlags::CLONE_PTRACE);
    prove("unshare", unshared != Err(Errno::EINVAL));
    // clone(2) refuses CLONE_FS together with a mount namespace.
    let cloned = match clone_process(libc::CLONE_NEWNS | libc::CLONE_FS) {
        Ok(Side::Child) => return ExitCode::SUCCESS,
        Ok(Side::Parent(_)) => Errno::UnknownErrno,
        Err(errno) => errno,
    };
    prove("clone", cloned != Errno::EINVAL);
    let mounted = mount_private(NOWHERE);
    prove("mount", mounted != Err(Errno::ENOENT));
    prove(CHROOT, is_in_chroot() == Ok(true));
    // Without namespaces of its own, this process must not touch mounts or links.
    if unshare(spaces | CloneFlags::CLONE_NEWNS).is_ok() {
        let nowhere = Path::new(NOWHERE);
        let opened = open_tree(c"/no such directory").map(drop);
        prove("open_tree", opened != Err(Errno::ENOENT));
        let entered = pivot_root(nowhere, nowhere);
        prove("pivot_root", entered != Err(Errno::ENOENT));
        // The next two need the same capabilities, which AppArmor may have dropped.
        if open_tree(c"/").is_ok() {
            let failed = loopback_up().err();
            // ENODEV: this kernel has no loopback device.
            prove("ioctl", failed.is_some_and(|errno| errno != Errno::ENODEV));
            // A domain with rules for files refuses mount(2), and no other mount call (landlock(7)).
            let passes = mounted == Err(Errno::ENOENT);
            prove(
                LANDLOCK_DOMAIN,
                passes && mount_private("/") == Err(Errno::EPERM),
            );
        }
    }
    prove_landlock();
    ExitCode::SUCCESS
}

/// Tells a kernel without Landlock from a filter that imitates one. If Landlock is active, the kernel answers unknown
/// flags with EINVAL and rules for a missing ruleset with EBADF; otherwise each call fails with the same errno.
fn prove_landlock() {
    use Argument::Number;
    const UNKNOWN_FLAG: i64 = 1 << 30;
    let create = [Number(0), Number(0), Number(UNKNOWN_FLAG)];
    let created = call(RawCall::LANDLOCK_CREATE_RULESET, &create, &[]);
    let add = [Number(-1), Number(0), Number(0), Number(0)];
    let added = call(RawCall::LANDLOCK_ADD_RULE, &add, &[]);
    let is_answer = created == Err(Errno::EINVAL);
    prove(LANDLOCK_ANSWERS, is_answer);
    prove(LANDLOCK_CALL, !is_answer && added == Err(Errno::EBADF));
}

fn prove(name: &str, is_proved: bool) {
    // A failed write means that the caller has ended.
    let _ = is_proved.then(|| writeln!(std::io::stdout(), "{name}"));
}

/// Compares the root with that of the mount namespace, which setns(2) enters. Only root may enter it.
fn is_in_chroot() -> Result<bool, Errno> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let this = open("/proc/self", flags, Mode::empty())?;
    let root = || -> Result<Option<String>, Errno> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let mounts = File::from(openat(&this, "mountinfo", flags, Mode::empty())?);
        Ok(Mounts::read(mounts).root_id())
    };
    let own = root()?;
    let namespace = openat(&this, "ns/mnt", OFlag::O_CLOEXEC, Mode::empty())?;
    setns(namespace, CloneFlags::CLONE_NEWNS)?;
    Ok(root()? != own)
}

fn loopback_up() -> Result<(), Errno> {
    let (family, kind) = (AddressFamily::Inet, SockType::Datagram);
    set_loopback_up(socket(family, kind, SockFlag::SOCK_CLOEXEC, None)?)
}

fn mount_private(path: &str) -> Result<(), Errno> {
    let flags = MsFlags::MS_PRIVATE;
    mount(None::<&str>, path, None::<&str>, flags, None::<&str>)
}
