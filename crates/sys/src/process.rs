//! Processes: clone(2), pidfds, bounded waits for children, and signal dispositions.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{Pid, read};

/// Path of the running executable, valid even after its file was replaced.
pub const OWN_FILE: &str = "/proc/self/exe";

/// Pauses between two checks of something that ends soon: each is twice as long as the one before, from 10 to 640
/// microseconds.
#[derive(Debug, Default)]
pub struct Pauses(u32);

impl Pauses {
    /// Sleeps for the next pause.
    pub fn pause(&mut self) {
        std::thread::sleep(Duration::from_micros(10 << self.0));
        self.0 = (self.0 + 1).min(6);
    }
}

/// getauxval(3) AT_EXECFN: returns the path that was passed to execve(2) for this process. Returns `None` for a
/// relative path or a descriptor, which name no certain file.
pub fn executed_path() -> Option<PathBuf> {
    // SAFETY: getauxval takes a number, and returns 0 for an absent entry.
    let address = unsafe { libc::getauxval(libc::AT_EXECFN) } as usize;
    if address == 0 {
        return None;
    }
    let text = std::ptr::with_exposed_provenance::<libc::c_char>(address);
    // SAFETY: execve(2) put a NUL-terminated string there, above the stack. The string lives as long as this process,
    // and no code here writes to it.
    let text = unsafe { CStr::from_ptr(text) };
    let path = Path::new(OsStr::from_bytes(text.to_bytes()));
    path.is_absolute().then(|| path.to_owned())
}

/// pidfd_open(2) of a process or, with the flag `PIDFD_THREAD`, of a thread.
///
/// # Errors
/// The errno of the call: `ESRCH` if the task does not exist; `ENOSYS` before Linux 5.3.
pub fn open_pidfd(task: i32, flags: libc::c_uint) -> Result<OwnedFd, Errno> {
    // SAFETY: no memory is passed.
    let pidfd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, task, flags) })?;
    // SAFETY: pidfd_open has just created this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(pidfd as i32) })
}

/// pidfd_open(2) for one thread: with PIDFD_THREAD (Linux 6.9), before that for a thread that leads its process.
///
/// # Errors
/// `ESRCH` if the thread has ended; `EINVAL` on an older kernel for a thread that leads no process.
pub fn open_thread_pidfd(thread: i32) -> Result<OwnedFd, Errno> {
    match open_pidfd(thread, PIDFD_THREAD) {
        Err(Errno::EINVAL) => open_pidfd(thread, 0),
        opened => opened,
    }
}

/// `PIDFD_THREAD` of linux/pidfd.h.
pub(crate) const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;

/// poll(2) of a pidfd: returns true once the process or thread has ended, or if its state is unknown.
pub fn has_ended(pidfd: impl AsFd) -> bool {
    let mut polled = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO) != Ok(0)
}

/// pidfd_getfd(2): copies descriptor `number` of the process or thread of `pidfd`.
///
/// # Errors
/// The errno of the call: `EPERM` if the process may not be traced; `EBADF` if the number is not open.
pub fn get_descriptor(pidfd: impl AsFd, number: i32) -> Result<OwnedFd, Errno> {
    let pidfd = pidfd.as_fd().as_raw_fd();
    // SAFETY: no memory is passed.
    let copy = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd, number, 0) })?;
    // SAFETY: pidfd_getfd has just created this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(copy as i32) })
}

/// The two sides on which a clone returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The parent, with the process id of the child.
    Parent(Pid),
    /// The child.
    Child,
}

