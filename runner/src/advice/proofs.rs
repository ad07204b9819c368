//! Proofs by attempts: calls that an earlier filter refuses, a Landlock domain around this process, and a chroot.
//!
//! A filter may kill the caller of a call, or never answer. So the attempts run in a process of their own, whose output
//! has one line for each proof.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::Mode;
use sys::mount::open_tree;
use sys::process::{OWN_FILE, Side, clone_process, read_to_end_within};

use super::mounts::Mounts;

/// Hidden first argument that starts this executable as the process of the proofs.
pub(crate) const PROOFS_ARGUMENT: &str = "__proofs";

/// Lines that prove that an earlier filter refuses a call.
pub(super) const CALLS: [&str; 3] = ["unshare", "clone", "mount"];

/// Line that proves a Landlock domain which forbids mounts.
pub(super) const LANDLOCK_DOMAIN: &str = "landlock-domain";

/// Line that proves that the root directory is not the root of the mount namespace.
pub(super) const CHROOT: &str = "chroot";

/// Time limit of the process, which takes some milliseconds.
const LIMIT: Duration = Duration::from_secs(2);

/// Makes the attempts and returns the lines; an empty list if the process cannot be started or does not end.
pub(super) fn find() -> Vec<String> {
    let mut proofs = Command::new(OWN_FILE);
    proofs.arg(PROOFS_ARGUMENT).env_clear().stdin(Stdio::null());
    let started = proofs.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
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

/// Makes the attempts. Each has invalid arguments: a call that reaches the kernel has no effect, and fails with an errno
/// that filters do not use.
pub(crate) fn main() -> ExitCode {
    let prove = |name: &str, is_proved: bool| {
        // A failed write means that the caller has ended.
        let _ = is_proved.then(|| writeln!(std::io::stdout(), "{name}"));
    };
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
    let passes = mount_private("/no such directory") == Err(Errno::ENOENT);
    prove("mount", !passes);
    // These two change the namespaces of this process, so they come last.
    prove(CHROOT, is_in_chroot() == Ok(true));
    prove(LANDLOCK_DOMAIN, passes && is_in_landlock_domain());
    ExitCode::SUCCESS
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

/// Tests for a domain with rules for files, which refuses mount(2) with EPERM and permits open_tree(2) (landlock(7)).
fn is_in_landlock_domain() -> bool {
    // Without a mount namespace of its own, this process must not touch the mounts.
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).is_ok()
        // open_tree(2) needs the same capability as mount(2).
        && open_tree(c"/").is_ok()
        && mount_private("/") == Err(Errno::EPERM)
}

fn mount_private(path: &str) -> Result<(), Errno> {
    let flags = MsFlags::MS_PRIVATE;
    mount(None::<&str>, path, None::<&str>, flags, None::<&str>)
}
