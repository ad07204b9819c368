//! Processes: a clone that returns twice, and the signal to all of a namespace.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{Pid, read};

/// Our own file, also where it has been replaced since we were started.
pub const OWN_FILE: &str = "/proc/self/exe";

/// Pause between two looks at a child that has not ended.
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

/// getauxval(3), AT_EXECFN: the path by which this process was executed, as execve(2) was given it; `None` where it
/// was relative or a descriptor, and so names nothing for sure.
pub fn executed_path() -> Option<PathBuf> {
    // SAFETY: takes a number, and answers 0 for what is not there.
    let address = unsafe { libc::getauxval(libc::AT_EXECFN) } as usize;
    if address == 0 {
        return None;
    }
    let text = std::ptr::with_exposed_provenance::<libc::c_char>(address);
    // SAFETY: execve(2) has put a text that ends with a null byte there, above the stack, where it stays as long as
    // this process runs; nothing here writes to it.
    let text = unsafe { CStr::from_ptr(text) };
    let path = Path::new(OsStr::from_bytes(text.to_bytes()));
    path.is_absolute().then(|| path.to_owned())
}

/// Which side of a clone this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Parent(Pid),
    Child,
}

/// clone(2) without CLONE_VM, like fork(2), with the given CLONE_* flags besides SIGCHLD.
///
/// Call it from single-threaded processes only: the child is a copy of the calling thread, and a lock that
/// another thread held would stay locked in it. The stage and init never start a thread before their clone.
///
/// # Errors
/// The errno of clone(2): `EPERM`, `ENOSPC`, `EAGAIN`.
pub fn clone_process(flags: libc::c_int) -> Result<Side, Errno> {
    debug_assert_eq!(flags & libc::CLONE_VM, 0);
    // SAFETY: without CLONE_VM the child has its own copy of memory and a null stack means "go on with the
    // same one"; no pointer is passed that the kernel writes to.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags | libc::SIGCHLD,
            0_usize,
            0_usize,
            0_usize,
            0_usize,
        )
    };
    match Errno::result(result)? {
        0 => Ok(Side::Child),
        pid => Ok(Side::Parent(Pid::from_raw(pid as i32))),
    }
}

/// What waitpid(2) found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaped {
    /// Children there are, and none has ended.
    None,
    /// There is no child.
    NoChild,
    Exited(Pid, i32),
    /// By the signal of this number, the real-time ones too.
    Killed(Pid, i32),
}

/// waitpid(2) for any child, with the given WNOHANG or nothing. That of nix knows no real-time signal: a child
/// that one of them ended is reaped and then reported as `EINVAL`.
///
/// # Errors
/// `EINTR`, and nothing else with these arguments.
pub fn reap(flags: libc::c_int) -> Result<Reaped, Errno> {
    let mut status = 0;
    // SAFETY: the status is ours, and the kernel writes one integer to it.
    match Errno::result(unsafe { libc::waitpid(-1, &raw mut status, flags) }) {
        Ok(0) => Ok(Reaped::None),
        Ok(pid) if libc::WIFSIGNALED(status) => {
            Ok(Reaped::Killed(Pid::from_raw(pid), libc::WTERMSIG(status)))
        }
        Ok(pid) => Ok(Reaped::Exited(
            Pid::from_raw(pid),
            libc::WEXITSTATUS(status),
        )),
        Err(Errno::ECHILD) => Ok(Reaped::NoChild),
        Err(errno) => Err(errno),
    }
}

/// Waits for the end of a child, and no longer than `limit`. Returns None for a child that has not ended, such as one
/// that is stopped or in an uninterruptible call.
///
/// # Errors
/// `ECHILD` for a child that was reaped elsewhere.
pub fn wait_within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => std::thread::sleep(BETWEEN_LOOKS),
            ended => return ended,
        }
    }
}

/// Reads streams of a child to their end, without a thread, which a host with low limits may not give. Returns None at
/// the limit. Bytes that cannot be read are missing.
pub fn read_to_end_within<const N: usize>(
    mut streams: [Option<OwnedFd>; N],
    limit: Duration,
) -> Option<[Vec<u8>; N]> {
    let deadline = Instant::now() + limit;
    let mut texts = [const { Vec::new() }; N];
    let mut buffer = vec![0; 16 * 1024];
    while streams.iter().any(Option::is_some) {
        // Not left to poll(2), which finds a stream that is always full ready at once.
        let left = deadline.checked_duration_since(Instant::now())?;
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        let open: Vec<BorrowedFd<'_>> = streams.iter().flatten().map(AsFd::as_fd).collect();
        let mut polled: Vec<PollFd<'_>> = (open.into_iter())
            .map(|one| PollFd::new(one, PollFlags::POLLIN))
            .collect();
        match poll(&mut polled, left) {
            Ok(0) => return None,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Some(texts),
        }
        let ready: Vec<bool> = polled.iter().map(|one| one.any() == Some(true)).collect();
        let mut ready = ready.into_iter();
        for (stream, text) in streams.iter_mut().zip(&mut texts) {
            let Some(descriptor) = stream else { continue };
            if ready.next() != Some(true) {
                continue;
            }
            match read(descriptor, &mut buffer) {
                Ok(0) | Err(_) => *stream = None,
                Ok(length) => text.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            }
        }
    }
    Some(texts)
}