/// clone(2) without CLONE_VM, like fork(2), with the given CLONE_* flags and SIGCHLD.
///
/// Call it from a single-threaded process only: the child is a copy of the calling thread, and a lock that another
/// thread held would stay locked. The stage and init start no thread before their clone.
///
/// # Errors
/// The errno of clone(2): `EPERM`, `ENOSPC`, `EAGAIN`.
pub fn clone_process(flags: libc::c_int) -> Result<Side, Errno> {
    debug_assert_eq!(flags & libc::CLONE_VM, 0);
    // SAFETY: without CLONE_VM the child has its own copy of the memory; a null stack keeps the current one. The kernel
    // gets no pointer to write to.
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

/// Size of the stack of [`run_in_shared_memory`], in bytes. Its pages are mapped as they are used.
const STACK: usize = 1 << 20;
/// Size of the inaccessible part below the stack, in bytes: at least a page on each architecture.
const GUARD: usize = 64 << 10;

/// clone(2) with CLONE_VM and CLONE_VFORK, like vfork(2): runs `work` in a child and returns its id once the child has
/// ended. `work` returns the exit code.
///
/// The child has its own descriptors and everything else that fork(2) copies, but shares this process's memory. So it
/// needs no copy of the page tables, and what it leaves allocated stays. If it is killed, memory may be in the middle of
/// a change: end this process then, without trust in what the child has written. The kernel ends only the child, from
/// Linux 5.16 on also if it would dump core.
///
/// # Errors
/// The errno of mmap(2), mprotect(2) or clone(2).
pub fn run_in_shared_memory<F: FnOnce() -> i32>(work: F) -> Result<Pid, Errno> {
    extern "C" fn start<F: FnOnce() -> i32>(work: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the pointer is to the `Option` of the caller below, which sleeps until this process has ended.
        let work = unsafe { &mut *work.cast::<Option<F>>() };
        exit_now(work.take().map_or(1, |work| work()))
    }
    let stack = Stack::map()?;
    let mut work = Some(work);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: `start` runs on its own stack, which is mapped until the child has ended, because CLONE_VFORK suspends
    // this thread until then; an overflow meets the guard. The pointed-to `work` has the type that `start` expects, and
    // no other code uses it meanwhile. Locks and thread-local values are those of this thread, which the child stands
    // for.
    let child = unsafe { libc::clone(start::<F>, stack.top(), flags, (&raw mut work).cast()) };
    Errno::result(child).map(Pid::from_raw)
}

/// Mapping of a stack above a guard.
struct Stack(*mut libc::c_void);

impl Stack {
    fn map() -> Result<Self, Errno> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address of a new mapping, so no existing memory changes.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), GUARD + STACK, access, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let stack = Self(base);
        // SAFETY: the range is the lower part of the new mapping, which nothing uses yet.
        Errno::result(unsafe { libc::mprotect(base, GUARD, libc::PROT_NONE) })?;
        Ok(stack)
    }

    /// Address above the stack, which grows down; page-aligned.
    fn top(&self) -> *mut libc::c_void {
        self.0.wrapping_byte_add(GUARD + STACK)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and the process that used it has ended.
        unsafe { libc::munmap(self.0, GUARD + STACK) };
    }
}

/// _exit(2): ends this process without exit handlers. A child of [`clone_process`] has those of its parent, and running
/// them copies pages.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: the call does not return, so no destructor or borrow is left behind.
    unsafe { libc::_exit(code) }
}

/// Result of waitpid(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaped {
    /// Children exist, and all of them still run.
    None,
    /// The process has no child.
    NoChild,
    /// A child exited with this code.
    Exited(Pid, i32),
    /// A child was ended by the signal of this number, which may be a real-time signal.
    Killed(Pid, i32),
}

/// waitpid(2) for any child, with WNOHANG or 0 as `flags`.
///
/// The wrapper of nix does not know real-time signals: it reaps a child that such a signal ended, and returns `EINVAL`.
///
/// # Errors
/// `EINTR` only.
pub fn reap(flags: libc::c_int) -> Result<Reaped, Errno> {
    let mut status = 0;
    // SAFETY: the kernel writes one int to `status`.
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

/// Waits up to `limit` for the end of a child. Returns `None` if the child still runs, is stopped, or is in an
/// uninterruptible call.
///
/// # Errors
/// `ECHILD` for a child that was reaped elsewhere.
pub fn wait_within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    let mut pauses = Pauses::default();
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => pauses.pause(),
            ended => return ended,
        }
    }
}

