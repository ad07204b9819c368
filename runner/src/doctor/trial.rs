//! A trial, as its own process sees it: what it observes, and its messages to the doctor.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::{WaitStatus, waitpid};
use sandbox::error::{At as _, SetupError, Step};
use sandbox::plan::Identity;
use sandbox::{identity, message};
use serde::{Deserialize, Serialize};
use sys::process::{Side, clone_process};

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
        self.map_err(|error| sandbox::error::errno_of(&error))
            .doing(operation)
    }
}

/// Message from a trial to the doctor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "trial", rename_all = "snake_case")]
pub(super) enum FromTrial {
    /// The trial is in a new user namespace, and the doctor must write its id maps.
    Unmapped { host_id: u32 },
    /// The trial has ended with this result.
    Done { observation: Observation },
}

/// Message to a trial: the id maps are written, or the error.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Mapped {
    pub(super) failed: Option<SetupError>,
}

/// The doctor's process, as seen by a trial: the socket to it, and the directory that it removes.
pub(super) struct Doctor {
    socket: OwnedFd,
    directory: String,
}

impl Doctor {
    pub(super) fn new(socket: OwnedFd, directory: &str) -> Self {
        Self {
            socket,
            directory: directory.to_owned(),
        }
    }

    /// Sends the result.
    ///
    /// # Errors
    /// The errno of sendmsg(2): the doctor has ended.
    pub(super) fn report(&self, observation: Observation) -> Result<(), Errno> {
        message::send(&self.socket, &FromTrial::Done { observation }, &[])
    }

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
