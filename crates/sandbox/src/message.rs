//! Messages between the processes of a sandbox, as JSON.
//!
//! | socket | between | form |
//! |---|---|---|
//! | control | runner and stage | stream, one JSON object a line; the stub's journal once the stage serves |
//! | channel | runner and init | one JSON object a message |
//! | launch | init and the client's process before its exec | one JSON object a message |
//! | questions | runner and resolver | one JSON object a message |

use std::io::{IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sys::errno_of;
use sys::fds;

use super::error::SetupError;
use super::netns_check::Network;
use crate::dns::Asked;

/// Maximum size of a message on the channel and the launch socket, in bytes.
const MAX_MESSAGE: usize = 128 * 1024;
/// Maximum length of a line from the runner before the stage serves, in bytes.
const MAX_LINE: usize = 256;

/// Messages of the stage before it serves.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum FromStage {
    /// The user namespace exists; the runner has to write its maps.
    Unmapped,
    /// The network namespace is sealed, the stub listens and init was started. The journal follows.
    Serving {
        /// TCP port of the stub on 127.0.0.1.
        port: u16,
        /// Address of the second host, if the scenario has one.
        elsewhere: Option<SocketAddr>,
        /// Links and routes of the network namespace.
        network: Network,
    },
    /// The set-up failed and the stage ends.
    Failed {
        /// The failed step.
        error: SetupError,
    },
}

/// Messages to the stage before it serves.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum ToStage {
    /// The maps are written.
    Mapped,
}

/// Messages of init to the runner.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromInit {
    /// The root is built. The message carries descriptors: the writable trees, the fanotify group if `watched`, and
    /// the files of the traffic counters.
    Root {
        /// A fanotify group watches the writable trees.
        watched: bool,
    },
    /// The client's process has its filter. The message carries the descriptor of the listener.
    Listening,
    /// The client's process has read its layers back, before the canary.
    ReadBack {
        /// A [`SelfCheck`](super::self_check::SelfCheck), which init passes on unread.
        report: Box<RawValue>,
    },
    /// The client's process has run the canary, before its exec.
    Probed {
        /// A [`CanaryReport`](super::self_check::CanaryReport), which init passes on unread.
        report: Box<RawValue>,
    },
    /// The exec succeeded.
    Started,
    /// The exec failed.
    NotStarted {
        /// The errno of execve(2).
        errno: i32,
    },
    /// The client has ended and left processes; the supervisor has to refuse new ones before init kills the rest.
    /// Sent only without a pid namespace, whose end kills all its processes at once.
    Ending,
    /// The client and all processes that it started have ended.
    Ended {
        /// Exit status of the client, and the processes it left.
        end: ClientEnd,
    },
    /// A step failed and init ends.
    Failed {
        /// The failed step.
        error: SetupError,
    },
}

/// Messages of the runner to init.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToInit {
    /// Executes the client: every layer holds.
    Go,
    /// Kills the client.
    End,
}

/// Exit status of the client, and the processes that it left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientEnd {
    /// Exit status of the client.
    pub status: ExitStatus,
    /// Processor time of the client's own process.
    pub cpu: Duration,
    /// Ids and names of the processes that still ran 200 ms later, at most [`MAX_SURVIVORS`].
    pub survivors: Vec<(i32, String)>,
}

/// Maximum number of listed survivors; init ends the others too.
pub(crate) const MAX_SURVIVORS: usize = 64;

/// wait(2) status of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitStatus {
    /// Exit code.
    Code(i32),
    /// Number of the signal that killed the client.
    Signal(i32),
}

/// Messages of the resolver in the stage to the runner, on a socket of their own.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "resolver", rename_all = "snake_case")]
pub enum FromResolver {
    /// A queried name.
    Asked {
        /// The question.
        asked: Asked,
        /// Number of queries since the last message about this question.
        count: u64,
    },
    /// The last message: all questions but the `unheard` ones have been reported.
    Ended {
        /// Number of questions that were not reported.
        unheard: u64,
        /// Number of datagrams to and from the resolver.
        datagrams: u64,
    },
}

/// Messages between init and the client's process before its exec.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Launch {
    /// To the client: init is protected, so that probes of init are valid.
    Settled,
    /// From the client: the filter is installed. `descriptor` is the listener in the descriptor table that init and
    /// the client's process share.
    Listening { descriptor: i32 },
    /// To the client: the runner has the listener.
    Detached,
    /// To the client: execute the program.
    Go,
    /// From the client: the layers, read back.
    ReadBack { report: Box<RawValue> },
    /// From the client: result of the canary.
    Probed { report: Box<RawValue> },
    /// From the client: the exec failed. A successful exec closes the socket instead.
    NotStarted { errno: i32 },
    /// From the client: a step failed.
    Failed { error: SetupError },
}

/// Sends one message, with descriptors.
///
/// # Errors
/// The errno of sendmsg(2).
pub fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptors: &[RawFd],
) -> Result<(), Errno> {
    let bytes = serde_json::to_vec(message).map_err(|_| Errno::EINVAL)?;
    let number = socket.as_fd().as_raw_fd();
    if descriptors.is_empty() {
        // The client's process sends before the supervisor runs, so use send(2), which its filter does not notify.
        return nix::sys::socket::send(number, &bytes, MsgFlags::MSG_NOSIGNAL).map(drop);
    }
    let rights = [ControlMessage::ScmRights(descriptors)];
    let slices = [IoSlice::new(&bytes)];
    sendmsg::<()>(number, &slices, &rights, MsgFlags::MSG_NOSIGNAL, None).map(drop)
}

/// Receives one message with its descriptors; `None` if the peer has closed the socket.
///
/// # Errors
/// The errno of recvmsg(2); `EBADMSG` for any other kind of message.
pub fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
) -> Result<Option<(T, Vec<std::os::fd::OwnedFd>)>, Errno> {
    let (bytes, descriptors) = fds::receive_message(socket, MAX_MESSAGE)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let message = serde_json::from_slice(&bytes).map_err(|_| Errno::EBADMSG)?;
    Ok(Some((message, descriptors)))
}

/// Writes one line to a stream.
///
/// # Errors
/// The errno of write(2).
pub fn write_line(mut stream: impl Write, message: &impl Serialize) -> Result<(), Errno> {
    let mut line = serde_json::to_vec(message).map_err(|_| Errno::EINVAL)?;
    line.push(b'\n');
    stream.write_all(&line).map_err(errno_of)
}

/// Reads exactly one line from a stream, because another reader takes the following bytes.
///
/// # Errors
/// The errno of read(2); `EPIPE` at the end of the stream; `EBADMSG` for any other kind of message.
pub(crate) fn read_line<T: DeserializeOwned>(mut stream: impl Read) -> Result<T, Errno> {
    let mut line = Vec::new();
    let mut byte = [0; 1];
    while line.len() < MAX_LINE {
        match stream.read(&mut byte).map_err(errno_of)? {
            0 => return Err(Errno::EPIPE),
            _ if byte == *b"\n" => {
                return serde_json::from_slice(&line).map_err(|_| Errno::EBADMSG);
            }
            _ => line.extend(byte),
        }
    }
    Err(Errno::EBADMSG)
}