/// Reads the streams of a child to their end. Returns `None` at the limit; after a read error, the remaining bytes are
/// missing.
///
/// No thread is started, because a host with low limits may refuse one.
pub fn read_to_end_within<const N: usize>(
    mut streams: [Option<OwnedFd>; N],
    limit: Duration,
) -> Option<[Vec<u8>; N]> {
    let deadline = Instant::now() + limit;
    let mut texts = [const { Vec::new() }; N];
    let mut buffer = vec![0; 16 * 1024];
    while streams.iter().any(Option::is_some) {
        // poll(2) does not enforce the deadline: a stream that is always full is ready at once.
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

/// sigaction(2): resets every signal to its default and unblocks all.
///
/// Rust ignores SIGPIPE, and our caller may have ignored other signals; a program inherits both across its exec.
pub fn reset_signals() {
    for number in 1..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL is not a function, so no code of ours runs. The kernel refuses KILL and STOP, and the C
        // library refuses its own two signals; neither matters.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
}

/// sigaction(2): ignores the signals that a terminal sends to its foreground group, SIGTERM and SIGPIPE.
pub fn ignore_terminal_signals() {
    for number in [
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGHUP,
        libc::SIGTERM,
        libc::SIGPIPE,
    ] {
        // SAFETY: SIG_IGN is not a function, so no code of ours runs.
        unsafe { libc::signal(number, libc::SIG_IGN) };
    }
}

/// sigaction(2): ignores SIGXFSZ, so that a write beyond RLIMIT_FSIZE fails with `EFBIG` instead of ending this
/// process.
pub fn ignore_file_size_signal() {
    // SAFETY: SIG_IGN is not a function, so no code of ours runs.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Signals that ask for the end of a run.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// pthread_sigmask(3): blocks the ending signals. Without that, their delivery would leave temporary files on disk.
pub fn block_end_signals() {
    let _ = SigSet::from_iter(ENDING).thread_block();
}

/// pthread_sigmask(3): unblocks the ending signals and delivers the pending ones.
pub fn unblock_end_signals() {
    let _ = SigSet::from_iter(ENDING).thread_unblock();
}

/// sigpending(2): returns true if an ending signal was sent while they are blocked.
pub fn is_end_signal_pending() -> bool {
    let mut pending = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the kernel writes the one set that the pointer addresses.
    let asked = unsafe { libc::sigpending(pending.as_mut_ptr()) };
    if asked != 0 {
        return false;
    }
    ENDING.into_iter().any(|signal| {
        // SAFETY: the call succeeded, so the set is initialised, and stays so for sigismember.
        unsafe { libc::sigismember(pending.as_ptr(), signal as libc::c_int) == 1 }
    })
}

/// sigaction(2): returns true if our caller ignored SIGHUP, as nohup(1) does.
pub fn is_hangup_ignored() -> bool {
    let mut known = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call changes nothing; the kernel writes the one sigaction that the pointer
    // addresses.
    let asked = unsafe { libc::sigaction(libc::SIGHUP, std::ptr::null(), known.as_mut_ptr()) };
    // SAFETY: the call succeeded, so the whole structure is initialised.
    asked == 0 && unsafe { known.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// sigaction(2): absorbs the next one of each ending signal, because reports are being written. A second one ends this
/// process.
pub fn absorb_one_signal() {
    extern "C" fn pass(_: libc::c_int) {}
    let flags = SaFlags::SA_RESETHAND | SaFlags::SA_RESTART;
    let once = SigAction::new(SigHandler::Handler(pass), flags, SigSet::empty());
    let hangup_counts = !is_hangup_ignored();
    let asks = |signal: &Signal| *signal != Signal::SIGHUP || hangup_counts;
    for signal in ENDING.into_iter().filter(asks) {
        // SAFETY: the handler is empty, so it is async-signal-safe. These signals can have a handler.
        let _ = unsafe { sigaction(signal, &once) };
    }
    // The signals are still blocked if the run never waited for them.
    unblock_end_signals();
}

/// sigaction(2): resets SIGCHLD to its default. If our caller ignored it, waitpid(2) could not report the end of a
/// child.
pub fn reset_child_signal() {
    // SAFETY: SIG_DFL is not a function, so no code of ours runs.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use nix::sys::wait::{WaitStatus, waitpid};

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

    /// Uses /dev/zero, a stream that is always full: the output of a program may be empty for a moment.
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

    #[test]
    fn a_child_in_shared_memory_has_descriptors_of_its_own() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut seen = 0;
        let child = run_in_shared_memory(|| {
            seen = std::process::id();
            // SAFETY: this process has a copy of the descriptor table, and does not use the descriptor again.
            unsafe { libc::close(file.as_raw_fd()) }
        });
        let child = child.unwrap();
        assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        assert_eq!(seen as i32, child.as_raw());
        file.metadata().unwrap();
    }

    #[test]
    fn the_end_of_a_child_in_shared_memory_ends_nobody_else() {
        let child = run_in_shared_memory(|| {
            let own = Pid::this();
            nix::sys::signal::kill(own, Signal::SIGSYS).map_or(1, |()| 0)
        });
        let child = child.unwrap();
        let status = waitpid(child, None).unwrap();
        assert!(matches!(status, WaitStatus::Signaled(_, Signal::SIGSYS, _)));
    }
}