/// sigaction(2): every signal back to what it does by default, and none blocked. Rust ignores SIGPIPE, and
/// whoever started the runner may have ignored others; a program inherits both across its exec.
pub fn default_signals() {
    for number in 1..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL is no function, so nothing of ours can be called; KILL and STOP are refused by the
        // kernel, the C library refuses its own two, and neither matters.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
}

/// sigaction(2): what a terminal sends to the whole foreground group, and what asks a process to end, is ignored.
pub fn ignore_terminal_signals() {
    for number in [
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGHUP,
        libc::SIGTERM,
        libc::SIGPIPE,
    ] {
        // SAFETY: SIG_IGN is no function, so nothing of ours can be called.
        unsafe { libc::signal(number, libc::SIG_IGN) };
    }
}

/// sigaction(2): a file that would grow beyond RLIMIT_FSIZE is an error (`EFBIG`), and not the end of this process.
pub fn ignore_file_size_signal() {
    // SAFETY: SIG_IGN is no function, so nothing of ours can be called.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Those that ask for the end of a run.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// pthread_sigmask(3): from here on they wait. What is on disk already would be left there.
pub fn hold_signals() {
    let _ = SigSet::from_iter(ENDING).thread_block();
}

/// They are delivered, those that waited as well.
pub fn release_signals() {
    let _ = SigSet::from_iter(ENDING).thread_unblock();
}

/// sigaction(2): whether our caller ignored SIGHUP, as nohup(1) does.
pub fn is_hangup_ignored() -> bool {
    let mut known = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action nothing is changed, and the kernel writes one sigaction, to which the pointer points.
    let asked = unsafe { libc::sigaction(libc::SIGHUP, std::ptr::null(), known.as_mut_ptr()) };
    // SAFETY: the call has succeeded, so all of it is written.
    asked == 0 && unsafe { known.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// sigaction(2): from here on one of each signal that asks for the end is let pass, as reports are being written, and
/// another one ends this process.
pub fn let_one_signal_pass() {
    extern "C" fn pass(_: libc::c_int) {}
    let flags = SaFlags::SA_RESETHAND | SaFlags::SA_RESTART;
    let once = SigAction::new(SigHandler::Handler(pass), flags, SigSet::empty());
    let hangup_counts = !is_hangup_ignored();
    let asks = |signal: &Signal| *signal != Signal::SIGHUP || hangup_counts;
    for signal in ENDING.into_iter().filter(asks) {
        // SAFETY: the handler does nothing, so nothing in it can be unsafe in a handler. These signals can have one.
        let _ = unsafe { sigaction(signal, &once) };
    }
    // Where the run did not come to hear of them.
    release_signals();
}

/// sigaction(2): SIGCHLD as it is by default. Where our caller ignored it, nobody's end could be waited for.
pub fn default_child_signal() {
    // SAFETY: SIG_DFL is no function, so nothing of ours can be called.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn stopped_child_ends_no_wait_and_a_killed_one_does() {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "echo word; kill -STOP $$"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.stdout.take().map(OwnedFd::from);
        assert_eq!(read_to_end_within([output, None], SHORT), None);
        assert_eq!(wait_within(&mut child, SHORT).unwrap(), None);
        child.kill().unwrap();
        let status = wait_within(&mut child, Duration::from_secs(10)).unwrap();
        assert!(status.is_some_and(|status| !status.success()));
    }

    /// A stream that is always full: a program's may run dry for a moment.
    #[test]
    fn flood_ends_at_the_limit() {
        let zeros = std::fs::File::open("/dev/zero").unwrap();
        let limit = Duration::from_millis(1);
        assert_eq!(read_to_end_within([Some(zeros.into())], limit), None);
    }

    #[test]
    fn both_streams_are_read_to_their_end() {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "echo out; echo err >&2"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let streams = [
            child.stdout.take().map(OwnedFd::from),
            child.stderr.take().map(OwnedFd::from),
        ];
        let texts = read_to_end_within(streams, Duration::from_secs(10)).unwrap();
        assert_eq!(texts, [b"out\n", b"err\n"]);
        child.wait().unwrap();
    }
}
