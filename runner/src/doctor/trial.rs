//! One trial: a probe in a process of its own, so that one that hangs or is killed is a result like any other.
//!
//! The doctor's side starts our own file again with a hidden first argument, writes the id maps where that takes a
//! writer outside, and waits with a time limit. The trial's side makes the attempt and tells what it came to. Owns
//! the messages between the two; what is attempted is the affair of [`super::trials`].

use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use sandbox::error::{At as _, SetupError, Step};
use sandbox::plan::Identity;
use sandbox::{identity, message};
use serde::{Deserialize, Serialize};
use sys::process::{OWN_FILE, Side, clone_process, wait_within};
use sys::random;

use super::probes;
use super::trials::directory;

/// Hidden first argument with which our own file makes one trial.
pub(crate) const TRIAL_ARGUMENT: &str = "__trial";

/// A trial takes some milliseconds; one that has not ended by then does not.
const LIMIT: Duration = Duration::from_secs(5);
/// How often it is looked whether a trial has ended without a word.
const LOOK: u16 = 50;

/// What a trial came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Observation {
    /// It works; what was seen of it.
    Works(String),
    /// The kernel refused with this errno, while this was done.
    Refused { doing: String, errno: i32 },
    /// Nothing was refused, and it is not as it must be all the same.
    Wrong(String),
    /// The trial was ended by this signal.
    Killed(i32),
    /// The trial did not end.
    Hung,
    /// It could not be tried, and why.
    Untried(String),
    /// Nobody who is started like this needs it, and why.
    NotNeeded(String),
}

/// What a trial saw, or what else it came to.
pub(super) type Outcome = Result<String, Observation>;

impl From<SetupError> for Observation {
    fn from(error: SetupError) -> Self {
        let doing = if error.object.is_empty() {
            error.step.to_string()
        } else {
            format!("{} ({})", error.step, error.object)
        };
        Self::Refused {
            doing,
            errno: error.errno,
        }
    }
}

/// Says what was done when the kernel refused.
pub(super) trait Doing<T> {
    fn doing(self, what: &str) -> Result<T, Observation>;
}

impl<T> Doing<T> for Result<T, Errno> {
    fn doing(self, what: &str) -> Result<T, Observation> {
        self.map_err(|errno| Observation::Refused {
            doing: what.to_owned(),
            errno: errno as i32,
        })
    }
}

impl<T> Doing<T> for std::io::Result<T> {
    fn doing(self, what: &str) -> Result<T, Observation> {
        self.map_err(|error| sandbox::error::errno_of(&error))
            .doing(what)
    }
}

/// From a trial.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "trial", rename_all = "snake_case")]
enum FromTrial {
    /// It is in a new user namespace, whose maps somebody outside is to write.
    Unmapped { host_id: u32 },
    /// The last word.
    Came { to: Observation },
}

/// To a trial: the maps are written, or why not.
#[derive(Debug, Serialize, Deserialize)]
struct Mapped {
    failed: Option<SetupError>,
}

/// Makes one trial and waits for it. Nothing of it is left, running or lying about.
pub(super) fn make(id: &str) -> Observation {
    let directory = format!("runner-doctor-{}", random::token());
    match start(id, &directory) {
        Ok((mut process, socket)) => {
            let observation = follow(&mut process, &socket);
            end(process);
            // One that was ended has not done it itself.
            directory::remove_left(&directory);
            observation
        }
        Err(observation) => observation,
    }
}

fn start(id: &str, directory: &str) -> Result<(Child, OwnedFd), Observation> {
    let (socket, theirs) = message_pair().doing("make a pair of sockets")?;
    let mut command = Command::new(OWN_FILE);
    command
        .arg0("runner-trial")
        .args([TRIAL_ARGUMENT, id, directory])
        .env_clear()
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    if let Some(directory) = std::env::var_os("TMPDIR") {
        command.env("TMPDIR", directory);
    }
    let process = command.spawn().doing("start /proc/self/exe")?;
    Ok((process, socket))
}

