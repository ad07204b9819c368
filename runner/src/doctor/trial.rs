//! Trials: each probe runs in a process of its own, so that the doctor survives a probe that hangs or is killed.
//!
//! The doctor starts its own executable with a hidden first argument, and waits with a time limit. If the id maps need
//! a writer outside, the doctor writes them. The trial makes the attempt and sends the result. Owns the messages
//! between both; [`super::trials`] owns the attempts.

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

/// Hidden first argument that makes this executable run one trial.
pub(crate) const TRIAL_ARGUMENT: &str = "__trial";

/// Time limit of a trial, which usually takes some milliseconds.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Interval in milliseconds at which the end of a trial without a result is detected.
const POLL_MS: u16 = 50;

/// Result of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Observation {
    /// The feature works, with details.
    Works(String),
    /// The kernel refused an operation with an errno.
    Refused { doing: String, errno: i32 },
    /// The kernel accepted the calls, but the effect is wrong.
    Wrong(String),
    /// A signal ended the trial.
    Killed(i32),
    /// The trial did not end within the time limit.
    Hung,
    /// The feature could not be tested, with the reason.
    Untried(String),
    /// Runs that are started in this way do not need the feature, with the reason.
    NotNeeded(String),
}

/// Details of a feature that works, or another observation.
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

/// Adds the attempted operation to an error.
pub(super) trait Doing<T> {
    fn doing(self, operation: &str) -> Result<T, Observation>;
}

impl<T> Doing<T> for Result<T, Errno> {
    fn doing(self, operation: &str) -> Result<T, Observation> {
        self.map_err(|errno| Observation::Refused {
            doing: operation.to_owned(),
            errno: errno as i32,
        })
    }
}

impl<T> Doing<T> for std::io::Result<T> {
    fn doing(self, operation: &str) -> Result<T, Observation> {
        self.map_err(|error| message::errno_of(&error))
            .doing(operation)
    }
}

/// Message from a trial to the doctor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "trial", rename_all = "snake_case")]
enum FromTrial {
    /// The trial is in a new user namespace, and the doctor must write its id maps.
    Unmapped { host_id: u32 },
    /// The trial has ended with this result.
    Done { observation: Observation },
}

/// Message to a trial: the id maps are written, or the error.
#[derive(Debug, Serialize, Deserialize)]
struct Mapped {
    failed: Option<SetupError>,
}

/// Runs one trial and waits for its end. Afterwards its processes and files are removed.
pub(super) fn make(id: &str) -> Observation {
    let directory = format!("runner-doctor-{}", random::token());
    match start(id, &directory) {
        Ok((mut process, socket)) => {
            let observation = wait_for_result(&mut process, &socket);
            end(process);
            // A killed trial cannot remove its directory.
            directory::remove_left(&directory);
            observation
        }
        Err(observation) => observation,
    }
}

fn start(id: &str, directory: &str) -> Result<(Child, OwnedFd), Observation> {
    let (socket, peer) = message_pair().doing("make a pair of sockets")?;
    let mut command = Command::new(OWN_FILE);
    command
        .arg0("runner-trial")
        .args([TRIAL_ARGUMENT, id, directory])
        .env_clear()
        .stdin(Stdio::from(peer))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    if let Some(directory) = std::env::var_os("TMPDIR") {
        command.env("TMPDIR", directory);
    }
    let process = command.spawn().doing("start /proc/self/exe")?;
    Ok((process, socket))
}

fn wait_for_result(process: &mut Child, socket: &OwnedFd) -> Observation {
    let deadline = Instant::now() + TIME_LIMIT;
    loop {
        // Children of the trial hold the socket open, so the end of the trial does not close it.
        let ended = process.try_wait().ok().flatten();
        match next_message(socket) {
            Ok(Some(FromTrial::Done { observation })) => return observation,
            Ok(Some(FromTrial::Unmapped { host_id })) => {
                let process = Pid::from_raw(process.id() as i32);
                let failed = identity::map_other(process, host_id).err();
                // If the trial has ended, the next round of the loop detects it.
                let _ = message::send(socket, &Mapped { failed }, &[]);
            }
            Ok(None) | Err(_) => {
                if let Some(status) = ended {
                    return ended_without_result(status);
                }
                if Instant::now() >= deadline {
                    return Observation::Hung;
                }
            }
        }
    }
}

/// The next message; `None` if none arrives within the interval.
fn next_message(socket: &OwnedFd) -> Result<Option<FromTrial>, Errno> {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    if poll(&mut polled, PollTimeout::from(POLL_MS))? == 0 {
        return Ok(None);
    }
    Ok(message::receive(socket)?.map(|(message, _)| message))
}

fn ended_without_result(status: ExitStatus) -> Observation {
    match status.signal() {
        Some(signal) => Observation::Killed(signal),
        None => Observation::Wrong(format!("the trial ended without a result, {status}")),
    }
}

fn end(mut process: Child) {
    // Fails only if all processes of the group have ended.
    let _ = killpg(Pid::from_raw(process.id() as i32), Signal::SIGKILL);
    let _ = wait_within(&mut process, TIME_LIMIT);
}

/// The doctor's process, as seen by a trial: the socket to it, and the directory that it removes.
pub(super) struct Doctor {
    socket: OwnedFd,
    directory: String,
}

/// Entry point of a trial's process. The arguments are the probe's id and the name of the directory that the trial may
/// make.
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
    let observation = (probe.trial)(&doctor).map_or_else(|other| other, Observation::Works);
    match message::send(&doctor.socket, &FromTrial::Done { observation }, &[]) {
        Ok(()) => ExitCode::SUCCESS,
        // The doctor has ended.
        Err(_) => ExitCode::FAILURE,
    }
}

impl Doctor {
    /// Name of the directory that this trial may make. The doctor removes the directory at the end.
    pub(super) fn directory(&self) -> &str {
        &self.directory
    }

    /// Writes the id maps of this process's new user namespace in the way that a run uses for this caller.
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

/// Makes a pair of sockets that keep message boundaries.
pub(super) fn message_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
}

/// Makes an attempt in a child process, which gets the new namespaces of `flags`. Restrictions then apply to the child
/// only.
pub(super) fn in_child(
    flags: libc::c_int,
    operation: &str,
    attempt: impl FnOnce() -> Outcome,
) -> Outcome {
    let (socket, peer) = message_pair().doing("make a pair of sockets")?;
    match clone_process(flags).doing(operation)? {
        Side::Child => {
            drop(socket);
            let sent = message::send(&peer, &attempt(), &[]);
            std::process::exit(i32::from(sent.is_err()))
        }
        Side::Parent(child) => {
            drop(peer);
            let received = message::receive::<Outcome>(&socket);
            let status = waitpid(child, None).doing("wait for the child")?;
            match (received, status) {
                (Ok(Some((outcome, _))), _) => outcome,
                (_, WaitStatus::Signaled(_, signal, _)) => Err(Observation::Killed(signal as i32)),
                _ => Err(Observation::Wrong(
                    "the child ended without a result".to_owned(),
                )),
            }
        }
    }
}
