//! Features that a run uses if they are available: the supervisor copies descriptors and reads memory of the client,
//! and the file watch uses inotify where fanotify is refused.

use std::os::fd::AsFd as _;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, pause};
use sandbox::error::{At as _, Step};
use sys::notify;
use sys::process::{Side, clone_process, open_pidfd};

use super::probe::{Outcome, Refusal};

/// Bytes that are read from the child.
static TEXT: [u8; 13] = *b"runner doctor";

/// Opens a pidfd, which must signal the end of its process.
pub(super) fn pidfd() -> Outcome {
    beside(|child| {
        let pidfd = open_pidfd(child.as_raw(), 0).map_err(|errno| {
            Refusal::operation(
                "open a descriptor of a process",
                errno,
                "descriptors of processes are refused, or this kernel is older than Linux 5.3; a run does without",
                "no fix is needed; a seccomp profile that allows pidfd_open has them",
            )
        })?;
        // Fails only for a process that was reaped.
        let _ = kill(child, Signal::SIGKILL);
        let mut polled = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::from(1000_u16)) {
            Ok(1) => Ok("opened, and signalled the end".to_owned()),
            _ => Err(Refusal::Wrong("it does not signal the end".to_owned())),
        }
    })
}

/// Copies a descriptor of a child.
pub(super) fn descriptor() -> Outcome {
    beside(|child| {
        let copied = notify::copy_descriptor(child.as_raw(), child, 0);
        copied.map_err(|errno| {
            Refusal::operation(
                "copy a descriptor by pidfd_getfd",
                errno,
                "the call is refused by a filter or a security module, or not in this kernel",
                "no fix is needed; in a container, `--cap-add SYS_PTRACE` allows it",
            )
        })?;
        Ok("copied".to_owned())
    })
}

/// Reads memory of a child; a run falls back to /proc/PID/mem.
pub(super) fn memory() -> Outcome {
    beside(|child| {
        let mut bytes = [0; TEXT.len()];
        let read = notify::read_directly(child.as_raw(), TEXT.as_ptr().addr() as u64, &mut bytes);
        read.map_err(|errno| {
            Refusal::operation(
                "read memory by process_vm_readv",
                errno,
                "the call is refused by a filter or a security module; /proc/PID/mem is read instead",
                "no fix is needed; in a container, `--cap-add SYS_PTRACE` allows it",
            )
        })?;
        if bytes == TEXT {
            return Ok("read".to_owned());
        }
        Err(Refusal::Wrong(
            "the bytes are not those of the child".to_owned(),
        ))
    })
}

/// Watches a directory.
pub(super) fn inotify() -> Outcome {
    let watch = || -> Result<(), Errno> {
        let instance = Inotify::init(InitFlags::IN_CLOEXEC)?;
        instance.add_watch("/", AddWatchFlags::IN_CREATE).map(drop)
    };
    watch().map_err(|errno| {
        let (cause, fix) = if errno == Errno::EMFILE {
            (
                "this user's inotify instances are used up; without fanotify, short-lived files are then not noticed",
                "sudo sysctl fs.inotify.max_user_instances=1024",
            )
        } else {
            (
                "inotify is refused; without fanotify, short-lived files are then not noticed",
                "allow inotify_init1 and inotify_add_watch in the seccomp profile",
            )
        };
        Refusal::operation("watch a directory", errno, cause, fix)
    })?;
    Ok("an instance made, a directory watched".to_owned())
}

/// Makes an attempt on a child that waits.
fn beside(attempt: impl FnOnce(Pid) -> Outcome) -> Outcome {
    match clone_process(0).at(Step::CloneClient)? {
        Side::Child => {
            // The trial may be killed before it ends this process. prctl(2) accepts every valid signal.
            let _ = prctl::set_pdeathsig(Signal::SIGKILL);
            loop {
                pause();
            }
        }
        Side::Parent(child) => {
            let outcome = attempt(child);
            // Fails only for a process that was reaped.
            let _ = kill(child, Signal::SIGKILL);
            let _ = waitpid(child, None);
            outcome
        }
    }
}