fn follow(process: &mut Child, socket: &OwnedFd) -> Observation {
    let deadline = Instant::now() + LIMIT;
    loop {
        // Its children hold the socket as well, so the end of the process is not the end of the socket.
        let ended = process.try_wait().ok().flatten();
        match told(socket) {
            Ok(Some(FromTrial::Came { to })) => return to,
            Ok(Some(FromTrial::Unmapped { host_id })) => {
                let process = Pid::from_raw(process.id() as i32);
                let failed = identity::map_other(process, host_id).err();
                // A trial that is gone by now is seen in the next round.
                let _ = message::send(socket, &Mapped { failed }, &[]);
            }
            Ok(None) | Err(_) => {
                if let Some(status) = ended {
                    return silent(status);
                }
                if Instant::now() >= deadline {
                    return Observation::Hung;
                }
            }
        }
    }
}

/// The next message; `None` where none comes within a moment.
fn told(socket: &OwnedFd) -> Result<Option<FromTrial>, Errno> {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    if poll(&mut polled, PollTimeout::from(LOOK))? == 0 {
        return Ok(None);
    }
    Ok(message::receive(socket)?.map(|(message, _)| message))
}

fn silent(status: ExitStatus) -> Observation {
    match status.signal() {
        Some(signal) => Observation::Killed(signal),
        None => Observation::Wrong(format!("the trial ended without a word, {status}")),
    }
}

fn end(mut process: Child) {
    // Fails only where all of it has ended.
    let _ = killpg(Pid::from_raw(process.id() as i32), Signal::SIGKILL);
    let _ = wait_within(&mut process, LIMIT);
}

/// The trial's side of the conversation.
pub(super) struct Doctor {
    socket: OwnedFd,
    directory: String,
}

/// Entry of the trial's process, which is told what to try, and the name of the directory that it may make for it.
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let ([id, directory], Ok(socket)) = (arguments, socket) else {
        return ExitCode::FAILURE;
    };
    let probe = id.to_str().and_then(probes::named);
    let (Some(probe), Some(directory)) = (probe, directory.to_str()) else {
        return ExitCode::FAILURE;
    };
    let doctor = Doctor {
        socket,
        directory: directory.to_owned(),
    };
    let to = (probe.trial)(&doctor).map_or_else(|other| other, Observation::Works);
    match message::send(&doctor.socket, &FromTrial::Came { to }, &[]) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody asked.
        Err(_) => ExitCode::FAILURE,
    }
}

impl Doctor {
    /// Name of the directory that this trial may make, which the doctor removes in the end.
    pub(super) fn directory(&self) -> &str {
        &self.directory
    }

    /// Writes the maps of this process's new user namespace, as a run does for whoever starts it.
    pub(super) fn write_maps(&self, identity: Identity) -> Result<(), SetupError> {
        match identity {
            Identity::Own { uid, gid } | Identity::Unmapped { uid, gid } => {
                identity::map_own(uid, gid)
            }
            Identity::Mapped { host_id } => {
                message::send(&self.socket, &FromTrial::Unmapped { host_id }, &[])
                    .at(Step::Channel)?;
                match message::receive::<Mapped>(&self.socket).at(Step::Channel)? {
                    Some((Mapped { failed: None }, _)) => Ok(()),
                    Some((
                        Mapped {
                            failed: Some(error),
                        },
                        _,
                    )) => Err(error),
                    None => Err(Errno::EPIPE).at(Step::Channel),
                }
            }
        }
    }
}

/// Two ends of a socket that keeps message borders.
pub(super) fn message_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
}

/// Makes an attempt in a child, with these namespaces of its own: what it restricts, it restricts for itself.
pub(super) fn in_child(
    flags: libc::c_int,
    what: &str,
    attempt: impl FnOnce() -> Outcome,
) -> Outcome {
    let (socket, theirs) = message_pair().doing("make a pair of sockets")?;
    match clone_process(flags).doing(what)? {
        Side::Child => {
            drop(socket);
            let told = message::send(&theirs, &attempt(), &[]);
            std::process::exit(i32::from(told.is_err()))
        }
        Side::Parent(child) => {
            drop(theirs);
            let told = message::receive::<Outcome>(&socket);
            let status = waitpid(child, None).doing("wait for the child")?;
            match (told, status) {
                (Ok(Some((outcome, _))), _) => outcome,
                (_, WaitStatus::Signaled(_, signal, _)) => Err(Observation::Killed(signal as i32)),
                _ => Err(Observation::Wrong(
                    "the child ended without a word".to_owned(),
                )),
            }
        }
    }
}
